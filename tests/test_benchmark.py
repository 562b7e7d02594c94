"""The benchmark's rows, its table and its file; no test here depends on how fast the machine is."""

import json

import pytest

from a3c_core.benchmark.__main__ import main
from a3c_core.benchmark.measure import Results, Row, per_second


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
    assert "python -m a3c_core.benchmark env --json" in capsys.readouterr().out
