"""The committed studies: their tables and pages are what their compact files give."""

import re
from pathlib import Path

import pandas as pd
import pytest

from analysis.data.load import load_study
from analysis.pages import readme, tables
from tests import capacity_words

RESULTS = Path(__file__).parents[1] / "results"
STUDIES = (
    "published",
    "slides",
    "factors",
    "report",
    "dynamic",
    "map",
    "cliff",
    "remedies",
    "dose",
    "workers",
    "entropy",
    "sensitivity",
    "frames",
    "paced",
    "algorithms",
    "table2",
    "frontier",
    "topologies",
    "batching",
    "hours",
    "ablation",
    "ablation_breakout",
    "memory",
    "pong",
    "breakout",
    "invaders",
    "pong_workers",
)


@pytest.fixture(scope="module", params=STUDIES)
def committed(request):
    """A study's folder, and the study as its compact tables alone give it."""
    folder = RESULTS / request.param
    return folder, load_study(folder)


def test_tables_are_rebuilt_from_the_compact_files(committed):
    folder, study = committed
    for name, table in tables.all_tables(study).items():
        rebuilt = pd.read_csv(pd.io.common.StringIO(tables.csv(table)))
        pd.testing.assert_frame_equal(rebuilt, pd.read_csv(folder / "tables" / f"{name}.csv"), rtol=1e-4)


def test_the_readme_is_rebuilt_too(committed):
    folder, study = committed
    assert readme.render(study, folder) == (folder / "README.md").read_text(encoding="utf-8")


def test_the_readme_has_one_capacity_per_setting(committed):
    capacity_words.check(*committed, ("README.md",))


def test_every_planned_run_is_there_from_a_clean_commit(committed):
    _, study = committed
    assert len(study.missing) == 0
    assert not study.done["dirty"].any()
    assert study.done["episodes_sha256"].str.fullmatch("[0-9a-f]{64}").all()


def test_every_committed_study_is_tested_and_small():
    folders = {path.parent.name for path in RESULTS.glob("*/runs.parquet")}
    studies = {name for name in folders if re.fullmatch(r"(?!search_)[a-z0-9_]+", name)}
    assert studies - {"quick"} == set(STUDIES)
    for name in STUDIES:
        kept = [path for path in (RESULTS / name).rglob("*") if path.is_file() and "cells" not in path.parts]
        assert sum(path.stat().st_size for path in kept) < 8e6
