"""Engines: the same parameters and generator give the same game, in one piece or in many, here or after a restart."""

import subprocess
import sys
from dataclasses import dataclass

import numpy as np
import pytest

from a3c_core.build import make_engine, parts_of
from a3c_core.config import LearnerConfig, RunConfig
from a3c_core.engines import build_engine
from a3c_core.models.dense import DenseModel
from a3c_core.progress import START
from tests import learner_twin
from tests.learner_cases import made_up_trajectory, relative_error, trained_parameters

IN_PIECES = {"t_max": 20, "update_every": "t_max", "standardise": False}


def engine(name, learner=None, network=None, **environment):
    settings = {"learner": learner or LearnerConfig(), "network": network or {}, "environment": environment}
    return make_engine(RunConfig(engine=name, **settings))


def play(engine, parameters, *episode, environment=None):
    """Return the pieces of an episode, as many as the engine's settings make of it."""
    environment = environment or engine.new_environment()
    environment.begin_episode(*episode)
    pieces = [engine.play(parameters, environment)]
    while not (pieces[-1].terminated or pieces[-1].truncated):
        pieces.append(engine.play(parameters, environment))
    return pieces


def joined(pieces, field):
    return np.concatenate([getattr(piece, field) for piece in pieces])


def assert_same_game(one, other):
    for field in ("observations", "actions", "rewards"):
        assert np.array_equal(joined(one, field), joined(other, field)), field
    np.testing.assert_allclose(joined(one, "values"), joined(other, "values"), rtol=1e-4, atol=1e-5)
    assert (one[-1].terminated, one[-1].truncated) == (other[-1].terminated, other[-1].truncated)
    assert one[-1].bootstrap_value == pytest.approx(other[-1].bootstrap_value, rel=1e-4, abs=1e-5)


@pytest.mark.parametrize(("trained", "episodes"), [(False, 800), (True, 200)])
def test_compiled_and_tensorflow_play_1000_identical_games(trained, episodes):
    parameters = trained_parameters() if trained else 1.5 * DenseModel().initial_parameters(0)
    compiled, reference = (engine(name, max_episode_steps=400) for name in ("compiled", "tensorflow"))
    worlds = compiled.new_environment(), reference.new_environment()
    endings = set()
    for episode in range(episodes):
        games = [
            play(e, parameters, 7, 3, episode, environment=world)
            for e, world in zip((compiled, reference), worlds, strict=True)
        ]
        assert_same_game(*games)
        endings.add(games[0][-1].terminated)
    assert endings == ({True, False} if trained else {True})


def test_rollouts_agree_with_each_other_and_with_playing_and_differentiating():
    learner = LearnerConfig(entropy_coefficient=0.01)
    parameters = trained_parameters()
    for name in ("compiled", "tensorflow", "report"):
        for episode in range(3):
            one = engine(name, learner, max_episode_steps=80)
            world = one.new_environment()
            world.begin_episode(1, 2, episode)
            rollout = one.rollout(parameters, world)
            (trajectory,) = play(engine("compiled", max_episode_steps=80), parameters, 1, 2, episode)
            gradient, loss, entropy = learner_twin.gradient(learner_twin.weights(parameters), trajectory, learner)
            assert relative_error(rollout.gradient, gradient) < 1e-4
            assert rollout.loss == pytest.approx(loss, rel=1e-4, abs=1e-4)
            assert rollout.entropy == pytest.approx(entropy, abs=1e-5)
            assert (rollout.env_steps, rollout.reward) == (trajectory.env_steps, trajectory.rewards.sum())
            assert (rollout.terminated, rollout.truncated) == (trajectory.terminated, trajectory.truncated)
            assert rollout.score == (trajectory.rewards == 1).sum()


@pytest.mark.parametrize("learner", [{}, IN_PIECES], ids=["whole", "pieces"])
def test_settings_handed_over_in_two_arrays_give_the_bytes_of_those_handed_over_one_by_one(learner):
    one = engine("compiled", LearnerConfig(**learner), max_episode_steps=90)
    ours, theirs = one.new_environment(), one.new_environment()
    for episode in range(20):
        ours.begin_episode(3, 1, episode)
        theirs.begin_episode(3, 1, episode)
        over = False
        while not over:
            expected = vars(one._rollout_by_parts(trained_parameters(), theirs, START, sampled=False))
            rollout = vars(one.rollout(trained_parameters(), ours))
            assert rollout.pop("gradient").tobytes() == expected.pop("gradient").tobytes()
            assert rollout == expected
            assert ours.get_state().tobytes() == theirs.get_state().tobytes()
            over = rollout["terminated"] or rollout["truncated"]


@pytest.mark.parametrize("name", ["compiled", "tensorflow"])
def test_pieces_make_the_same_game_and_gradient_as_the_whole(name):
    parameters = trained_parameters()
    whole = engine(name, LearnerConfig(t_max=20, standardise=False), max_episode_steps=170)
    parts = engine(name, LearnerConfig(**IN_PIECES), max_episode_steps=170)
    for episode in range(5):
        (trajectory,) = play(whole, parameters, 1, 0, episode)
        pieces = play(parts, parameters, 1, 0, episode)
        assert_same_game(pieces, [trajectory])
        assert [piece.env_steps for piece in pieces[:-1]] == [20] * (len(pieces) - 1)
        assert [piece.bootstrap_value for piece in pieces[:-1]] == pytest.approx(trajectory.values[20::20], rel=1e-4)
        total = sum(np.float64(parts.gradient(parameters, piece)[0]) for piece in pieces)
        assert relative_error(whole.gradient(parameters, trajectory)[0], total) < 1e-4


def test_score_and_endings_of_pieces():
    parts = engine("compiled", LearnerConfig(**IN_PIECES), max_episode_steps=170)
    world = parts.new_environment()
    world.begin_episode(1, 0, 4)
    pieces = [parts.rollout(trained_parameters(), world) for _ in range(9)]
    assert [piece.env_steps for piece in pieces] == [20] * 8 + [10]
    assert [piece.episode_over for piece in pieces] == [False] * 8 + [True]
    assert pieces[-1].truncated
    assert [piece.score for piece in pieces] == np.cumsum([piece.reward for piece in pieces]).tolist()


@pytest.mark.parametrize("seeding", ["episode", "ple"])
@pytest.mark.parametrize("name", ["compiled", "tensorflow"])
def test_saved_state_goes_on_in_the_middle_of_an_episode(name, seeding):
    parameters = trained_parameters()
    parts = engine(name, LearnerConfig(**IN_PIECES), max_episode_steps=110, seeding=seeding)
    world, copy = parts.new_environment(), parts.new_environment()
    world.begin_episode(1, 0, 4)
    for _ in range(3):
        parts.rollout(parameters, world)
    state = world.get_state().copy()
    assert state.dtype == np.uint8
    copy.set_state(state)
    for episode in range(5, 8):
        while True:
            one, other = (parts.rollout(parameters, each) for each in (world, copy))
            assert (one.env_steps, one.score, one.reward, one.truncated) == (
                other.env_steps,
                other.score,
                other.reward,
                other.truncated,
            )
            assert np.array_equal(one.gradient, other.gradient)
            if one.episode_over:
                break
        for each in (world, copy):
            each.begin_episode(1, 0, episode)


def test_ples_one_stream_is_the_same_in_every_engine():
    compiled, reference = (engine(name, seeding="ple", max_episode_steps=200) for name in ("compiled", "tensorflow"))
    worlds = compiled.new_environment(), reference.new_environment()
    starts = []
    for episode in range(30):
        games = [
            play(e, trained_parameters(), 7, 0, episode, environment=world)
            for e, world in zip((compiled, reference), worlds, strict=True)
        ]
        assert_same_game(*games)
        starts.append(games[0][0].observations[0].tolist())
    assert len({str(start) for start in starts}) > 1


def test_game_belongs_to_seed_worker_and_episode():
    compiled, parameters = engine("compiled"), DenseModel().initial_parameters(0)
    base, again, *others = [
        play(compiled, parameters, *key) for key in [(0, 0, 0), (0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)]
    ]
    assert_same_game(base, again)
    assert all(not np.array_equal(base[0].observations, other[0].observations) for other in others)


@dataclass(frozen=True)
class KerasOnly(DenseModel):
    """A model that acts through Keras."""

    def numpy_forward(self, parameters):
        return None


def test_model_without_a_numpy_forward_plays_the_same_game():
    parameters = DenseModel().initial_parameters(0)
    game, _, algorithm = parts_of(RunConfig())
    for episode in range(3):
        one = play(engine("tensorflow"), parameters, 0, 0, episode)
        through_keras = build_engine("tensorflow", game, KerasOnly(), algorithm)
        assert_same_game(play(through_keras, parameters, 0, 0, episode), one)


def test_tensorflow_runs_other_environments_and_sizes():
    cartpole = engine("tensorflow", network={"units": 16}, id="CartPole-v1", max_episode_steps=50)
    model = cartpole.model
    assert model == DenseModel((4,), units=16)
    parameters = model.initial_parameters(0)
    (one,), (again,), (other,) = (play(cartpole, parameters, 0, 0, episode) for episode in (0, 0, 1))
    assert np.array_equal(one.observations, again.observations)
    assert not np.array_equal(one.observations[0], other.observations[0])
    expected, _, _ = learner_twin.gradient(learner_twin.weights(parameters, model), one, LearnerConfig())
    assert relative_error(cartpole.gradient(parameters, one)[0], expected) < 1e-4


@pytest.mark.parametrize(
    ("network", "environment", "reason"),
    [
        ({"units": 64}, {}, "model 'dense' with 8 inputs, 128 units"),
        (None, {"observation": "raw"}, "observation 'report' or 'pixels' only"),
        (None, {"id": "CartPole-v1"}, "plays a3c_core/FlappyBird-v0"),
    ],
)
def test_compiled_says_what_it_can_not_do(network, environment, reason):
    with pytest.raises(ValueError, match=reason):
        engine("compiled", network=network, **environment)


def test_gradient_belongs_to_the_receiver():
    compiled, parameters = engine("compiled"), DenseModel().initial_parameters(0)
    first = compiled.gradient(parameters, made_up_trajectory(10, True, parameters))[0]
    kept = first.copy()
    compiled.gradient(parameters, made_up_trajectory(50, False, parameters))
    assert np.array_equal(first, kept)


@pytest.mark.parametrize("spoil", [lambda p: np.repeat(p, 2)[::2], lambda p: p.astype(np.float64)], ids=["gaps", "f64"])
def test_parameters_that_lie_otherwise_are_refused(spoil):
    compiled = engine("compiled")
    world = compiled.new_environment()
    world.begin_episode(1, 0, 0)
    with pytest.raises((ValueError, TypeError), match=r"one behind the other|a different type"):
        compiled.rollout(spoil(DenseModel().initial_parameters(0)), world)


WORKER = """
import sys
import numba
def resident():
    status = dict(line.split(":", 1) for line in open("/proc/self/status"))
    return int(status["VmRSS"].split()[0])
before = resident()
from a3c_core.config import RunConfig
from a3c_core.models.dense import DenseModel
from a3c_core.optimizers import Optimizer
from a3c_core.build import make_engine
engine = make_engine(RunConfig())
parameters, environment = DenseModel().initial_parameters(0), engine.new_environment()
optimizer = Optimizer(parameters.size)
for episode in range(50):
    environment.begin_episode(0, 0, episode)
    optimizer.apply(parameters, engine.rollout(parameters, environment).gradient)
if len(sys.argv) > 1:
    from pathlib import Path
    from a3c_core.records.checkpoints import load, save
    save(Path(sys.argv[1]), "dense", DenseModel(), parameters, optimizer)
    assert load(Path(sys.argv[1])).updates == 50
assert not {"tensorflow", "keras"} & set(sys.modules)
print((resident() - before) / before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("saves", [False, True])
def test_compiled_worker_stays_small_and_without_tensorflow(saves, tmp_path):
    arguments = [str(tmp_path)] if saves else []
    done = subprocess.run([sys.executable, "-c", WORKER, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) < 2  # grown by less than twice what Numba itself takes, which depends on the machine


@pytest.mark.parametrize("algorithm", ["a3c", "q"])
def test_rewards_are_clipped_alike(algorithm):
    rewards = []
    for name in ("compiled", "tensorflow"):
        for clip in (False, True):
            environment = {"reward": "alive", "clip_rewards": clip}
            one = make_engine(RunConfig(engine=name, algorithm=algorithm, environment=environment))
            parameters = one.model.initial_parameters(0)
            published = np.concatenate([parameters, parameters]) if algorithm == "q" else parameters
            rewards.append(joined(play(one, published, 7, 3, 0), "rewards"))
    raw, clipped, *reference = rewards
    assert np.array_equal(clipped, raw.clip(-1, 1))
    assert raw[-1] == -1000
    assert np.array_equal([raw, clipped], reference)
