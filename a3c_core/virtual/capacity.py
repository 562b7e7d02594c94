"""How many workers one master bears, by the costs and by how long an untrained agent lives: fixed before the run.

C is a worker's cycle, from its pull to its parcel's arrival; S is the master's service, all that a parcel costs it.
Workers that do not wait send N / C parcels a second, and the master serves 1 / S: from N0 = C / S on its queue grows
without end. Workers that wait for their own parcel send N / (C + S): from N* = (C + S) / S on the master is never idle.
"""

import json
import math
import os
from functools import lru_cache
from typing import Literal, NamedTuple

from a3c_core.algorithms import ALGORITHMS, make_algorithm
from a3c_core.algorithms.base import gradients_of_play, is_repeated
from a3c_core.build import make_engine, new_learner
from a3c_core.config import RunConfig
from a3c_core.progress import START, worker_draw
from a3c_core.topologies import rules_of
from a3c_core.virtual import costs
from a3c_core.virtual.costs import CostProfile, load_profile

_EPISODES = 200  # played by the untrained agent; no more than the run has
_ENOUGH_STEPS = 50_000  # env steps after which no further episode is begun: some games are long for anybody
_DECISIVE = {"seed", "engine", "algorithm", "model", "environment", "learner", "network"}  # for how it plays
_known: dict[str, "Untrained"] = {}  # by these settings: playing is not free


class Untrained(NamedTuple):
    """What the run's initial parameters played, alone."""

    episodes: int
    env_steps: int
    pieces: int  # rollouts, of which each is one agent's part of a parcel

    @property
    def episode_steps(self) -> float:
        """Mean length of an episode."""
        return self.env_steps / self.episodes


class Capacity(NamedTuple):
    """What an untrained agent's parcels cost a worker and the master, and how many workers that is enough for."""

    env_steps: float  # mean length of its episodes
    cycle_s: float  # C, a worker's seconds per parcel: on a core, waiting for the game, and under way
    service_s: float  # S, the master's seconds per parcel; 0 without a master
    limit_name: Literal["N0", "N*"]  # which of the two applies to this exchange

    @property
    def n0(self) -> float:
        """C / S: from here on the queue of an exchange that does not wait grows without end."""
        return self.cycle_s / self.service_s if self.service_s else math.inf

    @property
    def n_star(self) -> float:
        """(C + S) / S: from here on the master of an exchange that waits is never idle."""
        return (self.cycle_s + self.service_s) / self.service_s if self.service_s else math.inf

    @property
    def limit(self) -> float:
        """The one that applies."""
        return self.n_star if self.limit_name == "N*" else self.n0


def capacity(config: RunConfig, profile: CostProfile | None = None) -> Capacity:
    """Return how many workers the run's master bears at the costs of its profile, on whichever clock it runs.

    It depends on nothing that the run does: the untrained agent plays alone, and equal settings give equal numbers.
    `profile` stands for the run's own, where that may have changed since.
    """
    profile, played = profile or profile_of(config), untrained(config)
    topology = rules_of(config.topology, config.exchange)
    has_master = topology.has_master and topology.has_limit
    waits = has_master and config.gradients.pull == "after_apply"
    cycle_s = _cycle_s(config, profile, played, waits)
    if not topology.learns_at_arrival:  # more workers are no more work for those who learn
        return Capacity(played.episode_steps, cycle_s, 0.0, "N0")
    if not has_master:  # every worker applies its own gradient
        return Capacity(played.episode_steps, cycle_s + profile.apply_s, 0.0, "N0")
    service_s = topology.service_s(*_service_s(config, profile, played))
    return Capacity(played.episode_steps, cycle_s, service_s, "N*" if waits else "N0")


def profile_of(config: RunConfig) -> CostProfile:
    """Return the run's cost profile with its overrides, and with gradients at the cost of whoever computes them."""
    name = config.cost_profile
    changed_ns = os.stat(name).st_mtime_ns if os.path.isfile(name) else 0
    profile = _read_once(name, changed_ns).overridden(config.model_dump(include=set(costs.OVERRIDES)))
    profile = profile.beside(config.span.start)
    algorithm = ALGORITHMS.get(config.algorithm)
    if is_repeated(algorithm):
        return profile.of_batches()
    return profile if algorithm.hands_over == "gradient" else profile.of_trajectories()


@lru_cache(maxsize=64)
def _read_once(name: str, changed_ns: int) -> CostProfile:
    """Return a profile, read again only if its file has changed: a grid asks for the same one for every cell."""
    return load_profile(name)


def untrained(config: RunConfig) -> Untrained:
    """Return what the run's initial parameters play in as many episodes as the run has, at most 200."""
    episodes = min(config.episodes, _EPISODES)
    key = json.dumps([episodes, config.model_dump(mode="json", include=_DECISIVE)], sort_keys=True)
    if key not in _known:
        _known[key] = _play(config, episodes)
    return _known[key]


def _play(config: RunConfig, episodes: int) -> Untrained:
    """Play as worker 0 would if nothing were ever learned. A gradient is not needed for that."""
    engine, published = make_engine(config), new_learner(config).publication
    progress = START._replace(draw=worker_draw(config.seed, 0))
    environment = engine.new_environment()
    env_steps = pieces = number = 0
    while number < episodes and env_steps < _ENOUGH_STEPS:
        environment.begin_episode(config.seed, 0, number)
        number += 1
        is_over = False
        while not is_over:
            trajectory = engine.play(published, environment, progress)
            env_steps += trajectory.env_steps
            pieces += 1
            is_over = trajectory.terminated or trajectory.truncated
    return Untrained(number, env_steps, pieces)


def _cycle_s(config: RunConfig, profile: CostProfile, played: Untrained, waits: bool) -> float:
    """Return the mean seconds between a worker's pull and its parcel's arrival: costs are linear in what was played."""
    rounds = played.pieces / config.agents_per_worker  # of play: a parcel holds a piece of every agent's
    env_steps, repeats = played.env_steps / rounds, _gradients_of_play(config) - 1

    def seconds(env_steps: float, resets: float, repeated: float) -> float:
        away_s = profile.away_s(env_steps, config.environment.wait_s)
        core_s = profile.cycle_s(env_steps, resets, waits=waits + (away_s > 0), repeated=repeated)
        return away_s + core_s

    played_s = seconds(env_steps, played.episodes / rounds, 0.0)
    return (played_s + repeats * seconds(0.0, 0.0, env_steps)) / (1 + repeats)


def _service_s(config: RunConfig, profile: CostProfile, played: Untrained) -> tuple[float, float]:
    """Return a master's mean seconds per parcel: to take it and learn its share, and to write its episodes up."""
    agents = config.agents_per_worker
    parcels, effort = new_learner(config).effort_at(agents * played.env_steps / played.pieces)
    mailboxes = parcels if config.gradients.channel == "mailbox" else 0  # one for each parcel: its worker's
    learning_s = profile.service_s(mailboxes, gradients=parcels) + profile.learning_s(*effort)
    episodes = agents * played.episodes / played.pieces / _gradients_of_play(config)  # that a parcel ends
    return learning_s / parcels, episodes * profile.first_bookkeeping_s


def _gradients_of_play(config: RunConfig) -> int:
    """Return how many parcels a worker makes of what it has played at once."""
    return gradients_of_play(make_algorithm(config.algorithm, config.learner))
