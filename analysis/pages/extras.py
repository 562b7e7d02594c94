"""What a page has beyond the package's own: figures and claims from outside, and files that were asked for."""

import shlex
from collections.abc import Sequence
from typing import NamedTuple

from analysis.claims import catalogue as claims
from analysis.claims.claim import Claim
from analysis.data.study import Study
from analysis.figures import catalogue as figures
from analysis.figures.figure import Figures


class Extras(NamedTuple):
    """What was given from outside, and the options that named it."""

    figures: tuple[Figures, ...] = ()
    claims: tuple[Claim, ...] = ()
    options: tuple[str, ...] = ()
    svg: bool = False  # whether figures/ also gets every panel as SVG


NO_EXTRAS = Extras()


def load_extras(figure_references: Sequence[str], claim_references: Sequence[str]) -> Extras:
    """Return the figures and claims that "module:NAME" refer to; raise StudyError for what is neither."""
    options = [word for reference in figure_references for word in ("--figure", reference)]
    options += [word for reference in claim_references for word in ("--claim", reference)]
    return Extras(figures.load(figure_references), claims.load(claim_references), tuple(options))


def rebuild_command(study: Study, extras: Extras) -> str:
    """Return what makes the page again, with the same extras."""
    folders = study.origins or (f"results/{study.name}",)
    return shlex.join(["python", "-m", "analysis.report", *folders, *extras.options])
