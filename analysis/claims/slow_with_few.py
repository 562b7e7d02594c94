"""What too few workers cost, by the slides."""

from analysis.claims.claim import Claim
from analysis.claims.verdicts import Finding, lacking, times_as
from analysis.data.study import Study


def judge(study: Study) -> list[Finding]:
    """Compare the speed of 10 fixed workers, which the slides call best, with that of the fewest."""
    ten, fixed = study.fixed(10), study.schedules(dynamic=False)
    if ten is None or fixed[0].end >= ten.end:
        return [lacking("runs with 10 fixed workers and with fewer")]
    text = "{ours} play {ratio} times as many steps per second as {theirs}."
    return [times_as(study, ten, fixed[0], "steps_per_s", 1.0, text)]


CLAIM = Claim(
    "Too few workers gain little speed.",
    "slides, problems of A3C",
    judge,
    of_speed=True,
    quote="但太少Worker平行化加速效果就不好(Bad Perormance)",
)
