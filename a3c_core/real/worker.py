"""A worker process or thread: its loop, and Gorila's actor with a replay memory.

Importing this loads what the compiled engine needs, and no TensorFlow.
"""

import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

import a3c_core.engines.compiled  # noqa: F401  a fork server that has loaded it hands it on to every worker
from a3c_core.build import make_engine
from a3c_core.config import RunConfig
from a3c_core.engines.base import Engine, Play, Rollout, act_share_of
from a3c_core.learners.replay import Replayer, ReplayMemory
from a3c_core.models.parameters import Vector
from a3c_core.progress import START, Progress
from a3c_core.real.cycle import CompiledCycle, can_be_compiled
from a3c_core.real.ga3c_agent import AgentChannel, AskingEngine
from a3c_core.real.pace import WorkerPace
from a3c_core.real.shared_memory import SharedArrays, attach
from a3c_core.real.transport import HogwildChannel, QueueChannel, SharedChannel, Stopped
from a3c_core.system.cores import take_long_turns
from a3c_core.system.tensorflow import limit_gpus
from a3c_core.topologies import TOPOLOGIES
from a3c_core.worker import Worker

_NICENESS = 10  # workers wait for the master, so the master goes first where there are more processes than cores


class ReplayWorker:
    """Gorila's actor, replay memory and learner in one worker.

    To its worker it is an engine whose gradients are of minibatches from the memory instead of what was just played.
    All other calls go to the engine inside.
    """

    def __init__(self, config: RunConfig, number: int, engine: Any):
        settings: Any = config.learner
        exchange: Any = config.exchange
        self._engine, self._size = engine, engine.model.spec.size
        self._memory = ReplayMemory(settings.memory_steps, engine.packing.spaces)
        self._replayer = Replayer(number, config.seed, engine, self._memory, settings, exchange.outliers)
        self.play_share = 0.5

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    def rollout(self, published: Vector, environment: Any, progress: Progress = START) -> Rollout:
        gradient, (play,) = self.rollout_together(published, [environment], progress)
        return Rollout(**vars(play), gradient=gradient)

    def rollout_together(
        self, published: Vector, environments: Sequence[Any], progress: Progress = START
    ) -> tuple[Vector, Sequence[Play]]:
        began = time.perf_counter()
        experience, plays = self._engine.rollout_together(published[: self._size], environments, progress)
        played = time.perf_counter()
        for trajectory in self._engine.packing.unpack(experience):
            self._memory.add(trajectory)
        gradient = self._gradient(published)
        self.play_share = (played - began) / (time.perf_counter() - began)
        return gradient, plays

    def _gradient(self, published: Vector) -> Vector:
        """Return a gradient; where there is none yet, or its loss is outlying, one that will be rejected."""
        if self._replayer.may_learn:
            made = self._replayer.make(published)
            if not made.is_outlying:
                return made.gradient
        return np.full(self._size, np.nan, np.float32)


def with_replay(config: RunConfig, number: int, engine: Engine) -> Engine:
    """Return the engine of worker `number`, which keeps a replay memory where workers would hand over experience."""
    if config.topology != "gorila":
        return engine
    replay_worker: Any = ReplayWorker(config, number, engine)
    its_engine: Engine = replay_worker
    return its_engine


class ChannelEnds(NamedTuple):
    """The worker's ends of the channel: descriptors, and a connection where the transport is `queue`."""

    doorbell: Any
    wake: Any
    gradients: Any = None
    generation: int = 0  # of the worker, among those of its slot
    predictor: Any = None  # descriptor, where agents ask one for their actions

    def close(self) -> None:
        """Close what is this worker's alone."""
        os.close(self.wake)
        if self.gradients is not None:
            self.gradients.close()


def process_main(
    settings: dict[str, Any], slot: int, episode: int, memory: Any, ends: ChannelEnds, tether: socket.socket
) -> None:
    """A worker process: work until told to stop, and end at once when the master has died or let go of the tether."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the master's business
    os.nice(_NICENESS)
    take_long_turns()
    threading.Thread(target=_end_with_tether, args=(tether,), daemon=True).start()
    try:
        config = RunConfig.model_validate(settings)
        limit_gpus(config.gpus, slot)
        os.set_blocking(ends.doorbell, False)
        work_until_stopped(config, slot, episode, attach(memory), ends)
    except Exception as error:
        tether.sendall(why(error).encode())
        raise


def why(error: Exception) -> str:
    """Return an error in words, which fit into any socket."""
    return f"{type(error).__name__}: {error}"[:2000]


def new_worker(config: RunConfig, slot: int, episode: int, channel: Any = None) -> tuple[Worker, Engine]:
    """Return the worker of a slot, which goes on with its episode number `episode`, and its engine."""
    asks = isinstance(channel, AgentChannel)
    engine: Any = AskingEngine(config, channel) if asks else with_replay(config, slot, make_engine(config))
    engine.sample_times = True
    return worker_with(engine, config, slot, episode), engine


def worker_with(engine: Engine, config: RunConfig, slot: int, episode: int) -> Worker:
    """Return the worker of a slot, which goes on with its episode number `episode`."""
    carries = config.gradients.carries_parameters
    return Worker(slot, config.seed, engine, episode, config.agents_per_worker, carries)


def work_until_stopped(config: RunConfig, slot: int, episode: int, arrays: SharedArrays, ends: ChannelEnds) -> None:
    """Play episode after episode from number `episode` on, delivering a gradient after each piece of work."""
    channel = _channel(config, slot, arrays, ends)
    worker, engine = new_worker(config, slot, episode, channel)
    cycle: Callable[[], None]
    if can_be_compiled(engine, config, channel):
        cycle = CompiledCycle(config, slot, episode, engine, arrays, channel).work_on
    else:
        cycle = ReadableCycle(config, worker, engine, arrays, channel).work_once
    channel.come_up()
    cpu_clock = time.thread_time if config.runtime == "threads" else time.process_time
    began_cpu_s = cpu_clock()
    try:
        while True:
            cycle()
    except Stopped:
        arrays.slots[slot]["cpu_s"] += cpu_clock() - began_cpu_s


class ReadableCycle:
    """What a worker does again and again, for whatever engine and channel."""

    def __init__(self, config: RunConfig, worker: Worker, engine: Engine, arrays: SharedArrays, channel: SharedChannel):
        self._worker, self._engine, self._arrays, self._channel = worker, engine, arrays, channel
        self._slot, self._wait_s = arrays.slots[worker.id], config.environment.wait_s
        self._pace = None
        if config.is_paced:
            self._pace = WorkerPace(config, worker.id, arrays, channel.heed_stop)
            _rehearse(worker_with(engine, config, worker.id, worker.next_episode), arrays)

    def work_once(self) -> None:
        """Pull, play and differentiate, and deliver."""
        worker, channel, pace = self._worker, self._channel, self._pace
        may_begin = channel.may_begin(worker.next_episode, worker.in_episode)
        started_s = time.monotonic()
        version, published = channel.pull()
        began_s = time.monotonic()
        work = worker.work(published, may_begin, started_s, self._arrays.progress(worker.draw))
        worked_s = time.monotonic() - began_s
        if pace is None:
            await_game(work.env_steps * self._wait_s)
        _book(self._slot, worked_s, time.monotonic() - began_s - worked_s, self._engine)
        if pace is not None:
            pace.await_end(work, version, began_s, worker.rollouts)
        channel.deliver(work, version)


def _rehearse(worker: Worker, arrays: SharedArrays) -> None:
    """Work once for nothing: what is loaded at the first call would make the first piece that counts late."""
    published = np.zeros(arrays.parameters.shape[1], np.float32)
    worker.work(published, progress=arrays.progress(worker.draw))


def await_game(seconds: float) -> None:
    """Wait for a slow game, all of its steps at once."""
    if seconds:
        time.sleep(seconds)


def _book(slot: Any, worked_s: float, waited_s: float, engine: Engine) -> None:
    """Note where the time of a piece of work went; waiting for the game is a part of playing."""
    slot["play_s"] += worked_s * engine.play_share + waited_s
    slot["act_s"] += worked_s * act_share_of(engine)
    slot["gradient_s"] += worked_s * (1.0 - engine.play_share)


def _channel(config: RunConfig, slot: int, arrays: SharedArrays, ends: ChannelEnds) -> SharedChannel:
    channel = config, slot, arrays, ends.doorbell, ends.wake, ends.generation
    if not TOPOLOGIES.get(config.topology).has_master:
        return HogwildChannel(*channel)
    if ends.predictor is not None:
        return AgentChannel(*channel, predictor=ends.predictor)
    if config.gradients.transport == "queue":
        return QueueChannel(*channel, gradients=ends.gradients)
    return SharedChannel(*channel)


def _end_with_tether(tether: socket.socket) -> None:
    """Block until the master's end closes, which happens however the master ends."""
    tether.recv(1)
    os._exit(3)
