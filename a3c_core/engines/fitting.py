"""Whether a game and a model fit each other: asked before a run, not found out in its first step."""

from functools import lru_cache
from typing import NamedTuple

import gymnasium
from gymnasium.spaces import Box, Discrete, Space

from a3c_core.config import EnvironmentConfig
from a3c_core.engines.stepwise import GymEnvironment, saves_state
from a3c_core.errors import near_miss, shown
from a3c_core.models import Model


class Outline(NamedTuple):
    """What a game shows and takes."""

    observations: Space[object]
    actions: Space[object]
    saves_state: bool


class Unplayable(Exception):
    """A game can't be made; the message says why."""


def why_not_playable(model: Model, environment: EnvironmentConfig) -> str | None:
    """Return what keeps every engine from playing an environment with a model, or None if nothing does.

    This makes the environment once, so a module that its id names is imported.
    """
    try:
        game = _outline(environment)
    except Unplayable as error:
        return str(error)
    name = environment.id
    if not isinstance(game.actions, Discrete) or game.actions.start != 0:
        return f"{name} takes actions from {game.actions}, and a policy here chooses among numbered ones"
    if not isinstance(game.observations, Box):
        return f"{name} shows {game.observations}, and models here need one array"
    has = f"observations of shape {game.observations.shape} and {game.actions.n} actions"
    takes = f"observations of shape {model.observation_shape} and {model.actions} actions"
    return None if has == takes else f"{name} has {has}, and the model takes {takes}"


def can_save_state(environment: EnvironmentConfig) -> bool:
    """Return whether a playable environment can go on in the middle of an episode, as virtual time needs."""
    return _outline(environment).saves_state


@lru_cache(maxsize=256)
def _outline(environment: EnvironmentConfig) -> Outline:
    try:
        game = GymEnvironment(environment).env
    except gymnasium.error.UnregisteredEnv as error:
        raise Unplayable(_unknown(environment.id)) from error
    except Exception as error:  # of a package that is missing, or of the user's own module
        raise Unplayable(f"{shown(environment.id)} can't be made: {type(error).__name__}: {error}") from error
    try:
        return Outline(game.observation_space, game.action_space, saves_state(game))
    finally:
        game.close()


def _unknown(name: str) -> str:
    module, _, rest = name.rpartition(":")
    where = f"the module {module}" if module else "Gymnasium"
    meant = near_miss(rest, gymnasium.registry)
    hint = f"did you mean {meant}?" if meant else "`module:Name-v0` names one of a module of yours"
    return f"{where} knows no environment {shown(rest)}; {hint}"
