"""The part of the master's queue that is not in memory: whole blocks in files, put there and fetched between events."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray

from a3c_core.topologies.parcel_queue import BLOCK, BlockFile
from a3c_core.virtual.compiled.state import QUEUE_ROOM, State

_ARRAYS = ("queue_parcels", "queue_gradients")


class QueueFiles:
    """One file for the parcels, one for their gradients."""

    def __init__(self) -> None:
        self._files = {name: BlockFile() for name in _ARRAYS}

    def spill(self, state: State) -> None:
        """Move the queue's last block to the files."""
        numbers = state.numbers[0]
        for name, file in self._files.items():
            tail = getattr(state, name)[1 - numbers["head"]]
            file.push(_bytes(tail[:BLOCK]))
            tail[: QUEUE_ROOM - BLOCK] = tail[BLOCK:]
        numbers["tail_filled"] -= BLOCK
        numbers["spilled"] += 1

    def refill(self, state: State) -> None:
        """Fetch the oldest block from the files, where the queue's first one is used up."""
        numbers = state.numbers[0]
        for name, file in self._files.items():
            head = getattr(state, name)[numbers["head"]]
            file.pop(_bytes(head[:BLOCK]))
        numbers["head_read"], numbers["head_filled"] = 0, BLOCK
        numbers["spilled"] -= 1

    def writers(self, state: State) -> dict[str, Callable[[IO[bytes]], object]]:
        """Return what writes all that waits, oldest first: file's name -> what writes it."""
        return {name: partial(self._write, state, name) for name in _ARRAYS}

    def restore(self, state: State, folder: Path) -> None:
        """Bring a queue, whose numbers are back, to what the `writers` wrote."""
        numbers = state.numbers[0]
        waiting = int(numbers["waiting"])
        for name in ("head_read", "head_filled", "tail_filled", "spilled"):
            numbers[name] = 0
        with (folder / _ARRAYS[0]).open("rb") as parcels, (folder / _ARRAYS[1]).open("rb") as gradients:
            for start in range(0, waiting, BLOCK):
                if start:
                    self.spill(state)
                count = min(BLOCK, waiting - start)
                for file, name in ((parcels, _ARRAYS[0]), (gradients, _ARRAYS[1])):
                    tail = getattr(state, name)[1 - numbers["head"]]
                    file.readinto(_bytes(tail[:count]).data)
                numbers["tail_filled"] = count

    def _write(self, state: State, name: str, file: IO[bytes]) -> None:
        for block in self._blocks(state, name):
            file.write(block.data)

    def _blocks(self, state: State, name: str) -> Iterator[NDArray[np.uint8]]:
        numbers, (one, other) = state.numbers[0], getattr(state, name)
        head, tail = (other, one) if numbers["head"] else (one, other)
        yield _bytes(head[numbers["head_read"] : numbers["head_filled"]])
        yield from self._files[name].read_all(_bytes(np.empty_like(head[:BLOCK])))
        yield _bytes(tail[: numbers["tail_filled"]])


def _bytes(array: NDArray) -> NDArray[np.uint8]:
    """Return a contiguous array's memory."""
    return array.reshape(-1).view(np.uint8)
