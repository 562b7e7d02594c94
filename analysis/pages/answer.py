"""The study's answer: how many runs learned, in one fixed sentence, and a table of what each worker count came to."""

from typing import NamedTuple

from analysis.data import outcomes
from analysis.data.capacity import limit_of
from analysis.data.study import Schedule, Study
from analysis.figures import hours
from analysis.figures.main import main_figure
from analysis.words import count, number, percent, with_interval

_MOST_ROWS = 24  # of the table in a README
_LIMITS = {"N0": "N0 = C / S", "N*": "N* = (C + S) / S"}


class AnswerTable(NamedTuple):
    """What each setting and worker count came to, as text."""

    columns: list[str]
    rows: list[list[str]]


def answer(study: Study) -> str:
    """Return how many of the study's runs learned, and how many workers the master was predicted to keep up with."""
    if not len(study.done):
        return "There is no answer yet: no run of this study is finished. What is missing stands below."
    if hours.is_the_answer(study):
        return main_figure(study).says(study)
    return f"{_learned(study)}{_predicted(study)}{_identical(study)}"


def _learned(study: Study) -> str:
    runs = count(len(study.done), "run")
    if outcomes.too_short(study):
        return f"Too short to tell: none of {runs} reached what counts as learned, {study.score.threshold}."
    hits = int((study.done["final_score"] >= study.score.learned_above).sum())
    return f"{hits} of {runs} learned: their final score is at least {study.score.threshold}."


def _predicted(study: Study) -> str:
    limit = limit_of(study)
    if limit is None:
        return ""
    return (
        f" Before the runs, {_LIMITS[limit.name]} predicted that the master keeps up with {number(limit.workers)}"
        f" workers (median over seeds; {number(limit.low)} to {number(limit.high)})."
    )


def _identical(study: Study) -> str:
    """Name schedules whose runs are those of another, record for record: they are shown once."""
    return "".join(f" {same} ran exactly as {shown}, and is shown as that." for shown, same in study.identical)


def answer_table(study: Study) -> AnswerTable:
    """Return one row per setting and worker count: who learned, scores, speed, staleness, predicted limit."""
    several, unit = len(study.done_variants) > 1, study.score.unit
    columns = ["workers", "runs that learned", f"final score ({unit}), all runs", f"final score ({unit}), learned runs"]
    columns += ["steps/s", "staleness (updates)", "predicted limit (workers)"]
    rows = []
    for variant in study.done_variants:
        part = study.of_variant(variant)
        limit = limit_of(part)
        for schedule in part.schedules():
            cells = [schedule.label, _share(part, schedule), *_scores(part, schedule)]
            cells += [_mean(part, schedule, "steps_per_s"), _staleness(part, schedule)]
            cells.append(limit.short if limit else "–")
            rows.append([variant, *cells] if several else cells)
    return AnswerTable(["setting", *columns] if several else columns, rows)


def _share(part: Study, schedule: Schedule) -> str:
    share = outcomes.share_learned(part, schedule)
    hits = int(outcomes.learned(part, schedule).sum())
    return f"{hits} of {share.runs} ({percent(share.low)} to {percent(share.high)})"


def _scores(part: Study, schedule: Schedule) -> list[str]:
    of_all = outcomes.estimate(part, schedule)
    some = outcomes.estimate_of_learned(part, schedule)
    alone = "–" if not some.runs else f"{with_interval(some)}, {count(some.runs, 'run')}"
    return [with_interval(of_all), alone if some.runs < of_all.runs else "all learned"]


def _mean(part: Study, schedule: Schedule, column: str) -> str:
    return number(part.estimate(schedule, column).value) if column in part.done else "–"


def _staleness(part: Study, schedule: Schedule) -> str:
    """Return the mean staleness; of a master that fell behind for good it has no mean: it grows."""
    if outcomes.mostly_collapsed(part, schedule):
        return "grows"
    return _mean(part, schedule, "staleness_mean")


def as_markdown(table: AnswerTable) -> str:
    """Return the table in Markdown."""
    rows = [table.columns, ["---"] * len(table.columns), *table.rows[:_MOST_ROWS]]
    lines = [f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |" for row in rows]
    more = len(table.rows) - _MOST_ROWS
    return "\n".join(lines) + (f"\n\n{more} more rows: tables/schedules.csv." if more > 0 else "")


def as_shown(study: Study) -> dict[str, object]:
    """Return the table as it stands on the page."""
    table = answer_table(study)
    note = (
        "In brackets: 95 % intervals over runs (Wilson's for shares); none for the score of fewer than 8 runs. "
        f"Learned: {study.score.threshold}."
    )
    return {"title": "What each worker count came to", "columns": table.columns, "rows": table.rows, "note": note}
