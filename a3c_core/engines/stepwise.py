"""Playing a Gymnasium environment step by step in Python, for the engines that do not compile the game."""

from collections.abc import Callable, Sequence
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from a3c_core.config import EnvironmentConfig, LearnerConfig
from a3c_core.engines.base import Trajectory
from a3c_core.models import Policy
from a3c_core.returns import learning_targets
from a3c_core.streams import stream_words, uniform

OUR_GAME = "a3c_core/FlappyBird-v0"
PLE_GAMES = "ple/"  # how the names of PLE's games begin


class GymEnvironment:
    """One worker's environment, its action stream, and the observation that it is to act on next."""

    def __init__(self, config: EnvironmentConfig, render_mode: str | None = None):
        self._takes_words = config.id == OUR_GAME
        self._one_stream = config.seeding == "ple" and (config.id == OUR_GAME or config.id.startswith(PLE_GAMES))
        self.env = _make(config, render_mode)
        self.stream: NDArray[np.uint64] = np.zeros(4, np.uint64)
        self.observation: NDArray[Any] = np.empty(0)
        self.score = 0

    def begin_episode(self, seed: int, worker: int, episode: int) -> None:
        words, self.stream[:] = stream_words(seed, worker, episode)
        if self._one_stream:
            self.observation, _ = self.env.reset()
        elif self._takes_words:
            self.observation, _ = self.env.reset(options={"words": words})
        else:
            self.observation, _ = self.env.reset(seed=int(words[0] >> np.uint64(33)))
        self.score = 0

    def choose(self, policy: NDArray[np.float32]) -> int:
        """Return an action drawn from `policy` [actions] with the worker's own generator."""
        return int((np.cumsum(policy)[:-1] <= np.float64(uniform(self.stream))).sum())

    def step(self, action: int) -> tuple[float, bool, bool]:
        """Play `action`; return (reward, terminated, truncated)."""
        self.observation, reward, terminated, truncated, info = self.env.step(action)
        self.score = info.get("score", self.score)
        return float(reward), terminated, truncated

    def get_state(self) -> NDArray[np.uint8]:
        game = np.frombuffer(self._stateful().get_state(), np.uint8)
        ours = np.array((self.stream, self.score, self.observation), self._state_dtype())
        return np.concatenate([np.frombuffer(ours.tobytes(), np.uint8), game])

    def set_state(self, state: NDArray[np.uint8]) -> None:
        dtype = self._state_dtype()
        self._stateful().set_state(state[dtype.itemsize :].tobytes())
        ours = state[: dtype.itemsize].view(dtype)[0]
        self.stream[:], self.score, self.observation = ours["stream"], int(ours["score"]), ours["observation"].copy()

    def _state_dtype(self) -> np.dtype[Any]:
        space = self.env.observation_space
        return np.dtype([("stream", "u8", 4), ("score", "i8"), ("observation", space.dtype, space.shape)])

    def _stateful(self) -> Any:
        if not saves_state(self.env):
            raise NotImplementedError(
                f"{self.env} can't save its state, so a run in the middle of an episode can't resume"
            )
        return self.env


def saves_state(env: Any) -> bool:
    """Return whether an environment can be saved in the middle of an episode."""
    return hasattr(env, "get_state")


def _make(config: EnvironmentConfig, render_mode: str | None) -> Any:
    """Return the environment; ours and PLE's take all of the settings, others only the time limit."""
    if config.id == OUR_GAME:
        from a3c_core.envs.gym import FlappyBirdEnv

        return FlappyBirdEnv(
            config.observation, config.reward, config.max_episode_steps, config.seeding, render_mode=render_mode
        )
    if config.id.startswith(PLE_GAMES):
        from a3c_core.envs.ple import PleEnv

        game = gymnasium.spec(config.id).kwargs["game"]
        return PleEnv(game, config.observation, config.reward, config.max_episode_steps, render_mode=render_mode)
    return gymnasium.make(
        config.id, max_episode_steps=config.max_episode_steps, disable_env_checker=True, render_mode=render_mode
    )


def play_steps(policy: Policy, environment: GymEnvironment, steps_at_once: int | None) -> Trajectory:
    """Return the trajectory of playing `policy` to the episode's end, or for `steps_at_once` steps."""
    record = _Record(environment)
    while not (record.terminated or record.truncated) and len(record.actions) != steps_at_once:
        record.step(*policy(environment.observation))
    if not record.terminated:
        record.bootstrap_value = policy(environment.observation)[1]
    return record.trajectory()


def play_together(
    act: Callable[[NDArray[Any]], tuple[NDArray[np.float32], NDArray[np.float32]]],
    environments: Sequence[GymEnvironment],
    steps_at_once: int | None,
) -> list[Trajectory]:
    """Return one trajectory per environment, stepped side by side; `act` decides for all that still play at once."""
    records = [_Record(environment) for environment in environments]
    playing = records
    while playing and len(playing[0].actions) != steps_at_once:
        policies, values = act(np.stack([record.environment.observation for record in playing]))
        for record, policy, value in zip(playing, policies, values, strict=True):
            record.step(policy, float(value))
        playing = [record for record in playing if not (record.terminated or record.truncated)]
    cut_short = [record for record in records if not record.terminated]
    if cut_short:
        _, values = act(np.stack([record.environment.observation for record in cut_short]))
        for record, value in zip(cut_short, values, strict=True):
            record.bootstrap_value = float(value)
    return [record.trajectory() for record in records]


class _Record:
    """What is written down while one environment is played."""

    def __init__(self, environment: GymEnvironment):
        self.environment = environment
        self.observations: list[NDArray[Any]] = []
        self.actions: list[int] = []
        self.rewards: list[float] = []
        self.values: list[float] = []
        self.bootstrap_value = 0.0
        self.terminated = self.truncated = False

    def step(self, policy: NDArray[np.float32], value: float) -> None:
        self.observations.append(self.environment.observation)
        self.actions.append(self.environment.choose(policy))
        self.values.append(value)
        reward, self.terminated, self.truncated = self.environment.step(self.actions[-1])
        self.rewards.append(reward)

    def trajectory(self) -> Trajectory:
        return Trajectory(
            observations=np.stack(self.observations),
            actions=np.array(self.actions, np.uint8),
            rewards=np.array(self.rewards, np.float32),
            values=np.array(self.values, np.float32),
            bootstrap_value=self.bootstrap_value,
            terminated=self.terminated,
            truncated=self.truncated,
        )


def targets_of(trajectory: Trajectory, learner: LearnerConfig) -> NDArray[np.float32]:
    """Return float32 [T]: the trajectory's returns as the learner's settings ask for them."""
    return learning_targets(
        trajectory.rewards,
        trajectory.values,
        trajectory.bootstrap_value,
        learner.gamma,
        learner.t_max or 0,
        learner.standardise,
    )
