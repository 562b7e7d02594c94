"""A worker: an environment and an engine; parameters in, gradient and the episode's numbers out."""

from typing import Any, NamedTuple

from a3c_core.engines.base import Engine, Rollout
from a3c_core.parameters import Vector


class Episode(NamedTuple):
    """A finished episode as its worker saw it."""

    number: int  # the worker's own count
    score: int
    reward: float
    steps: int
    truncated: bool
    loss: float
    entropy: float


class Work(NamedTuple):
    """What one piece of work gave."""

    rollout: Rollout
    began_episode: bool
    episode: Episode | None  # if this piece finished one


class Worker:
    """Plays episode after episode. Its randomness belongs to (seed, id, episode): it can be restarted anywhere."""

    def __init__(self, worker_id: int, seed: int, engine: Engine, next_episode: int = 0):
        self.id = worker_id
        self.next_episode = next_episode
        self._seed = seed
        self._engine = engine
        self._environment = engine.new_environment()
        self.in_episode = False
        self.rollouts = 0
        self._reward = self._loss = self._entropy = 0.0  # sums over the episode so far
        self._steps = 0

    def work(self, parameters: Vector) -> Work:
        """Play on with `parameters` [P] and return the gradient: a whole episode, or `t_max` steps of one."""
        began = not self.in_episode
        if began:
            self._environment.begin_episode(self._seed, self.id, self.next_episode)
            self._reward = self._loss = self._entropy = 0.0
            self._steps = 0
        rollout = self._engine.rollout(parameters, self._environment)
        self._reward += rollout.reward
        self._loss += rollout.loss
        self._entropy += rollout.entropy * rollout.env_steps
        self._steps += rollout.env_steps
        self.rollouts += 1
        self.in_episode = not rollout.episode_over
        return Work(rollout, began, None if self.in_episode else self._finish(rollout))

    def _finish(self, rollout: Rollout) -> Episode:
        episode = Episode(
            number=self.next_episode,
            score=rollout.score,
            reward=self._reward,
            steps=self._steps,
            truncated=rollout.truncated,
            loss=self._loss,
            entropy=self._entropy / self._steps,
        )
        self.next_episode += 1
        return episode

    def get_state(self) -> tuple[dict[str, Any], Any]:
        """Return (plain numbers, the environment's state as uint8 or None between episodes)."""
        numbers = {
            "next_episode": self.next_episode,
            "in_episode": self.in_episode,
            "rollouts": self.rollouts,
            "sums": [self._reward, self._loss, self._entropy, self._steps],
        }
        return numbers, self._environment.get_state()

    def set_state(self, numbers: dict[str, Any], environment: Any) -> None:
        self.next_episode, self.in_episode = numbers["next_episode"], numbers["in_episode"]
        self.rollouts = numbers["rollouts"]
        self._reward, self._loss, self._entropy, self._steps = numbers["sums"]
        self._environment.set_state(environment)
