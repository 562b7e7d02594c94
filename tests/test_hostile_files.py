"""Files that somebody made to do harm: none runs code, takes the memory, or reaches a shell, a page or a terminal."""

import csv
import io
import json
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import run_sweep
from a3c.play import __main__ as play
from a3c_core.errors import on_a_screen, printable
from a3c_core.records import checkpoints
from a3c_core.records.layout import ResultsError
from a3c_core.records.plan import read_plan
from a3c_core.train.__main__ import main as train_command
from analysis import report
from analysis.data.load import load_study
from analysis.pages import readme, tables
from analysis.pages.extras import rebuild_command
from analysis.pages.page import rerun_command
from tests.analysis_studies import make
from tests.bad_inputs import forged, sound_checkpoint
from tests.sweeps import write_grid

MINE = """
import pathlib
from keras import Input, Model, layers

def build(spaces, outputs):
    pathlib.Path("seen.txt").write_text(repr((spaces, outputs)))
    inputs = Input(spaces.observation_shape)
    hidden = layers.Dense(4)(inputs)
    return Model(inputs, [layers.Dense(size, name=head)(hidden) for head, size in outputs.items()])

def other(*values):
    pathlib.Path("harm.txt").write_text(repr(values))
"""
ESCAPE = "\x1b]0;owned\x07\x1b[2J"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder of the user's, with a module in it, where we are."""
    (tmp_path / "mine.py").write_text(MINE)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write_checkpoint(folder: Path, manifest: str, **files: bytes) -> None:
    sound = sound_checkpoint(folder / "sound")
    (folder / "run").mkdir()
    for name, content in {**sound, "manifest.json": manifest.encode(), **files}.items():
        (folder / "run" / name).write_bytes(content)


def manifest_of(folder: Path) -> dict:
    return json.loads(sound_checkpoint(folder / "sound")["manifest.json"])


HARM = {"reference": "mine:other", "spaces": ["sh", "-c", "touch harm.txt"], "heads": [["policy_logits", 2]]}


@pytest.mark.parametrize("trusted", ["mine", "mine:build", "mine:other", "pty"])
def test_a_checkpoint_chooses_no_function_and_gives_none_its_values(folder, trusted):
    """In a process of its own, as the user's module needs TensorFlow."""
    manifest = json.loads(forged(manifest_of(folder), "info.config.network", {}))
    write_checkpoint(folder, forged(manifest, "model", {"name": "mine:build", "settings": HARM}))
    words = [sys.executable, "-m", "a3c.play", "--checkpoint", "run", "--episodes", "1", "--trust", trusted]
    ended = subprocess.run(words, cwd=folder, capture_output=True, text=True)
    assert ended.returncode == 2, ended.stderr
    assert ended.stderr.splitlines()[-1].startswith("error: ")  # TensorFlow's words may stand before
    assert "Traceback" not in ended.stderr
    assert not (folder / "harm.txt").exists()
    seen = folder / "seen.txt"
    assert seen.exists() == (trusted == "mine:build")
    if seen.exists():  # what we computed ourselves; its parameters are of another size, which is why it ends there
        assert "observation_shape=(8,)" in seen.read_text()
        assert "sh" not in seen.read_text().replace("shape", "")


def npz(header_shape: tuple[int, ...], kind: str = "<f4", content: bytes = b"", compress: bool = False) -> bytes:
    """Return a file of arrays with a header that claims anything."""
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": kind, "fortran_order": False, "shape": header_shape})
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED if compress else zipfile.ZIP_STORED) as archive:
        for name in ("parameters", "slots"):
            archive.writestr(f"{name}.npy", header.getvalue() + content)
    return file.getvalue()


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    shape=st.lists(st.integers(0, 10**11), max_size=3).map(tuple),
    kind=st.sampled_from(["<f4", "<f8", "|S8", "<U4", "<i8", ">f4", "|O", "|b1"]),
    content=st.binary(max_size=64),
    compress=st.booleans(),
)
def test_no_header_of_arrays_gets_beyond_one_sentence(tmp_path_factory, shape, kind, content, compress):
    path = tmp_path_factory.mktemp("npz") / "learner.npz"
    path.write_bytes(npz(shape, kind, content, compress))
    with pytest.raises((ValueError, LookupError)):  # what `_read` says in one sentence
        checkpoints._refuse_other_numbers(checkpoints._read_arrays(path))


ARRAYS = {
    "373 GiB": npz((100_000_000_000,)),
    "float64": npz((1,), "<f8", bytes(8)),
    "text": npz((2,), "<U1", bytes(8)),
}


@pytest.mark.parametrize("what", ARRAYS)
def test_arrays_that_are_none_of_ours_are_one_sentence(folder, what, capsys):
    manifest = manifest_of(folder)
    (folder / "learner.npz").write_bytes(ARRAYS[what])
    digest = checkpoints._file_digest(folder / "learner.npz")
    write_checkpoint(folder, forged(manifest, "sha256", {**manifest["sha256"], "learner.npz": digest}))
    (folder / "run/learner.npz").write_bytes(ARRAYS[what])
    with pytest.raises(SystemExit) as caught:
        play.main(["--checkpoint", "run", "--episodes", "1"])
    said = capsys.readouterr().err
    assert (caught.value.code, said.count("\n")) == (2, 1)
    assert "does not fit its files" in said


@pytest.mark.parametrize("part", ["engine", "algorithm", "topology", "model"])
@pytest.mark.parametrize("name", ["os:environ", "os:system", "string:Template"])
def test_what_is_no_part_is_one_sentence(folder, part, name, capsys):
    if (part, name) == ("model", "os:system"):
        return  # a function may build a model: only calling it tells, and the user has named it
    with pytest.raises(SystemExit) as caught:
        train_command(["--set", f"{part}={name}", "--episodes", "10", "--out", "run"])
    said = capsys.readouterr().err
    assert (caught.value.code, said.count("\n")) == (2, 1)
    assert said.startswith(f"error: {part}: ")
    assert not (folder / "run").exists()


def test_a_broken_plan_is_not_written_over_by_an_experiment(folder, capsys):
    (folder / "results/mine").mkdir(parents=True)
    (folder / "results/mine/study.json").write_text("{")
    assert report.main(["--experiment", "mine", "--tracking-uri", "sqlite:///none.db"]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_binary_notes_are_one_sentence(tmp_path, capsys, plain_pictures):
    study = make(tmp_path / "study", {"workers": ["2"], "seed": [0]}, episodes=20)
    (study / "notes.md").write_bytes(bytes(range(128, 256)))
    assert report.main([str(study)]) == 2
    *progress, said = capsys.readouterr().err.splitlines()
    assert "notes.md is no text in UTF-8" in said
    assert all(line.startswith(("reading", "drawing")) for line in progress)


@pytest.mark.parametrize("limit_kb", [400_000, 900_000])
@pytest.mark.parametrize("command", ["-m a3c_core.train --episodes 10", "run_sweep.py --list", "-m analysis.report x"])
def test_too_little_memory_is_one_sentence(limit_kb, command, tmp_path):
    words = command.replace("run_sweep.py", run_sweep.__file__)
    line = f"ulimit -v {limit_kb}; {sys.executable} {words}"
    ended = subprocess.run(["bash", "-c", line], cwd=tmp_path, capture_output=True, text=True)
    assert ended.returncode == 2
    assert ended.stderr.startswith(f"error: the limit of {limit_kb * 1024 / 1e6:,.0f} MB of memory (ulimit -v)")
    assert ended.stderr.count("\n") == 1


def rewritten(study: Path, **changes) -> Path:
    plan = json.loads((study / "study.json").read_text())
    (study / "study.json").write_text(json.dumps({**plan, **changes}))
    return study


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """A study of one run."""
    return make(tmp_path_factory.mktemp("small") / "study", {"workers": ["2"], "seed": [0]}, episodes=20)


@pytest.mark.parametrize(
    "name", ["$(touch harm)", "a; touch harm", "`touch harm`", "<img src=x onerror=alert(1)>", "[x](http://y)"]
)
def test_a_hostile_name_is_quoted_in_commands_and_shown_as_it_is(small, name):
    study = load_study(rewritten(small, name=name))
    for command in (rerun_command(study), rebuild_command(study, readme.NO_EXTRAS)):
        shown = subprocess.run(
            ["bash", "-c", f"python() {{ printf '%s\\n' \"$@\"; }}; {command}"],
            cwd=small,
            capture_output=True,
            text=True,
        )
        assert (shown.returncode, shown.stderr) == (0, "")
        assert any(name in line for line in shown.stdout.splitlines())
    assert not (small / "harm").exists()
    text, _, _ = readme.render(study, small).partition("```")
    assert "<img" not in text
    assert "[x](http" not in text


@pytest.mark.parametrize("where", ["name", "question"])
def test_no_plan_has_what_a_terminal_obeys(small, where):
    with pytest.raises(ResultsError, match=f"{where}: .*control characters") as caught:
        read_plan(rewritten(small, name="study", question="Why?") and rewritten(small, **{where: ESCAPE}))
    assert "\x1b" not in str(caught.value)
    rewritten(small, name="study", question="Why?")


@pytest.mark.parametrize("commit", ["\ntouch x", "$(id)"])
def test_a_hostile_commit_does_not_leave_its_comment(small, commit):
    study = load_study(rewritten(small, name="study"))
    study.runs["commit"] = commit
    study.__dict__.pop("done", None)
    block = readme.render(study, small).partition("```bash\n")[2].partition("```")[0]
    assert len(block.splitlines()) == 2
    assert "$(" not in block


def test_a_question_or_a_name_with_escapes_reaches_no_terminal(folder, capsys):
    path = write_grid(folder, question="placeholder")
    path.write_text(path.read_text().replace("placeholder", '"\\e]0;owned\\a"'))
    assert run_sweep.main(["--grid", "tiny", "--dry-run", "--no-tracking"]) == 2
    assert run_sweep.main(["--grid", f"x{ESCAPE}", "--dry-run", "--no-tracking"]) == 2
    with pytest.raises(SystemExit):
        play.main(["--checkpoint", f"x{ESCAPE}"])
    said = capsys.readouterr()
    assert "must not hold control characters" in said.err
    assert "\x1b" not in said.out + said.err
    assert "\\x1b" in said.err


@settings(derandomize=True)
@given(st.text())
def test_what_is_printable_has_no_control_characters_and_is_otherwise_the_same(text):
    shown = printable(text)
    assert not any(ord(letter) in {*range(9), *range(11, 32), *range(127, 160)} for letter in shown)
    assert shown == text or any(ord(letter) < 160 and not letter.isprintable() for letter in text)
    assert printable(on_a_screen(text)) == on_a_screen(text)


@settings(derandomize=True)
@given(st.lists(st.tuples(st.text(max_size=20), st.floats(allow_nan=False, width=32)), min_size=1, max_size=5))
def test_no_text_in_a_table_is_a_formula(rows):
    table = pd.DataFrame([("=HYPERLINK(1)", -1.0), *rows], columns=["text", "number"])
    read = list(csv.reader(io.StringIO(tables.csv(table), newline="")))
    assert read[1] == ["'=HYPERLINK(1)", "-1"]  # numbers stay numbers
    assert not any(text[:1] in ("=", "+", "-", "@", "\t", "\r") for text, _ in read[1:] if text)
