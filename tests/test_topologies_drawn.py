"""The drawing of the topologies: what they say of themselves, as docs/ has it."""

import re
from pathlib import Path

import pytest

from a3c_core.topologies import TOPOLOGIES
from analysis.topologies import draw

DOCS = Path(__file__).parents[1] / "docs"


@pytest.mark.parametrize("name", TOPOLOGIES.names())
def test_arrows_join_the_stations(name):
    stations, arrows = TOPOLOGIES.get(name).description
    assert {arrow.sender for arrow in arrows} == {arrow.receiver for arrow in arrows} == set(stations)
    assert f"## {name}\n" in (DOCS / "topologies.md").read_text()


def test_the_drawing_of_the_page_is_up_to_date(tmp_path):
    draw(tmp_path / "drawn.svg")
    drawn, on_the_page = (words_of(path) for path in (tmp_path / "drawn.svg", DOCS / "topologies.svg"))
    assert drawn == on_the_page
    assert "parameters, perhaps of mixed versions" in drawn


def words_of(drawing: Path) -> list[str]:
    """Return all texts of a drawing: where they stand may differ a little with matplotlib's version."""
    return re.findall(r"<text[^>]*>([^<]*)<", drawing.read_text())
