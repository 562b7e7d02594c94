"""The figures of a page: each panel drawn once; those about one setting are drawn for every setting of the study."""

import base64
from collections.abc import Callable
from typing import Any, NamedTuple

from analysis.data.study import Study
from analysis.figures import catalogue, drawing, style
from analysis.figures.figure import SECTIONS, StudyFigure
from analysis.figures.main import MAIN, main_figure
from analysis.pages.extras import Extras

MOST_SETTINGS = 8  # that are drawn one by one: of more only the first is, or the page would weigh too much
_OTHERS_DPI = 96  # of settings that come second, which have no file of their own

MAIN_FILE = f"{MAIN}.png"  # the one picture of a study that git tracks
FIGURES = "figures"  # the folder of the others

OnFigure = Callable[[str, drawing.Drawing, bytes | None], None]  # (name, drawing, its file if it has one)


def file_of(name: str) -> str:
    """Return a figure's file, relative to its study's folder."""
    return MAIN_FILE if name == MAIN else f"{FIGURES}/{name}.png"


def nobody_asks(name: str, drawn: drawing.Drawing, file: bytes | None) -> None:
    """Do nothing with a figure but show it."""


class Setting(NamedTuple):
    """One of the settings between which the page switches."""

    place: int
    variant: str | None  # None if the study has but one, or compares settings in every figure
    part: Study


class Drawn(NamedTuple):
    """A figure on the page."""

    id: str
    title: str
    says: str
    panels: list[str]  # each a PNG, in base64
    legend: str
    setting: int  # its place; -1 for figures of all settings
    file: str  # its name, if it has one


def settings_of(study: Study) -> list[Setting]:
    """Return the settings that figures and claims are shown for one by one; one that is all, if there is no choice."""
    if not study.shown_variant:
        return [Setting(0, None, study)]
    done = study.done_variants
    variants = done if len(done) <= MOST_SETTINGS else [study.shown_variant]
    return [Setting(place, variant, study.of_variant(variant)) for place, variant in enumerate(variants)]


def main_figures(study: Study, on_figure: OnFigure) -> list[Drawn]:
    """Return the figure that answers the study's question: once, or for each setting."""
    entry = main_figure(study)
    if entry.whole:
        return [_drawn(study, entry, None, on_figure)]
    return [_drawn(each.part, main_figure(each.part), each, on_figure) for each in settings_of(study)]


def sections(study: Study, extras: Extras, on_figure: OnFigure) -> list[dict[str, Any]]:
    """Return the page's sections that have something to show."""
    drawn = _all(study, extras, on_figure)
    found = []
    for key, title in SECTIONS.items():
        gaps = catalogue.gaps(study) if key == "report" else []
        if drawn[key] or gaps:
            found.append({"id": key, "title": title, "figures": drawn[key], "gaps": gaps})
    return found


def count(study: Study, extras: Extras) -> int:
    """Return how many figures a page draws."""
    of_parts = [entry for setting in settings_of(study) for entry in _entries(setting.part, extras) if not entry.whole]
    return len(of_parts) + len([entry for entry in _entries(study, extras) if entry.whole])


def _entries(study: Study, extras: Extras) -> list[StudyFigure]:
    return [main_figure(study), *catalogue.catalogue(study, extras.figures)] if len(study.done) else []


def _all(study: Study, extras: Extras, on_figure: OnFigure) -> dict[str, list[Drawn]]:
    """Return the figures by section: of all settings first, then each of the others for one setting after the other."""
    drawn: dict[str, list[Drawn]] = {key: [] for key in SECTIONS}
    for entry in catalogue.catalogue(study, extras.figures):
        if entry.whole:
            drawn[entry.section].append(_drawn(study, entry, None, on_figure))
    by_setting = [(each, catalogue.catalogue(each.part, extras.figures)) for each in settings_of(study)]
    names = dict.fromkeys(entry.name for _, entries in by_setting for entry in entries if not entry.whole)
    for name in names:
        for setting, entries in by_setting:
            for entry in entries:
                if entry.name == name:
                    drawn[entry.section].append(_drawn(setting.part, entry, setting, on_figure))
    return drawn


def _drawn(part: Study, entry: StudyFigure, setting: Setting | None, on_figure: OnFigure) -> Drawn:
    place, variant = (setting.place, setting.variant) if setting else (-1, None)
    has_file = place <= 0
    with style.paper():
        made = drawing.draw(entry.part(part), entry.panels, drawing.DPI if has_file else _OTHERS_DPI)
        seen = drawing.pictures(made)
    on_figure(entry.name, made, seen.file if has_file else None)
    return Drawn(
        id=entry.name if has_file else f"{entry.name}--{place}",
        title=f"{entry.title} ({variant})" if variant else entry.title,
        says=entry.says(part),
        panels=[_base64(panel) for panel in seen.panels],
        legend=_base64(seen.legend) if seen.legend else "",
        setting=place if variant else -1,
        file=file_of(entry.name) if has_file else "",
    )


def _base64(content: bytes) -> str:
    return base64.b64encode(content).decode()
