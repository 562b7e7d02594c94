"""The report: one command, a page that needs nothing else, the same bytes every time, and clear words for bad input."""

import base64
import io
import json
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pandas as pd
import pytest
from PIL import Image

from a3c_core.command_line import heartbeat
from analysis import report
from analysis.claims.documents import CODE
from analysis.figures import catalogue
from tests.analysis_studies import make_tiny, plan, run, write_metadata
from tests.browser import INSTALLED, browser


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A tiny study with its page."""
    folder = make_tiny(tmp_path_factory.mktemp("results"))
    assert report.main([str(folder)]) == 0
    return folder


@pytest.fixture
def few_figures(monkeypatch):
    """Draw only one figure besides the main one, where figures are not what is tested."""
    everything = catalogue.catalogue
    monkeypatch.setattr(catalogue, "catalogue", lambda study, more: everything(study, more)[:1])


def made_files(folder: Path) -> dict[str, bytes]:
    paths = [path for path in folder.rglob("*") if path.is_file() and "cells" not in path.parts]
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


class Page(HTMLParser):
    """What a page refers to, and whether its tags are balanced."""

    VOID = ("meta", "link", "img", "br")

    def __init__(self, text: str):
        super().__init__()
        self.references: list[str] = []
        self.images: list[dict[str, str | None]] = []
        self.open: list[str] = []
        self.ids: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        values = dict(attrs)
        self.references += [values[name] for name in ("src", "href") if values.get(name)]
        if tag == "img":
            self.images.append(values)
        if values.get("id"):
            assert values["id"] not in self.ids
            self.ids.add(values["id"])
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_the_page_needs_nothing_else(built):
    page = Page((built / "index.html").read_text())
    assert page.open == []
    assert len(page.images) > 15
    for image in page.images:
        assert image["alt"]
        kind, _, content = image["src"].partition(",")
        assert kind == "data:image/png;base64"
        Image.open(io.BytesIO(base64.b64decode(content))).verify()
    for reference in page.references:
        if reference == f"https://{CODE}":  # to follow, not to load: the code of those who made the claims
            continue
        assert not re.match(r"(https?:)?//", reference), reference
        if reference.startswith("#"):
            assert reference[1:] in page.ids
        elif not reference.startswith("data:"):
            assert (built / reference).is_file(), reference


FIGURES = "return [...document.images].map(i => [i.naturalWidth, i.getBoundingClientRect().width])"


@pytest.mark.slow
@pytest.mark.skipif(not INSTALLED, reason="chromium and chromedriver are not installed")
def test_the_page_in_a_browser_on_a_phone_and_on_a_desk(built):
    with browser() as window:
        for width in (400, 1400):
            window.resize(width)
            window.open((built / "index.html").as_uri())
            inner, needed = window.run("return [innerWidth, document.documentElement.scrollWidth]")
            assert needed <= inner
            sizes = window.run(FIGURES)
            assert len(sizes) > 15
            assert all(natural > 0 and 100 < shown <= inner for natural, shown in sizes)
            assert window.complaints() == []


def test_the_page_answers_first_and_judges_what_it_can(built):
    text = (built / "index.html").read_text()
    order = [text.index(part) for part in ('class="answer"', 'id="main"', 'id="claims"', 'id="tables"', 'id="repeat"')]
    assert order == sorted(order)
    badges = re.findall(r'class="badge (supported|refuted|undecided)"', text)
    judged = re.findall(r'class="card claim">\n<p>(\d+)\.', text)
    unfit = re.findall(r"<li>(\d+)\.", text)
    others = re.search(r"not made to judge claims ([^;]*);", text)
    assert len(badges) == len(judged) >= 3
    assert "badge not-tested-here" not in text  # a verdict is one of those that the runs can give
    assert sorted(map(int, [*judged, *unfit, *re.findall(r"\d+", others[1])])) == list(range(1, 14))
    sources = re.findall(r'\(<a href="#document-(\w+)">', text)
    assert len(sources) == len(judged) + len(unfit)
    assert "What would decide it" in text
    assert "python -m analysis.report results/tiny" in text
    assert "python run_sweep.py --grid tiny --seeds 2" in text
    assert "10 of 10 runs done" in text


def test_rebuilt_without_the_runs_everything_is_the_same_bytes(built, tmp_path):
    for name in ("study.json", "runs.parquet", "curves.parquet"):
        shutil.copy(built / name, tmp_path / name)
    assert report.main([str(tmp_path)]) == 0
    before, after = made_files(built), made_files(tmp_path)
    assert sorted(after) == sorted(before)
    assert [name for name in before if before[name] != after[name]] == []


def test_vectors_are_written_only_on_request_and_are_the_same_bytes_every_time(built, tmp_path, few_figures):
    assert not list((built / "figures").glob("*.svg"))
    drawn = []
    for name in ("once", "again"):
        shutil.copytree(built, tmp_path / name)
        assert report.main([str(tmp_path / name), "--svg"]) == 0
        drawn.append({path.name: path.read_bytes() for path in (tmp_path / name / "figures").glob("*.svg")})
    assert drawn[0]
    assert drawn[0] == drawn[1]


def test_tables(built):
    schedules = pd.read_csv(built / "tables" / "schedules.csv")
    runs = pd.read_csv(built / "tables" / "runs.csv")
    assert schedules["schedule"].tolist() == ["4", "10", "20", "6→12", "10→32"]
    assert len(runs) == 10
    four = runs.loc[runs["schedule"] == "4", "final_score"]
    assert schedules["final_score"].iloc[0] == pytest.approx(four.mean(), rel=1e-4)  # of two runs the IQM is the mean
    comparisons = pd.read_csv(built / "tables" / "comparisons.csv")
    assert len(comparisons) == 10
    assert comparisons["probability_of_improvement"].between(0, 1).all()
    assert set(pd.read_csv(built / "tables" / "claims.csv")["claim"]) == set(range(1, 14))


def test_a_half_finished_sweep_gives_a_page_that_says_what_is_missing(tmp_path, few_figures):
    folder = tmp_path / "half"
    cells = plan(folder, {"workers": ["2", "20", "6->12"], "seed": [0, 1]}, episodes=200)
    run(folder, cells[0])
    run(folder, cells[2])
    run(folder, cells[3])
    write_metadata(folder / "cells" / cells[3]["id"], "failed", reason="<b>out of memory</b>")
    assert report.main([str(folder)]) == 0
    text = (folder / "index.html").read_text()
    assert "4 runs of 6 missing (3 missing, 1 failed)" in text
    assert "&lt;b&gt;out of memory&lt;/b&gt;" in text
    assert "6→12: not drawn, because none of its runs is done." in text
    assert "2_6to12" not in {path.stem for path in (folder / "figures").iterdir()}
    assert Page(text).open == []


def test_a_sweep_without_a_finished_run_gives_a_page_too(tmp_path):
    plan(tmp_path / "planned", {"workers": ["2"], "seed": [0]}, episodes=200)
    assert report.main([str(tmp_path / "planned")]) == 0
    text = (tmp_path / "planned" / "index.html").read_text()
    assert "There is no answer yet" in text
    assert "<img" not in text


def test_figures_of_an_earlier_time_are_removed(built, tmp_path, few_figures):
    folder = tmp_path / "copy"
    shutil.copytree(built, folder)
    (folder / "figures" / "9_old.png").write_bytes(b"old")
    (folder / "figures" / "notes.txt").write_text("mine")
    assert report.main([str(folder)]) == 0
    assert not (folder / "figures" / "9_old.png").exists()
    assert (folder / "figures" / "notes.txt").exists()


def test_without_a_terminal_it_says_how_far_it_is(built, few_figures, monkeypatch, capsys):
    monkeypatch.setattr(heartbeat, "EVERY_S", 0.01)
    assert report.main([str(built)]) == 0
    assert re.search(r"^drawing: \d+ of 2$", capsys.readouterr().err, re.MULTILINE)


def one_line_error(capsys, arguments) -> str:
    assert report.main(arguments) == 2
    message = capsys.readouterr().err
    assert message.startswith("error: ")
    assert message.count("\n") == 1
    return message


def test_bad_folders_get_one_clear_line(tmp_path, capsys):
    assert "no folder" in one_line_error(capsys, [str(tmp_path / "nowhere")])
    assert "no study.json" in one_line_error(capsys, [str(tmp_path)])
    (tmp_path / "study.json").write_text("{}")
    assert "not a study's plan" in one_line_error(capsys, [str(tmp_path)])
    assert list(tmp_path.iterdir()) == [tmp_path / "study.json"]


def test_bad_arguments_are_refused(capsys):
    for arguments in ([], ["results/x", "--experiment", "x"], ["results/x", "--out", "y"]):
        with pytest.raises(SystemExit) as stopped:
            report.main(arguments)
        assert stopped.value.code == 2
    assert "either a results folder or --experiment" in capsys.readouterr().err


def test_help_teaches_by_example():
    command = [sys.executable, "-m", "analysis.report", "--help"]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "python -m analysis.report results/report" in shown


def test_names_that_need_quoting_are_fine(built, tmp_path, few_figures):
    folder = tmp_path / "tiny+episodes=300,x"
    shutil.copytree(built, folder)
    content = json.loads((folder / "study.json").read_text())
    (folder / "study.json").write_text(json.dumps({**content, "question": 'Is 1 < 2 & "so on"?'}))
    assert report.main([str(folder)]) == 0
    assert "Is 1 &lt; 2 &amp; &#34;so on&#34;?" in (folder / "index.html").read_text()
