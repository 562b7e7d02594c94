"""The catalogue: which figures a study has, what they are called, what draws them, and what they say."""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from analysis import figures_report, figures_tradeoff, figures_why, readings, readings_why
from analysis.study import Schedule, Study
from analysis.style import Panel

REPORT_FIGURES = {(6, 12): 2, (10, 20): 3, (10, 32): 4}  # (start, end) of a dynamic schedule -> the report's figure
SECTIONS = {
    "settings": "Settings compared",
    "report": "The report's figures",
    "why": "Why: the master's load, queue and staleness",
    "tradeoff": "The trade-off",
}


class Entry(NamedTuple):
    """A figure: its panels side by side, and the sentence that reads it."""

    name: str  # of its files
    section: str
    title: str
    panels: tuple[Panel, ...]
    reading: Callable[[Study], str]
    whole: bool = False  # about all settings, not those shown

    def part(self, study: Study) -> Study:
        """Return the part of the study that the figure is about."""
        return study if self.whole else study.shown

    def says(self, study: Study) -> str:
        """Return the sentence that reads the figure."""
        return self.reading(self.part(study))


def main_figure(study: Study) -> Entry:
    """Return the figure that answers the study's question."""
    settings = {entry.name: entry for entry in _settings_figures(study)}
    if "collapse_map" in settings:
        return settings["collapse_map"]._replace(name="main")
    if study.compares_settings:
        return settings["settings"]._replace(name="main")
    if not study.shown.schedules(dynamic=False):
        panels: tuple[Panel, ...] = (
            partial(figures_tradeoff.plot_score_over, axis="episodes"),
            figures_report.plot_bearing,
        )
        return Entry("main", "report", "What was learned", panels, readings.of_all)
    panels = (figures_report.plot_fixed_score, figures_report.plot_bearing)
    return Entry("main", "report", "What was learned", panels, readings.of_fixed)


def catalogue(study: Study) -> list[Entry]:
    """Return the figures that the data of a study allow, in the order of the page."""
    shown = study.shown
    if not shown.schedules():
        return []
    entries: list[Entry] = []
    if not study.compares_settings:
        entries += _fixed_figures(shown) + _dynamic_figures(shown)
    if shown.schedules(dynamic=True):
        alive = tuple(partial(figures_report.plot_workers_alive, axis=axis) for axis in ("episodes", "clock_s"))
        entries.append(Entry("workers_alive", "report", "Workers alive", alive, readings.of_workers_alive))
    return _settings_figures(study) + entries + _why_figures(shown) + _tradeoff_figures(shown)


def by_name(study: Study, name: str) -> Entry:
    """Return the figure of that name; say which there are if there is none."""
    found = {entry.name: entry for entry in [main_figure(study), *catalogue(study)]}
    if name not in found:
        raise KeyError(f"no figure {name!r} in this study; it has {', '.join(found)}")
    return found[name]


def _fixed_figures(study: Study) -> list[Entry]:
    if not study.schedules(dynamic=False):
        return []
    panels = (figures_report.plot_fixed_score, figures_report.plot_fixed_time)
    return [Entry("1_fixed_workers", "report", "Figure 1: fixed numbers of workers", panels, readings.of_fixed)]


def _dynamic_figures(study: Study) -> list[Entry]:
    """Return a figure for each dynamic schedule, its rules together, numbered as in the report."""
    groups: dict[str, list[Schedule]] = {}
    for schedule in study.schedules(dynamic=True):
        groups.setdefault(schedule.span, []).append(schedule)
    entries = []
    for label, schedules in groups.items():
        number = None if schedules[0].adaptive else REPORT_FIGURES.get((schedules[0].start, schedules[0].end))
        name = label.replace("→", "to")
        panels: tuple[Panel, ...] = tuple(
            partial(panel, dynamic=schedules)
            for panel in (figures_report.plot_dynamic_score, figures_report.plot_dynamic_time)
        )
        title = f"{label} against fixed workers"
        reading = partial(readings.of_dynamic, dynamic=schedules)
        numbered = (f"{number}_{name}", f"Figure {number}: {title}") if number else (f"dynamic_{name}", title)
        entries.append(Entry(numbered[0], "report", numbered[1], panels, reading))
    return sorted(entries, key=lambda entry: entry.name)


def _why_figures(study: Study) -> list[Entry]:
    why, fixed = figures_why, study.schedules(dynamic=False)
    entries = []
    if fixed:
        panels: tuple[Panel, ...] = (why.plot_load, why.plot_backlog)
        entries.append(
            Entry("arrivals", "why", "Arrivals against the master's capacity", panels, readings_why.of_arrivals)
        )
    panels = (why.plot_queue, why.plot_staleness)
    entries.append(Entry("queue", "why", "The queue and staleness", panels, readings_why.of_waiting))
    if fixed and not (study.runs["tint"] >= 0).any():
        panels = (why.plot_saturation, why.plot_throughput)
        entries.append(
            Entry("saturation", "why", "Saturation, predicted and observed", panels, readings_why.of_saturation)
        )
    if "play_share_start" in study.done and study.done["play_share_start"].notna().any():
        panels = (why.plot_worker_time, why.plot_episode_time)
        entries.append(Entry("episodes", "why", "What an episode costs", panels, readings_why.of_worker_time))
    return entries


def _tradeoff_figures(study: Study) -> list[Entry]:
    axes = ("episodes", "env_steps", "updates", "clock_s") if study.takes_time else ("episodes", "env_steps", "updates")
    panels: tuple[Panel, ...] = tuple(partial(figures_tradeoff.plot_score_over, axis=axis) for axis in axes)
    title = f"The same runs on {'four' if study.takes_time else 'three'} axes"
    entries = [Entry("score_axes", "tradeoff", title, panels, readings.of_axes)]
    if not study.takes_time:
        return entries
    panels = (figures_tradeoff.plot_frontier, figures_tradeoff.plot_time_to_score)
    return [*entries, Entry("frontier", "tradeoff", "Learning efficiency and speed", panels, readings.of_tradeoff)]


def _settings_figures(study: Study) -> list[Entry]:
    entries = []
    if len(set(study.done["variant"])) > 1:
        panels: tuple[Panel, ...] = (figures_tradeoff.plot_settings,)
        if study.compares_settings:
            panels = (figures_tradeoff.plot_settings, figures_tradeoff.plot_settings_score)
        entries.append(Entry("settings", "settings", "Score by setting", panels, readings.of_settings, whole=True))
    if _maps_collapse(study):
        panels = (figures_tradeoff.plot_collapse_map, figures_tradeoff.plot_relative_workers)
        title = "Collapse by workers and cost of an update"
        entries.append(Entry("collapse_map", "settings", title, panels, readings.of_collapse_map, whole=True))
    return entries


def _maps_collapse(study: Study) -> bool:
    """Return whether worker counts and the cost of an update vary, and nothing else."""
    fixed = study.done[~study.done["dynamic"]]
    others = [
        name for name in study.axes if name not in ("workers", "update_s", "seed") and not name.startswith("schedule.")
    ]
    return not others and "update_s" in study.axes and fixed["update_s"].nunique() > 1 and fixed["end"].nunique() > 1


def gaps(study: Study) -> list[str]:
    """Say which of the report's figures can't be drawn yet: their runs are planned, but none is done."""
    main = study.main
    done = {schedule.label for schedule in main.schedules()}
    waiting = [schedule for schedule in main.schedules(done=False) if schedule.label not in done]
    return [f"{schedule.title}: not drawn, because none of its runs is done." for schedule in waiting]
