"""Checkpoints: what is saved comes back, Keras opens it, and damage is noticed, named and survived."""

import json
import os
import signal
import subprocess
import sys

import numpy as np
import pytest

from a3c_core.models import keras_file, remake_model
from a3c_core.models.dense import DenseModel
from a3c_core.optimizers import Optimizer
from a3c_core.records import checkpoints
from tests.learner_cases import trained_parameters


@pytest.fixture
def optimizer():
    optimizer = Optimizer(DenseModel().spec.size)
    optimizer.slots[...] = np.random.default_rng(0).normal(size=optimizer.slots.shape)
    optimizer.updates, optimizer.rejected = 100, 2
    return optimizer


def save(directory, optimizer, updates=100, parameters=None, **more):
    optimizer.updates = updates
    parameters = trained_parameters() if parameters is None else parameters
    return checkpoints.save(directory, "dense", DenseModel(), parameters, optimizer, **more)


def names(directory):
    return sorted(path.name for path in directory.iterdir())


def test_round_trip(tmp_path, optimizer):
    info = {"config": {"workers": "10->20"}, "clock_s": 1.1, "none": None}
    extra = {"simulation": {"clock": np.array([0.1]), "words": np.arange(5, dtype=np.uint64)}}
    streams = {"queue.f32": np.arange(7, dtype=np.float32).tofile}
    path = save(tmp_path, optimizer, 12_000, info=info, extra=extra, streams=streams)
    assert path == tmp_path / "000000012000"
    assert names(path) == ["learner.npz", "manifest.json", "model.keras", "queue.f32", "simulation.npz"]
    found = checkpoints.load(tmp_path)
    assert (found.path, found.model_name, found.model) == (path, "dense", DenseModel())
    assert found.parameters.tobytes() == trained_parameters().tobytes()
    assert found.info == info
    assert found.extra.keys() == {"simulation"}
    for name, array in extra["simulation"].items():
        assert found.extra["simulation"][name].dtype == array.dtype
        assert np.array_equal(found.extra["simulation"][name], array)
    assert np.fromfile(path / "queue.f32", np.float32).tolist() == list(range(7))
    fresh = Optimizer(DenseModel().spec.size)
    checkpoints.restore_optimizer(found, fresh)
    assert (fresh.updates, fresh.rejected) == (12_000, 2)
    assert np.array_equal(fresh.slots, optimizer.slots)


def test_keras_opens_the_model_by_itself(tmp_path, optimizer):
    from a3c_core.system.tensorflow import import_tensorflow

    import_tensorflow()
    import keras

    for parameters in (trained_parameters(), DenseModel().initial_parameters(3)):
        path = save(tmp_path, optimizer, parameters=parameters)
        observations = np.random.default_rng(1).uniform(-1, 1, (20, 8)).astype(np.float32)
        policies, values = keras.models.load_model(path / "model.keras")(observations)
        for t, observation in enumerate(observations):
            logits, value = DenseModel().numpy_forward(parameters)(observation)
            exponentials = np.exp(logits - logits.max())
            np.testing.assert_allclose(policies[t], exponentials / exponentials.sum(), rtol=1e-4, atol=1e-6)
            assert float(values[t, 0]) == pytest.approx(value[0], rel=1e-5, abs=1e-5)


@pytest.mark.parametrize("name", ["dense", "conv", "lstm"])
def test_a_copy_for_play_has_its_weights_once_and_gives_them_back_to_the_bit(name, tmp_path):
    model = remake_model(name, {"observation_shape": (36, 36, 4) if name == "conv" else (8,)})
    parameters = model.initial_parameters(3)
    path = checkpoints.save(tmp_path, name, model, parameters, Optimizer(model.spec.size), for_play=True)
    assert names(path) == ["manifest.json", "model.keras"]
    found = checkpoints.load(tmp_path)
    assert (found.model, found.slots.size) == (model, 0)
    assert found.parameters.tobytes() == parameters.tobytes()


def test_a_copy_for_play_with_weights_of_another_model_is_refused_in_one_line(tmp_path, optimizer):
    path = save(tmp_path, optimizer, for_play=True)
    manifest = json.loads((path / "manifest.json").read_text())
    for changed in ({"units": 8}, {"units": 4_000}):
        model = {"name": "dense", "settings": {**manifest["model"]["settings"], **changed}}
        content = {**manifest, "model": model}
        edit_manifest(path, model=model, manifest_sha256=checkpoints._digest(content))
        with pytest.raises(checkpoints.CheckpointError, match=r"files: ValueError model\.keras (is|holds)") as error:
            checkpoints.load(tmp_path)
        assert "\n" not in str(error.value)


@pytest.mark.parametrize("below", ["", "checkpoints", "checkpoints/000000000100"])
def test_run_or_folder_or_checkpoint_itself_can_be_named(below, tmp_path, optimizer):
    path = save(tmp_path / "checkpoints", optimizer)
    assert checkpoints.load(tmp_path / below).path == path


def test_newest_two_are_kept(tmp_path, optimizer):
    for updates in (5, 20, 100, 3_000):
        save(tmp_path, optimizer, updates)
    assert names(tmp_path) == ["000000000100", "000000003000"]
    assert checkpoints.load(tmp_path).updates == 3_000


def test_same_number_of_updates_is_replaced(tmp_path, optimizer):
    for info in ({"episodes": 1}, {"episodes": 2}):
        save(tmp_path, optimizer, info=info)
    assert names(tmp_path) == ["000000000100"]
    assert checkpoints.load(tmp_path).info == {"episodes": 2}


def damage_byte(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def cut_short(path):
    path.write_bytes(path.read_bytes()[:-10])


@pytest.mark.parametrize("file", ["learner.npz", "model.keras", "manifest.json", "simulation.npz", "queue.f32"])
@pytest.mark.parametrize("harm", [damage_byte, cut_short, os.remove])
def test_damage_is_named_and_the_one_before_is_used(file, harm, tmp_path, optimizer):
    more = {"extra": {"simulation": {"clock": np.zeros(9)}}, "streams": {"queue.f32": np.ones(9).tofile}}
    save(tmp_path, optimizer, 1, **more)
    harm(save(tmp_path, optimizer, 2, **more) / file)
    with pytest.warns(UserWarning, match=rf"000000000002/{file}.*(damaged|can't be read).*using 000000000001"):
        found = checkpoints.load(tmp_path)
    assert found.updates == 1


def test_run_that_fell_back_goes_on_from_there(tmp_path, optimizer):
    save(tmp_path, optimizer, 10)
    damage_byte(save(tmp_path, optimizer, 90) / "learner.npz")
    save(tmp_path, optimizer, 50)
    assert names(tmp_path) == ["000000000010", "000000000050"]
    assert checkpoints.load(tmp_path).updates == 50


def edit_manifest(path, **changes):
    manifest = json.loads((path / "manifest.json").read_text())
    (path / "manifest.json").write_text(json.dumps({**manifest, **changes}))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"format": "something else"}, "does not belong to a checkpoint of a3c_core"),
        ({"version": 2}, "format version 2, and this program reads 1"),
        ({"info": {"edited": True}}, "manifest.json is damaged"),
        ({"sha256": {}}, "manifest.json is damaged"),
    ],
)
def test_foreign_manifest_is_refused_in_one_line(changes, message, tmp_path, optimizer):
    edit_manifest(save(tmp_path, optimizer), **changes)
    with pytest.raises(checkpoints.CheckpointError, match=message) as caught:
        checkpoints.load(tmp_path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "changes", [{"sha256": {}}, {"sha256": 3}, {"model": {"name": "unknown", "settings": {}}}, {"optimizer": {}}]
)
def test_manifest_that_makes_no_sense_is_refused_in_one_line(changes, tmp_path, optimizer):
    path = save(tmp_path, optimizer)
    edit_manifest(path, **changes)
    edit_manifest(path, manifest_sha256=checkpoints._digest(json.loads((path / "manifest.json").read_text())))
    with pytest.raises(checkpoints.CheckpointError, match=r"manifest\.json does not fit its files") as caught:
        checkpoints.load(tmp_path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [(None, "no directory"), ({}, "holds no checkpoint"), ({"notes.txt": b"mine"}, "holds no checkpoint")],
)
def test_directory_without_checkpoints_is_said_so(content, message, tmp_path):
    directory = tmp_path / "run"
    if content is not None:
        directory.mkdir()
        for name, data in content.items():
            (directory / name).write_bytes(data)
    with pytest.raises(checkpoints.CheckpointError, match=message):
        checkpoints.load(directory)


def test_pickles_are_never_loaded(tmp_path, optimizer):
    with pytest.raises(ValueError, match="pickle"):
        save(tmp_path, optimizer, extra={"simulation": {"objects": np.array([{}], object)}})
    assert names(tmp_path) == []


def test_failure_half_way_leaves_nothing(tmp_path, optimizer):
    def fail(file):
        file.write(b"half")
        raise OSError("disk full")

    save(tmp_path, optimizer, 1)
    with pytest.raises(OSError, match="disk full"):
        save(tmp_path, optimizer, 2, streams={"queue.f32": fail})
    assert names(tmp_path) == ["000000000001"]


KILLED = """
import os, signal, sys
from pathlib import Path
from a3c_core.records.checkpoints import save
from a3c_core.optimizers import Optimizer
from a3c_core.models.dense import DenseModel
optimizer = Optimizer(DenseModel().spec.size)
for updates, streams in (1, {}), (2, {"queue.f32": lambda file: os.kill(os.getpid(), signal.SIGKILL)}):
    optimizer.updates = updates
    save(Path(sys.argv[1]), "dense", DenseModel(), DenseModel().initial_parameters(0), optimizer, streams=streams)
"""


def test_kill_half_way_leaves_the_one_before(tmp_path, optimizer, recwarn):
    done = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path)], check=False)
    assert done.returncode == -signal.SIGKILL
    assert checkpoints.load(tmp_path).updates == 1
    assert len(recwarn) == 0
    save(tmp_path, optimizer, 3)
    assert names(tmp_path) == ["000000000001", "000000000003"]


@pytest.mark.parametrize("name", ["learner", "../outside", ""])
def test_names_of_further_files_are_checked(name, tmp_path, optimizer):
    with pytest.raises(ValueError, match="can't be the name"):
        save(tmp_path, optimizer, extra={name: {"x": np.zeros(1)}})


def test_other_optimizer_or_size_is_refused(tmp_path, optimizer):
    save(tmp_path, optimizer)
    for other in (Optimizer(DenseModel().spec.size, "rmsprop"), Optimizer(3)):
        with pytest.raises(checkpoints.CheckpointError, match="can't be restored"):
            checkpoints.restore_optimizer(checkpoints.load(tmp_path), other)


def test_parameters_of_another_size_are_refused(tmp_path, optimizer):
    with pytest.raises(ValueError, match="flat vector of 1539 parameters"):
        save(tmp_path, optimizer, parameters=np.zeros(3, np.float32))


def test_template_is_made_where_the_package_can_not_be_written(tmp_path, monkeypatch):
    made = []
    monkeypatch.setattr(keras_file, "_PACKAGE", tmp_path / "file")
    (tmp_path / "file").write_text("no folder can be made in here")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setattr(keras_file, "_run_maker", lambda path, *_: (made.append(path), path.write_bytes(b"template")))
    path = keras_file.template("dense", DenseModel())
    assert path.parent == tmp_path / "home" / ".cache" / "a3c_core"
    assert keras_file.template("dense", DenseModel()) == path
    assert keras_file.template("dense", DenseModel(units=64)) != path
    assert len(made) == 2


def test_failure_to_make_a_template_is_explained(tmp_path):
    with pytest.raises(RuntimeError, match=r"Keras could not save a model 'sparse'.*must be dense, conv or lstm"):
        keras_file._run_maker(tmp_path / "sparse.keras", "sparse", {})
    assert names(tmp_path) == []
