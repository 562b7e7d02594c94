"""The benchmark's rows, its table and its file; no test here depends on how fast the machine is."""

import json
from pathlib import Path

import pytest

from a3c.benchmark.__main__ import BENCHMARKS, main
from a3c.benchmark.document import refuse_without_place
from a3c.benchmark.measure import Results, Row, per_second, write_json
from a3c_core.registry import load


def test_env_benchmark_prints_a_table_and_writes_its_numbers(tmp_path, capsys):
    path = tmp_path / "new" / "bench.json"
    main(["env", "--seconds", "0.01", "--json", str(path)])
    table = capsys.readouterr().out
    content = json.loads(path.read_text())
    rows = {row["name"]: row for row in content["rows"]}
    assert list(rows) == [
        "compiled loop",
        "Python class",
        "Gymnasium, report",
        "Gymnasium, vector",
        "Gymnasium, frames",
        "PLE",
    ]
    assert all(name in table for name in rows)
    ple = rows.pop("PLE")
    assert ple["per_second"] or "absent" in ple["note"]
    assert content["reference"] == ("PLE" if ple["per_second"] else "Python class")
    assert all(row["per_second"] > 0 and row["ratio"] > 0 for row in rows.values())
    assert rows["compiled loop"]["per_second"] > rows["Gymnasium, frames"]["per_second"]


def test_a_table_goes_into_its_place_in_a_document_beside_what_was_before(tmp_path, capsys):
    document, before = tmp_path / "speed.md", tmp_path / "before.json"
    document.write_text("# Speed\n<!-- benchmark env -->\nold\n<!-- end -->\nEnd\n")
    write_json(Results("env", "steps", "Python class", [Row("Python class", 1.0), Row("gone", None)]), before)
    main(["env", "--seconds", "0.01", "--against", str(before), "--into", str(document)])
    text = document.read_text()
    assert "old" not in text
    assert text.startswith("# Speed\n<!-- benchmark env -->\nenv: steps per second")
    assert text.endswith(".\n<!-- end -->\nEnd\n")
    names, line, first, second, *_ = [row.split(" | ") for row in text.splitlines() if row.startswith("| ")]
    assert names[3] == "x before"
    assert len(line) == len(first) == 5
    assert (first[0], first[3]) == ("| compiled loop", "-")  # which was not measured before
    assert second[3] == second[1]  # that many times 1 a second
    assert "x before" in capsys.readouterr().out


@pytest.mark.parametrize("option", ["--against", "--into"])
def test_files_that_are_something_else_are_refused_before_anything_is_measured(option, tmp_path, capsys):
    (tmp_path / "notes.md").write_text("Nothing.\n")
    for name, said in (("notes.md", "notes.md"), ("absent.md", "absent.md")):
        with pytest.raises(SystemExit):
            main(["env", "--seconds", "1000", option, str(tmp_path / name)])
        assert said in capsys.readouterr().err


def test_every_benchmark_can_be_loaded_and_has_a_place_where_it_is_documented():
    for benchmark in BENCHMARKS.values():
        assert callable(load(benchmark.function))
    page = Path(__file__).parents[1] / "docs" / "performance.md"
    for name in ("peers", "limit", "virtual", "runtime", "start"):
        refuse_without_place(page, name)


def test_ratios_are_to_the_reference_and_missing_stays_missing():
    slow, fast, absent = Row("slow", 2.0), Row("fast", 10.0), Row("absent", None, "not here")
    results = Results("env", "steps", "slow", [slow, fast, absent])
    assert [results.ratio(row) for row in results.rows] == [1.0, 5.0, None]
    assert Results("env", "steps", "absent", [slow, fast, absent]).ratio(fast) is None


def test_rate_leaves_the_first_call_out():
    calls = []
    assert per_second(calls.append, 7, 1e-9) > 0
    assert calls == [7, 7]


@pytest.mark.parametrize("arguments", [[], ["speed"], ["env", "--seconds", "0"], ["env", "--seconds", "soon"]])
def test_wrong_arguments_are_refused(arguments, capsys):
    with pytest.raises(SystemExit):
        main(arguments)
    assert "error:" in capsys.readouterr().err


def test_help_teaches_by_example(capsys):
    with pytest.raises(SystemExit):
        main(["--help"])
    assert "python -m a3c.benchmark env --json" in capsys.readouterr().out
