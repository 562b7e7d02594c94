"""Studies to test the analysis on: small real sweeps as the sweep runner lays them out, and made-up tables."""

import atexit
import itertools
import json
import shutil
import tempfile
import zlib
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from a3c_core.config import RunConfig
from a3c_core.records.files import write_json
from a3c_core.schedules import ScheduleConfig, parse_workers
from a3c_core.train import train
from analysis.data.study import Study, schedule_label, variant_label

REPORT_EXCHANGE = {"channel": "mailbox", "pull": "at_once", "queue": "unbounded"}
SLOW_MASTER = {"exchange": REPORT_EXCHANGE, "profile": "report-tf2.21"}  # 20 workers are too many for it
COMMIT = "0123456789abcdef0123456789abcdef01234567"


def plan(
    directory: Path, axes: dict[str, list[Any]], learned_above: float | None = None, **fixed: Any
) -> list[dict[str, Any]]:
    """Write study.json of a grid over `axes` (dotted names) with `fixed` settings; return its cells.

    `learned_above` is what the grid says: small sweeps learn nothing by a game's own threshold.
    """
    cells = []
    for values in itertools.product(*axes.values()):
        settings = dict(zip(axes, values, strict=True))
        config = RunConfig.model_validate(_nested({**SLOW_MASTER, **fixed, **settings}))
        cell_id = ",".join(f"{name}={value}".replace("->", "to") for name, value in settings.items())
        cells.append({"id": cell_id, "settings": settings, "config": config.model_dump(mode="json")})
    question = "How many asynchronous workers can one learner bear, and why?"
    varied = {name: values for name, values in axes.items() if name != "seed"}
    grid = {} if learned_above is None else {"seeds": axes["seed"], "learned_above": learned_above}
    write_json(
        directory / "study.json",
        {"name": directory.name, "question": question, "grid": grid, "axes": varied, "cells": cells},
    )
    return cells


def run(directory: Path, cell: dict[str, Any], status: str | None = None) -> None:
    """Run one cell of a planned study and leave what the sweep runner would."""
    where = directory / "cells" / cell["id"]
    where.mkdir(parents=True, exist_ok=True)
    write_json(where / "config.json", cell["config"])
    summary = train(RunConfig.model_validate(cell["config"]), where, run=cell["id"])
    write_metadata(where, status or summary.outcome)


def write_metadata(where: Path, status: str, **more: Any) -> None:
    """Write metadata.json of a cell."""
    base = {"commit": COMMIT, "dirty": False, "versions": {"python": "3.11"}, "cores": 2, "reason": None}
    write_json(where / "metadata.json", {**base, "status": status, "oversubscribed": False, **more})


def make(directory: Path, axes: dict[str, list[Any]], learned_above: float | None = None, **fixed: Any) -> Path:
    """Plan a study, run all its cells, and return its directory."""
    for cell in plan(directory, axes, learned_above, **fixed):
        run(directory, cell)
    return directory


def _nested(settings: dict[str, Any]) -> dict[str, Any]:
    """Return `settings` with dotted names turned into nested sections."""
    nested: dict[str, Any] = {}
    for name, value in json.loads(json.dumps(settings)).items():
        section = nested
        *outer, last = name.split(".")
        for key in outer:
            section = section.setdefault(key, {})
        if isinstance(value, dict):
            section.setdefault(last, {}).update(value)
        else:
            section[last] = value
    return nested


TINY_AXES: dict[str, list[Any]] = {"workers": ["4", "10", "20", "6->12", "10->32"], "seed": [0, 1]}


def make_tiny(directory: Path) -> Path:
    """Return a study of all kinds of schedules; its dynamic ones do grow. A copy, since to run it takes seconds."""
    return shutil.copytree(_tiny(), directory / "tiny")


@cache
def _tiny() -> Path:
    folder = Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    schedule = {"first_s": 0.4, "further_s": 0.01, "window": 20, "spacing": 20}
    return make(folder / "tiny", TINY_AXES, learned_above=0.0, episodes=300, schedule=schedule)


_NUMBERS = {
    "final_score": 50.0,
    "mean_score": 20.0,
    "held_share": 1.0,
    "clock_s": 36_000.0,
    "steps_per_s": 500.0,
    "load_start": 0.5,
    "load_end": 0.05,
    "play_share_start": 0.73,
    "service_share_start": 0.07,
    "collapsed": False,
}


def made_up(schedules: dict[str, dict[str, Any]], seeds: int = 10, noise: float = 0.002, **axis: Any) -> Study:
    """Return a study with made-up runs: {worker count: {column: value}}, with luck that seeds share and own noise."""
    rows = []
    for text, numbers in schedules.items():
        span = parse_workers(text, ScheduleConfig())
        for seed in range(seeds):
            generator = np.random.default_rng([seed, span.start, span.end, zlib.crc32(str(axis).encode())])
            luck = np.exp(0.02 * np.random.default_rng(seed).normal())
            row: dict[str, Any] = {
                "cell": f"workers={text},seed={seed}",
                "schedule": schedule_label(span, {}),
                "start": span.start,
                "end": span.end,
                "dynamic": span.start != span.end,
                "adaptive": span.auto,
                "tint": -1,
                "variant": variant_label(axis),
                "seed": seed,
                "planned": 100_000,
                "status": "finished",
                "runtime": "simulate",
                "engine": "compiled",
                "algorithm": axis.get("algorithm", "a3c"),
                "optimizer": "adam",
                "hold": axis.get("exchange.hold", 0),
                "entropy_coefficient": axis.get("learner.entropy_coefficient", 0.0),
                "workers_max": span.end,
                "oversubscribed": False,
            }
            for name, value in {**_NUMBERS, **numbers}.items():
                drawn = isinstance(value, float)  # words, counts and yes or no are as they are
                row[name] = value * luck * np.exp(noise * generator.normal()) if drawn else value
            rows.append(row)
    return Study("made-up", "?", {}, pd.DataFrame(rows), pd.DataFrame({"cell": []}))


def joined(*studies: Study) -> Study:
    """Return the runs of several made-up studies as one."""
    return replace(studies[0], runs=pd.concat([study.runs for study in studies], ignore_index=True))
