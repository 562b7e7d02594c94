"""What a worker's time goes to, by the slides."""

from analysis.claims.claim import Claim
from analysis.claims.verdicts import Finding, contrary, lacking, over_bound
from analysis.data.study import Study
from analysis.words import percent

CHEAP = 0.1  # an update is cheap if it costs less than this share of an episode


def judge(study: Study) -> list[Finding]:
    """Judge by the costs of what was played, at the start of the runs, when updates weigh most."""
    if "play_share_start" not in study.done or not study.schedules():
        return [lacking("runs whose costs are known")]
    schedule = study.fixed(10) or study.schedules()[0]
    play = "Playing takes {value} of a worker's cycle at the start."
    update = "An update costs the master {value} of the time that an episode costs a worker."
    return [
        over_bound(study, schedule, "play_share_start", 0.5, play, percent),
        contrary(over_bound(study, schedule, "service_share_start", CHEAP, update, percent)),
    ]


CLAIM = Claim(
    "Interaction with the environment takes most of a worker's time; updates are cheap.", "slides, observations", judge
)
