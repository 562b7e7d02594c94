"""The documents whose claims are judged."""

from collections.abc import Iterable
from typing import NamedTuple


class Document(NamedTuple):
    """Where a claim was made."""

    name: str  # as the claims' sources call it
    title: str
    authors: str
    where: str  # its public place, or that of the code that goes with it


CODE = "github.com/FrankCCCCC/rl_collection"
DOCUMENTS = (
    Document("report", "DL Competition3 Team24 Report", "周聖諺 Shen-Yen Chou, 馮翔珪 Feng-Xiang Ren", CODE),
    Document("slides", "A3C 平行度對學習效率的影響", "周聖諺, 嚴中璟 (Group 36)", CODE),
)
PAPERS = (
    Document(
        "A3C paper",
        "Asynchronous Methods for Deep Reinforcement Learning",
        "V. Mnih and others, 2016",
        "arxiv.org/abs/1602.01783",
    ),
)


def cited(sources: Iterable[str]) -> list[Document]:
    """Return the papers that claims with these sources, such as "A3C paper, table 2", come from."""
    names = {source.partition(",")[0] for source in sources}
    return [paper for paper in PAPERS if paper.name in names]
