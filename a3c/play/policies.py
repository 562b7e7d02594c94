"""From a checkpoint to a policy, and what it plays."""

import sys
from collections.abc import Callable, Sequence
from typing import Any

from pydantic import ValidationError

from a3c.play.scores import Played
from a3c_core.algorithms import ALGORITHMS, settings_of
from a3c_core.algorithms.base import Algorithm
from a3c_core.config import read_section
from a3c_core.engines import build_engine
from a3c_core.errors import in_words, shown
from a3c_core.games import make_game
from a3c_core.games.base import Environment, EnvironmentConfig, Policy
from a3c_core.models import make_model
from a3c_core.models import settings_of as model_settings_of
from a3c_core.models.base import Forward, Model
from a3c_core.models.parameters import Vector
from a3c_core.progress import Progress
from a3c_core.records.checkpoints import Checkpoint, CheckpointError
from a3c_core.registry import is_reference
from a3c_core.streams import uniform
from a3c_core.trusted_modules import refuse_untrusted


def environment_of(checkpoint: Checkpoint, max_steps: int | None = None) -> EnvironmentConfig:
    """Return the environment that the checkpoint was trained in, each episode with a stream of its own."""
    saved = _settings(checkpoint).get("environment", {})
    if not isinstance(saved, dict):
        raise CheckpointError(f"{checkpoint.path}: its environment must be a mapping, not {shown(saved)}")
    limit = {} if max_steps is None else {"max_episode_steps": max_steps}
    try:
        return EnvironmentConfig.model_validate({**saved, "seeding": "episode", "actions": "own", **limit})
    except ValidationError as error:
        first = error.errors()[0]
        reason = f"environment.{'.'.join(map(str, first['loc']))}: {in_words(first)}"
        raise CheckpointError(f"{checkpoint.path}: {reason}") from error


def _settings(checkpoint: Checkpoint) -> dict[str, Any]:
    """Return the settings of the run in a checkpoint; none are there if the checkpoint is not a run's."""
    settings = checkpoint.info.get("config", {})
    if not isinstance(settings, dict):
        raise CheckpointError(f"{checkpoint.path}: its configuration must be a mapping, not {shown(settings)}")
    return settings


def refuse_untrusted_modules(checkpoint: Checkpoint, trusted: Sequence[str] = ()) -> None:
    """Refuse a checkpoint that would import parts of others which are not among the names `trusted`."""
    try:
        refuse_untrusted({**_settings(checkpoint), "model": checkpoint.model_name}, trusted, str(checkpoint.path))
    except ValueError as error:
        raise CheckpointError(str(error)) from error


def algorithm_of(checkpoint: Checkpoint) -> Algorithm:
    """Return the algorithm that the checkpoint was trained by."""
    config = {"algorithm": "a3c", "learner": {}, **_settings(checkpoint)}
    settings = read_section(settings_of(config["algorithm"]), config["learner"])
    algorithm: Algorithm = ALGORITHMS.get(config["algorithm"])(settings)
    return algorithm


def model_of(checkpoint: Checkpoint, environment: EnvironmentConfig) -> Model:
    """Return the checkpoint's model.

    A model of others is made as for training: from the game's spaces, the algorithm's heads and the settings that it
    declares. Nothing else in the file reaches their code.
    """
    if not is_reference(checkpoint.model_name):
        return checkpoint.model
    try:
        network = read_section(model_settings_of(checkpoint.model_name), _settings(checkpoint).get("network", {}))
    except ValidationError as error:
        raise CheckpointError(f"{checkpoint.path}: network: {in_words(error.errors()[0])}") from error
    spaces = make_game(environment).spaces
    model = make_model(checkpoint.model_name, network, spaces, algorithm_of(checkpoint).heads(spaces.actions))
    if reason := model.why_not():
        raise CheckpointError(f"{checkpoint.path}: {reason}")
    model.spec.views(checkpoint.parameters)  # refuses a vector of another size
    return model


def policy_of(checkpoint: Checkpoint, environment: EnvironmentConfig, greedy: bool = False) -> Policy:
    """Return how the checkpoint acts: through NumPy where the model allows it, else by way of TensorFlow."""
    algorithm, model = algorithm_of(checkpoint), model_of(checkpoint, environment)
    new_forward: Callable[[Vector], Forward | None] = model.numpy_forward
    if new_forward(checkpoint.parameters) is None:
        engine: Any = build_engine("tensorflow", make_game(environment), model, algorithm)
        new_forward = engine.forward

    def new_policy() -> Policy:
        forward = new_forward(checkpoint.parameters)
        assert forward is not None
        return greedy_policy(forward) if greedy else learned_policy(forward, algorithm)

    return new_with_each_game(new_policy)


def new_with_each_game(new_policy: Callable[[], Policy]) -> Policy:
    """Return a policy that remembers nothing of an earlier game: who plays an episode makes an environment for it."""
    seen: Environment | None = None
    policy = new_policy()

    def act(environment: Environment) -> int:
        nonlocal seen, policy
        if environment is not seen:
            seen, policy = environment, new_policy()
        return policy(environment)

    return act


def learned_policy(forward: Forward, algorithm: Algorithm) -> Policy:
    """Return the policy that acts as it does at the end of training."""
    end = Progress(share=1.0, env_steps=sys.maxsize)
    return lambda environment: algorithm.act(forward(environment.observation), environment.stream, end)


def greedy_policy(forward: Forward) -> Policy:
    """Return the policy that takes the likeliest or most valued action: that of the first head's largest number."""
    return lambda environment: int(forward(environment.observation)[0].argmax())


def random_policy(environment: EnvironmentConfig) -> Policy:
    """Return the policy that takes any action as likely as any other: what chance alone scores."""
    actions = make_game(environment).spaces.actions
    return lambda environment: int(uniform(environment.stream) * actions)


def play_game(policy: Policy, environment: EnvironmentConfig, seed: int, episode: int) -> Played:
    """Return how the episode (seed, worker 0, episode) went."""
    game = make_game(environment).new_environment()
    game.begin_episode(seed, 0, episode)
    env_steps, total = 0, 0.0
    while True:
        reward, terminated, truncated = game.step(policy(game))
        env_steps, total = env_steps + 1, total + reward
        if terminated or truncated:
            return Played(episode, game.score, env_steps, total, terminated)
