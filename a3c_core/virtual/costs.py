"""What things cost in virtual time, and what follows: a worker's cycle, the master's service, saturation."""

import math
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError

from a3c_core.errors import in_words, shown, unknown
from a3c_core.section import MOST_EPISODES, MOST_SLOWDOWN, Cost, Section
from a3c_core.streams import stream_words, uniform
from a3c_core.system.jit import compilable
from a3c_core.yaml_text import Document, NotYaml, read_yaml

_PROFILES = Path(__file__).parent / "profiles"
_LEAST_CORES = 0.05  # that a master with priority leaves to workers
OVERRIDES = (
    "slowdown",
    "update_s",
    "stall_every",
    "jitter",
    "jitter_deviation",
)  # settings of a run that replace its profile's
BATCHED = {"act_s", "predict_call_s", "predict_state_s", "train_call_s", "train_step_s"}  # agents, predictors, trainers
FROM_TRAJECTORIES = {"learn_step_s", "learn_call_s"}  # a master that differentiates
JITTER_KEY = 1  # keeps the streams of costs apart from those of play


class CostProfile(Section):
    """Seconds on one core, before `slowdown`; a profile is a YAML file with these keys."""

    about: str = Field("", description="where the numbers come from")
    step_s: Cost = Field(description="worker: choose an action and play it")
    gradient_step_s: Cost = Field(0, description="worker: gradient, per step of the trajectory")
    gradient_call_s: Cost = Field(0, description="worker: gradient, per call")
    reset_s: Cost = Field(0, description="worker: begin an episode")
    load_s: Cost = Field(0, description="worker: take over new parameters")
    send_s: Cost = Field(0, description="worker: hand over a gradient")
    oversleep_s: Cost = Field(0, description="worker: how much longer than asked a wait of its game lasts")
    resume_s: Cost = Field(0, description="worker: get going again after a wait, with cold caches")
    wake_s: Cost = Field(0, description="master: wake up for a gradient that finds it idle")
    cold_s: Cost = Field(
        0, description="master: how much longer that takes where workers leave it no core, with cold caches"
    )
    receive_s: Cost = Field(0, description="master: take a gradient from the queue")
    update_s: Cost = Field(description="master: apply a gradient")
    learn_step_s: Cost | None = Field(
        None, description="master: gradient, per step and epoch, where it learns from trajectories; null: as a worker's"
    )
    learn_call_s: Cost | None = Field(
        None, description="master: gradient, per update from trajectories; also dppo's workers"
    )
    act_s: Cost = Field(0, description="agent without a model: play an action that it was told")
    predict_call_s: Cost = Field(0, description="predictor: choose actions for a batch of states, per batch")
    predict_state_s: Cost | None = Field(None, description="the same, per state; null: step_s, batches save nothing")
    train_call_s: Cost | None = Field(None, description="trainer: gradient, per batch; null: as a worker's")
    train_step_s: Cost | None = Field(None, description="trainer: gradient, per step; null: as a worker's")
    read_s: Cost = Field(0, description="master: read its parameters after an update")
    publish_s: Cost = Field(0, description="master: put parameters into one worker's mailbox")
    record_s: Cost = Field(0, description="master: write up an episode that has ended")
    stall_every: int = Field(0, ge=0, le=MOST_EPISODES, description="master: episodes between two stalls; 0: none")
    stall_s: Cost = Field(0, description="master: a stall, such as a table and pictures of all episodes so far")
    stall_growth_s: Cost = Field(0, description="master: how much longer a stall is for every episode so far")
    pull_latency_s: Cost = Field(0, description="parameters under way to a worker: time that uses no core")
    push_latency_s: Cost = Field(0, description="a gradient under way to the master")
    worker_start_s: Cost = Field(0, description="from the decision to add a worker to its first step")
    cores: int = Field(
        1_000_000, ge=1, le=1_000_000, description="physical cores, shared by the workers and the master"
    )
    threads_per_core: int = Field(1, ge=1, le=1_024)
    threading_gain: float = Field(
        1.0, ge=1, le=1_024, description="throughput of a core with all its threads busy against one"
    )
    master_first: bool = Field(False, description="where processes share cores, the master does not wait for one")
    slowdown: float = Field(1.0, gt=0, le=MOST_SLOWDOWN, description="a common factor on all costs but the latencies")
    jitter: Literal["none", "lognormal", "exponential"] = "none"
    jitter_deviation: float = Field(
        0.2, gt=0, le=1e3, description="lognormal jitter: standard deviation of a cost of mean 1"
    )

    def overridden(self, settings: Mapping[str, Any]) -> "CostProfile":
        """Return this profile with what a run's settings replace in it."""
        return self.model_copy(update={name: settings[name] for name in OVERRIDES if settings.get(name) is not None})

    def cycle_s(
        self, env_steps: float, resets: float = 1.0, loads: float = 1.0, waits: float = 0.0, repeated: float = 0.0
    ) -> float:
        """Seconds of a core from a worker's pull to its gradient's arrival, for a rollout of `env_steps` steps.

        `repeated`: steps that were played before, and are differentiated again.
        """
        play_s = self.reset_s * resets + self.step_s * env_steps
        gradient_s = self.gradient_call_s + self.gradient_step_s * env_steps
        seconds = self.load_s * loads + play_s + gradient_s + self.send_s + self.resume_s * waits
        return self.slowdown * seconds + self.slowdown * self.gradient_step_s * repeated

    def service_s(self, mailboxes: float = 0.0, idle: bool = False, gradients: int = 1) -> float:
        """Seconds that the master, `idle` before, spends on one update, filling `mailboxes` mailboxes afterwards."""
        update_s = self.receive_s * gradients + self.update_s + self.read_s
        return self.slowdown * (self.wake_s * idle + update_s + mailboxes * self.publish_s)

    def bookkeeping_s(self, before: int, ended: int) -> float:
        """Seconds that the master, having written up `before` episodes, spends on `ended` more; stalls included."""
        seconds, every = self.record_s * ended, self.stall_every
        if every > 0:
            for stall in range(before // every + 1, (before + ended) // every + 1):
                seconds += self.stall_s + self.stall_growth_s * (stall * every)
        return self.slowdown * seconds

    @property
    def first_bookkeeping_s(self) -> float:
        """The same per episode, on average and at a run's start, when stalls have not grown yet."""
        stall_s = self.stall_s / self.stall_every if self.stall_every else 0.0
        return self.slowdown * (self.record_s + stall_s)

    def discard_s(self, idle: bool = False, gradients: int = 1) -> float:
        """Seconds that the master, `idle` before, spends on parcels that it only takes: dropped, or kept for later."""
        return self.slowdown * (self.wake_s * idle + self.receive_s * gradients)

    def learning_s(self, updates: int, steps: int) -> float:
        """Seconds that the master spends beyond a single update: on others, and on the gradients of `steps` steps."""
        calls_s = (self.learn_call_s or 0.0) * updates if steps else 0.0
        return self.slowdown * (self.update_s * (updates - 1) + calls_s + (self.learn_step_s or 0.0) * steps)

    def of_trajectories(self) -> "CostProfile":
        """Return the costs where the master computes the gradients, and not the workers."""
        step_s = self.gradient_step_s if self.learn_step_s is None else self.learn_step_s
        call_s = self.gradient_call_s if self.learn_call_s is None else self.learn_call_s
        learning = {"learn_step_s": step_s, "learn_call_s": call_s}
        return self.model_copy(update={**learning, "gradient_step_s": 0.0, "gradient_call_s": 0.0})

    def of_batches(self) -> "CostProfile":
        """Return the costs where workers compute gradients as a master of trajectories does: of all steps at once."""
        known = self.of_trajectories()
        return self.model_copy(update={"gradient_step_s": known.learn_step_s, "gradient_call_s": known.learn_call_s})

    def beside(self, workers: int) -> "CostProfile":
        """Return the costs beside so many workers: if they leave the master no core, its caches are cold when woken."""
        if not self.cold_s or workers < self.cores:
            return self
        return self.model_copy(update={"wake_s": self.wake_s + self.cold_s, "cold_s": 0.0})

    def prediction_s(self, states: int) -> float:
        """Seconds of a core that a predictor spends on a batch of states."""
        state_s = self.step_s if self.predict_state_s is None else self.predict_state_s
        return self.slowdown * (self.predict_call_s + state_s * states)

    def training_s(self, trajectories: int, steps: int) -> float:
        """Seconds of a core that a trainer spends on a batch of trajectories with so many steps in all."""
        call_s = self.gradient_call_s if self.train_call_s is None else self.train_call_s
        step_s = self.gradient_step_s if self.train_step_s is None else self.train_step_s
        return self.slowdown * (self.receive_s * trajectories + call_s + step_s * steps + self.update_s)

    @property
    def apply_s(self) -> float:
        """Seconds that a worker spends on applying its own gradient, where there is no master.

        Nor is there anybody whom bookkeeping could keep from anything: it costs nothing then.
        """
        return self.slowdown * self.update_s

    @property
    def latency_s(self) -> float:
        """Seconds of a worker's cycle in which its numbers are under way."""
        return self.pull_latency_s + self.push_latency_s

    def away_s(self, env_steps: float, wait_s: float) -> float:
        """Seconds of a worker's cycle without any core: while its game waits, and while its numbers are under way.

        `wait_s`: that its game waits for each step.
        """
        game_s = env_steps * wait_s
        if game_s > 0:
            game_s += self.oversleep_s * self.slowdown
        return game_s + self.latency_s

    def saturation_workers(self, env_steps: float) -> float:
        """N* = (C + S) / S for episodes of a known length, with a mailbox for each; see capacity.py for a run's own."""
        cycle, service = (
            self.latency_s + self.cycle_s(env_steps),
            self.service_s(mailboxes=1) + self.first_bookkeeping_s,
        )
        return math.inf if service == 0 else (cycle + service) / service

    def contention(self, busy: int) -> float:
        """How many times longer everything takes while `busy` processes share the cores."""
        return contention(self, busy)

    def crowding(self, workers: int, masters: int) -> float:
        """How many times longer everything takes for `workers` that want a core, while `masters` want one too."""
        return crowding(self, workers, masters)

    def jittered(self, seconds: float, seed: int, who: int, count: int) -> float:
        """Return `seconds` with this profile's jitter: a pure function of (seed, who, count)."""
        if self.jitter == "none":
            return seconds
        stream = stream_words(seed, who, count, JITTER_KEY)[0]
        exponential = -math.log1p(-uniform(stream))
        if self.jitter == "exponential":
            return seconds * exponential
        variance = math.log1p(self.jitter_deviation**2)  # of the normal distribution whose exponential is lognormal
        normal = math.sqrt(2.0 * exponential) * math.cos(2.0 * math.pi * uniform(stream))  # Box & Muller 1958
        return seconds * math.exp(math.sqrt(variance) * normal - variance / 2.0)


# What processes that share cores do to each other: for compiled code, too


@compilable
def contention(costs, busy):
    """Return how many times longer everything takes while `busy` processes share the cores."""
    if busy <= costs.cores:
        return 1.0
    threads = min(busy, costs.cores * costs.threads_per_core)
    crowded = (threads - costs.cores) / (costs.cores * max(1, costs.threads_per_core - 1))
    return busy / (costs.cores * (1.0 + (costs.threading_gain - 1.0) * crowded))


@compilable
def crowding(costs, workers, masters):
    """Return how many times longer everything takes for workers, where the master, or several, may go first."""
    busy = workers + masters
    alike = contention(costs, busy)
    if alike == 1.0 or not (costs.master_first and masters):
        return alike
    return max(1.0, workers / max(busy / alike - masters, _LEAST_CORES))


def load_profile(name: str) -> CostProfile:
    """Return a cost profile.

    Args:
        name: a shipped profile, such as `report`, or the path of a YAML file.

    Raises:
        ValueError: there is no such profile, or the file holds something else; the message has the line.

    Example:
        >>> load_profile("report").service_s()  # seconds that the master spends on one gradient  # doctest: +SKIP
    """
    shipped = {path.stem: path for path in _PROFILES.glob("*.yaml")}
    path = shipped.get(name, Path(name))
    if not os.path.isfile(path):  # unlike Path's, it takes a name that is too long for one that is not there
        raise ValueError(f"no cost profile {shown(name)}: name a YAML file or one of {', '.join(sorted(shipped))}")
    try:
        document = read_yaml(path.read_text(encoding="utf-8"))
    except NotYaml as error:
        raise ValueError(f"{path}: {error}") from error
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: not YAML: it is not a text file in UTF-8") from error
    if not isinstance(document.data, dict):
        raise ValueError(f"{path}: a profile must be a mapping of costs, such as step_s and update_s, to seconds")
    try:
        return CostProfile.model_validate(document.data, strict=True)
    except ValidationError as error:
        raise ValueError(f"{path}: {'; '.join(_mistakes(document, error))}") from error


def _mistakes(document: Document, error: ValidationError) -> Iterator[str]:
    """Yield what is wrong with a profile, each with its line."""
    for details in error.errors():
        key = str(details["loc"][0])
        place = f"line {document.lines[key,]}, {key}" if (key,) in document.lines else key
        known = details["type"] != "extra_forbidden"
        yield f"{place}: {in_words(details) if known else unknown(key, CostProfile.model_fields, 'key')}"
