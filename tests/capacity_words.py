"""What the pages of a study say of the number of workers that its master bears."""

import html
import re
from pathlib import Path

from analysis.data.capacity import limit_of
from analysis.data.study import Study

SAID = re.compile(r"(N0|N\*) (?:=|≈|of|is|at|near) (?:C / S = |\(C \+ S\) / S = )?(\d[\d.]*\d)")
OTHER_WORDS = re.compile(r"\d[\d.]* workers keep the master busy|N\* (predicted|from times)|saturat\w+ (at|near) \d")


def pages(folder: Path, names: tuple[str, ...]) -> str:
    """Return what is generated for a study and read by people, as plain text; not its notes."""
    notes = (folder / "notes.md").read_text(encoding="utf-8").strip() if (folder / "notes.md").exists() else ""
    texts = [(folder / name).read_text(encoding="utf-8").replace(notes or "\0", "") for name in names]
    without_images = re.sub(r"base64,[^\"]*", "", " ".join(texts))
    return html.unescape(re.sub(r"<[^>]*>", " ", without_images))


def limits(study: Study) -> dict:
    """Return how many workers a study's master bears, by setting."""
    return {variant: limit_of(study.of_variant(variant)) for variant in study.done_variants}


def check(folder: Path, study: Study, names: tuple[str, ...] = ("README.md", "index.html")) -> int:
    """Check that all numbers of a study's pages are those known before; return how many there are."""
    text = pages(folder, names)
    known = {(limit.name, f"{limit.workers:.1f}") for limit in limits(study).values() if limit}
    found = SAID.findall(text)
    assert set(found) <= known
    assert not OTHER_WORDS.search(text)
    return len(found)
