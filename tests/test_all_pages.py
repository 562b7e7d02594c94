"""The pages of all studies: an index that links to them, and no file changed that git tracks."""

import html
import re
import shutil

import pytest

from analysis import all_pages, report
from analysis.data.load import load_study
from analysis.pages.answer import answer
from tests.analysis_studies import make_tiny, plan


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """A folder of results: a study as git has it, one without a run, a folder that is no study, and a list of them."""
    folder = tmp_path_factory.mktemp("results")
    tiny = make_tiny(folder)
    assert report.main([str(tiny)]) == 0
    for built in ("cells", "figures"):
        shutil.rmtree(tiny / built)
    (tiny / "index.html").unlink()
    plan(folder / "a_planned", {"workers": ["2"], "seed": [0]}, episodes=200)
    (folder / "bare").mkdir()
    (folder / "bare" / "README.md").write_text("Written by people.\n\n# What is bare?\n")
    (folder / "README.md").write_text("[tiny](tiny/README.md), [bare](bare/README.md)")
    return folder


def contents(folder):
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_pages_and_index_are_added_and_nothing_is_changed(results, tmp_path, capsys):
    folder = tmp_path / "results"
    shutil.copytree(results, folder)
    (folder / "tiny" / "main.png").write_bytes(b"drawn by another version")
    before = contents(folder)
    assert all_pages.main([str(folder)]) == 0
    after = contents(folder)
    assert {path: after[path] for path in before} == before
    added = {path.relative_to("tiny").parts[0] for path in after.keys() - before.keys() if path.parts[0] == "tiny"}
    assert added == {"index.html", "figures"}
    said = capsys.readouterr()
    assert said.out.splitlines()[0] == f"{folder}/tiny/index.html: 10 of 10 runs done"
    assert said.out.splitlines()[-1] == f"{folder}/index.html: 2 of 2 studies"
    assert said.err == ""


def test_the_index_answers_and_its_links_lead_somewhere(results, tmp_path):
    folder = tmp_path / "results"
    shutil.copytree(results, folder)
    assert all_pages.main([str(folder)]) == 0
    text = (folder / "index.html").read_text()
    study = load_study(folder / "tiny")
    for part in (study.question, answer(study), "tiny · 10 of 10 runs done", "a_planned · 0 of 1 run done"):
        assert part in html.unescape(text)
    titles = re.findall(r'<h3><a href="([^"]*)">([^<]*)', text)
    assert [link for link, _ in titles] == ["tiny/index.html", "a_planned/index.html", "bare/README.md"]
    assert titles[-1][1] == "What is bare?"
    assert re.findall(r'<img [^>]*src="([^"]*)"', text) == ["tiny/main.png"]
    for link in re.findall(r'(?:href|src)="([^"]*)"', text):
        assert link == "data:," or (folder / link).is_file(), link
    for link in re.findall(r'href="([^"#:]+)"', (folder / "tiny" / "index.html").read_text()):
        assert (folder / "tiny" / link).is_file(), link


def test_a_damaged_study_is_named_and_the_others_are_built(results, tmp_path, capsys):
    folder = tmp_path / "results"
    shutil.copytree(results, folder)
    (folder / "a_planned" / "study.json").write_text("{}")
    assert all_pages.main([str(folder)]) == 2
    said = capsys.readouterr()
    assert said.err.startswith(f"error: {folder}/a_planned/study.json")
    assert said.err.count("\n") == 1
    assert "1 of 2 studies" in said.out
    assert (folder / "tiny" / "index.html").exists()


@pytest.mark.parametrize("name", ["nowhere", "empty"])
def test_a_folder_without_studies_gets_one_line(name, tmp_path, capsys):
    (tmp_path / "empty").mkdir()
    with pytest.raises(SystemExit) as stopped:
        all_pages.main([str(tmp_path / name)])
    assert stopped.value.code == 2
    assert capsys.readouterr().err.count("\n") == 1
