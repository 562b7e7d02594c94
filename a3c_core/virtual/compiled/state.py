"""All that a run in compiled virtual time holds, as arrays. Place 0 everywhere is the master's, the others workers'."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from a3c_core.engines import actor_critic_kernels as kernels
from a3c_core.engines import value_kernels
from a3c_core.engines.actor_critic_kernels import Buffers
from a3c_core.games.flappy import GAME
from a3c_core.models.parameters import Vector
from a3c_core.records.blocks import BLOCK_RECORDS, RECORD, STATUSES, UPDATE, Records
from a3c_core.topologies.parcel_queue import BLOCK

# NumPy's integers, since Numba compiles a function again for every one of Python's that it is called with
MASTER, NOBODY = np.int64(0), np.int64(-1)
QUEUE_BYTES = 1 << 25  # of gradients in memory; beyond that the queue goes to a file
_LEAST_BLOCKS = 3  # two that go to the file, and something to apply meanwhile
_ROOM = 16  # for what the master holds, and what an event may take


def _fields(kind: str, names: str) -> list[tuple[str, str]]:
    return [(name, kind) for name in names.split()]


NUMBERS = np.dtype(
    [
        *_fields("f8", "now_s crowding master_busy_s last_arrival_s"),
        *_fields("i8", "events kind workers_on_core master_on_core"),  # the timeline
        *_fields("i8", "alive next_id empty places rows slots"),  # workers, empty mailboxes; what is free
        *_fields("i8", "to_begin begun last"),  # who still begins within this event: a list, then one
        *_fields("i8", "serving written_up blocked blocked_first overloaded"),  # the master
        *_fields("i8", "waiting queue_first head tail spilled"),  # its queue: see there
        *_fields("i8", "version episodes_begun env_steps sent queue_peak"),  # the totals
        *_fields("i8", " ".join(STATUSES)),
        *_fields("i8", "episodes changed_at window_filled window_next"),  # the log
        *_fields("i8", "target_set_at"),  # env steps of the run, where there is a target network
        *_fields("i8", "records updates"),  # in the blocks that Python will take
    ]
)
WORKER = np.dtype(
    [
        *_fields("f8", "core_s started_s reward loss entropy final_epsilon"),
        *_fields("i8", "id next_episode rollouts number steps waits"),
        *_fields("i8", "chosen"),  # the action that it is still to take, where the algorithm counts it before
        *_fields("i8", "slot held mail"),  # its parcel; its parameters, and those in its mailbox, by their rows
        *_fields("i8", "empty_place"),  # where it is among those whose mailbox is empty
        *_fields("u1", "in_episode retiring here"),
    ],
    align=True,
)
PARCEL = np.dtype(
    [
        *_fields("f8", "arrived_s started_s reward loss entropy final_epsilon"),
        *_fields("i8", "place worker version_pulled queue_length number score steps"),
        *_fields("u1", "ends truncated"),  # whether it ends an episode, and how
    ],
    align=True,
)
LISTS = np.dtype(_fields("i8", "free empty blocked begins"))
ROW = np.dtype(_fields("i8", "version uses free"))
SLOT = np.dtype(_fields("i8", "queued free taken"))
STATISTICS = ("target_age", "epsilon")  # of value methods; no other algorithm that is compiled has any
WITH_STATISTICS = np.dtype([*UPDATE.descr, *_fields("f8", " ".join(STATISTICS))])


class Given(NamedTuple):
    """The settings that do not change during a run, beside the profile's costs and the schedule's rule."""

    seed: int
    episodes_in_all: int
    env_steps_in_all: int  # that end the run before; 0: they don't
    max_steps: int  # of an episode
    steps_at_once: int  # of a rollout
    own_streams: bool  # a stream for every episode, or PLE's
    own_actions: bool  # the same of actions, or one that all workers begin with
    resets: int  # before each episode
    wait_s: float
    has_master: bool  # or else workers apply their own gradients
    has_mailboxes: bool
    waits_for_apply: bool
    is_bounded: bool  # a full queue makes workers wait
    queue_size: int  # beyond which gradients wait elsewhere or are dropped
    overload_limit: int
    hold: int  # gradients that the master holds back
    batch: int  # that it takes for one update, at most
    takes_mean: bool  # of them, or else their sum
    bound: int  # staleness beyond which it drops them
    divides_by_staleness: bool  # the learning rate
    jitters: bool
    jitters_exponentially: bool
    jitter_variance: float
    update_rule: int
    learning_rate: float
    anneal: bool
    clip_norm: float
    epsilon: float
    decay: float
    target_every: int = 0  # env steps; 0: there is no target network
    epsilon_steps: int = 0  # over which exploration falls, to one of these three
    final_epsilon_0: float = 0.0
    final_epsilon_1: float = 0.0
    final_epsilon_2: float = 0.0


class Player(NamedTuple):
    """What the engine needs for a rollout; see `player` for what is done with it."""

    settings: kernels.Settings | value_kernels.Settings
    buffers: Buffers | value_kernels.Buffers


class State(NamedTuple):
    """W places, S slots for parcels, R rows for publications, P parameters.

    Few arrays: each one makes all functions slower to compile, and to call.
    """

    given: Records  # [1], with the fields of Given, of a profile's costs and of a schedule's rule
    published: Vector  # the learner's own [P], or [2 P] with a target network behind the parameters
    averages: NDArray[np.float32]  # the optimizer's own [k, P]
    entropy: NDArray[np.uint32]  # [8], for seeding streams
    words: NDArray[np.uint64]  # [2, 4], of seeded streams
    numbers: Records  # NUMBERS [1]
    workers: Records  # WORKER [W]
    times: NDArray[np.float64]  # [W], of the heap's events
    heap: NDArray[np.int64]  # [W], events: see timeline
    lists: Records  # LISTS [W]: free places, workers with an empty mailbox, a ring of those blocked, who begins now
    games: Records  # GAME [W]; the master's is as a worker's before its first episode
    streams: NDArray[np.uint64]  # [W, 4], of actions; the master's is what workers begin with
    parcels: Records  # PARCEL [S], from their worker's pull until they were dealt with
    gradients: NDArray[np.float32]  # [S, P], the same
    slots: Records  # SLOT [S]: the queue, a ring; and lists of free ones and of those in the update under way
    publications: NDArray[np.float32]  # [R, P or 2 P], what was published that workers hold or have in their mailbox
    rows: Records  # ROW [R]: of which version, by how many used; and a list of free ones
    window: NDArray[np.float64]  # [window, 3], a ring: clock, master's busy seconds, episode's length
    records: Records  # RECORD [BLOCK_RECORDS]
    updates: Records  # WITH_STATISTICS [BLOCK_RECORDS]


PER_PLACE = ("workers", "times", "heap", "lists", "games", "streams")
PER_SLOT = ("parcels", "gradients", "slots")
PER_ROW = ("publications", "rows")
_LARGE = {"gradients": "slots", "publications": "rows"}  # and which array says what of them is in use
SAVED = ("numbers", *PER_PLACE, *PER_SLOT, *PER_ROW, "window")


def blank_arrays(size: int, published: int, places: int, window: int, batch: int) -> dict[str, NDArray]:
    """Return all arrays of a state that belong to the run, for `size` parameters; nobody is there yet.

    A worker has one parcel, holds one publication and has another in its mailbox, at most. There is room for all that
    and for a queue: memory that is never written to is none.
    """
    beside = 2 * (batch - 1)  # what is taken, and what of the queue is too little to be taken
    slots = places + max(QUEUE_BYTES // (4 * size), _LEAST_BLOCKS * BLOCK) + _ROOM + beside
    rows = 2 * places + _ROOM
    arrays: dict[str, NDArray] = {
        "entropy": np.zeros(8, np.uint32),
        "words": np.zeros((2, 4), np.uint64),
        "numbers": np.zeros(1, NUMBERS),
        "workers": np.zeros(places, WORKER),
        "times": np.zeros(places),
        "heap": np.zeros(places, np.int64),
        "lists": np.zeros(places, LISTS),
        "games": np.zeros(places, GAME),
        "streams": np.zeros((places, 4), np.uint64),
        "parcels": np.zeros(slots, PARCEL),
        "gradients": np.zeros((slots, size), np.float32),
        "slots": np.zeros(slots, SLOT),
        "publications": np.zeros((rows, published), np.float32),
        "rows": np.zeros(rows, ROW),
        "window": np.zeros((window, 3)),
        "records": np.zeros(BLOCK_RECORDS, RECORD),
        "updates": np.zeros(BLOCK_RECORDS, WITH_STATISTICS),
    }
    numbers = arrays["numbers"][0]
    numbers["crowding"] = 1.0
    arrays["workers"]["id"][MASTER] = NOBODY
    numbers["last"] = NOBODY
    numbers["places"] = _list_free(arrays["lists"], 0, 1)
    numbers["slots"] = _list_free(arrays["slots"], 0, 0)
    numbers["rows"] = _list_free(arrays["rows"], 0, 0)
    return arrays


def with_room_for_twice(state: State) -> State:
    """Return the state with room for twice as many workers."""
    numbers = state.numbers[0]
    names = (*PER_PLACE, *PER_SLOT, *PER_ROW)
    larger = state._replace(**{name: _twice(getattr(state, name)) for name in names})
    _unroll(state.lists["blocked"], larger.lists["blocked"], numbers, "blocked_first")
    _unroll(state.slots["queued"], larger.slots["queued"], numbers, "queue_first")
    numbers["places"] = _list_free(larger.lists, int(numbers["places"]), len(state.lists))
    numbers["slots"] = _list_free(larger.slots, int(numbers["slots"]), len(state.slots))
    numbers["rows"] = _list_free(larger.rows, int(numbers["rows"]), len(state.rows))
    return larger


def written_part(state: State, name: str) -> NDArray:
    """Return an array that is to be saved, a large one without the end that is not in use."""
    array = getattr(state, name)
    if name not in _LARGE:
        return array
    free = getattr(state, _LARGE[name])["free"][: state.numbers[_LARGE[name]][0]]
    in_use = np.setdiff1d(np.arange(len(array)), free)
    return array[: in_use.max(initial=-1) + 1]


def restored(state: State, saved: Mapping[str, NDArray]) -> State:
    """Return a state with the arrays that were saved, for as many workers as they were."""
    arrays = {}
    for name in SAVED:
        blank = getattr(state, name)
        length = len(saved[_LARGE.get(name, name)])
        arrays[name] = np.zeros((length, *blank.shape[1:]), blank.dtype)
        _fill(arrays[name], saved[name])
    return state._replace(**arrays)


def _fill(array: NDArray, saved: NDArray) -> None:
    """Write what was saved to the beginning of an array; an older program may have saved fewer fields."""
    known = [name for name in array.dtype.names or () if name in (saved.dtype.names or ())]
    for name in known:
        array[name][: len(saved)] = saved[name]
    if array.dtype.names is None:
        array[: len(saved)] = saved


def _list_free(lists: Records, count: int, start: int) -> int:
    """Add all from `start` on to the `count` free ones, to be taken from the list's end; return how many these are."""
    more = len(lists) - start
    lists["free"][count : count + more] = np.arange(len(lists) - 1, start - 1, -1)
    return count + more


def _unroll(ring: NDArray, longer: NDArray, numbers: np.void, first: str) -> None:
    """Let a ring begin at its array's beginning, since that is longer now."""
    longer[: len(ring)] = np.roll(ring, -int(numbers[first]))
    numbers[first] = 0


def _twice(array: NDArray) -> NDArray:
    """Return an array that is twice as long, of the very type: np.concatenate would not keep alignment."""
    longer = np.zeros((2 * len(array), *array.shape[1:]), array.dtype)
    longer[: len(array)] = array
    return longer
