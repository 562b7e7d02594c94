"""Any Gymnasium environment with discrete actions, by its id; one's own as `module:Id-v0`, which imports the module."""

import functools
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces as gym_spaces
from gymnasium.envs.registration import EnvSpec, load_env_creator
from numpy.typing import NDArray

from a3c_core.errors import near_miss, shown
from a3c_core.games.base import EnvironmentConfig, Score, Spaces, why_not_atari
from a3c_core.games.environment import GymEnvironment, Replayed
from a3c_core.registry import import_module

_OF_OTHER_GAMES = ("observation", "reward", "seeding")


class GymnasiumGame:
    """A game that says of itself what Gymnasium's specification says, and its `metadata["score"]`, if it has one."""

    def __init__(self, config: EnvironmentConfig):
        self.config = config

    def why_not(self) -> str | None:
        for name in _OF_OTHER_GAMES:
            if getattr(self.config, name) != EnvironmentConfig.model_fields[name].default:
                return f"environment.{name} is a setting of Flappy Bird: leave it out with {self.config.id}"
        if reason := why_not_atari(self.config):
            return reason
        try:
            self.spaces  # noqa: B018  asking builds the environment once
        except ValueError as error:
            return str(error)
        return None

    def why_not_saved(self) -> str | None:
        if _spec(self.config.id).nondeterministic:
            return f"{self.config.id} is not deterministic: its episodes can't be played again from their seed"
        return None

    @property
    def spaces(self) -> Spaces:
        return _spaces(self.config.id)

    @property
    def score(self) -> Score:
        return declared_score(_spec(self.config.id))

    def new_environment(self, render_mode: str | None = None) -> GymEnvironment:
        return GymEnvironment(self, render_mode)

    def make(self, render_mode: str | None) -> Any:
        """Return the environment; an episode ends at the game's own time limit or at ours, whichever comes first."""
        own_limit = _spec(self.config.id).max_episode_steps or self.config.max_episode_steps
        limit = min(own_limit, self.config.max_episode_steps)
        rendering = {} if render_mode is None else {"render_mode": render_mode}  # not every game knows the word
        return Replayed(_flat(_make(self.config.id, max_episode_steps=limit, **rendering)))

    def reset(self, env: Any, words: NDArray[np.uint64]) -> NDArray[Any]:
        return env.reset(seed=int(words[0] >> np.uint64(33)))[0]


def declared_score(spec: EnvSpec) -> Score:
    """Return what an environment says of its score, without building it; what it leaves out has defaults."""
    threshold = spec.reward_threshold
    solved: dict[str, Any] = {} if threshold is None else {"learned_above": threshold, "marks": (threshold,)}
    try:
        entry: Any = spec.entry_point
        kind: Any = entry if callable(entry) else load_env_creator(entry)
        return Score(**{**solved, **kind.metadata["score"]})
    except Exception:  # an entry point may be any function, and its module may need what is not installed
        return Score(**solved)


@functools.cache
def _spec(environment_id: str) -> EnvSpec:
    """Return Gymnasium's specification; raise ValueError with its reason if there is none."""
    module, colon, name = environment_id.rpartition(":")
    if colon:
        import_module(module)
    try:
        return gymnasium.spec(name)
    except gymnasium.error.DeprecatedEnv as error:
        raise ValueError(str(error)) from error
    except (gymnasium.error.Error, ValueError) as error:
        where = f"the module {module}" if module else "Gymnasium"
        meant = near_miss(name, gymnasium.registry)
        hint = f"did you mean {meant}?" if meant else "`module:Name-v0` names one of a module of yours"
        raise ValueError(f"{where} knows no environment {shown(name)}; {hint}") from error


def _make(environment_id: str, **settings: Any) -> gymnasium.Env[Any, Any]:
    _spec(environment_id)
    try:
        return gymnasium.make(environment_id.rpartition(":")[2], disable_env_checker=True, **settings)
    except Exception as error:  # of the environment's own
        raise ValueError(f"{environment_id} can't be made: {type(error).__name__}: {error}") from error


@functools.cache
def _spaces(environment_id: str) -> Spaces:
    env = _make(environment_id)
    try:
        actions = env.action_space
        if not isinstance(actions, gym_spaces.Discrete) or actions.start != 0:
            raise ValueError(f"{environment_id} takes actions from {actions}, and only numbered ones can be learned")
        if not env.observation_space.is_np_flattenable:
            raise ValueError(f"{environment_id} has observations that are no array: {env.observation_space}")
        box = _flat(env).observation_space
        return Spaces(box.shape or (), str(box.dtype), int(actions.n))
    finally:
        env.close()


def _flat(env: gymnasium.Env[Any, Any]) -> gymnasium.Env[Any, Any]:
    """Return `env` with arrays of float32, or pictures of uint8, for observations: a choice of n becomes n numbers."""
    if not isinstance(env.observation_space, gym_spaces.Box):
        env = gymnasium.wrappers.FlattenObservation(env)
    if env.observation_space.dtype in (np.uint8, np.float32):
        return env
    return gymnasium.wrappers.DtypeObservation(env, np.float32)
