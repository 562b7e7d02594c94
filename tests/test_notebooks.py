"""Notebooks: each runs from top to bottom, on a sweep made here; thin, every plot is read, stable outputs."""

import ast
import re

import nbformat
import pytest

from analysis import notebooks
from analysis.data.load import load_study
from analysis.figures import catalogue
from tests.analysis_studies import make_tiny


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    return make_tiny(tmp_path_factory.mktemp("results"))


def test_there_are_four():
    names = [path.stem for path in notebooks.NOTEBOOKS]
    assert names == ["01_fixed_workers", "02_dynamic_workers", "03_why_it_collapses", "04_your_own_study"]


@pytest.mark.parametrize("path", notebooks.NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_thin(path):
    for cell in nbformat.read(path, as_version=4).cells:
        if cell.cell_type == "code":
            tree = ast.parse(cell.source)
            statements = [node for node in tree.body if not isinstance(node, ast.Import | ast.ImportFrom)]
            assert len(statements) <= 2
            assert not any(isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Lambda) for node in ast.walk(tree))
    assert path.stat().st_size < 500_000


@pytest.mark.parametrize("path", notebooks.NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_and_reads_its_plots(path, tiny, tmp_path):
    copy = tmp_path / path.name
    copy.write_bytes(path.read_bytes())
    notebooks.execute(copy, tiny)
    every = nbformat.read(copy, as_version=4).cells
    if path == notebooks.NOTEBOOKS[-1]:  # the one with plots and tables of its own
        first = copy.read_bytes()
        notebooks.execute(copy, tiny)
        assert copy.read_bytes() == first
    plots = 0
    for number, cell in enumerate(every):
        if cell.cell_type != "code":
            continue
        assert all(output.output_type != "error" and output.get("name") != "stderr" for output in cell.outputs)
        kinds = [next(iter(output.data)) if "data" in output else "" for output in cell.outputs]
        for place, output in enumerate(cell.outputs):
            if "image/png" in output.get("data", {}):
                plots += 1
                if "show(" in cell.source:
                    assert cell.outputs[place + 1].data["text/markdown"].endswith("."), kinds
                else:  # a reader's own plot: what it shows stands below
                    assert every[number + 1].cell_type == "markdown"
    assert plots >= 2
    assert any("text/html" in output.get("data", {}) for cell in every for output in cell.get("outputs", []))


@pytest.fixture(scope="module")
def committed():
    return load_study(notebooks.ROOT / "results/report")


@pytest.mark.parametrize("path", notebooks.NOTEBOOKS, ids=lambda path: path.stem)
def test_outputs_are_those_of_the_committed_study(path, committed):
    """So that `make notebooks` leaves git clean: no addresses or ids by chance, and sentences of today's results."""
    for cell in nbformat.read(path, as_version=4).cells:
        outputs = cell.get("outputs", [])
        texts = [text for output in outputs for kind, text in output.data.items() if kind.startswith("text/")]
        assert not any(re.search(r"0x[0-9a-f]{6}", text) for text in texts)
        for name in re.findall(r'^show\(study, "(\w+)"\)', cell.source, re.MULTILINE):
            assert outputs[1].data["text/markdown"] == catalogue.by_name(committed, name).says(committed)


def test_a_folder_without_a_study_gets_one_line(tmp_path, capsys):
    assert notebooks.main(["--study", str(tmp_path)]) == 2
    assert capsys.readouterr().err.startswith("error: ")


def test_a_figure_that_the_study_lacks_is_said_to_be_missing(tiny, monkeypatch, capsys):
    monkeypatch.setenv(notebooks.STUDY_VARIABLE, str(tiny))
    notebooks.show(notebooks.open_study(), "3_10to20")
    assert "Markdown" in capsys.readouterr().out
