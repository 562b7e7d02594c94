"""The model that remembers: memory through pieces, episodes and checkpoints, and gradients through time."""

import importlib
from dataclasses import replace

import numpy as np
import pytest

from a3c.play.__main__ import main as play_command
from a3c_core.build import make_engine, misfit
from a3c_core.config import RunConfig
from a3c_core.engines.recurrent import side_by_side
from a3c_core.engines.remembering import Remembering
from a3c_core.models.initialisers import orthogonal, unit_forget
from a3c_core.models.lstm import LstmModel
from a3c_core.records.checkpoints import load
from a3c_core.records.tables import read_records
from a3c_core.system.tensorflow import import_tensorflow
from a3c_core.train import train
from tests.learner_cases import relative_error

PIECES = {"t_max": 5, "update_every": "t_max", "standardise": False, "entropy_coefficient": 0.01}
SMALL = {"units": 8, "hidden": 12}


def config(**settings):
    small = {"engine": "tensorflow", "model": "lstm", "network": SMALL, "learner": PIECES}
    return RunConfig(**{**small, **settings})


def engine_of(**settings):
    return make_engine(config(**settings))


def parameters_of(engine):
    return 2 * engine.model.initial_parameters(3)


def pieces_of(engine, parameters, episode=4):
    """Return the pieces of an episode."""
    environment = engine.new_environment()
    environment.begin_episode(1, 0, episode)
    pieces = [engine.play(parameters, environment)]
    while not (pieces[-1].terminated or pieces[-1].truncated):
        pieces.append(engine.play(parameters, environment))
    return pieces


def unrolled(engine, parameters, pieces, cut):
    """Return (values [T], the gradient [P]) of the pieces in one long course of single steps, as plain Keras has it.

    With `cut`, no gradient flows from a piece to the one before.
    """
    tf, network = import_tensorflow(), engine.model.build()
    network.set_weights(list(engine.model.spec.views(parameters).values()))
    logits_layer = network.get_layer("policy_logits")
    values, losses = [], []
    with tf.GradientTape() as tape:
        memory = [tf.zeros((1, engine.model.units))] * 2
        for piece in pieces:
            if cut:
                memory = [tf.stop_gradient(part) for part in memory]
            outputs = []
            for observation in piece.observations:
                _, value, *memory = network([tf.constant(observation[None]), *memory])
                outputs.append((logits_layer(memory[0]), value))
            heads = tuple(tf.concat(column, axis=0) for column in zip(*outputs, strict=True))
            values.append(heads[1][:, 0].numpy())
            losses.append(engine._algorithm.losses(heads, piece.actions, engine._algorithm.targets(piece))[0])
        loss = tf.reduce_sum(tf.concat(losses, axis=0))
    gradients = tape.gradient(loss, network.trainable_variables)
    return np.concatenate(values), np.concatenate([gradient.numpy().ravel() for gradient in gradients])


def test_pieces_are_one_long_course_whose_gradient_is_cut_at_their_borders():
    engine = engine_of()
    parameters = parameters_of(engine)
    pieces = pieces_of(engine, parameters)
    assert len(pieces) > 5
    assert not pieces[0].memory.any()
    assert all(piece.memory.any() for piece in pieces[1:])
    values, expected = unrolled(engine, parameters, pieces, cut=True)
    np.testing.assert_allclose(np.concatenate([piece.values for piece in pieces]), values, rtol=1e-4, atol=1e-5)
    found = sum(engine.gradient(parameters, piece)[0] for piece in pieces)
    assert relative_error(found, expected) < 1e-5
    assert relative_error(found, unrolled(engine, parameters, pieces, cut=False)[1]) > 1e-3


def test_what_lies_beyond_a_piece_is_judged_by_the_memory_that_the_next_piece_begins_with():
    engine = engine_of()
    parameters = parameters_of(engine)
    first, second, *_ = pieces_of(engine, parameters)
    assert first.bootstrap_value == pytest.approx(second.values[0], rel=1e-5, abs=1e-6)


def test_a_whole_episode_is_one_piece_with_the_gradient_through_all_of_it():
    engine = engine_of(learner={"standardise": False})
    parameters = parameters_of(engine)
    (episode,) = pieces = pieces_of(engine, parameters)
    assert episode.env_steps > 20
    assert relative_error(engine.gradient(parameters, episode)[0], unrolled(engine, parameters, pieces, True)[1]) < 1e-5


def test_gradient_is_the_slope_of_the_loss():
    engine = engine_of(learner={**PIECES, "value_loss": "squared"})
    parameters = parameters_of(engine)
    piece = pieces_of(engine, parameters)[2]
    goals = engine._algorithm.targets(piece)
    gradient = engine.gradient(parameters, piece)[0]
    direction = np.random.default_rng(0).normal(size=gradient.size)
    direction /= np.linalg.norm(direction)
    advantages = goals - piece.values  # constants for the policy

    def loss(step):
        engine._load(np.float32(parameters + step * direction))
        total, memory = 0.0, piece.memory[None]
        for t, observation in enumerate(piece.observations):
            logits, value, memory = (x.numpy() for x in engine._act(observation[None], memory))
            log_policy = np.float64(logits[0]) - np.log(np.exp(np.float64(logits[0])).sum())
            entropy = -(np.exp(log_policy) * log_policy).sum()
            total += 0.5 * (goals[t] - np.float64(value[0, 0])) ** 2 - log_policy[piece.actions[t]] * advantages[t]
            total -= PIECES["entropy_coefficient"] * entropy
        return total

    slope = (loss(1e-2) - loss(-1e-2)) / 2e-2
    assert gradient @ direction == pytest.approx(slope, rel=2e-2)


def test_agents_side_by_side_are_the_sum_of_agents_alone():
    engine = engine_of()
    parameters = parameters_of(engine)
    together, alone = ([engine.new_environment() for _ in range(3)] for _ in range(2))
    for place in range(3):
        together[place].begin_episode(0, 0, place)
        alone[place].begin_episode(0, 0, place)
    lengths = set()
    while not lengths or len(lengths) == 1:  # until one ends earlier than the others
        gradient, plays = engine.rollout_together(parameters, together)
        rollouts = [engine.rollout(parameters, environment) for environment in alone]
        lengths = {play.env_steps for play in plays}
        assert relative_error(gradient, np.sum([rollout.gradient for rollout in rollouts], axis=0)) < 1e-4
        assert [play.env_steps for play in plays] == [rollout.env_steps for rollout in rollouts]
        for play, rollout in zip(plays, rollouts, strict=True):
            assert play.loss == pytest.approx(rollout.loss, rel=1e-4, abs=1e-5)


def test_steps_side_by_side():
    places, rows = side_by_side([2, 3])
    assert places.tolist() == [[0, 2], [1, 3], [0, 4]]  # the first of the last row leads nowhere
    assert rows.tolist() == [0, 2, 1, 3, 5]


def test_memory_begins_and_is_saved_with_the_episode():
    engine = engine_of()
    parameters = parameters_of(engine)
    one, other = engine.new_environment(), engine.new_environment()
    assert isinstance(one, Remembering)
    for environment in (one, other):
        environment.begin_episode(1, 0, 4)
        engine.play(parameters, environment)
    engine.play(parameters, other)
    assert not np.array_equal(one.memory, other.memory)
    other.set_state(one.get_state())
    assert np.array_equal(one.memory, other.memory)
    pieces = [engine.play(parameters, environment) for environment in (one, other)]
    assert np.array_equal(pieces[0].values, pieces[1].values)
    one.begin_episode(1, 0, 5)
    assert not one.memory.any()


def test_cells_start_as_keras_starts_them():
    import_tensorflow()
    keras = importlib.import_module("keras")
    cell = LstmModel(units=16).build().get_layer("lstm")
    assert isinstance(cell.kernel_initializer, keras.initializers.GlorotUniform)
    assert isinstance(cell.recurrent_initializer, keras.initializers.Orthogonal)
    assert np.array_equal(cell.bias.numpy(), unit_forget((64,), 0))


@pytest.mark.parametrize("seed", [0, 7, 2**31 - 1])
@pytest.mark.parametrize("shape", [(16, 64), (256, 1024), (5, 3), (3, 3)])
def test_orthogonal_is_that_of_keras(shape, seed):
    import_tensorflow()
    keras = importlib.import_module("keras")
    expected = keras.initializers.Orthogonal(seed=seed)(shape).numpy()
    np.testing.assert_allclose(orthogonal(shape, seed), expected, atol=2e-6)


@pytest.mark.parametrize(
    ("settings", "setting", "reason"),
    [
        ({"engine": "compiled"}, "engine", "compiled can't run this: it runs the model 'dense'"),
        ({"engine": "report"}, "engine", "report can't run this: it knows no networks that remember"),
        ({"algorithm": "n_step_q", "learner": {}}, "model", "lstm remembers, which n_step_q can't learn from"),
        ({"algorithm": "ppo", "learner": {}}, "model", "lstm remembers, which ppo can't learn from"),
    ],
)
def test_what_can_not_remember_is_refused(settings, setting, reason):
    found, said = misfit(config(**settings))
    assert found == setting
    assert reason in said


@pytest.mark.parametrize("agents", [1, 2])
def test_a_run_in_virtual_time_resumes_to_the_same_bytes(agents, tmp_path):
    settings = config(workers="2", episodes=8, agents_per_worker=agents, checkpoint_s=1e-9)

    def stop(record):
        if record.episode == 3:
            raise InterruptedError

    with pytest.raises(InterruptedError):
        train(settings, tmp_path / "cut", on_episode=stop)
    train(settings, tmp_path / "cut")
    train(settings, tmp_path / "whole")
    cut, whole = ((tmp_path / name / "episodes.parquet").read_bytes() for name in ("cut", "whole"))
    assert cut == whole


@pytest.mark.parametrize(
    "settings", [{"workers": "2", "agents_per_worker": 2}, {"workers": "1", "environment": {"observation": "frame"}}]
)
def test_real_processes_learn_with_memory_and_their_checkpoint_plays(settings, tmp_path, capsys):
    train(config(episodes=6, runtime="processes", **settings), tmp_path)
    assert len(read_records(tmp_path)) == 6
    keras = importlib.import_module("keras")
    checkpoint = load(tmp_path)
    network = keras.models.load_model(next(tmp_path.glob("checkpoints/*/*.keras")))
    assert [tuple(part.shape) for part in network.get_weights()] == list(checkpoint.model.spec.shapes.values())
    again = ["--checkpoint", str(tmp_path), "--episodes", "3", "--seed", "5"]
    tables = []
    for arguments in (again, again, [*again, "--greedy"]):
        play_command(arguments)
        tables.append(capsys.readouterr().out)
    assert tables[0] == tables[1]


def test_a_policy_at_play_is_the_engine_at_play(tmp_path):
    from a3c.play.policies import environment_of, play_game, policy_of

    settings = config(workers="1", episodes=3, learner={"standardise": False})
    train(settings, tmp_path)
    checkpoint = load(tmp_path)
    policy, environment = policy_of(checkpoint, settings.environment), environment_of(checkpoint)
    engine = make_engine(settings)
    for episode in (0, 1, 1):  # the last of them again: nothing of an earlier game is remembered
        world = engine.new_environment()
        world.begin_episode(5, 0, episode)
        rollout = engine.rollout(checkpoint.parameters, world)
        played = play_game(policy, environment, 5, episode)
        assert (played.env_steps, played.reward) == (rollout.env_steps, pytest.approx(rollout.reward))


def test_memory_matters():
    engine = engine_of()
    parameters = parameters_of(engine)
    piece = pieces_of(engine, parameters)[3]
    forgetful = replace(piece, memory=np.zeros_like(piece.memory))
    gradients = [engine.gradient(parameters, each)[0] for each in (piece, forgetful)]
    assert relative_error(*gradients) > 1e-2
