"""What people, disks and pipes do to results: a clear sentence for each, never a traceback, and nothing lost."""

import json
import os
import platform
import resource
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import run_sweep
from a3c_core.config import RunConfig
from a3c_core.records import checkpoints
from a3c_core.records.files import write_json
from a3c_core.records.layout import ResultsError, read_metadata
from a3c_core.train import train
from analysis import report
from analysis.data.load import load_study
from analysis.figures import catalogue
from analysis.pages import readme
from experiments.grid.cells import Cell, expand
from experiments.grid.file import read_grid
from experiments.study_folder import StudyFolder
from tests.analysis_studies import make
from tests.sweeps import COMMAND, ROOT, everything_in, metadata, results, write_grid

QUIET = "--no-tracking"
CELL = "cells/workers=2,seed=0"


@pytest.fixture(scope="module")
def swept(tmp_path_factory):
    """A folder with a finished sweep of one cell."""
    folder = tmp_path_factory.mktemp("swept")
    write_grid(folder, axes={"workers": [2]})
    ended = subprocess.run([*COMMAND, "--grid", "tiny", QUIET], cwd=folder, capture_output=True, timeout=300)
    assert ended.returncode == 0
    return folder


@pytest.fixture
def spoiled(swept, tmp_path, monkeypatch):
    """A copy of it to spoil, where we are."""
    shutil.copytree(swept, tmp_path / "copy")
    monkeypatch.chdir(tmp_path / "copy")
    return tmp_path / "copy" / "results" / "tiny"


def _with(path: Path, change) -> None:
    content = json.loads(path.read_text())
    path.write_text(json.dumps(change(content)))


PLANS = {
    "a list": (lambda plan: [plan], "valid dictionary"),
    "nothing": (lambda plan: {}, "name: Field required"),
    "grid a list": (lambda plan: {**plan, "grid": [1]}, "grid: "),
    "no seeds": (lambda plan: {**plan, "grid": {**plan["grid"], "seeds": None}}, "grid.seeds: "),
    "lacking seeds": (lambda plan: {**plan, "grid": {"base": {}}}, "grid.seeds: Field required"),
    "axes a list": (lambda plan: {**plan, "axes": []}, "axes: "),
    "cells a mapping": (lambda plan: {**plan, "cells": {}}, "cells: "),
    "a cell without id": (lambda plan: {**plan, "cells": [{}]}, "cells.0.id: "),
    "a cell elsewhere": (lambda plan: {**plan, "cells": [{**plan["cells"][0], "id": "../x"}]}, "cells.0.id: "),
    "no seed": (lambda plan: {**plan, "cells": [{**plan["cells"][0], "settings": {}}]}, "cells.0.settings.seed: "),
    "no worker count": (lambda plan: _config(plan, workers="many"), "cells.0.config.workers: "),
    "a section that is none": (lambda plan: _config(plan, exchange=[1]), "cells.0.config.exchange: "),
    "a question that is none": (lambda plan: {**plan, "question": 7}, "question: "),
    "tracking": (lambda plan: {**plan, "grid": {**plan["grid"], "tracking": 3}}, "grid.tracking: "),
}


def _config(plan, **settings):
    cell = plan["cells"][0]
    return {**plan, "cells": [{**cell, "config": {**cell["config"], **settings}}]}


@pytest.mark.parametrize("kind", PLANS)
def test_a_plan_of_the_wrong_shape_is_one_sentence_for_sweep_and_report(spoiled, kind, capsys):
    change, expected = PLANS[kind]
    _with(spoiled / "study.json", change)
    before = everything_in(spoiled)
    for main, arguments in ((run_sweep.main, ["--grid", "tiny", QUIET]), (report.main, [str(spoiled)])):
        assert main(arguments) == 2
        message = capsys.readouterr().err
        assert message.startswith("error: ")
        assert f"study.json is not a study's plan: {expected}" in message or "valid dictionary" in message
        assert message.count("\n") == 1
    assert everything_in(spoiled) == before


def test_a_plan_that_is_no_json(spoiled, capsys):
    (spoiled / "study.json").write_text("[" * 100_000)
    assert run_sweep.main(["--grid", "tiny", QUIET]) == 2
    assert "not a study's plan: it is no JSON" in capsys.readouterr().err


@pytest.mark.parametrize("content", ["{}", "[]", "no JSON", '{"seed": 3}'])
def test_settings_of_the_wrong_shape_are_refused(spoiled, content, capsys):
    (spoiled / CELL / "config.json").write_text(content)
    assert run_sweep.main(["--grid", "tiny", QUIET]) == 2
    assert "config.json does not hold a run's settings" in capsys.readouterr().err
    assert load_study(spoiled).runs["status"].tolist() == ["different"]


SUMMARIES = ["{}", "[]", '{"outcome": "finished"}', '{"outcome": 3, "episodes": "many"}', '{"episodes": 1e400}']


@pytest.mark.parametrize("content", SUMMARIES)
def test_a_summary_of_the_wrong_shape_is_made_again(spoiled, content, capsys):
    before = results(spoiled / CELL)
    (spoiled / CELL / "summary.json").write_text(content)
    assert load_study(spoiled).runs["reason"].tolist() == ["its summary.json is missing or not a run's summary"]
    if content == SUMMARIES[0]:
        assert run_sweep.main(["--grid", "tiny", QUIET]) == 0
        assert results(spoiled / CELL) == before


@pytest.mark.parametrize("content", ["{}", "[]", '{"status": [], "uid": 3, "resumed": 7, "commit": {}, "dirty": 9}'])
def test_metadata_of_the_wrong_shape(spoiled, content, capsys):
    path = spoiled / CELL / "metadata.json"
    path.write_text(content)
    with pytest.raises(ResultsError, match="not a cell's metadata: it has no uid"):
        read_metadata(spoiled / CELL)
    assert load_study(spoiled).runs["status"].tolist() == ["running"]
    cell = Cell("workers=2,seed=0", {}, RunConfig.model_validate_json((spoiled / CELL / "config.json").read_bytes()))
    study = StudyFolder(spoiled.parent, "tiny")
    assert study.state(cell) == "unfinished"
    study.prepare(cell, "sweep", oversubscribed=False)
    assert isinstance(metadata(spoiled / CELL)["resumed"], list)
    (spoiled / "cells/.sweep.json").write_text(content)
    assert len(study.sweep_id()) == 32


def _manifests(change):
    """Return what changes a checkpoint's manifest and makes its digest right again."""

    def apply(manifest):
        changed = change({name: value for name, value in manifest.items() if name != "manifest_sha256"})
        return {**changed, "manifest_sha256": checkpoints._digest(changed)}

    return apply


MANIFESTS = {
    "no settings": (lambda manifest: {**manifest, "info": {}}, "has no settings"),
    "no state": (lambda manifest: {**manifest, "info": {**manifest["info"], "runtime": {}}}, "needs to go on"),
    "a list for state": (lambda manifest: {**manifest, "info": {**manifest["info"], "runtime": []}}, "needs to go on"),
    "a list for files": (lambda manifest: {**manifest, "sha256": []}, "does not fit its files"),
}


@pytest.mark.parametrize("kind", MANIFESTS)
def test_a_manifest_of_the_wrong_shape(tmp_path, kind):
    change, expected = MANIFESTS[kind]
    config = RunConfig(workers="2", episodes=20, profile="uniform")
    train(config, tmp_path)
    (path,) = tmp_path.glob("checkpoints/*/manifest.json")
    _with(path, _manifests(change))
    with pytest.raises(checkpoints.CheckpointError, match=expected):
        train(config, tmp_path)


@pytest.mark.parametrize("records", [None, [], [1], "12", ["a", "b"]])
def test_a_manifest_that_does_not_say_what_it_rests_on(tmp_path, records):
    config = RunConfig(workers="2", episodes=20, profile="uniform")
    train(config, tmp_path)
    (path,) = tmp_path.glob("checkpoints/*/manifest.json")
    _with(path, _manifests(lambda manifest: {**manifest, "info": {**manifest["info"], "records": records}}))
    with pytest.raises(checkpoints.CheckpointError, match="how many records"):
        train(config, tmp_path)


def _no_space():
    """Let no file grow beyond some bytes: writing fails as on a full disk."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))


def test_no_space_even_for_the_plan_is_one_sentence(tmp_path):
    write_grid(tmp_path)
    command = [*COMMAND, "--grid", "tiny", QUIET]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300, preexec_fn=_no_space)
    assert ended.returncode == 2
    assert ended.stderr.startswith("error: results can't be written to results/tiny: ")
    assert ended.stderr.count("\n") == 1
    assert not (tmp_path / "results/tiny/study.json").exists()


@pytest.mark.parametrize("readers", ["head -1", "true"])
def test_a_sweep_goes_on_when_nobody_reads_it(tmp_path, readers):
    write_grid(tmp_path, axes={"workers": [2]})
    command = f"{' '.join(COMMAND)} --grid tiny {QUIET} | {readers}; exit ${{PIPESTATUS[0]}}"
    ended = subprocess.run(["bash", "-c", command], cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert metadata(tmp_path / "results/tiny" / CELL)["status"] == "finished"
    assert json.loads((tmp_path / "results/tiny/study.json").read_text())["name"] == "tiny"


@pytest.mark.parametrize("closed", [">&-", "<&- >&- 2>&-"])
def test_a_sweep_and_a_report_without_standard_streams(tmp_path, closed):
    write_grid(tmp_path, axes={"workers": [2]})
    sweep = f"{sys.executable} {ROOT / 'run_sweep.py'} --no-page --grid tiny {QUIET} {closed}"
    ended = subprocess.run(["bash", "-c", sweep], cwd=tmp_path, stderr=subprocess.PIPE, text=True, timeout=300)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert metadata(tmp_path / "results/tiny" / CELL)["status"] == "finished"
    listed = f"{sys.executable} {ROOT / 'run_sweep.py'} --list {closed}"
    assert subprocess.run(["bash", "-c", listed], cwd=tmp_path, timeout=300).returncode == 0


def test_a_second_reader_that_hangs_up_does_not_end_a_report(swept, tmp_path):
    shutil.copytree(swept / "results" / "tiny", tmp_path / "tiny")
    command = f"{sys.executable} -m analysis.report {tmp_path / 'tiny'} | true; exit ${{PIPESTATUS[0]}}"
    ended = subprocess.run(["bash", "-c", command], cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert (ended.returncode, "Traceback" in ended.stderr) == (0, False)
    assert (tmp_path / "tiny" / "index.html").exists()


@pytest.mark.parametrize(("step_s", "update_s"), [(0, 0), (0.01, 0), (0, 0.01)])
@pytest.mark.filterwarnings("error")
def test_a_profile_without_costs_has_a_report(tmp_path, step_s, update_s, monkeypatch, plain_pictures):
    (tmp_path / "free.yaml").write_text(f"step_s: {step_s}\nupdate_s: {update_s}\n")
    axes = {"workers": ["2", "4", "2->3"], "seed": [0, 1]}
    folder = make(tmp_path / "free", axes, episodes=100, profile=str(tmp_path / "free.yaml"))
    everything = catalogue.catalogue
    kept = ("arrivals", "saturation", "frontier", "episodes")  # those that are about time
    of_time = lambda study, more: [e for e in everything(study, more) if e.name in kept]  # noqa: E731
    monkeypatch.setattr(catalogue, "catalogue", of_time)
    assert report.main([str(folder)]) == 0
    study = load_study(folder)
    assert len(study.done) == 6
    assert study.takes_time == (step_s + update_s > 0)
    assert ("Nothing takes any time" in (folder / "index.html").read_text()) == (step_s + update_s == 0)


def test_a_question_is_shown_as_it_is(tmp_path):
    folder = make(tmp_path / "plain", {"workers": ["2"], "seed": [0]}, episodes=20)
    question = "Is 1 < 2 & *that* [all](http://x) `really` <script>alert(1)</script>\n# or not_so |?"
    _with(folder / "study.json", lambda plan: {**plan, "question": question})
    shown = readme.render(load_study(folder), folder)
    escaped = (
        r"Is 1 &lt; 2 &amp; \*that\* \[all\](http://x) \`really\` &lt;script&gt;alert(1)&lt;/script&gt;"
        r" \# or not\_so \|?"
    )
    assert shown.splitlines()[0] == f"# {escaped}"
    assert f"![{escaped}](main.png)" in shown
    assert "<script>" not in shown


def test_metadata_that_is_damaged_while_a_cell_runs_is_whole_at_its_end(tmp_path):
    (cell,) = expand(read_grid(write_grid(tmp_path, axes={"workers": [2]})).grid)
    study = StudyFolder(tmp_path / "results", "tiny")
    known = study.prepare(cell, "sweep", oversubscribed=False)
    (study.cell(cell.id) / "metadata.json").write_text("")
    study.conclude(cell, "finished", metadata=known)
    assert metadata(study.cell(cell.id))["uid"] == known["uid"]


def test_what_a_killed_process_left_of_a_file_is_removed(tmp_path):
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    here = platform.node()
    left = tmp_path / f".a.json.{here}.{ended.pid}.tmp"
    others = [tmp_path / f".a.json.{here}.{os.getppid()}.tmp", tmp_path / f".a.json.elsewhere.{ended.pid}.tmp"]
    for path in (left, *others):
        path.touch()
    write_json(tmp_path / "a.json", {})
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(["a.json", *(path.name for path in others)])
