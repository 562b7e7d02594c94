"""What a worker's time goes to, by the slides."""

from analysis.claims.claim import Claim
from analysis.claims.verdicts import Finding, contrary, lacking, over_bound
from analysis.data.study import Study
from analysis.words import percent

CHEAP = 0.1  # an update is cheap if it costs less than this share of an episode


def judge(study: Study) -> list[Finding]:
    """Judge by what real runs measured, at their start, when updates weigh most; a profile's costs are no finding."""
    if "play_share_start" not in study.done or not study.schedules():
        return [lacking("runs whose costs are known")]
    schedule = study.fixed(10) or study.schedules()[0]
    play = "Playing takes {value} of a worker's cycle at the start."
    update = "An update costs the master {value} of the time that an episode costs a worker."
    findings = [
        over_bound(study, schedule, "play_share_start", 0.5, play, percent),
        contrary(over_bound(study, schedule, "service_share_start", CHEAP, update, percent)),
    ]
    virtual = (study.done["runtime"] == "simulate").any()
    return [_put_in(finding) for finding in findings] if virtual else findings


def _put_in(finding: Finding) -> Finding:
    """Return the finding of runs in virtual time, which only give back the costs that they were given."""
    text = f"{finding.text} That was put in, not found: it is the profile of costs."
    return Finding(text, "not tested here", finding.estimate, "real runs with a core for each process")


CLAIM = Claim(
    "Interaction with the environment takes most of a worker's time; updates are cheap.",
    "slides, observations",
    judge,
    of_speed=True,
    quote="因Model很小,更新不大花時間; 最吃時間的是Model和環境做互動的時候",
)
