"""The index of all studies: question, answer, number of runs and main picture of each, with a link to its page."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import jinja2

from a3c_core.records.files import write_whole
from a3c_core.records.layout import STUDY
from analysis.data.study import Study
from analysis.pages import build
from analysis.pages.answer import answer
from analysis.pages.gallery import MAIN_FILE
from analysis.pages.readme import conclusion
from analysis.words import count

PAGE, README = "index.html", "README.md"
_TEMPLATE = Path(__file__).with_name("index.html")


class Entry(NamedTuple):
    """A study in the index, or another folder of results, which has a README.md only."""

    question: str
    answer: str
    facts: str  # name and number of runs
    page: str  # its address, relative to the index
    picture: str  # the same; "" if there is none


def build_one(folder: Path) -> tuple[Entry, str]:
    """Build a study's page; return its entry in the index, and what was written."""
    return _entry(folder, build.build_untracked(folder).study, PAGE)


def build_tracked(folder: Path) -> tuple[Entry, str]:
    """Bring what git tracks of a study up to date; return its entry in an index, and what was written."""
    return _entry(folder, build.build_tracked(folder).study, README)


def _entry(folder: Path, study: Study, written: str) -> tuple[Entry, str]:
    runs = f"{len(study.done)} of {count(len(study.runs), 'run')} done"
    text = conclusion(folder) or answer(study)
    entry = Entry(study.question, text, f"{study.name} · {runs}", f"{folder.name}/{PAGE}", _picture(folder))
    return entry, f"{folder / written}: {runs}"


def others(results: Path) -> list[Entry]:
    """Return the folders of results that are no studies: each with the heading and the picture of its README.md."""
    readmes = [path for path in sorted(results.glob(f"*/{README}")) if not (path.parent / STUDY).exists()]
    return [
        Entry(_heading(path), "", path.parent.name, f"{path.parent.name}/{README}", _picture(path.parent))
        for path in readmes
    ]


def studies(results: Path) -> list[Path]:
    """Return the folders of the studies in `results`: in the order of its README.md, then those that it lacks."""
    text = (results / README).read_text(encoding="utf-8") if (results / README).exists() else ""
    order = list(dict.fromkeys(re.findall(rf"\]\((\w+)/{README}\)", text)))
    folders = sorted(path.parent for path in results.glob(f"*/{STUDY}"))
    return sorted(folders, key=lambda folder: order.index(folder.name) if folder.name in order else len(order))


def write(results: Path, entries: Sequence[Entry]) -> Path:
    """Write the index beside the studies; return its path."""
    environment = jinja2.Environment(autoescape=True, trim_blocks=True, undefined=jinja2.StrictUndefined)
    template = environment.from_string(_TEMPLATE.read_text(encoding="utf-8"))
    html = template.render(studies=entries, others=others(results))
    write_whole(results / PAGE, lambda path: path.write_text(html, encoding="utf-8"))
    return results / PAGE


def _picture(folder: Path) -> str:
    return f"{folder.name}/{MAIN_FILE}" if (folder / MAIN_FILE).exists() else ""


def _heading(path: Path) -> str:
    """Return the first heading of a Markdown file, or its folder's name."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return next((line.removeprefix("# ") for line in lines if line.startswith("# ")), path.parent.name)
