"""What a worker process or thread runs. Importing this loads what the compiled engine needs, and no TensorFlow."""

import os
import signal
import socket
import threading
import time
from typing import Any, NamedTuple

import a3c_core.engines.compiled  # noqa: F401  a fork server that has loaded it hands it on to every worker
from a3c_core.config import RunConfig
from a3c_core.engines import Engine, make_engine
from a3c_core.models import MODELS
from a3c_core.runtimes.lines import HogwildLine, QueueLine, SharedLine, Stopped
from a3c_core.runtimes.shared_memory import SharedArrays, attach
from a3c_core.tf import limit_gpus
from a3c_core.worker import Worker

_NICENESS = 10  # everyone waits for the master, so where there are more processes than cores it goes first


class LineEnds(NamedTuple):
    """The worker's ends of the line: descriptors, and a connection where the transport is `queue`."""

    doorbell: Any
    wake: Any
    gradients: Any = None
    generation: int = 0  # of the worker, among those of its lane

    def close(self) -> None:
        """Close what is this worker's alone."""
        os.close(self.wake)
        if self.gradients is not None:
            self.gradients.close()


def process_main(
    settings: dict[str, Any], lane: int, episode: int, memory: Any, ends: LineEnds, tether: socket.socket
) -> None:
    """A worker process: work until told to stop, and end at once when the master has died or let go of the tether."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the master's business
    os.nice(_NICENESS)
    threading.Thread(target=_end_with_tether, args=(tether,), daemon=True).start()
    try:
        config = RunConfig.model_validate(settings)
        limit_gpus(config.gpus, lane)
        os.set_blocking(ends.doorbell, False)
        work_until_stopped(config, lane, episode, attach(memory), ends)
    except Exception as error:
        tether.sendall(why(error).encode())
        raise


def why(error: Exception) -> str:
    """Return an error in words, which fit into any socket."""
    return f"{type(error).__name__}: {error}"[:2000]


def new_worker(config: RunConfig, lane: int, episode: int) -> tuple[Worker, Engine]:
    """Return the worker of a lane, which goes on with its episode number `episode`, and its engine."""
    engine = make_engine(config.engine, MODELS[config.model](), config.environment, config.learner)
    engine.sample_times = True
    return Worker(lane, config.seed, engine, episode, config.agents_per_worker), engine


def work_until_stopped(config: RunConfig, lane: int, episode: int, arrays: SharedArrays, ends: LineEnds) -> None:
    """Play episode after episode from number `episode` on, delivering a gradient after each piece of work."""
    worker, engine = new_worker(config, lane, episode)
    line = _line(config, lane, arrays, ends)
    line.come_up()
    cpu_clock = time.thread_time if config.runtime == "threads" else time.process_time
    began_cpu_s = cpu_clock()
    try:
        while True:
            may_begin = line.may_begin(worker.next_episode, worker.in_episode)
            started_s = time.monotonic()
            version, parameters = line.pull()
            began_s = time.monotonic()
            work = worker.work(parameters, may_begin, started_s)
            worked_s = time.monotonic() - began_s
            await_game(work.env_steps * config.environment.wait_s)
            _book(arrays.lanes[lane], worked_s, time.monotonic() - began_s - worked_s, engine.play_share)
            line.deliver(work, version)
    except Stopped:
        arrays.lanes[lane]["cpu_s"] += cpu_clock() - began_cpu_s


def await_game(seconds: float) -> None:
    """Wait for a slow game, all of its steps at once."""
    if seconds:
        time.sleep(seconds)


def _book(lane: Any, worked_s: float, waited_s: float, play_share: float) -> None:
    """Note where the time of a piece of work went; waiting for the game is a part of playing."""
    lane["play_s"] += worked_s * play_share + waited_s
    lane["gradient_s"] += worked_s * (1.0 - play_share)


def _line(config: RunConfig, lane: int, arrays: SharedArrays, ends: LineEnds) -> SharedLine:
    line = config, lane, arrays, ends.doorbell, ends.wake, ends.generation
    if config.exchange.transport == "queue":
        return QueueLine(*line, gradients=ends.gradients)
    return HogwildLine(*line) if config.exchange.transport == "hogwild" else SharedLine(*line)


def _end_with_tether(tether: socket.socket) -> None:
    """Block until the master's end closes, which happens however the master ends."""
    tether.recv(1)
    os._exit(3)
