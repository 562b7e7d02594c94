"""Memory that processes share and that can't be left behind: a file without a name, gone with its last user."""

import math
import mmap
import os
import pickle
import shutil
import tempfile
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from a3c_core.build import parts_of
from a3c_core.config import RunConfig
from a3c_core.learners.base import Learner
from a3c_core.models.parameters import Vector
from a3c_core.progress import Progress
from a3c_core.real.fork_server import Inherited
from a3c_core.topologies import TOPOLOGIES
from a3c_core.topologies.remedies import parcel_size
from a3c_core.worker import Episode, Work

_ENVELOPE = 512  # bytes of a pickled model beside its numbers
_MEASURED = ("clip_fraction", "kl", "importance_weight")


class Message(NamedTuple):
    """What travels with a gradient; times are of the monotonic clock, which all processes of a machine share."""

    version_pulled: int
    env_steps: int
    finished_s: float
    episodes: int = 0  # that it ends; they are described apart
    generation: int = 0  # of the worker; that of another than the slot's present one is refused
    version_applied: int = 0  # from here on: only where the worker itself updates the parameters
    rejected: int = 0
    gradient_norm: float = 0.0
    clip_fraction: float = 0.0  # from here on: only where the worker measures what it differentiates
    kl: float = 0.0
    importance_weight: float = 0.0  # 0: it did not, since a mean of weights never is

    @property
    def measured(self) -> dict[str, float]:
        """What the worker has measured, by name; nothing if it has not."""
        return {name: getattr(self, name) for name in _MEASURED} if self.importance_weight else {}


def message_of(work: Work, version: int, finished_s: float, generation: int) -> Message:
    """Return what travels with a piece of work that was done with the parameters of `version`."""
    measured: dict[str, Any] = dict(work.measured)
    return Message(version, work.env_steps, finished_s, len(work.episodes), generation, **measured)


_KINDS = {int: "i8", float: "f8", bool: "?"}
MESSAGE = np.dtype([(name, _KINDS[kind]) for name, kind in Message.__annotations__.items()])
EPISODE = np.dtype([(name, _KINDS[kind]) for name, kind in Episode.__annotations__.items()], align=True)

# One worker's place in the memory. Each field has one writer, or may be missed, so that no lock is needed.
SLOT = np.dtype(
    [
        ("generation", "i8"),  # master: workers that had this slot before
        ("granted", "i8"),  # master: episodes that the worker may begin in all
        ("accepted", "i8"),  # master: messages taken over, counted as all messages and models from `first_count` on
        ("served", "i8"),  # master: gradients applied, dropped or rejected
        ("permits", "i8"),  # master: gradients that may be begun, counted as messages, where workers wait for that
        ("stop", "i8"),  # master: AFTER_THIS_EPISODE or AT_ONCE
        ("mail_sent", "i8"),  # master: models put into the mailbox
        ("mail_size", "i8"),  # master: bytes of the last one
        ("sent", "i8"),  # worker: messages handed over
        ("mail_taken", "i8"),  # worker: models taken from the mailbox
        ("waiting", "i8"),  # worker: what it wants to be woken for; cleared by the master when it does so
        ("updates", "i8"),  # worker: updates made by itself, without a master
        ("ready", "i8"),  # worker: is up
        ("on_core", "i8"),  # worker: has a core or wants one, by the profile that it is paced to, unless it waits
        ("paced", "i8"),  # worker: pieces of work that were paced
        ("late", "i8"),  # worker: those that took longer than their pace
        ("late_s", "f8"),  # worker: by how much, in the profile's seconds, all in all
        ("asked", "i8"),  # agent: states put before a predictor
        ("answered", "i8"),  # predictor: the last of them that it has answered
        ("play_s", "f8"),  # worker: playing
        ("act_s", "f8"),  # worker: of that, asking for actions, where the engine knows it
        ("gradient_s", "f8"),  # worker: differentiating
        ("wait_s", "f8"),  # worker: waiting for the master
        ("pull_s", "f8"),  # worker: taking over parameters
        ("apply_s", "f8"),  # worker: updating by itself, without a master
        ("cpu_s", "f8"),  # worker: time on a core, whatever for; written when it leaves
    ]
)

GRANTED, ACCEPTED, SERVED, MAILED, PERMITTED, ANSWERED = 1, 2, 3, 4, 5, 6  # what a worker waits for
NOTHING, NO_ROOM, UNWANTED = 0, -1, -2  # beside these: what else keeps it from going on
AFTER_THIS_EPISODE, AT_ONCE = 1, 2  # when a worker is to leave; what it has played is delivered, or nobody wants it

INBOX = np.dtype(  # the master's own place
    [
        ("room", "i8"),  # gradients that the queue still takes, by the master's last look
        ("asleep", "i8"),  # wants to be woken; whoever rings may clear it
        ("serving", "i8"),  # an update is under way, by the profile that it is paced to
        ("progress", "f8"),  # share of the run's episodes that are recorded
        ("env_steps", "i8"),  # that these, and what else was recorded, took
    ]
)

# Messages that a worker can have under way. With more, workers that outnumber the cores would wait less, but gradients
# would be older, and less would be learned from them.
RING_SIZE = 8

_MOST = 2**32  # messages or models of one worker


def first_count(generation: int) -> int:
    """Return where the counts of a worker's messages begin: above all counts of those that had its slot before it.

    So one of those that lives on unknown to the master can't announce anything: its counts were passed long ago.
    """
    return generation * _MOST


_FOLDER = "/dev/shm" if os.path.isdir("/dev/shm") else tempfile.gettempdir()


class NoSharedMemory(Exception):
    """There is not enough memory for the run's workers; the message is for the user."""


class Layout(NamedTuple):
    """What the shared memory holds: sizes from which every array's place follows."""

    slots: int
    parameters: int
    agents: int
    averages: int  # of the optimizer, by parameter, without a master
    mail_bytes: int  # of a mailbox; 0 where there are none
    beside: int = 0  # numbers that are published beside the parameters
    parcel: int | None = None  # numbers that a worker hands over at once, at most; None: as many as parameters
    state: int = 0  # bytes of an observation that an agent puts before a predictor
    answer: int = 0  # numbers that it is told

    def _shapes(self) -> list[tuple[tuple[int, ...], Any]]:
        size = self.parameters
        return [
            ((2,), np.int64),
            ((1,), np.int64),
            ((1,), INBOX),
            ((2, size + self.beside), np.float32),
            ((self.averages, size), np.float32),
            ((self.slots,), SLOT),
            ((self.slots, RING_SIZE), MESSAGE),
            ((self.slots, RING_SIZE, self.agents), EPISODE),
            ((self.slots, RING_SIZE, size if self.parcel is None else self.parcel), np.float32),
            ((self.slots, self.mail_bytes), np.uint8),
            ((self.slots, self.state), np.uint8),
            ((self.slots, self.answer), np.float32),
            ((self.slots,), np.int64),
        ]

    @property
    def nbytes(self) -> int:
        return sum(_padded(shape, dtype) for shape, dtype in self._shapes())

    def arrays(self, buffer: Any) -> "SharedArrays":
        """Return the arrays that lie in `buffer`."""
        arrays, place = [], 0
        for shape, dtype in self._shapes():
            arrays.append(np.ndarray(shape, dtype, buffer, place))
            place += _padded(shape, dtype)
        return SharedArrays(*arrays)


def _padded(shape: tuple[int, ...], dtype: Any) -> int:
    """Return the bytes of an array, in whole cache lines, so that no two arrays share one."""
    return -(-math.prod(shape) * np.dtype(dtype).itemsize // 64) * 64


class SharedArrays(NamedTuple):
    """The arrays through which workers and master meet."""

    versions: NDArray[np.int64]  # [2], of the two parameter buffers; -1 while one is being written
    current: NDArray[np.int64]  # [1], the buffer to read
    inbox: NDArray[np.void]  # INBOX [1]
    parameters: NDArray[np.float32]  # [2, P and what is published beside them]
    averages: NDArray[np.float32]  # [A, P], the optimizer's moving averages, without a master
    slots: NDArray[np.void]  # SLOT [L]
    messages: NDArray[np.void]  # MESSAGE [L, RING_SIZE]
    episodes: NDArray[np.void]  # EPISODE [L, RING_SIZE, agents], those that the messages end
    gradients: NDArray[np.float32]  # [L, RING_SIZE, parcel], which may be shorter than its place
    mail: NDArray[np.uint8]  # [L, mail_bytes], the report's mailboxes: one pickled model each
    states: NDArray[np.uint8]  # [L, state], what agents without a model see
    answers: NDArray[np.float32]  # [L, answer], a predictor's outputs for it
    answerers: NDArray[np.int64]  # [L], versions of the parameters that gave these

    def progress(self, draw: float = 0.0) -> Progress:
        """Return how far the run has come, by the master's last word, for the worker with this `draw`."""
        return Progress(float(self.inbox["progress"][0]), int(self.inbox["env_steps"][0]), draw)

    def publish(self, version: int, published: Vector) -> None:
        """Make `published` the latest; only the master calls this."""
        target = 1 - int(self.current[0])
        self.versions[target] = -1
        self.parameters[target] = published
        self.versions[target] = version
        self.current[0] = target

    def read_latest(self, out: Vector) -> int:
        """Copy what was published last to `out` and return its version; never a mixture of two."""
        while True:
            buffer = int(self.current[0])
            version = int(self.versions[buffer])
            out[:] = self.parameters[buffer]
            if version >= 0 and self.versions[buffer] == version:
                return version

    def put_mail(self, slot: int, version: int, published: Vector) -> None:
        """Put a model into a mailbox, which must be empty; only the master calls this."""
        letter = pickle.dumps((version, published), protocol=5)
        self.mail[slot, : len(letter)] = np.frombuffer(letter, np.uint8)
        self.slots["mail_size"][slot] = len(letter)
        self.slots["mail_sent"][slot] += 1  # last: only now is the slot the worker's

    def take_mail(self, slot: int) -> tuple[int, Vector]:
        """Return (version, what was published with it) from a mailbox, which must be full."""
        return pickle.loads(self.mail[slot, : self.slots["mail_size"][slot]].tobytes())


class SharedBlock:
    """A piece of shared memory, handed to another process as a file descriptor."""

    def __init__(self, layout: Layout):
        self.layout = layout
        with tempfile.TemporaryFile(dir=_FOLDER) as file:
            _reserve(file.fileno(), layout)
            self._descriptor = os.dup(file.fileno())
        self._memory = mmap.mmap(self._descriptor, layout.nbytes)
        self.arrays = layout.arrays(self._memory)

    def handle(self) -> tuple[Layout, Any]:
        """Return what another process needs to `attach`; only good as an argument of a process being started."""
        return self.layout, Inherited(self._descriptor)

    def close(self) -> None:
        os.close(self._descriptor)


def attach(handle: tuple[Layout, int]) -> SharedArrays:
    """Return the arrays of a block that another process made."""
    layout, descriptor = handle
    return layout.arrays(mmap.mmap(descriptor, layout.nbytes))


def _reserve(descriptor: int, layout: Layout) -> None:
    """Make a file as large as the layout says, with room for all of it: later, whoever finds none would be killed."""
    try:
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(descriptor, 0, layout.nbytes)
        else:
            os.truncate(descriptor, layout.nbytes)
    except OSError as error:
        free = shutil.disk_usage(_FOLDER).free
        raise NoSharedMemory(
            f"{layout.slots} workers need {_megabytes(layout.nbytes)} of shared memory, and {_FOLDER} has"
            f" {_megabytes(free)} left ({error.strerror}): enlarge it, or use fewer workers"
        ) from error


def _megabytes(nbytes: int) -> str:
    return f"{nbytes / 1e6:,.1f} MB"


def new_block(config: RunConfig, learner: Learner) -> SharedBlock:
    """Return memory with room for what the learner publishes and what the workers hand over."""
    size, published = learner.parameters.size, learner.publication.size
    has_master = TOPOLOGIES.get(config.topology).has_master
    averages = 0 if has_master else learner.optimizer.slots.shape[0]
    mail_bytes = 4 * published + _ENVELOPE if config.gradients.transport == "queue" else 0
    slots, agents = config.span.end, config.agents_per_worker
    parcel = parcel_size(config.gradients, learner)
    layout = Layout(slots, size, agents, averages, mail_bytes, published - size, parcel)
    return SharedBlock(layout._replace(**_of_predictors(config)))


def _of_predictors(config: RunConfig) -> dict[str, int]:
    """Return the sizes of a state and of an answer, where agents ask for their actions."""
    if not TOPOLOGIES.get(config.topology).has_predictors:
        return {}
    game, model, _ = parts_of(config)
    numbers, each = math.prod(game.spaces.observation_shape), np.dtype(game.spaces.observation_dtype).itemsize
    return {"state": numbers * each, "answer": sum(size for _, size in model.heads)}


def share_learner(learner: Learner, arrays: SharedArrays) -> None:
    """Put all that the learner has where the workers will update it."""
    arrays.averages[:] = learner.optimizer.slots
    arrays.parameters[0] = learner.publication
    arrays.slots["updates"][0] = learner.version


def follow_workers(learner: Learner, arrays: SharedArrays, progress: Progress) -> None:
    """Bring the learner up to date; what is published beside the parameters it sets for the workers in turn."""
    size = learner.parameters.size
    learner.parameters[:] = arrays.parameters[0, :size]
    learner.optimizer.slots[:] = arrays.averages
    learner.optimizer.updates = int(arrays.slots["updates"].sum())
    if learner.follow(progress):
        arrays.parameters[0, size:] = learner.publication[size:]
