"""What growing from 10 to 20 workers gains, by the slides, which show a picture of it without words."""

from functools import partial

from analysis.claims.claim import Claim
from analysis.claims.faster_and_stable import judge_growth

CLAIM = Claim(
    "10→20 is faster than fixed workers and stable.",
    "slides, 10→20",
    partial(judge_growth, start=10, end=20),
    of_speed=True,
    quote="動態增加 10→20",
)
