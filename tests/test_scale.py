import csv

import pytest

from experiments.scale import __main__ as scale
from experiments.scale.ways import FIXED, WAYS, Learner

LEARNER = Learner("a learner", 1.0, 0.02, "made up")  # bears 50
WAY = {way.name: way for way in WAYS}


@pytest.mark.parametrize("workers", [10, 40, 100, 1000])
@pytest.mark.parametrize(("way", "gradients_an_update_s"), [("one master", 0.02), ("batches of 8", 0.02 * 1.7 / 8)])
def test_what_is_reached_is_the_smaller_of_two_limits(way, gradients_an_update_s, workers):
    outcome = WAY[way].measure(LEARNER, 0.25, workers)
    assert outcome.throughput == pytest.approx(min(workers / 1.25, 1 / gradients_an_update_s), rel=0.05)


def test_a_round_takes_as_long_as_the_slowest_it_waits_for_and_one_update_of_all():
    alone = WAY["synchronous"].measure(LEARNER, 0.0, 1)
    assert alone.throughput == pytest.approx(1 / 1.02, rel=0.05)
    many = WAY["synchronous"].measure(LEARNER, 0.0, 100)
    assert many.staleness == 0
    assert many.throughput < 95 / (1.0 + 0.02 * (1 + FIXED * 94))  # stragglers cost more than a mean cycle


def test_the_command_writes_a_table_a_figure_and_a_page(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(scale, "WORKERS", (10, 1000))
    monkeypatch.setattr(scale, "LATENCIES_S", {"wide area": 0.1})
    assert scale.main(["--out", str(tmp_path / "new")]) == 0
    assert "30 rows" in capsys.readouterr().out
    with (tmp_path / "new/tables/scale.csv").open() as file:
        assert len(list(csv.DictReader(file))) == 30
    assert (tmp_path / "new/main.png").stat().st_size > 0
    assert "10, latency" in (tmp_path / "new/README.md").read_text()


def test_a_place_that_can_not_be_written_to_is_one_clear_error(tmp_path, capsys):
    (tmp_path / "file").touch()
    with pytest.raises(SystemExit) as ended:
        scale.main(["--out", str(tmp_path / "file" / "below")])
    assert ended.value.code == 2
    assert "can't write" in capsys.readouterr().err
