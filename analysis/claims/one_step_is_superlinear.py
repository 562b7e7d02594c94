"""Whether lock-free workers speed one-step value methods up by more than their number, by the A3C paper."""

from analysis.claims.claim import Claim
from analysis.claims.verdicts import Finding, judged, lacking
from analysis.data import speedups
from analysis.data.study import Study
from analysis.words import number, with_interval

_ONE_STEP = ("q", "sarsa")


def judge(study: Study) -> list[Finding]:
    """See whether the most workers that were tried reach the score more than as many times sooner than one."""
    found = [_of(study, name) for name in _ONE_STEP if name in study.done_variants]
    return found or [lacking("runs of one-step methods with one and with several lock-free workers, by their names")]


def _of(study: Study, name: str) -> Finding:
    part, mark = study.of_variant(name), speedups.reference(study)
    most = part.schedules(dynamic=False)[-1]
    ratio = speedups.speedup(part, most, f"time_to_{mark:g}_s")
    if not ratio.runs:
        amount = study.score.amount(mark)
        return lacking(f"runs of {name} of which most reach {amount} an episode, with one and with {most.title}")
    steps = speedups.speedup(part, most, f"env_steps_to_{mark:g}")
    paper = speedups.PAPER[name].get(most.end)
    known = f"; in the paper {number(paper)}" if paper else ""
    text = (
        f"With {name}, {most.title} reach {study.score.amount(mark)} an episode {with_interval(ratio)} times as soon as"
        f" one, on {with_interval(_inverse(steps))} times the env steps{known}."
    )
    return judged(text, ratio, float(most.end))


def _inverse(ratio: speedups.statistics.Estimate) -> speedups.statistics.Estimate:
    return ratio._replace(value=1 / ratio.value, low=1 / ratio.high, high=1 / ratio.low)


CLAIM = Claim(
    "Lock-free workers speed one-step value methods up by more than their number.",
    "A3C paper, table 2",
    judge,
    over_settings=True,
    applies=speedups.compares_speedups,
)
