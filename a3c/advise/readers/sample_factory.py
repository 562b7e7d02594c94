"""Sample Factory: lines of sf_log.txt or stdout about frames, throughput and policy lag, and the profile at the end.

Formats: sample_factory/algo/runners/runner.py, sample_factory/algo/utils/model_sharing.py.
"""

import re
from dataclasses import replace
from datetime import datetime

import numpy as np

from a3c.advise.measurements import ASYNCHRONOUS, LogError, Measurements
from a3c.advise.readers.text import Line

NAME = "sample-factory"
_TIME = re.compile(r"\[(?:(\d{4}-\d{2}-\d{2}) )?(\d{2}:\d{2}:\d{2}),(\d{3})\]")
_FPS = re.compile(r"(?:Fps is|frames:)")
_FRAMES = re.compile(r"(?:Total num )?frames: (\d+)")
_THROUGHPUT = re.compile(r"Throughput: 0: (\d+(?:\.\d+)?|nan)")
_SAMPLES = re.compile(r"Samples: (\d+)")
_LAG = re.compile(r"lag: \((?:min: )?(-?\d+(?:\.\d+)?), (?:avg: )?(-?\d+(?:\.\d+)?), (?:max: )?(-?\d+(?:\.\d+)?)\)")
_VERSION = re.compile(r"Updated weights for policy 0, policy_version (\d+)")
_SECTION = re.compile(r"\] *([\w-]+(?: \d+)?) profile tree view:")
_PAIR = re.compile(r"(\w+): (\d+(?:\.\d+)?)")
_GROWS = 0.5  # versions per second: a lag that rises by less may be chance


def is_mine(line: Line) -> bool:
    """Return whether a line is one of Sample Factory's."""
    if "profile tree view:" in line.text:
        return True
    return bool(_VERSION.search(line.text) or (_FPS.search(line.text) and _LAG.search(line.text)))


def read(lines: list[Line], source: str) -> Measurements:
    """Return what the lines say: samples and policy versions per second, the lag, and whether it only grows."""
    reports, versions = [], []
    for line in lines:
        for one in _reports(line):
            reports.append(one)
        if found := _VERSION.search(line.text):
            versions.append((_seconds(line), float(found[1])))
    profile = _profile(lines)
    if not reports and profile:
        return _of_profile(profile, versions[-1][1] if versions else None, source)
    if not reports:
        raise LogError("the log of Sample Factory has no line with Fps and Policy #0 lag")
    table = np.array(reports)
    times_s, samples, lag = table[:, 0], table[:, 1], table[:, 3]
    if np.any(np.diff(times_s) < 0) and np.any(np.diff(times_s) > -43_200):
        at = int(table[int(np.argmin(np.diff(times_s))) + 1, 4])
        raise LogError(f"line {at} of the log is earlier than the one before: name the log of one run")
    times_s = times_s + 86_400.0 * np.concatenate(([0], np.cumsum(np.diff(times_s) < 0)))  # midnight, without dates
    growth = None
    if len(reports) >= 3 and times_s[-1] > times_s[0]:
        slope = float(np.polyfit(times_s - times_s[0], lag, 1)[0])
        if slope > _GROWS and np.all(np.diff(lag) > 0):
            growth = slope
    made = None
    if len(versions) >= 2 and versions[-1][0] > versions[0][0]:
        made = (versions[-1][1] - versions[0][1]) / (versions[-1][0] - versions[0][0])
    per_s = (
        float((samples[-1] - samples[0]) / (times_s[-1] - times_s[0]))
        if times_s[-1] > times_s[0]
        else float(table[0, 2])
    )
    seconds = np.diff(times_s) if len(reports) > 1 else np.array([5.0])
    if profile:
        whole = _of_profile(profile, versions[-1][1] if versions else None, source)
        return replace(whole, staleness=lag, staleness_growth=growth, updates_per_s=made)
    return Measurements(
        system=NAME,
        source=source,
        mode=ASYNCHRONOUS,
        step_s=seconds,
        staleness=lag,
        staleness_growth=growth,
        updates_per_s=made,
        notes=(f"{per_s:,.0f} samples a second are collected",),
        unknown=(
            "how long an update takes and how long the learner waits: the profile at the end of the run has both",
            *(
                ()
                if made
                else ("how many policy versions a second are made: lines `Updated weights for policy` have it",)
            ),
        ),
    )


def _reports(line: Line) -> list[tuple[float, float, float, float, float]]:
    """Return (seconds, samples, throughput, mean lag, line) of each report in a line, which may quote several."""
    found = []
    starts = [match.start() for match in _TIME.finditer(line.text)] or [0]
    for begin, end in zip(starts, [*starts[1:], len(line.text)], strict=True):
        part = line.text[begin:end]
        lag, samples = _LAG.search(part), _SAMPLES.search(part)
        if not (lag and samples and _FRAMES.search(part)):
            continue
        if float(lag[2]) < 0:  # -1: nothing has been learned from yet
            continue
        through = _THROUGHPUT.search(part)
        throughput = float(through[1]) if through else float("nan")
        found.append(
            (_seconds(Line(line.number, part)), float(samples[1]), throughput, float(lag[2]), float(line.number))
        )
    return found


def _seconds(line: Line) -> float:
    """Return the time of a line in seconds, of a day if it has no date."""
    found = _TIME.search(line.text)
    if found is None:
        raise LogError(f"line {line.number} of the log has no time as Sample Factory prints it")
    try:
        clock = datetime.strptime(f"{found[1] or '1970-01-01'} {found[2]}", "%Y-%m-%d %H:%M:%S")
    except ValueError as error:
        raise LogError(f"line {line.number} of the log: {found[0]} is no time") from error
    return (clock - datetime(1970, 1, 1)).total_seconds() + int(found[3]) / 1000


def _profile(lines: list[Line]) -> dict[str, dict[str, float]]:
    """Return the seconds of each component by the profile at the end: {component: {what: seconds}}."""
    found: dict[str, dict[str, float]] = {}
    section: dict[str, float] | None = None
    for line in lines:
        if heading := _SECTION.search(line.text):
            section = found.setdefault(heading[1], {})
        elif line.text.startswith("["):
            section = None
        elif section is not None:
            section |= {name: float(value) for name, value in _PAIR.findall(line.text)}
    return found


def _of_profile(profile: dict[str, dict[str, float]], updates: float | None, source: str) -> Measurements:
    """Return a whole run as one step: what its learner did with the time of the runner's main loop."""
    learner, total_s = profile.get("Learner 0", {}), profile.get("Runner", {}).get("main_loop", 0.0)
    work_s = learner.get("train", 0.0) + learner.get("prepare_batch", 0.0)
    if not 0 < work_s <= total_s:
        raise LogError("the profile of Sample Factory has no train of Learner 0, or no main_loop of Runner")
    workers = {name: one for name, one in profile.items() if name.startswith("RolloutWorker_w")}
    busy_s = [one.get("env_step", 0.0) + one.get("overhead", 0.0) for one in workers.values()]
    count = updates or 1.0
    return Measurements(
        system=NAME,
        source=source,
        mode=ASYNCHRONOUS,
        step_s=np.array([total_s / count]),
        wait_s=np.array([(total_s - work_s) / count]),
        update_s=np.array([work_s / count]),
        slots=max((int(name.removeprefix("RolloutWorker_w")) for name in workers), default=0) + 1 if workers else None,
        generators_idle=1.0 - max(busy_s) / total_s if busy_s else None,
        unknown=(
            "how long single rollouts take: a lognormal spread of 0.5 is assumed (--jitter)",
            "how many rollouts an update takes (--batch)",
            *(() if updates else ("how many updates the run had: they count as one step",)),
        ),
    )
