"""What simulations of agents without a model share: they ask for actions, play, and hand over trajectories.

Steps are events. Agents that are answered together play their step together, as one event, unless costs have jitter.
    joined   an agent is there
    begun    it has begun an episode: its state waits for an answer
    core     the game, or the way to it, is no longer waited for
    stepped  agents have played the actions that they were told
An agent has a slot, which the next one gets when it has left.
"""

from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from a3c_core.engines.agent_batches import DIED, ENDED, CompiledAgents, Slots
from a3c_core.engines.compiled import CompiledEngine
from a3c_core.episode_log import Parcel
from a3c_core.runtime import Arrays, Saved
from a3c_core.virtual.stations import Stations
from a3c_core.virtual.training import Experience, Waiting, restore_experiences, save_experiences
from a3c_core.worker import Episode

JOINED, BEGUN, CORE, STEPPED = "joined", "begun", "core", "stepped"
_BEGINNING = 1 << 31  # keeps the jitter of beginnings apart from that of steps


class Group(NamedTuple):
    """Agents who play a step together."""

    slots: Slots
    core_s: float  # that each of them needs for it
    some_end: bool  # whether a piece may end with it


class AgentStations(Stations):
    """Agents that come, play and go as the schedule says."""

    def __init__(self, *parts: Any):
        super().__init__(*parts)
        assert isinstance(self.engine, CompiledEngine)
        config, profile = self.config, self.profile
        self.agents = CompiledAgents(self.engine, config.environment, config.seed)
        self.here: dict[int, bool] = {}  # agents by slot, and whether they are about to leave
        self.alive = 0  # that are not
        self.up = 0  # that have joined
        self.asking: list[int] = []  # slots whose states wait for an answer
        self.trajectories = Waiting()
        self._blocked: deque[Experience] = deque()  # what agents wait to put there
        self._next_episodes: list[int] = []  # by slot
        self._started_s: list[float] = []  # of the episode, by slot
        self._groups: dict[int, Group] = {}  # by the first of them
        self._told = 0  # groups so far
        self._away_s = profile.away_s(1, config.environment.wait_s)  # at each step, from any core
        self._step_s = profile.slowdown * (profile.act_s + profile.resume_s * (self._away_s > 0))
        self._send_s = profile.slowdown * profile.send_s
        self.handlers: dict[str, Callable[[int], None]] = {
            JOINED: self._joined,
            BEGUN: self.asking.append,
            CORE: self._play,
            STEPPED: self._stepped,
        }

    @property
    def waiting(self) -> int:
        return len(self.trajectories)

    @property
    @abstractmethod
    def queue_size(self) -> int:
        """Trajectories that may wait; agents wait who have more."""

    def start(self) -> None:
        self.change_agents(self.config.span.start, starting_s=0.0)

    # Episodes

    def _joined(self, slot: int) -> None:
        self.up += 1
        self._begin(slot)

    def _begin(self, slot: int, after_s: float = 0.0) -> None:
        """Let an agent begin an episode, or leave if there is none."""
        totals = self.log.totals
        if self.here[slot] or not self.may_begin:
            self.alive -= not self.here.pop(slot)
            self.up -= 1
            return
        self.agents.begin(slot, self._next_episodes[slot])
        self._started_s[slot] = self.timeline.now_s
        self._next_episodes[slot] += 1
        totals.episodes_begun += 1
        seconds = after_s + self.profile.slowdown * self.profile.reset_s
        self.timeline.work(seconds, slot, BEGUN, _BEGINNING + self._next_episodes[slot])

    def tell(self, slots: Slots, some_end: bool) -> None:
        """Let agents have their answer: those whose pieces end with it hand them over, all others play."""
        if some_end:
            arrays = self.agents.arrays
            hands_over = (arrays.full[slots] == 1) | (arrays.states[slots] == ENDED)
            for slot in slots[hands_over].tolist():
                self._hand_over(slot)
            slots = slots[~hands_over]
        if self.profile.jitter == "none":
            self._step(slots, some_end)
        else:
            for place in range(len(slots)):
                self._step(slots[place : place + 1], some_end)

    def _step(self, slots: Slots, some_end: bool, after_s: float = 0.0) -> None:
        if not len(slots):
            return
        first = int(slots[0])
        self._groups[first] = Group(slots, after_s + self._step_s, some_end)
        if self._away_s > 0:
            self.timeline.at(self.timeline.now_s + self._away_s, first, CORE)
        else:
            self._play(first)

    def _play(self, first: int) -> None:
        slots, core_s, _ = self._groups[first]
        self._told += 1
        self.timeline.work(core_s, first, STEPPED, self._told, len(slots))

    def _stepped(self, first: int) -> None:
        slots, _, some_end = self._groups.pop(first)
        if not some_end:
            self.asking += slots.tolist()
            return
        died = self.agents.arrays.states[slots] == DIED
        self.asking += slots[~died].tolist()
        for slot in slots[died].tolist():
            self._hand_over(slot)

    def together(self, station: int) -> list[int]:
        return self._groups[station].slots.tolist() if station in self._groups else [station]

    # Trajectories

    def _hand_over(self, slot: int) -> None:
        """Send what an agent has played to the trainers, if these have room, and let it go on."""
        episodes = () if self.agents.arrays.full[slot] else (self._episode(slot),)
        piece, now_s = self.agents.take_piece(slot), self.timeline.now_s
        self.log.totals.sent += 1
        self.log.totals.last_arrival_s = now_s
        parcel = Parcel(slot, piece.oldest, now_s, len(self.trajectories), episodes)
        self._blocked.append(Experience(parcel, piece.trajectory, piece.mean_version))
        self.make_room()

    def _episode(self, slot: int) -> Episode:
        """Return the episode that an agent has played; its loss is not known before it is learned from."""
        arrays = self.agents.arrays
        steps, (reward, entropy) = int(arrays.steps[slot]), arrays.sums[slot].tolist()
        return Episode(
            number=self._next_episodes[slot] - 1,
            started_s=self._started_s[slot],
            score=float(arrays.games["score"][slot]),
            reward=reward,
            steps=steps,
            truncated=bool(arrays.states[slot] == ENDED),
            loss=0.0,
            entropy=entropy / steps,
        )

    def make_room(self) -> None:
        """Let agents put what they have into the queue, in their turn, and go on: with the episode, or another."""
        while self._blocked and len(self.trajectories) < self.queue_size:
            experience = self._blocked.popleft()
            self.trajectories.append(experience)
            slot = experience.parcel.worker
            if self.agents.arrays.rows[slot]:  # the action that it was told beside is the next piece's first
                self._step(np.array([slot]), some_end=True, after_s=self._send_s)
            else:
                self._begin(slot, after_s=self._send_s)
        self.log.totals.queue_peak = max(self.log.totals.queue_peak, len(self.trajectories))

    # Agents come and go

    def change_agents(self, target: int, starting_s: float | None = None) -> None:
        """Let there be so many; who is too many leaves after its episode."""
        if starting_s is None:
            starting_s = self.profile.worker_start_s * self.profile.slowdown
        for _ in range(target - self.alive):
            self._add_agent(self.timeline.now_s + starting_s)
        for slot in sorted(slot for slot, leaves in self.here.items() if not leaves)[target:]:
            self.here[slot] = True
        self.alive = target

    def _add_agent(self, at_s: float) -> None:
        slot = first_free(self.here, len(self.here) + 1)
        assert slot is not None
        self.here[slot] = False
        if slot == len(self._next_episodes):
            self._next_episodes.append(0)
            self._started_s.append(0.0)
        self.agents.make_room(slot + 1)
        self.timeline.at(at_s, slot, JOINED)

    # State

    def save(self) -> Saved:
        arrays: Arrays = self.agents.save()
        numbers = {
            "here": list(self.here.items()),
            "alive": self.alive,
            "up": self.up,
            "asking": self.asking,
            "trajectories": self.trajectories.save(arrays),
            "blocked": save_experiences(self._blocked, "blocked", arrays),
            "next_episodes": self._next_episodes,
            "started_s": self._started_s,
            "groups": [[first, group.slots.tolist(), *group[1:]] for first, group in self._groups.items()],
            "told": self._told,
        }
        return Saved(numbers, arrays, {})

    def restore(self, numbers: dict[str, Any], arrays: Arrays, folder: Path) -> None:
        self.agents.restore(arrays)
        self.here = dict(numbers["here"])
        self.alive, self.up, self._told = numbers["alive"], numbers["up"], numbers["told"]
        self.asking += numbers["asking"]
        self.trajectories.restore(numbers["trajectories"], arrays)
        self._blocked.extend(restore_experiences(numbers["blocked"], "blocked", arrays))
        self._next_episodes, self._started_s = numbers["next_episodes"], numbers["started_s"]
        self._groups = {first: Group(np.array(slots), *rest) for first, slots, *rest in numbers["groups"]}


def first_free(taken: Mapping[int, Any], most: int) -> int | None:
    """Return the lowest number below `most` that is not taken, or None."""
    for number in range(most):
        if number not in taken:
            return number
    return None
