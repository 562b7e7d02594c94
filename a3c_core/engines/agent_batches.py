"""Agents without a model, stepped in compiled batches: one call predicts for many of them and plays what is drawn.

Each agent has a slot in arrays. What it plays is a *piece*: rows of observations, actions, rewards and values, each
with the version of the parameters that chose it. A piece that is cut off, and not ended by a death, is handed over
with the value that the next prediction gives.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from a3c_core.algorithms.base import Trajectory
from a3c_core.engines.actor_critic_kernels import forward, new_buffers, observe, unpack
from a3c_core.engines.compiled import CompiledEngine
from a3c_core.games import flappy
from a3c_core.games import published as published_game
from a3c_core.games.base import EnvironmentConfig
from a3c_core.models.parameters import Vector
from a3c_core.streams import shared_actions, stream_words, uniform
from a3c_core.system.jit import fast

PLAYING, DIED, OUT_OF_TIME, ENDED = np.arange(4, dtype=np.uint8)  # ended: out of time, and its last state was judged
_FIRST_ROWS = 256
_ZERO, _ONE = np.float32(0), np.float32(1)
Slots = NDArray[np.int64]


class Agents(NamedTuple):
    """All that N agents hold, of whose pieces R rows fit."""

    games: NDArray[np.void]  # GAME [N]
    streams: NDArray[np.uint64]  # [N, 4], that actions are drawn from
    states: NDArray[np.uint8]  # [N]
    full: NDArray[np.uint8]  # [N], 1: all rows but the last are a piece to hand over
    rows: NDArray[np.int64]  # [N], of the piece
    steps: NDArray[np.int64]  # [N], of the episode
    sums: NDArray[np.float64]  # [N, 2], the episode's reward and entropy
    bootstraps: NDArray[np.float32]  # [N], value of the state after the piece
    observations: NDArray[np.float32]  # [N, R, 8]
    actions: NDArray[np.uint8]  # [N, R]
    rewards: NDArray[np.float32]  # [N, R]
    values: NDArray[np.float32]  # [N, R]
    versions: NDArray[np.int64]  # [N, R]


class Piece(NamedTuple):
    """What an agent hands over."""

    trajectory: Trajectory
    oldest: int  # version that chose an action of it
    mean_version: float


def blank(slots: int, rows: int) -> Agents:
    """Return places for agents; those of rows that are never played take no real memory."""
    return Agents(
        games=np.zeros(slots, flappy.GAME),
        streams=np.zeros((slots, 4), np.uint64),
        states=np.zeros(slots, np.uint8),
        full=np.zeros(slots, np.uint8),
        rows=np.zeros(slots, np.int64),
        steps=np.zeros(slots, np.int64),
        sums=np.zeros((slots, 2), np.float64),
        bootstraps=np.zeros(slots, np.float32),
        observations=np.zeros((slots, rows, flappy.STATE_SIZE), np.float32),
        actions=np.zeros((slots, rows), np.uint8),
        rewards=np.zeros((slots, rows), np.float32),
        values=np.zeros((slots, rows), np.float32),
        versions=np.zeros((slots, rows), np.int64),
    )


@fast
def answer(parameters, version, slots, agents, at_once, limit, settings, buffers):
    """Predict for the agents in `slots` and play on; return (steps played, pieces that end, rows of the longest)."""
    unpack(parameters, buffers)
    played = ending = longest = 0
    for i in range(slots.size):
        slot = slots[i]
        observe(agents.games[slot], settings.pixels, buffers.observations[i])
        forward(buffers, i)
        agents.bootstraps[slot] = buffers.values[i]  # counts only if a piece ends here
        if agents.states[slot] == OUT_OF_TIME:
            agents.states[slot] = ENDED
            ending += 1
            continue
        if agents.rows[slot] == at_once:
            agents.full[slot] = 1
            ending += 1
        _play(slot, i, version, agents, limit, settings, buffers)
        played += 1
        ending += agents.states[slot] == DIED
        longest = max(longest, agents.rows[slot])
    return played, ending, longest


@fast
def _play(slot, i, version, agents, limit, settings, buffers):
    """Let an agent draw an action from prediction `i` and play it: one row more."""
    preference, row = buffers.preferences[i], agents.rows[slot]
    flap = uniform(agents.streams[slot]) >= _ONE / (_ONE + np.exp(preference))
    passed, died = flappy.step(agents.games[slot], flap)
    outcome = settings.reward_death if died else settings.reward_alive
    reward = settings.reward_pipe * np.float32(passed) + outcome
    for j in range(flappy.STATE_SIZE):
        agents.observations[slot, row, j] = buffers.observations[i, j]
    agents.actions[slot, row] = flap
    agents.rewards[slot, row] = reward
    agents.values[slot, row] = buffers.values[i]
    agents.versions[slot, row] = version
    agents.rows[slot] = row + 1
    agents.steps[slot] += 1
    agents.sums[slot, 0] += reward
    agents.sums[slot, 1] += _entropy(preference)
    if died:
        agents.states[slot] = DIED
    elif agents.steps[slot] >= limit:
        agents.states[slot] = OUT_OF_TIME


@fast
def _entropy(preference):
    """Return the entropy of the policy whose second logit exceeds the first by `preference`."""
    p_1 = _ONE / (_ONE + np.exp(-preference))
    log_p_1 = min(preference, _ZERO) - np.log1p(np.exp(-abs(preference)))
    return -(p_1 * log_p_1 + (_ONE - p_1) * (log_p_1 - preference))


class CompiledAgents:
    """Agents of Flappy Bird, and their pieces."""

    def __init__(self, engine: CompiledEngine, environment: EnvironmentConfig, seed: int):
        self._engine, self._environment, self._seed = engine, environment, seed
        self._ways = environment.seeding == "episode", environment.actions == "own"
        self._resets = published_game.RESETS[environment.seeding]
        self.arrays = blank(0, _FIRST_ROWS)
        self._buffers = new_buffers(1)

    def make_room(self, slots: int) -> None:
        """Let there be so many agents, or more."""
        first = len(self.arrays.games)
        if slots <= first:
            return
        self._resize(slots, self.arrays.actions.shape[1])
        self.arrays.games[first:] = self._engine.new_environment().game
        self.arrays.streams[first:] = shared_actions(self._seed)
        self._buffers = new_buffers(slots)

    def begin(self, slot: int, episode: int) -> None:
        """Start an agent's next episode."""
        arrays = self.arrays
        words = stream_words(self._seed, slot, episode)
        flappy.begin_episode(arrays.games[slot], arrays.streams[slot], words, *self._ways, self._resets)
        arrays.states[slot], arrays.rows[slot], arrays.steps[slot], arrays.sums[slot] = PLAYING, 0, 0, 0

    def answer(self, parameters: Vector, version: int, slots: Slots) -> tuple[int, int]:
        """Predict for the agents in `slots` and play on; return (steps played, pieces that end by it)."""
        engine, limit = self._engine, self._environment.max_episode_steps
        given = self.arrays, engine.steps_at_once, limit, engine.settings, self._buffers
        played, ending, longest = answer(parameters, version, slots, *given)
        rows = self.arrays.actions.shape[1]
        if longest == rows:
            self._resize(len(self.arrays.games), 2 * rows)
        return played, ending

    def take_piece(self, slot: int) -> Piece:
        """Return what an agent hands over: all of its rows, or all but the last where that is the next piece's."""
        arrays = self.arrays
        is_full, rows = bool(arrays.full[slot]), int(arrays.rows[slot])
        steps = rows - is_full
        versions = arrays.versions[slot, :steps]
        died = not is_full and arrays.states[slot] == DIED
        trajectory = Trajectory(
            observations=arrays.observations[slot, :steps].copy(),
            actions=arrays.actions[slot, :steps].copy(),
            rewards=arrays.rewards[slot, :steps].copy(),
            values=arrays.values[slot, :steps].copy(),
            bootstrap_value=0.0 if died else float(arrays.bootstraps[slot]),
            terminated=bool(died),
            truncated=not is_full and not died,
        )
        piece = Piece(trajectory, int(versions.min()), float(versions.mean()))
        for name in ("observations", "actions", "rewards", "values", "versions"):
            column = getattr(arrays, name)[slot]
            column[0] = column[rows - 1]  # the next piece's first row, if it is full
        arrays.full[slot], arrays.rows[slot] = 0, int(is_full)
        return piece

    def save(self) -> dict[str, NDArray[Any]]:
        """Return all arrays, without rows that nobody has reached."""
        rows = int(self.arrays.rows.max(initial=0)) + 1
        return {f"agents_{name}": self._cut(column, rows) for name, column in self.arrays._asdict().items()}

    def restore(self, saved: dict[str, NDArray[Any]]) -> None:
        """Take over what `save` gave."""
        self.make_room(len(saved["agents_games"]))
        rows = self.arrays.actions.shape[1]
        while rows < saved["agents_actions"].shape[1]:
            rows *= 2
        self._resize(len(self.arrays.games), rows)
        for name, column in self.arrays._asdict().items():
            self._cut(column, saved["agents_actions"].shape[1])[:] = saved[f"agents_{name}"]

    def _cut(self, column: NDArray[Any], rows: int) -> NDArray[Any]:
        has_rows = column.ndim > 1 and column.shape[1] == self.arrays.actions.shape[1]
        return column[:, :rows] if has_rows else column

    def _resize(self, slots: int, rows: int) -> None:
        old, self.arrays = self.arrays._asdict(), blank(slots, rows)
        for name, column in self.arrays._asdict().items():
            column[tuple(map(slice, old[name].shape))] = old[name]
