"""Notebooks: each runs from top to bottom, on a sweep made here; they are thin, and every plot is read."""

import ast

import nbformat
import pytest

from analysis import notebooks
from tests.analysis_studies import make_tiny


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    return make_tiny(tmp_path_factory.mktemp("results"))


def test_there_are_three():
    names = [path.name for path in notebooks.NOTEBOOKS]
    assert names == ["01_fixed_workers.ipynb", "02_dynamic_workers.ipynb", "03_why_it_collapses.ipynb"]


@pytest.mark.parametrize("path", notebooks.NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_thin(path):
    for cell in nbformat.read(path, as_version=4).cells:
        if cell.cell_type == "code":
            tree = ast.parse(cell.source)
            assert len(tree.body) <= 2
            assert not any(isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Lambda) for node in ast.walk(tree))
    assert path.stat().st_size < 500_000


@pytest.mark.parametrize("path", notebooks.NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_and_reads_its_plots(path, tiny, tmp_path):
    copy = tmp_path / path.name
    copy.write_bytes(path.read_bytes())
    notebooks.execute(copy, tiny)
    cells = [cell for cell in nbformat.read(copy, as_version=4).cells if cell.cell_type == "code"]
    plots = 0
    for cell in cells:
        assert all(output.output_type != "error" and output.get("name") != "stderr" for output in cell.outputs)
        kinds = [next(iter(output.data)) if "data" in output else "" for output in cell.outputs]
        for place, output in enumerate(cell.outputs):
            if "image/png" in output.get("data", {}):
                plots += 1
                assert cell.outputs[place + 1].data["text/markdown"].endswith("."), kinds
    assert plots >= 3


def test_a_folder_without_a_study_gets_one_line(tmp_path, capsys):
    assert notebooks.main(["--study", str(tmp_path)]) == 2
    assert capsys.readouterr().err.startswith("error: ")


def test_a_figure_that_the_study_lacks_is_said_to_be_missing(tiny, monkeypatch, capsys):
    monkeypatch.setenv(notebooks.STUDY_VARIABLE, str(tiny))
    notebooks.show(notebooks.open_study(), "3_10to20")
    assert "Markdown" in capsys.readouterr().out
