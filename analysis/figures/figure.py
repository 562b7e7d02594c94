"""What a figure is: panels side by side, the sentence that reads them, and when the two apply to a study."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from analysis.data.study import Study
from analysis.figures.drawing import Panel

SECTIONS = {  # of the page, in its order
    "settings": "Settings compared",
    "report": "The report's figures",
    "why": "Why: the master's load, queue and staleness",
    "tradeoff": "The trade-off",
    "more": "More figures",
}


def always(study: Study) -> bool:
    """Apply to every study that has a run to show."""
    return True


class StudyFigure(NamedTuple):
    """A figure of a study. A file of this folder ends in one: FIGURE."""

    name: str  # of its files
    title: str
    panels: tuple[Panel, ...]
    sentence: Callable[[Study], str]  # what the figure shows, in numbers, computed from the same data
    section: str = "more"  # a key of SECTIONS
    applies: Callable[[Study], bool] = always
    whole: bool = False  # about all settings of the study, not those that its curves show

    def part(self, study: Study) -> Study:
        """Return the part of the study that the figure is about."""
        return study if self.whole else study.shown

    def of(self, study: Study) -> "list[StudyFigure]":
        """Return the figure, if it applies to the study."""
        return [self] if self.applies(self.part(study)) else []

    def says(self, study: Study) -> str:
        """Return the sentence that reads the figure."""
        return self.sentence(self.part(study))


Figures = StudyFigure | Callable[[Study], Sequence[StudyFigure]]  # one, or those that a study happens to have
