"""A worker: one or more agents and an engine; a publication in, a gradient and the finished episodes' numbers out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from a3c_core.engines.base import Engine, Play, chosen_action
from a3c_core.models.parameters import Vector
from a3c_core.progress import START, Progress, worker_draw

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


class Work(NamedTuple):
    """What one piece of work gave."""

    gradient: Vector  # summed over the agents, perhaps with the parameters it belongs to; or packed trajectories
    env_steps: int
    began: int  # episodes
    episodes: tuple[Episode, ...]  # that ended
    repeated_steps: int = 0  # played before, and differentiated again
    measured: Mapping[str, float] = UNMEASURED  # of what was differentiated, for the record of its update


@dataclass
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
        self.in_episode = not play.episode_over
        if self.in_episode:
            return None
        return Episode(
            number=self.number,
            started_s=self.started_s,
            score=play.score,
            reward=self.reward,
            steps=self.steps,
            truncated=play.truncated,
            loss=self.loss,
            entropy=self.entropy / self.steps,
        )


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

    @property
    def in_episode(self) -> bool:
        """Whether any agent is in the middle of an episode."""
        return any(agent.in_episode for agent in self._agents)

    def work(
        self, published: Vector, may_begin: int = 1_000_000, now_s: float = 0.0, progress: Progress = START
    ) -> Work:
        """Play on with what was `published`, each agent a whole episode or a piece of one; return the gradient.

        Agents between two episodes begin another, but no more than `may_begin` of them; the others sit out.
        """
        progress = progress._replace(draw=worker_draw(self._seed, self.id))
        began = self._begin(may_begin, now_s)
        playing = [agent for agent in self._agents if agent.in_episode]
        gradient, plays = self._play(published, playing, progress)
        self.rollouts += 1
        ended = (agent.add(play) for agent, play in zip(playing, plays, strict=True))
        episodes = tuple(episode for episode in ended if episode is not None)
        if self._carries_parameters:
            gradient = np.concatenate((gradient, published[: gradient.size]))
        env_steps, repeated = sum(play.env_steps for play in plays), sum(play.repeated_steps for play in plays)
        return Work(gradient, env_steps, began, episodes, repeated, plays[0].measured)

    def _begin(self, may_begin: int, now_s: float) -> int:
        began = 0
        for agent in self._agents:
            if not agent.in_episode and began < may_begin:
                agent.begin(self._seed, self.id, self.next_episode, now_s)
                self.next_episode += 1
                began += 1
        return began

    def _play(self, published: Vector, playing: list[Agent], progress: Progress) -> tuple[Vector, Sequence[Play]]:
        if len(playing) == 1:
            rollout = self._engine.rollout(published, playing[0].environment, progress)
            return rollout.gradient, (rollout,)
        return self._engine.rollout_together(published, [agent.environment for agent in playing], progress)

    def get_state(self) -> tuple[dict[str, Any], dict[int, NDArray[Any]]]:
        """Return (plain numbers, the state of each agent's game as uint8, if it ever began)."""
        agents = [
            [agent.number, agent.in_episode, agent.started_s, agent.reward, agent.loss, agent.entropy, agent.steps]
            for agent in self._agents
        ]
        games = {place: a.environment.get_state() for place, a in enumerate(self._agents) if a.number >= 0}
        chosen = [chosen_action(agent.environment) for agent in self._agents]
        return {"next_episode": self.next_episode, "rollouts": self.rollouts, "agents": agents, "chosen": chosen}, games

    def set_state(self, numbers: dict[str, Any], games: dict[int, NDArray[Any]]) -> None:
        self.next_episode, self.rollouts = numbers["next_episode"], numbers["rollouts"]
        self._agents = [
            Agent(agent.environment, *saved) for agent, saved in zip(self._agents, numbers["agents"], strict=True)
        ]
        for place, state in games.items():
            self._agents[place].environment.set_state(state)
        for agent, action in zip(self._agents, numbers.get("chosen", ()), strict=False):  # older ones have none
            agent.environment.chosen = action
