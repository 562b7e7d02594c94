"""How well virtual time predicts paced processes: the table, what it comes to, and what is off."""

from collections.abc import Iterable, Iterator
from functools import partial

from experiments.agreement.figure import draw
from experiments.agreement.paced import PacedComparison
from experiments.agreement.report import Report, number

QUANTITIES = {  # fields of an outcome: what they are called, how they are written, and what error is tolerated
    "episodes_per_s": ("episodes/s", "{:.2f}", 0.03),
    "master_utilisation": ("utilisation", "{:.3f}", 0.03),
    "staleness_mean": ("staleness", "{:,.1f}", 0.03),
    "queue_growth": ("queue's growth/s", "{:.2f}", 0.05),
}
TOLERATED_LATE = 0.05
_PANELS = {  # quantity: (title, unit)
    "episodes_per_s": ("Throughput", "episodes/s"),
    "staleness_mean": ("Mean staleness", "updates"),
    "queue_growth": ("Growth of the queue", "gradients/s"),
}
_LEGEND = (
    "Pairs are predicted / measured, in the profile's seconds; utilisation is the master's. Errors: of episodes/s, "
    "staleness and the queue's growth (where it does not grow, relative to episodes/s). Late: work that took longer "
    "than its pace."
)


def report_of(comparisons: list[PacedComparison], speed: float) -> Report:
    """Return all that is to be read of the comparisons."""
    return Report(
        "paced",
        f"virtual time against processes paced at speed {speed:g}",
        "Does virtual time predict real processes that are paced to the report's costs?",
        f"python -m experiments.validate --paced --speed {speed:g}",
        table(comparisons),
        list(rows(comparisons, speed)),
        _LEGEND,
        closing(comparisons),
        partial(draw, comparisons, panels=_PANELS),
    )


def rows(comparisons: Iterable[PacedComparison], speed: float) -> Iterator[dict[str, object]]:
    """Yield one row per setting: predicted, measured and error of every quantity, to four digits."""
    for comparison in comparisons:
        row: dict[str, object] = {**vars(comparison.setting), "speed": speed}
        for quantity in QUANTITIES:
            for name, value in zip(("predicted", "measured"), comparison.values(quantity), strict=True):
                row[f"{quantity}_{name}"] = number(value)
            row[f"{quantity}_error"] = round(comparison.error(quantity), 4)
        yield {**row, "late_share": round(comparison.measured.late_share, 4)}


def table(comparisons: Iterable[PacedComparison]) -> list[list[str]]:
    """Return the table as words, its heading first: each quantity as predicted / measured, then errors."""
    names = [name for name, *_ in QUANTITIES.values()]
    return [["exchange", "workers", *names, "errors", "late"], *map(_line, comparisons)]


def _line(comparison: PacedComparison) -> list[str]:
    pairs = [
        " / ".join(form.format(value) for value in comparison.values(quantity))
        for quantity, (_, form, _) in QUANTITIES.items()
    ]
    return [
        comparison.setting.exchange,
        str(comparison.setting.workers),
        *pairs,
        errors(comparison),
        f"{comparison.measured.late_share:.1%}",
    ]


def errors(comparison: PacedComparison) -> str:
    """Return the errors of what is compared, in words."""
    quantities = ("episodes_per_s", "staleness_mean", "queue_growth")
    return " ".join(f"{comparison.error(quantity):+.1%}" for quantity in quantities)


def off(comparison: PacedComparison) -> list[str]:
    """Return what is further off than tolerated, in words."""
    return [
        f"{name} {comparison.error(quantity):+.1%}"
        for quantity, (name, _, tolerance) in QUANTITIES.items()
        if abs(comparison.error(quantity)) > tolerance
    ]


def closing(comparisons: list[PacedComparison]) -> str:
    """Return how many settings are predicted well, and which are not; where much work was late, that is why."""
    named = {str(comparison.setting): off(comparison) for comparison in comparisons}
    good = sum(not found for found in named.values())
    said = (
        f"In {good} of {len(comparisons)} settings throughput, utilisation and staleness are predicted within 3 %, "
        "and the queue's growth within 5 %."
    )
    wrong = "; ".join(f"{setting} ({', '.join(found)})" for setting, found in named.items() if found)
    late = [str(c.setting) for c in comparisons if c.measured.late_share > TOLERATED_LATE]
    slow = (
        f" More than {TOLERATED_LATE:.0%} of the work was late, so that a lower --speed is needed: {'; '.join(late)}."
    )
    return said + (f" Off: {wrong}." if wrong else "") + (slow if late else "")
