"""updates.parquet: one row for every gradient that was dealt with, on every clock; none is lost unnoticed."""

import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from a3c_core import train as train_module
from a3c_core.config import ExchangeConfig, LearnerConfig, RunConfig
from a3c_core.learners.gradients import GradientLearner
from a3c_core.real.direct import DirectRuntime
from a3c_core.records import columnar as record_files
from a3c_core.records.completeness import flaw, setback
from a3c_core.records.tables import UPDATE_TABLE, RecordsLost, RecordWriter, UpdateRecord, read_records
from a3c_core.train import Run, train
from analysis.data import compact

IN_PIECES = LearnerConfig(t_max=20, update_every="t_max", standardise=False)
DROPPING = ExchangeConfig(queue="dropping", queue_size=2)
CONFIG = RunConfig(workers="4", episodes=300, learner=IN_PIECES)
KINDS = {
    "virtual": CONFIG,
    "overloaded": RunConfig(
        workers="30", episodes=900, learner=IN_PIECES, exchange=ExchangeConfig(queue="unbounded", overload_limit=400)
    ),
    "dropping": RunConfig(workers="12", episodes=300, learner=IN_PIECES, exchange=DROPPING),
    "virtual hogwild": RunConfig(workers="4", episodes=300, learner=IN_PIECES, topology="hogwild"),
    "agents": RunConfig(workers="3", episodes=200, learner=IN_PIECES, agents_per_worker=3),
    "processes": RunConfig(workers="2", episodes=300, learner=IN_PIECES, runtime="processes"),
    "threads": RunConfig(workers="3", episodes=300, learner=IN_PIECES, runtime="threads", exchange=DROPPING),
    "hogwild": RunConfig(workers="2", episodes=300, learner=IN_PIECES, runtime="processes", topology="hogwild"),
}


def updates_of(directory: Path):
    return read_records(directory, UPDATE_TABLE).to_pandas()


@pytest.mark.parametrize("kind", KINDS)
def test_every_gradient_has_its_row(kind, tmp_path):
    summary = train(KINDS[kind], tmp_path)
    updates = updates_of(tmp_path)
    counts = updates["status"].value_counts().to_dict()
    for status in ("applied", "rejected", "dropped"):
        assert counts.get(status, 0) == getattr(summary, f"gradients_{status}")
    under_way = summary.outcome == "overloaded"  # the run ended in the midst of an update
    assert len(updates) == summary.update_rows == summary.gradients_sent - summary.gradients_lost - under_way
    assert len(updates) > summary.episodes
    assert updates["update"].tolist() == list(range(len(updates)))
    applied = updates[updates["status"] == "applied"]
    assert applied["staleness"].mean() == pytest.approx(summary.staleness_mean)
    assert applied["staleness"].max() == summary.staleness_max
    assert applied["version"].max() == summary.updates
    assert flaw(tmp_path, summary.episodes) is None


@pytest.mark.parametrize("kind", ["virtual", "overloaded", "dropping", "virtual hogwild", "processes"])
def test_times_of_an_update_are_in_order(kind, tmp_path):
    train(KINDS[kind], tmp_path)
    updates = updates_of(tmp_path)
    served = updates["status"] == "applied"
    assert (updates["applied_s"] >= updates["arrived_s"]).all()
    assert (updates["service_s"][served] > 0).all()
    taken_s = (updates["applied_s"] - updates["service_s"])[served]
    assert (taken_s >= updates["arrived_s"][served] - 1e-9).all()
    assert (updates["service_s"][updates["status"] == "dropped"] == 0).all()
    assert updates["gradient_norm"][served].notna().all()


def test_the_service_of_one_master_is_how_long_it_was_busy(tmp_path):
    summary = train(CONFIG, tmp_path)
    busy_s = summary.master_utilisation * summary.clock_s
    assert updates_of(tmp_path)["service_s"].sum() == pytest.approx(busy_s)


def test_an_episodes_record_is_that_of_its_last_update(tmp_path):
    train(CONFIG, tmp_path)
    records, updates = read_records(tmp_path).to_pandas(), updates_of(tmp_path).set_index(["worker", "applied_s"])
    same = updates.loc[list(zip(records["worker"], records["applied_s"], strict=True))]
    assert same["version"].tolist() == records["version_applied"].tolist()
    for name in ("staleness", "gradient_norm"):
        assert same[name].tolist() == records[name].tolist()


def interrupt(config: RunConfig, directory: Path, times: tuple[int, ...] = (500, 900)) -> None:
    for events in times:
        run = Run(config, directory)
        run.runtime.start(lambda: False)
        run.advance(events)
        run.checkpoint()
        run.advance(77)  # lost: it comes after the checkpoint


@pytest.mark.parametrize("kind", ["virtual", "overloaded", "dropping"])
def test_an_interrupted_run_ends_in_the_same_bytes(kind, tmp_path):
    train(KINDS[kind], tmp_path / "whole")
    interrupt(KINDS[kind], tmp_path / "cut")
    train(KINDS[kind], tmp_path / "cut")
    cut, whole = ((tmp_path / name / "updates.parquet").read_bytes() for name in ("cut", "whole"))
    assert cut == whole
    assert not (tmp_path / "cut" / "updates.parts").exists()


def test_a_run_in_real_time_goes_on_after_its_checkpoint(tmp_path):
    config = KINDS["threads"]

    def give_up(record):
        if record.episode == 150:
            run.checkpoint()
            raise KeyboardInterrupt

    run = Run(config, tmp_path, give_up)
    with pytest.raises(KeyboardInterrupt):
        run.finish()
    summary, updates = train(config, tmp_path), updates_of(tmp_path)
    assert len(updates) == summary.update_rows == summary.gradients_sent - summary.gradients_lost
    assert updates["update"].tolist() == list(range(len(updates)))


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:100])


@pytest.mark.parametrize("spoil", [Path.unlink, truncate])
@pytest.mark.parametrize(("part", "copes"), [(-1, "goes back to record"), (0, "starts over")])
def test_a_lost_part_sends_a_run_back_to_the_same_bytes(part, copes, spoil, tmp_path):
    train(CONFIG, tmp_path / "whole")
    interrupt(CONFIG, tmp_path / "cut")
    spoil(sorted((tmp_path / "cut" / "updates.parts").iterdir())[part])
    assert "updates before its newest checkpoint" in setback(tmp_path / "cut").words
    with pytest.warns(UserWarning, match=copes):
        train(CONFIG, tmp_path / "cut")
    for name in ("episodes.parquet", "updates.parquet"):
        assert (tmp_path / "cut" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


@pytest.mark.parametrize(("spoil", "said"), [(Path.unlink, "is missing"), (truncate, "can't be read")])
def test_a_finished_run_without_its_updates_is_not_whole(spoil, said, tmp_path):
    summary = train(CONFIG, tmp_path)
    spoil(tmp_path / "updates.parquet")
    assert flaw(tmp_path, summary.episodes).startswith(f"its updates.parquet {said}")
    with pytest.warns(UserWarning, match="starts over"):
        train(CONFIG, tmp_path)
    assert flaw(tmp_path, summary.episodes) is None


def test_results_that_know_of_no_updates_are_whole_and_go_on_without(tmp_path, monkeypatch):
    def without_updates(directory, name, model, parameters, optimizer, info, **others):
        info.pop("updates", None)
        return save(directory, name, model, parameters, optimizer, info, **others)

    save = train_module.checkpoints.save
    with monkeypatch.context() as patch:
        patch.setattr(train_module.checkpoints, "save", without_updates)
        interrupt(CONFIG, tmp_path, (500,))
    shutil.rmtree(tmp_path / "updates.parts")
    summary = train(CONFIG, tmp_path)
    assert summary.update_rows == 0
    assert not (tmp_path / "updates.parquet").exists()
    assert flaw(tmp_path, 300) is None


def test_in_memory_no_updates_are_collected():
    assert train(CONFIG).update_rows == 0


def row(number: int) -> UpdateRecord:
    status = "dropped" if number % 70_000 == 69_999 else "applied"
    return UpdateRecord(number, 1, number, number + 1, 0, 0, 0.5 * number, 0.5 * number + 0.1, 0.1, 2.0, status)


@pytest.mark.parametrize("cut", [1, 66_000, 69_999])
def test_bytes_do_not_depend_on_where_parts_were_cut(cut, tmp_path):
    """Over more rows than a group of the file has, with a status that first appears in the second one."""
    for name, flushes in {"once": (), "cut": (cut,)}.items():
        writer = RecordWriter(tmp_path / name, table=UPDATE_TABLE)
        for number in range(70_000):
            if number in flushes:
                writer.flush()
            writer.append(row(number))
        writer.finish()
    once, cut_file = (tmp_path / name / "updates.parquet" for name in ("once", "cut"))
    assert once.read_bytes() == cut_file.read_bytes()
    assert updates_of(tmp_path / "cut")["update"].tolist() == list(range(70_000))


def test_merging_holds_no_more_of_a_longer_run(tmp_path, monkeypatch):
    assert peak(tmp_path / "long", 280_000, monkeypatch) < 1.5 * peak(tmp_path / "short", 140_000, monkeypatch)


def peak(directory, rows: int, monkeypatch) -> int:
    """Return how much memory Arrow holds at most while rows stream into the file."""
    seen, groups = [], record_files._groups

    def watched(*parts):
        for group in groups(*parts):
            seen.append(pa.total_allocated_bytes())
            yield group

    writer = RecordWriter(directory, table=UPDATE_TABLE)
    for number in range(rows):
        writer.append(row(number))
    writer.flush()
    before = pa.total_allocated_bytes()
    with monkeypatch.context() as patch:
        patch.setattr(record_files, "_groups", watched)
        writer.finish()
    return max(seen) - before


def test_parts_that_are_gone_are_not_merged(tmp_path):
    writer = RecordWriter(tmp_path, table=UPDATE_TABLE)
    for number in range(40_000):
        writer.append(row(number))
    (tmp_path / "updates.parts" / "000000.parquet").unlink()
    with pytest.raises(RecordsLost, match="0 of 40,000 records are left"):
        writer.finish()
    assert not (tmp_path / "updates.parquet").exists()


def test_the_curve_of_staleness_is_that_of_all_updates(tmp_path):
    summary = train(KINDS["dropping"], tmp_path)
    curve = compact.measure(tmp_path, "cell", 300).curve
    (tmp_path / "updates.parquet").rename(tmp_path / "elsewhere.parquet")
    before = compact.measure(tmp_path, "cell", 300).curve
    (tmp_path / "elsewhere.parquet").rename(tmp_path / "updates.parquet")
    updates = updates_of(tmp_path)
    per_bin = np.diff(np.searchsorted(updates["applied_s"], curve["clock_s"], side="right"), prepend=0)
    assert per_bin.sum() == len(updates) == summary.update_rows
    for name, column in {"staleness": "staleness", "queue": "queue_length"}.items():
        mean = np.average(curve[name][per_bin > 0], weights=per_bin[per_bin > 0])
        assert mean == pytest.approx(updates[column].mean())
        assert mean != pytest.approx(np.average(before[name], weights=np.diff(before["episodes"], prepend=0)))
    others = [name for name in curve if name not in ("staleness", "queue", "queue_wait_s")]
    assert curve[others].equals(before[others])


@pytest.mark.parametrize("kind", KINDS)
def test_an_annealed_rate_lasts_for_the_whole_run_however_many_updates_an_episode_takes(kind, tmp_path, monkeypatch):
    monkeypatch.setattr(DirectRuntime, "write_up_after", 1)  # or a fast run's records all come at its end
    config = KINDS[kind]
    learner = config.learner.model_copy(update={"anneal": True, "t_max": 5, "optimizer": "sgd"})
    halfway = []

    def remember(record):
        if record.episode >= config.episodes // 2 and not halfway:
            halfway.append(run.learner.parameters.copy())

    run = Run(config.model_copy(update={"learner": learner}), tmp_path, remember)
    summary = run.finish()
    if summary.outcome == "finished":
        assert summary.updates > 2 * config.episodes or config.exchange == DROPPING
        assert not np.array_equal(run.learner.parameters, halfway[0])


def test_the_annealed_rate_is_that_of_the_episodes_dealt_with(monkeypatch):
    told, receive = [], GradientLearner.receive

    def remember(self, parcel, progress):
        result = receive(self, parcel, progress)
        told.append((run.runtime.log.episodes, progress, result.learning_rate))
        return result

    monkeypatch.setattr(GradientLearner, "receive", remember)
    run = Run(RunConfig(workers="3", episodes=50, learner=IN_PIECES.model_copy(update={"anneal": True})), None)
    run.finish()
    assert len(told) > 100
    for episodes, progress, rate in told:
        assert progress.share == episodes / 50
        assert rate == pytest.approx(1e-4 * (1 - episodes / 50))
