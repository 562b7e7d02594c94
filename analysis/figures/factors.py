"""What each factor of a factorial study does, by number of workers, and whether that depends on their number."""

from functools import partial

import pandas as pd
from matplotlib.axes import Axes

from analysis.data.factors import OUTCOMES, effects, factors_of
from analysis.data.study import Study
from analysis.figures import style
from analysis.figures.figure import StudyFigure
from analysis.words import count, listed, number

_LABELS = {
    "learned": "change of the share",
    "learning_begins": "change (episodes)",
    "final_score": "change of the score",
}


def plot_effect(study: Study, ax: Axes, outcome: str) -> Axes:
    """Draw what every factor changes in an outcome over workers, against its first level."""
    table = effects(study)
    table = table[table["outcome"] == outcome]
    for place, ((factor, level), rows) in enumerate(table.groupby(["factor", "level"], sort=False)):
        look = style.setting_line(place)
        x = rows["workers"] * 1.015 ** (place - 1)  # beside each other
        ax.plot(x, rows["effect"], label=_name(str(factor), str(level)), **look)
        ax.vlines(x, rows["low"], rows["high"], color=look["color"], linewidth=1.4, alpha=0.55)
    ax.axhline(0.0, color=style.MUTED, linewidth=1.0)
    style.worker_axis(ax, sorted(set(table["workers"])))
    style.plain(ax.yaxis)
    ax.set_ylabel(_LABELS[outcome])
    ax.set_title(f"Effects: {OUTCOMES[outcome]}")
    style.note(ax, "against the factor's first level, paired by seed; lines: 95 % intervals")
    style.legend(ax, "factor")
    return ax


def sentence(study: Study) -> str:
    """Say which effects depend on the number of workers, after Holm's correction for all of them."""
    tests = effects(study).drop_duplicates(["factor", "level", "outcome"])
    holding = tests[tests["holds"]]
    asked = f"{count(len(tests), 'test')} of factor × workers (permutations paired by seed, Holm)"
    if not len(holding):
        return f"None of {asked} finds an effect that depends on the number of workers."
    return f"Of {asked} these find an effect that depends on the number of workers: {listed(_tests(holding))}."


def _tests(holding: pd.DataFrame) -> list[str]:
    rows = holding[["factor", "level", "outcome", "interaction"]].to_numpy()
    return [f"{_name(factor, level)} on {OUTCOMES[outcome]} (p = {number(p)})" for factor, level, outcome, p in rows]


def _name(factor: str, level: str) -> str:
    return f"{factor.rpartition('.')[2].replace('_', ' ')} {level}"


def applies(study: Study) -> bool:
    """Apply where two or more factors vary besides fixed worker counts, each with all levels of the others."""
    fixed = study.done[~study.done["dynamic"].astype(bool)]
    known = "settings" in fixed and "learning_begins" in fixed
    return bool(known and len(factors_of(study)) >= 2 and fixed["end"].nunique() >= 2)


FIGURE = StudyFigure(
    name="factors",
    title="Factors, by number of workers",
    panels=tuple(partial(plot_effect, outcome=outcome) for outcome in OUTCOMES),
    sentence=sentence,
    section="settings",
    applies=applies,
    whole=True,
)
