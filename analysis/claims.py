"""The claims of the report and the slides as data: what was said, where, and the findings that decide it."""

from collections.abc import Callable
from typing import NamedTuple

from analysis import metrics, statistics
from analysis.readings import control_of
from analysis.study import Schedule, Study
from analysis.verdicts import (
    RELEVANT,
    Finding,
    Verdict,
    above,
    as_good,
    better,
    collapses,
    contrary,
    lacking,
    over_bound,
    times_as,
    together,
)
from analysis.words import listed, percent, with_interval

CHEAP = 0.1  # an update is cheap if it costs less than this share of an episode
ABOUT_SEVEN = 5.0  # times as fast: what still passes for "about 7"


class Claim(NamedTuple):
    """What the documents say."""

    number: int
    text: str
    source: str
    judge: Callable[[Study], list[Finding]]
    over_settings: bool = False  # needs runs with several settings, not those of one


class Judgement(NamedTuple):
    """A claim with its verdict and what it rests on."""

    claim: Claim
    verdict: Verdict
    findings: list[Finding]

    @property
    def rests_on_data(self) -> bool:
        """Whether the study has runs that tell."""
        return any(finding.estimate for finding in self.findings)

    @property
    def needed(self) -> list[str]:
        """What would decide the claim, if it is open."""
        if self.verdict != "undecided":
            return []
        undecided = [finding for finding in self.findings if finding.verdict == "undecided"]
        most = max(undecided, key=lambda finding: finding.seeds)
        return list(dict.fromkeys(f.needed for f in undecided if f.needed and (not f.seeds or f is most)))


def judge_all(study: Study, variant: str | None = None) -> list[Judgement]:
    """Return the verdict on every claim, from the runs with one variant of the settings: the main one, if None."""
    part = study.main if variant is None else study.of_variant(variant)
    judgements = []
    for claim in CLAIMS:
        findings = claim.judge(study if claim.over_settings else part)
        judgements.append(Judgement(claim, together([finding.verdict for finding in findings]), findings))
    return judgements


def ten_learn_best(study: Study) -> list[Finding]:
    """Claim 1."""
    ten = study.fixed(10)
    if ten is None:
        return [lacking("runs with 10 fixed workers")]
    findings = []
    for workers in (4, 20):
        other = study.fixed(workers)
        findings.append(better(study, ten, other) if other else lacking(f"runs with {workers} fixed workers"))
    forty = study.fixed(40)
    return [*findings, collapses(study, forty) if forty else lacking("runs with 40 fixed workers")]


def overload_at_the_start(study: Study) -> list[Finding]:
    """Claim 2."""
    fixed = study.schedules(dynamic=False)
    many = [schedule for schedule in fixed if schedule.end > 20]
    text = "At the start {ours} send {value} times what the master can apply."
    findings = [over_bound(study, schedule, "load_start", 1.0, text) for schedule in many]
    findings = findings or [lacking("runs with more than 20 fixed workers")]
    learned = [s for s in fixed if study.estimate(s, "final_score").value >= metrics.COLLAPSE_SCORE]
    return [*findings, _relief(study, learned[-1]) if learned else lacking("runs of a fixed schedule that learns")]


def _relief(study: Study, schedule: Schedule) -> Finding:
    end, start = study.paired(schedule, schedule, "load_end")[0], study.paired(schedule, schedule, "load_start")[0]
    ratio = statistics.paired_ratio(end, start)
    text = f"With {schedule.title}, which learn, the load at the end is {with_interval(ratio)} times that at the start."
    verdict: Verdict = "supported" if ratio.high < 1 else "refuted" if ratio.low > 1 else "undecided"
    return Finding(text, verdict, ratio, "more than one seed" if verdict == "undecided" else "")


def seven_times_faster(study: Study) -> list[Finding]:
    """Claim 3: the report's 6→12, against whichever fixed schedule that learns makes it look best."""
    dynamic = _by_rule(study, "report", 6, 12) or _by_rule(study, "report")
    rivals = [
        s for s in study.schedules(dynamic=False) if study.estimate(s, "final_score").value >= metrics.COLLAPSE_SCORE
    ]
    if not dynamic or not rivals:
        return [lacking("runs of 6→12" if not dynamic else "runs of a fixed schedule that learns, to compare with")]
    findings = []
    for schedule in dynamic:
        slowest = max(rivals, key=lambda fixed: study.estimate(fixed, "clock_s").value)
        best = max(rivals, key=lambda fixed: study.estimate(fixed, "final_score").value)
        text = "{theirs} plays as many episodes {ratio} times as fast as {ours}, the slowest that learn"
        text += f" ({_in_steps(study, schedule, slowest)})."
        findings.append(times_as(study, slowest, schedule, "clock_s", ABOUT_SEVEN, text))
        findings.append(as_good(study, schedule, best))
    return findings


def faster_and_stable(study: Study) -> list[Finding]:
    """Claim 4."""
    dynamic = _by_rule(study, "slides", 10, 32)
    if not dynamic:
        return [lacking("runs of 10→32")]
    findings = []
    for schedule in dynamic:
        control = control_of(study, schedule)
        if control is None:
            return [lacking("runs of a fixed schedule to compare with, best of 10 workers")]
        text = "{theirs} plays as many episodes {ratio} times as fast as {ours}"
        text += f" ({_in_steps(study, schedule, control)})."
        findings.append(times_as(study, control, schedule, "clock_s", 1.0, text))
        findings += [contrary(collapses(study, schedule)), _stays(study, schedule)]
    return findings


def _in_steps(study: Study, ours: Schedule, theirs: Schedule) -> str:
    """Return the speed-up in steps: episodes are shorter where less is learned, steps are not."""
    ratio = statistics.paired_ratio(*study.paired(ours, theirs, "steps_per_s"))
    return f"in steps per second {with_interval(ratio)} times"


def _stays(study: Study, schedule: Schedule) -> Finding:
    """Judge whether a schedule's runs keep what they learned: the last tenth against the best tenth."""
    text = "At its end {ours} has {value} of the score of its best tenth."
    if study.values(schedule, "held_share").isna().all():
        return Finding(f"No run of {schedule.title} learned anything to keep.", "refuted")
    return over_bound(study, schedule, "held_share", 1.0 - RELEVANT, text, percent)


def playing_costs_most(study: Study) -> list[Finding]:
    """Claim 5, from the costs of what was played, at the start of the runs, when updates weigh most."""
    if "play_share_start" not in study.done or not study.schedules():
        return [lacking("runs whose costs are known")]
    schedule = study.fixed(10) or study.schedules()[0]
    play = "Playing takes {value} of a worker's cycle at the start."
    update = "An update costs the master {value} of the time that an episode costs a worker."
    return [
        over_bound(study, schedule, "play_share_start", 0.5, play, percent),
        contrary(over_bound(study, schedule, "service_share_start", CHEAP, update, percent)),
    ]


def entropy_is_hard(study: Study) -> list[Finding]:
    """Claim 6 needs several entropy coefficients for the same workers; it is judged over all settings of the study."""
    coefficients = sorted(study.done["entropy_coefficient"].dropna().unique())
    if len(coefficients) < 3 or 0.0 not in coefficients:
        return [lacking("runs over learner.entropy_coefficient: 0 and at least two others, with the same seeds")]
    schedule = study.fixed(10) or study.schedules()[0]
    by_seed = study.done[study.done["schedule"] == schedule.label].pivot_table(
        index="seed", columns="entropy_coefficient", values="final_score"
    )
    outcomes = [_against_none(by_seed, coefficient) for coefficient in coefficients if coefficient > 0]
    worse = sum(verdict == "refuted" for verdict, _, _ in outcomes)
    fine = sum(verdict == "supported" for verdict, _, _ in outcomes)
    verdict: Verdict = (
        "supported" if 2 * worse > len(outcomes) else "refuted" if 2 * fine > len(outcomes) else "undecided"
    )
    text = f"With {schedule.title}, against no entropy term: " + listed(words for _, words, _ in outcomes) + " pipes."
    worst = min((difference for _, _, difference in outcomes), key=lambda difference: difference.value)
    return [Finding(text, verdict, worst, "more seeds, or more coefficients" if verdict == "undecided" else "")]


def _against_none(by_seed, coefficient: float) -> tuple[Verdict, str, statistics.Estimate]:
    """Return whether a coefficient is as good as none, and the difference in words and in numbers."""
    pair = by_seed[[coefficient, 0.0]].dropna()
    difference = statistics.paired_difference(pair[coefficient].to_numpy(float), pair[0.0].to_numpy(float))
    margin = RELEVANT * abs(float(statistics.iqm(pair[0.0].to_numpy(float)))) if len(pair) else 0.0
    return above(difference, -margin, margin), f"{coefficient:g} gives {with_interval(difference)}", difference


def speed_not_stability(study: Study) -> list[Finding]:
    """Claim 7: from the fewest to the most fixed workers."""
    fixed = study.schedules(dynamic=False)
    if len(fixed) < 2:
        return [lacking("runs with at least two fixed numbers of workers")]
    few, many = fixed[0], fixed[-1]
    text = "{ours} play {ratio} times as many steps per second as {theirs}."
    return [times_as(study, many, few, "steps_per_s", 1.0, text), better(study, few, many)]


def _by_rule(study: Study, rule: str, start: int | None = None, end: int | None = None) -> list[Schedule]:
    """Return the dynamic schedules with this start and end (any, if None); of several rules, those of `rule`."""
    dynamic = [schedule for schedule in study.schedules(dynamic=True) if not schedule.adaptive]
    fitting = [s for s in dynamic if start in (None, s.start) and end in (None, s.end)]
    return [s for s in fitting if s.label.endswith(rule)] or fitting


CLAIMS = (
    Claim(1, "10 workers learn best; 4 and 20 are worse; 40 collapses.", "slides, experiment 1", ten_learn_best),
    Claim(2, "Above 20 workers the master cannot keep up at the start; longer episodes relieve it.", "report, 3.2",
          overload_at_the_start),
    Claim(3, "Dynamic workers are about 7 times faster over 100,000 episodes, and as good.", "report, 3.4",
          seven_times_faster),
    Claim(4, "10→32 is faster than fixed workers and stable.", "slides, 10→32", faster_and_stable),
    Claim(5, "Interaction with the environment takes most of a worker's time; updates are cheap.",
          "slides, observations", playing_costs_most),
    Claim(6, "Entropy regularisation is hard to tune here.", "report, 3.5", entropy_is_hard, True),
    Claim(7, "More workers give speed, not stability.", "slides, conclusion", speed_not_stability),
)  # fmt: skip
