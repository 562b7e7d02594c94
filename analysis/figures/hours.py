"""Hours that a million env steps take with real workers, by setting, and what the workers' time goes to in them."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from analysis.data.study import Study
from analysis.figures import style
from analysis.figures.figure import StudyFigure
from analysis.words import number, percent

PARTS = {
    "game": "the game",
    "act": "choosing actions",
    "gradient": "gradients",
    "exchange": "exchange",
    "wait": "waiting",
}
_EXCHANGE = ("worker_pull_s", "worker_apply_s")
_ROW_INCHES = 0.22
_TOO_FEW = 1_000  # episodes to learn anything from


def hours(study: Study) -> pd.DataFrame:
    """Return a row for each setting: its hours for a million env steps, by PARTS; medians of its runs."""
    runs = study.shown.done
    acted_s = runs["worker_act_s"].fillna(0.0) if "worker_act_s" in runs else 0.0
    parts = pd.DataFrame(
        {
            "game": runs["worker_play_s"] - acted_s,
            "act": acted_s,
            "gradient": runs["worker_gradient_s"],
            "exchange": runs[list(_EXCHANGE)].sum(axis=1),
            "wait": runs["worker_wait_s"],
        }
    )
    shares = parts.div(parts.sum(axis=1), axis=0)
    per_million = 1e6 / runs["env_steps_per_s"] / 3600
    table = shares.mul(per_million, axis=0).groupby(runs["schedule"], sort=False).median()
    return table.reindex([schedule.label for schedule in study.shown.schedules()])


def plot_hours(study: Study, ax: Axes) -> Axes:
    """Draw the hours as one bar for each setting, in parts."""
    table = hours(study)
    rows, left = np.arange(len(table))[::-1], np.zeros(len(table))
    for place, (name, words) in enumerate(PARTS.items()):
        ax.barh(rows, table[name], left=left, height=0.75, color=style.setting_colour(place), label=words)
        left += table[name].to_numpy(float)
    for row, total in zip(rows, left, strict=True):
        ax.annotate(number(total), (total, row), (4, 0), textcoords="offset points", va="center", fontsize=8)
    style.rows(ax, [str(label) for label in table.index[::-1]], _ROW_INCHES)
    ax.set_xlim(0, 1.12 * float(left.max()))
    ax.set_xlabel("hours per million env steps")
    ax.set_title("Hours per million steps")
    style.note(ax, "parts: shares of the workers' time; agents of ga3c choose by waiting for a predictor")
    style.legend_of_parts(ax)
    return ax


def sentence(study: Study) -> str:
    """Say which settings are the fastest and the slowest, and what the fastest one's time goes to."""
    table = hours(study)
    total: dict[str, float] = table.sum(axis=1).to_dict()  # type: ignore[assignment]
    fastest, slowest = min(total, key=lambda name: total[name]), max(total, key=lambda name: total[name])
    parts: dict[str, float] = {name: float(table.at[fastest, name]) for name in PARTS}  # type: ignore[arg-type]
    most = max(parts, key=lambda name: parts[name])
    said = f"A million env steps take {number(total[fastest])} hours with {fastest}"
    said += f" and {number(total[slowest])} with {slowest}"
    return f"{said}; of the former, {percent(parts[most] / total[fastest])} of the workers' time goes to {PARTS[most]}."


def applies(study: Study) -> bool:
    """Apply where real workers are compared whose time is known; compiled ones play and learn in one go."""
    known = study.done["engine"].eq("tensorflow") & study.done["runtime"].isin(["processes", "threads"])
    return study.compares_settings and bool(known.any()) and bool(known.all())


def is_the_answer(study: Study) -> bool:
    """Return whether the study asks for nothing else: so few episodes teach nothing, whatever their scores are."""
    return applies(study) and study.planned_episodes <= _TOO_FEW


FIGURE = StudyFigure(
    name="hours",
    title="Hours per million steps, and where they go",
    panels=(plot_hours,),
    sentence=sentence,
    section="why",
    applies=applies,
    whole=True,
)
ANSWER = FIGURE._replace(section="settings", applies=is_the_answer)
