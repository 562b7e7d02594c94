"""PPO and V-trace: targets and gradients against plain NumPy, and against A3C where they must be the same."""

import numpy as np
import pytest

from a3c_core.algorithms.base import Trajectory
from a3c_core.algorithms.trajectories import batch_of
from a3c_core.build import make_engine, misfit, new_learner, parts_of
from a3c_core.config import LearnerConfig, RunConfig
from a3c_core.engines.packing import Packing
from a3c_core.games.base import Spaces
from a3c_core.models.dense import DenseModel
from tests import learner_twin, trajectory_twin
from tests.learner_cases import relative_error, trained_parameters

ENGINES = ("compiled", "tensorflow")
SHAPES = {"several": (7, 20, 1), "one step": (1,), "cut": (3, 12), "one": (30,)}  # every second one is cut
KINDS = {
    "ppo": ("ppo", {}),
    "ppo huber": ("ppo", {"value_loss": "huber", "entropy_coefficient": 0.02, "standardise": False}),
    "ppo decoupled": ("ppo", {"decoupled": True}),
    "vtrace": ("vtrace", {"entropy_coefficient": 0.02}),
    "vtrace bounds": ("vtrace", {"rho_bar": 1.3, "c_bar": 0.8, "value_loss": "huber"}),
}
TOLERANCE = 2e-5


def config_of(algorithm, learner=None, engine="compiled", **settings):
    return RunConfig(algorithm=algorithm, learner=learner or {}, engine=engine, **settings)


def prepared(algorithm, learner, engine, batch, parameters):
    """Return (engine, the batch's targets)."""
    config = config_of(algorithm, learner, engine)
    made = make_engine(config)
    return made, parts_of(config).algorithm.batch_targets(batch, lambda: made.evaluate(parameters, batch))


def played(parameters, episodes=4, horizon=40, engine="compiled"):
    """Return fresh trajectories: pieces that `parameters` have played."""
    made = make_engine(config_of("ppo", {"horizon": horizon}, engine))
    environment, trajectories = made.new_environment(), []
    for episode in range(episodes):
        environment.begin_episode(3, 0, episode)
        trajectories.append(made.play(parameters, environment))
        if not trajectories[-1].terminated:
            trajectories.append(made.play(parameters, environment))
    return trajectories


@pytest.mark.parametrize("shape", SHAPES)
def test_targets_are_those_of_the_papers(shape):
    parameters = trained_parameters()
    batch = trajectory_twin.made_up_batch(parameters, SHAPES[shape])
    settings = config_of("ppo", {"standardise": False}).learner
    _, targets = prepared("ppo", {"standardise": False}, "compiled", batch, parameters)
    expected = trajectory_twin.advantages(batch, settings)
    np.testing.assert_allclose(targets[:, 0], expected, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(targets[:, 1], expected + batch.values, rtol=1e-4, atol=1e-4)
    bounds = {"rho_bar": 1.1, "c_bar": 0.9}
    engine, targets = prepared("vtrace", bounds, "compiled", batch, parameters)
    log_chosen, values = engine.evaluate(parameters, batch)
    weights = np.exp(np.float64(log_chosen - batch.log_probabilities))
    expected = trajectory_twin.vtrace(batch, np.float64(values), weights, config_of("vtrace", bounds).learner)
    np.testing.assert_allclose(targets, np.stack(expected, axis=1), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("kind", KINDS)
def test_gradients_are_the_slopes_of_a_plain_loss(kind, shape):
    algorithm, learner = KINDS[kind]
    parameters = DenseModel().initial_parameters(3)
    batch = trajectory_twin.made_up_batch(parameters, SHAPES[shape])
    rows = np.arange(batch.env_steps)[::-1].copy()
    for name in ENGINES:
        engine, targets = prepared(algorithm, learner, name, batch, parameters)
        found, log_probabilities = engine.batch_gradient(parameters, batch, targets, rows)
        if name == ENGINES[0]:
            settings = config_of(algorithm, learner).learner
            what = {"batch": batch, "targets": targets, "rows": rows, "algorithm": algorithm, "settings": settings}
            slopes = trajectory_twin.slopes(parameters, **what)
        assert relative_error(found, slopes) < TOLERANCE * 10
        log_policy = learner_twin.forward(learner_twin.weights(parameters), batch.observations[rows]).log_policy
        expected = log_policy[np.arange(len(rows)), batch.actions[rows]]
        np.testing.assert_allclose(log_probabilities, expected, rtol=1e-4, atol=1e-5)


def test_advantages_that_are_all_alike_push_nobody():
    parameters = trained_parameters()
    batch = trajectory_twin.made_up_batch(parameters, (9,))
    alike = batch._replace(rewards=np.ones_like(batch.rewards), values=np.zeros_like(batch.values))
    alike = alike._replace(lengths=np.ones(9, np.int64), bootstrap_values=np.zeros(9, np.float32))
    _, targets = prepared("ppo", {}, "compiled", alike, parameters)
    assert np.array_equal(targets[:, 0], np.zeros(9))
    assert np.array_equal(targets[:, 1], np.ones(9))


@pytest.mark.parametrize("engine", ENGINES)
def test_clipping_stops_steps_that_have_gone_too_far_and_no_others(engine):
    parameters = trained_parameters()
    batch = trajectory_twin.made_up_batch(parameters, (4,))
    learner = {"value_coefficient": 0.0}
    made, _ = prepared("ppo", learner, engine, batch, parameters)
    log_now, _ = made.evaluate(parameters, batch)
    for log_ratio, advantage, moves in ((0.5, 1, False), (-0.5, 1, True), (0.5, -1, True), (-0.5, -1, False)):
        columns = np.full(4, advantage), np.zeros(4), log_now - log_ratio, np.ones(4)
        targets = np.stack(columns, axis=1).astype(np.float32)
        gradient, _ = made.batch_gradient(parameters, batch, targets, np.arange(4))
        assert bool(np.abs(gradient).max() > 1e-6) == moves


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("value_loss", ["huber", "squared"])
def test_the_first_update_on_fresh_data_is_that_of_a3c(engine, value_loss):
    """One epoch, one minibatch, no lambda: the ratio is 1, so that the slope is that of the log-probability."""
    parameters = trained_parameters()
    trajectories = played(parameters)
    batch, rows = batch_of(trajectories), np.arange(sum(one.env_steps for one in trajectories))
    loss = {"value_loss": value_loss, "value_coefficient": 0.7, "entropy_coefficient": 0.01}
    a3c = make_engine(RunConfig(engine=engine, learner=LearnerConfig(standardise=False, **loss)))
    expected = sum(np.float64(a3c.gradient(parameters, one)[0]) for one in trajectories)
    for learner in ({}, {"decoupled": True}):
        ppo = {"trace_decay": 1.0, "standardise": False, **loss, **learner}
        made, targets = prepared("ppo", ppo, engine, batch, parameters)
        assert relative_error(made.batch_gradient(parameters, batch, targets, rows)[0], expected) < TOLERANCE


@pytest.mark.parametrize("engine", ENGINES)
def test_vtrace_on_fresh_data_is_n_step_a3c(engine):
    parameters = DenseModel().initial_parameters(3)
    trajectories = played(parameters)
    assert {one.terminated for one in trajectories} == {True, False}
    batch, rows = batch_of(trajectories), np.arange(sum(one.env_steps for one in trajectories))
    loss = {"value_loss": "squared", "value_coefficient": 0.5, "entropy_coefficient": 0.01}
    in_pieces = LearnerConfig(t_max=40, update_every="t_max", standardise=False, **loss)
    a3c = make_engine(RunConfig(engine=engine, learner=in_pieces))
    expected = sum(np.float64(a3c.gradient(parameters, one)[0]) for one in trajectories)
    made, targets = prepared("vtrace", loss, engine, batch, parameters)
    assert relative_error(made.batch_gradient(parameters, batch, targets, rows)[0], expected) < TOLERANCE


@pytest.mark.parametrize("engine", ENGINES)
def test_decoupled_is_plain_where_the_proximal_policy_is_the_one_that_played(engine):
    parameters, others = trained_parameters(), 1.05 * trained_parameters()
    batch = trajectory_twin.made_up_batch(parameters, (20, 30), noise=0.0)
    made, _ = prepared("ppo", {}, engine, batch, parameters)
    batch = batch._replace(log_probabilities=made.evaluate(parameters, batch)[0])
    gradients = []
    for decoupled in (False, True):
        made, targets = prepared("ppo", {"decoupled": decoupled}, engine, batch, parameters)
        gradients.append(made.batch_gradient(others, batch, targets, np.arange(batch.env_steps))[0])
    assert np.array_equal(*gradients)
    assert np.abs(gradients[0]).max() > 0


def test_decoupled_is_another_objective_where_data_are_stale():
    parameters = trained_parameters()
    batch = trajectory_twin.made_up_batch(parameters, (20, 30))
    targets = [prepared("ppo", {"decoupled": each}, "compiled", batch, parameters)[1] for each in (False, True)]
    assert np.array_equal(targets[0][:, 3], np.ones(50))
    weights = np.exp(targets[1][:, 2] - batch.log_probabilities)
    np.testing.assert_allclose(targets[1][:, 3], weights, rtol=1e-5)
    assert weights.std() > 0.1


def test_engines_play_alike_and_say_the_same_of_their_actions():
    parameters = trained_parameters()
    for one, other in zip(*(played(parameters, 6, 200, engine) for engine in ENGINES), strict=True):
        assert np.array_equal(one.actions, other.actions)
        np.testing.assert_allclose(one.log_probabilities, other.log_probabilities, rtol=1e-4, atol=1e-5)
        logits, _ = zip(*map(DenseModel().numpy_forward(parameters), one.observations), strict=True)
        probabilities = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
        chosen = np.log(probabilities[np.arange(one.env_steps), one.actions])
        np.testing.assert_allclose(one.log_probabilities, chosen, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("algorithm", ["ppo", "vtrace"])
def test_learners_of_both_engines_go_the_same_way(algorithm):
    trajectories = played(trained_parameters(), 8)
    ways = []
    for engine in ENGINES:
        config = config_of(algorithm, {"batch_steps": 60, "learning_rate": 3e-4}, engine)
        learner, packing = new_learner(config), Packing(parts_of(config).game.spaces)
        for trajectory in trajectories:
            learner.receive(packing.pack([trajectory]))
        ways.append((learner.parameters - parts_of(config).model.initial_parameters(0), learner.statistics()))
        assert learner.version > 0
    assert relative_error(ways[0][0], ways[1][0]) < 1e-3
    assert ways[0][1] == pytest.approx(ways[1][1], rel=1e-3, abs=1e-4)
    assert ways[0][1].keys() == {"clip_fraction", "kl", "importance_weight"}


@pytest.mark.parametrize("dtype", ["float32", "uint8", "float64"])
def test_a_parcel_holds_its_trajectories_to_the_bit(dtype):
    random = np.random.default_rng(1)
    packing = Packing(Spaces((3, 5), dtype, 4))
    trajectories = [
        Trajectory(
            observations=(200 * random.random((steps, 3, 5))).astype(dtype),
            actions=random.integers(0, 4, steps),
            rewards=random.normal(size=steps).astype(np.float32),
            values=random.normal(size=steps).astype(np.float32),
            bootstrap_value=0.25 * steps,
            terminated=steps == 1,
            truncated=steps == 6,
            log_probabilities=-random.random(steps).astype(np.float32),
        )
        for steps in (1, 6, 4)
    ]
    parcel = packing.pack(trajectories)
    assert parcel.dtype == np.float32
    assert parcel.size <= packing.capacity(agents=3, horizon=6)
    assert packing.pack(trajectories[1:2]).size == packing.capacity(agents=1, horizon=6)
    place = np.full(packing.capacity(3, 6), np.nan, np.float32)
    place[: parcel.size] = parcel
    assert packing.env_steps(place) == 11
    assert np.array_equal(packing.without_rest(place), parcel, equal_nan=True)
    assert packing.is_finite(parcel)
    for one, other in zip(trajectories, packing.unpack(place), strict=True):
        for name, value in vars(one).items():
            assert np.array_equal(getattr(other, name), value), name
        assert other.observations.dtype == one.observations.dtype


def test_a_parcel_that_is_not_finite_is_refused_alone():
    config = config_of("ppo", {"batch_steps": 60, "horizon": 40, "epochs": 4, "minibatches": 4})
    learner, packing = new_learner(config), Packing(parts_of(config).game.spaces)
    good = packing.pack(played(trained_parameters(), 1)[:1])
    bad = good.copy()
    bad[-1] = np.nan
    assert learner.effort(good) == (0, 0)
    assert learner.receive(good)[::3] == (True, "nothing")
    result = learner.receive(bad)
    assert (result.applied, result.settles) == (False, "parcel")
    assert learner.optimizer.rejected == 1
    assert learner.effort(good) == (16, 4 * 80)
    assert learner.receive(good)[::3] == (True, "batch")
    assert learner.version == 16
    assert np.isfinite(learner.parameters).all()


@pytest.mark.parametrize(
    ("settings", "place", "words"),
    [
        (
            {"topology": "hogwild"},
            "topology",
            "ppo hands over trajectories, which topology: master takes; hogwild takes gradients",
        ),
        ({"engine": "report"}, "engine", "hand over gradients only"),
        ({"environment": {"id": "CartPole-v1"}}, "engine", "FlappyBird-v0"),
        ({"network": {"units": 64}}, "engine", "128 units"),
    ],
)
def test_what_does_not_fit_is_said_before_the_run(settings, place, words):
    found = misfit(RunConfig(algorithm="ppo", **settings))
    assert found is not None
    assert found[0] == place
    assert words in found[1]
