"""How likely a run is to learn, by its number of workers, against the limit that was known before."""

import pandas as pd
from matplotlib.axes import Axes

from analysis.data import outcomes
from analysis.data.capacity import limit_of
from analysis.data.study import Study
from analysis.figures import style
from analysis.figures.figure import StudyFigure
from analysis.figures.sentences import sentence as as_sentence
from analysis.words import listed, percent

_APART = 1.008  # times as many workers, from a setting's marker to the next one's
_MANY = 4  # worker counts that make a cliff visible
_MOST_SAID = 4  # settings in a row that people still read


def cliff(part: Study) -> pd.DataFrame:
    """Return a row for each fixed worker count of one setting: the share of runs that learned, with its interval."""
    shares = {schedule.end: outcomes.share_learned(part, schedule) for schedule in part.schedules(dynamic=False)}
    return pd.DataFrame.from_dict(shares, orient="index", columns=["share", "low", "high", "runs"])


def plot_cliff(study: Study, ax: Axes) -> Axes:
    """Draw the share of runs that learned over workers, a line for each setting, and its limit as a vertical one."""
    counts: set[int] = set()
    for place, variant in enumerate(study.done_variants):
        part, look = study.of_variant(variant), style.setting_line(place)
        table, limit = cliff(part), limit_of(part)
        counts |= set(table.index)
        x = table.index * _APART ** (place - (len(study.done_variants) - 1) / 2)  # intervals beside each other
        ax.plot(x, table["share"], label=variant or "runs that learned", **look)
        ax.vlines(x, table["low"], table["high"], color=look["color"], linewidth=1.4, alpha=0.4)
        if limit:
            ax.axvline(limit.workers, color=look["color"], linestyle="dotted", linewidth=1.2)
    style.worker_axis(ax, sorted(counts))
    ax.set_ylim(-0.03, 1.03)
    ax.set_ylabel("share of runs that learned")
    ax.set_title("How likely a run is to learn")
    style.note(ax, "lines: 95 % intervals (Wilson); dotted: limit known before the runs")
    style.legend(ax, "setting")
    return ax


def sentence(study: Study) -> str:
    """Say for each setting between which worker counts most runs stop learning, and where that was to be."""
    said = [_of(study.of_variant(variant), variant) for variant in study.done_variants]
    more = f" ({len(said) - _MOST_SAID} more settings are drawn)" if len(said) > _MOST_SAID else ""
    return as_sentence("; ".join(said[:_MOST_SAID]) + more)


def _of(part: Study, variant: str) -> str:
    limit, table = limit_of(part), cliff(part)
    where = f"with {variant} " if variant else ""
    known = f", where {limit.words} was known before" if limit else ""
    fine, lost = table[table["share"] > 0.5], table[table["share"] <= 0.5]
    if not len(fine) or not len(lost):
        counts, many = listed(map(str, table.index)), "most" if len(fine) else "few"
        return f"{where}{many} runs learn with any of {counts} workers{known}"
    ends = [f"{_share(side)} with {side.name} workers" for side in (fine.iloc[-1], lost.iloc[0])]
    return f"{where}the share of runs that learn is {' and '.join(ends)}{known}"


def _share(row: pd.Series) -> str:
    return f"{percent(row['share'])} [{percent(row['low'])}, {percent(row['high'])}]"


def applies(study: Study) -> bool:
    """Apply where some setting has many fixed worker counts, and not all runs learned."""
    if bool((study.done["final_score"] >= study.score.learned_above).all()):
        return False
    parts = [study.of_variant(variant) for variant in study.done_variants]
    return any(len(part.schedules(dynamic=False)) >= _MANY for part in parts)


FIGURE = StudyFigure(
    name="cliff",
    title="The cliff: who learns, by number of workers",
    panels=(plot_cliff,),
    sentence=sentence,
    section="why",
    applies=applies,
    whole=True,
)
