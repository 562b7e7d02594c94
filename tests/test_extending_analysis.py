"""Figures and claims from outside the package: the very examples of the page on extending, and mistakes in them."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from analysis import report
from analysis.figures import catalogue
from tests.analysis_studies import make_tiny

ROOT = Path(__file__).parents[1]
EXAMPLES = {"figure": ROOT / "docs/extending/entropy_figure.py", "claim": ROOT / "docs/extending/twice_as_fast.py"}
OPTIONS = ["--figure", "mypackage.figure:FIGURE", "--claim", "mypackage.claim:CLAIM"]


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    return make_tiny(tmp_path_factory.mktemp("results"))


@pytest.fixture(scope="module")
def outside(tmp_path_factory):
    """A folder with the examples as somebody's own package."""
    folder = tmp_path_factory.mktemp("outside")
    (folder / "mypackage").mkdir()
    for name, path in EXAMPLES.items():
        shutil.copy(path, folder / "mypackage" / f"{name}.py")
    return folder


@pytest.fixture(scope="module")
def built(tiny, outside):
    """The tiny study with a page that was made from outside the project."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "analysis.report", str(tiny), *OPTIONS]
    subprocess.run(command, cwd=outside, env=environment, check=True, capture_output=True)
    return tiny


def test_the_page_on_extending_shows_the_examples_word_for_word():
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "extending.md").read_text(), re.DOTALL)
    assert {path.read_text() for path in EXAMPLES.values()} <= set(blocks)
    assert all(len(block.splitlines()) <= 60 for block in blocks)


def test_a_figure_from_outside_is_drawn_and_read(built):
    page = (built / "index.html").read_text()
    assert (built / "figures" / "entropy.png").is_file()
    assert 'id="entropy"' in page
    assert re.search(r"At the end the policy&#39;s entropy is \d", page)


def test_a_claim_from_outside_is_judged_after_the_others(built):
    page, readme = ((built / name).read_text() for name in ("index.html", "README.md"))
    assert "16. Twice the workers play twice as fast." in page
    assert "| 16. Twice the workers play twice as fast. (a guess) | **" in readme
    claims = pd.read_csv(built / "tables" / "claims.csv").set_index("claim")
    assert claims.loc[16, "finding"].startswith("20 workers play ")


def test_the_command_that_repeats_it_names_them(built):
    command = f"python -m analysis.report results/tiny {' '.join(OPTIONS)}"
    assert command in (built / "index.html").read_text()
    assert command in (built / "README.md").read_text()


@pytest.mark.parametrize(
    ("option", "reference", "reason"),
    [
        ("--figure", "mypackage", "give module:NAME"),
        ("--figure", "nopackage.figure:FIGURE", "No module named 'nopackage'"),
        ("--figure", "mypackage.figure:PICTURE", "has no PICTURE"),
        ("--figure", "mypackage.claim:CLAIM", "is no figure"),
        ("--claim", "mypackage.figure:FIGURE", "is no claim"),
    ],
)
def test_what_is_not_there_gets_one_clear_line(option, reference, reason, tiny, outside, monkeypatch, capsys):
    monkeypatch.syspath_prepend(outside)
    assert report.main([str(tiny), option, reference]) == 2
    message = capsys.readouterr().err
    assert message.startswith(f"error: {reference}")
    assert reason in message
    assert message.count("\n") == 1


@pytest.mark.parametrize(
    ("change", "reason"), [({"name": "queue"}, "called queue"), ({"section": "x"}, "no section x")]
)
def test_a_figure_that_has_no_place_is_refused_before_anything_is_drawn(change, reason, tiny, monkeypatch, capsys):
    monkeypatch.syspath_prepend(EXAMPLES["figure"].parent)
    import entropy_figure

    monkeypatch.setattr(entropy_figure, "FIGURE", entropy_figure.FIGURE._replace(**change))
    assert report.main([str(tiny), "--figure", "entropy_figure:FIGURE"]) == 2
    assert reason in capsys.readouterr().err


@pytest.mark.parametrize("topic", ["figures", "claims"])
def test_a_file_of_the_package_is_shown_by_one_row(topic):
    """Every file that ends in a figure or a claim is listed, once."""
    from analysis.claims.catalogue import CLAIMS

    listed = {"figures": catalogue.FIGURES, "claims": CLAIMS}[topic]
    files = [path for path in (ROOT / "analysis" / topic).glob("*.py") if path.name != "catalogue.py"]
    ends = re.compile(r"^(FIGURE|CLAIM) = |^def figures\(", re.MULTILINE)
    there = {f"analysis.{topic}.{path.stem}" for path in files if ends.search(path.read_text())}
    assert {reference.partition(":")[0] for reference in listed} == there
    assert len(listed) == len(there)
