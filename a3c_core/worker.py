"""A worker: one or more agents and an engine; a publication in, a gradient and the finished episodes' numbers out."""

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from a3c_core.engines.base import Engine, Play, chosen_action
from a3c_core.models.parameters import Vector
from a3c_core.progress import Progress, worker_draw

UNMEASURED: Mapping[str, float] = {}


class Episode(NamedTuple):
    """A finished episode as its worker saw it."""

    number: int  # the worker's own count
    started_s: float  # on the clock of whoever drives the worker
    score: float  # as the game counts it
    reward: float
    steps: int
    truncated: bool
    loss: float
    entropy: float

    def save(self) -> list[Any]:
        """Return it for JSON."""
        return [*self[:-2], _as_bits(self.loss), _as_bits(self.entropy)]

    @classmethod
    def restored(cls, saved: Sequence[Any]) -> "Episode":
        """Return what `save` saw."""
        *others, loss, entropy = saved
        return cls._make([*others, _from_bits(loss), _from_bits(entropy)])


@dataclass(slots=True)
class Work:
    """What one piece of work gave."""

    gradient: Vector  # summed over the agents, perhaps with the parameters it belongs to; or packed trajectories
    env_steps: int
    began: int  # episodes
    episodes: tuple[Episode, ...]  # that ended
    repeated_steps: int = 0  # played before, and differentiated again
    measured: Mapping[str, float] = field(default_factory=lambda: UNMEASURED)  # for the record of its update


@dataclass(slots=True)
class Agent:
    """One of the worker's games, and the sums over its episode so far."""

    environment: Any
    number: int = -1  # of its episode; -1 before the first
    in_episode: bool = False
    started_s: float = 0.0
    reward: float = 0.0
    loss: float = 0.0
    entropy: float = 0.0
    steps: int = 0

    def begin(self, seed: int, worker: int, number: int, now_s: float) -> None:
        self.environment.begin_episode(seed, worker, number)
        self.number, self.in_episode, self.started_s = number, True, now_s
        self.reward = self.loss = self.entropy = 0.0
        self.steps = 0

    def add(self, play: Play) -> Episode | None:
        """Add what it has just played; return the episode if that was its end."""
        self.reward += play.reward
        self.loss += play.loss
        self.entropy += play.entropy * play.env_steps
        self.steps += play.env_steps
        self.in_episode = not (play.terminated or play.truncated)
        if self.in_episode:
            return None
        entropy = self.entropy / self.steps
        # by position: this is done for every episode, and names take three times as long
        return Episode(
            self.number, self.started_s, play.score, self.reward, self.steps, play.truncated, self.loss, entropy
        )

    def save(self) -> list[Any]:
        """Return all but the environment for JSON."""
        sums = self.reward, _as_bits(self.loss), _as_bits(self.entropy)
        return [self.number, self.in_episode, self.started_s, *sums, self.steps]

    def restore(self, saved: Sequence[Any]) -> None:
        """Bring a new agent to the state that `save` saw."""
        self.number, self.in_episode, self.started_s, self.reward, loss, entropy, self.steps = saved
        self.loss, self.entropy = _from_bits(loss), _from_bits(entropy)


def _as_bits(number: float) -> str:
    """Return a number as a word: JSON knows no NaN, of which there are many, and records keep the very one."""
    return struct.pack("<d", number).hex()


def _from_bits(saved: str | float) -> float:
    """Return the number that `_as_bits` saw; older checkpoints hold the number itself."""
    if not isinstance(saved, str):
        return saved
    number: float = struct.unpack("<d", bytes.fromhex(saved))[0]
    return number


class Worker:
    """Plays episode after episode. Its randomness belongs to (seed, id, episode): it can be restarted anywhere."""

    def __init__(
        self,
        worker_id: int,
        seed: int,
        engine: Engine,
        next_episode: int = 0,
        agents: int = 1,
        carries_parameters: bool = False,
    ):
        """`carries_parameters`: what it hands over ends with the parameters that the gradient belongs to."""
        self.id = worker_id
        self.next_episode = next_episode
        self.rollouts = 0
        self._seed = seed
        self._engine = engine
        self._carries_parameters = carries_parameters
        self._agents = [Agent(engine.new_environment()) for _ in range(agents)]
        self.draw = worker_draw(seed, worker_id)  # for the progress that it is told

    @property
    def in_episode(self) -> bool:
        """Whether any agent is in the middle of an episode."""
        return any(agent.in_episode for agent in self._agents)

    def work(
        self, published: Vector, may_begin: int = 1_000_000, now_s: float = 0.0, progress: Progress | None = None
    ) -> Work:
        """Play on with what was `published`, each agent a whole episode or a piece of one; return the gradient.

        Agents between two episodes begin another, but no more than `may_begin` of them; the others sit out.
        `progress`: that of the run, with this worker's `draw`; None: the run's start.
        """
        if progress is None:
            progress = Progress(draw=self.draw)
        agents = self._agents
        began = self._begin(may_begin, now_s)
        if len(agents) == 1:
            work = self._work_alone(agents[0], published, began, progress)
        else:
            work = self._work_together(published, began, progress)
        self.rollouts += 1
        if self._carries_parameters:
            work.gradient = np.concatenate((work.gradient, published[: work.gradient.size]))
        return work

    def _begin(self, may_begin: int, now_s: float) -> int:
        began = 0
        for agent in self._agents:
            if not agent.in_episode and began < may_begin:
                agent.begin(self._seed, self.id, self.next_episode, now_s)
                self.next_episode += 1
                began += 1
        return began

    def _work_alone(self, agent: Agent, published: Vector, began: int, progress: Progress) -> Work:
        rollout = self._engine.rollout(published, agent.environment, progress)
        episode = agent.add(rollout)
        ended = () if episode is None else (episode,)
        return Work(rollout.gradient, rollout.env_steps, began, ended, rollout.repeated_steps, rollout.measured)

    def _work_together(self, published: Vector, began: int, progress: Progress) -> Work:
        playing = [agent for agent in self._agents if agent.in_episode]
        if len(playing) == 1:
            return self._work_alone(playing[0], published, began, progress)
        environments = [agent.environment for agent in playing]
        gradient, plays = self._engine.rollout_together(published, environments, progress)
        ended = [agent.add(play) for agent, play in zip(playing, plays, strict=True)]
        episodes = tuple([episode for episode in ended if episode is not None])
        env_steps, repeated = sum(play.env_steps for play in plays), sum(play.repeated_steps for play in plays)
        return Work(gradient, env_steps, began, episodes, repeated, plays[0].measured)

    def get_state(self) -> tuple[dict[str, Any], dict[int, NDArray[Any]]]:
        """Return (plain numbers, the state of each agent's game as uint8, if it ever began)."""
        agents = [agent.save() for agent in self._agents]
        games = {place: a.environment.get_state() for place, a in enumerate(self._agents) if a.number >= 0}
        chosen = [chosen_action(agent.environment) for agent in self._agents]
        return {"next_episode": self.next_episode, "rollouts": self.rollouts, "agents": agents, "chosen": chosen}, games

    def set_state(self, numbers: dict[str, Any], games: dict[int, NDArray[Any]]) -> None:
        self.next_episode, self.rollouts = numbers["next_episode"], numbers["rollouts"]
        for agent, saved in zip(self._agents, numbers["agents"], strict=True):
            agent.restore(saved)
        for place, state in games.items():
            self._agents[place].environment.set_state(state)
        for agent, action in zip(self._agents, numbers.get("chosen", ()), strict=False):  # older ones have none
            agent.environment.chosen = action
