"""Every number in the first section of README.md, and in any other with a marker at its end, is in a table of results/.

The marker is an HTML comment. Each of its lines has a phrase of the section, and for each number in it a source:

    <!-- numbers
    learns to pass 125 pipes | report/schedules schedule=4 final_score
    costs the master 32 ms | report/capacity service_s *1000
    100 runs | report/runs status=finished #
    -->

A source names a table (results/report/tables/schedules.csv), any conditions, and a column, or # for the number of rows;
*1000 changes the unit; _ stands for a space. A number must be what the table says, rounded to the digits that are
written.
"""

import re
from pathlib import Path

import pandas as pd
import pytest

ROOT = Path(__file__).parents[1]
NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")
MARKER = re.compile(r"<!-- numbers\n(.*?)-->", re.DOTALL)
NAMES = re.compile(r"\]\([^)]*\)|`[^`]*`|\b[A-Z][a-z]*\d+[a-z]*\b|\bN0\b|\bA3C\b")  # links, code, names with digits


def checked_sections(text: str) -> list[str]:
    first, *others = text.split("\n## ")
    return [first, *(section for section in others if MARKER.search(section))]


def plain(text: str) -> str:
    """Return the section as one line, without links' targets, code, comments and names that have digits."""
    words = NAMES.sub(" ", MARKER.sub("", text))
    return " ".join(re.sub(r"[][*!]", "", words).split())


def sources(text: str) -> list[tuple[str, list[str]]]:
    """Return the marker's phrases, each with its sources."""
    found = MARKER.search(text)
    lines = found[1].splitlines() if found else []
    parts = [line.split("|") for line in lines if line.strip()]
    return [(plain(phrase), [source.strip() for source in rest]) for phrase, *rest in parts]


def value(source: str) -> float:
    """Return what a table says."""
    table, *conditions, last = source.split()
    factor = float(last[1:]) if last.startswith("*") else 1.0
    column = conditions.pop() if last.startswith("*") else last
    study, _, name = table.partition("/")
    rows = pd.read_csv(ROOT / "results" / study / "tables" / f"{name}.csv", dtype={"schedule": str})
    for condition in conditions:
        key, _, wanted = condition.partition("=")
        rows = rows[rows[key].astype(str) == wanted.replace("_", " ")]
    return factor * (len(rows) if column == "#" else float(rows[column].astype(float).item()))


def flaws(text: str) -> list[str]:
    """Return what is wrong with the numbers of a README."""
    return [flaw for section in checked_sections(text) for flaw in flaws_of(section)]


def flaws_of(section: str) -> list[str]:
    rest, wrong = plain(section), []
    for phrase, named in sources(section):
        numbers = NUMBER.findall(phrase)
        if phrase not in rest or len(numbers) != len(named):
            wrong.append(f"{phrase}: not in the text, or not one source for each of its {len(numbers)} numbers")
            continue
        rest = rest.replace(phrase, " ")
        for written, source in zip(numbers, named, strict=True):
            digits = len(written.partition(".")[2])
            if abs(value(source) - float(written.replace(",", ""))) > 0.5001 * 10.0**-digits:
                wrong.append(f"{phrase}: {source} is {value(source):g}")
    return wrong + [f"{number}: no source" for number in NUMBER.findall(rest)]


def test_every_number_at_the_head_of_the_readme_is_in_a_table():
    assert flaws((ROOT / "README.md").read_text(encoding="utf-8")) == []


GOOD = "# A3C\nOf [80 runs](results/1.md) learn.\n<!-- numbers\nOf 80 runs | slides/runs status=finished #\n-->\n"


@pytest.mark.parametrize(
    ("old", "new", "flaw"),
    [
        ("learn", "3 of 4 learn", "3: no source"),
        ("[80", "[81", "Of 80 runs: not in the text"),
        ("80 runs", "90 runs", "Of 90 runs: slides/runs status=finished # is 80"),
        (" | slides/runs status=finished #", "", "Of 80 runs: not in the text, or not one source"),
    ],
)
def test_a_number_without_a_table_or_another_one_is_found(old, new, flaw):
    assert flaws(GOOD) == []
    assert any(found.startswith(flaw) for found in flaws(GOOD.replace(old, new)))
