"""What of the master's queue does not fit into memory: whole blocks in a file, between its head and its tail."""

from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray

from a3c_core.topologies.parcel_queue import BLOCK, BlockFile
from a3c_core.virtual.compiled.state import PARCEL, State

NAME = "queue"


class QueueFile:
    """Moves blocks of parcels and their gradients between slots and a file."""

    def __init__(self, size: int):
        """`size`: of a gradient."""
        self._file = BlockFile()
        self._block = np.empty(BLOCK * (PARCEL.itemsize + 4 * size), np.uint8)  # on its way
        parcels, gradients = np.split(self._block, [BLOCK * PARCEL.itemsize])
        self._parcels = parcels.view(PARCEL)
        self._gradients = gradients.view(np.float32).reshape(BLOCK, size)

    def __len__(self) -> int:
        return len(self._file)

    def spill(self, state: State) -> None:
        """Move a block of the tail to the file's end; while there is none, two blocks from the end of the head.

        Two, so that a tail of a whole block fits into memory before that is full again.
        """
        numbers = state.numbers[0]
        if numbers["spilled"]:
            self._move(state, int(numbers["head"]))
            rest = _places(state, int(numbers["head"]) + BLOCK, int(numbers["tail"]) - BLOCK)
            state.slots["queued"][rest - BLOCK] = state.slots["queued"][rest]
            numbers["tail"] -= BLOCK
        else:
            self._move(state, int(numbers["head"]) - 2 * BLOCK)
            self._move(state, int(numbers["head"]) - BLOCK)
            numbers["head"] -= 2 * BLOCK

    def _move(self, state: State, start: int) -> None:
        """Move the block of entries from the queue's `start` on to the file, and free their slots."""
        numbers, slots = state.numbers[0], state.slots["queued"][_places(state, start)]
        self._parcels[:] = state.parcels[slots]
        np.take(state.gradients, slots, axis=0, out=self._gradients, mode="clip")  # the one mode without a copy
        self._file.push(self._block)
        state.slots["free"][numbers["slots"] : numbers["slots"] + BLOCK] = slots
        numbers["slots"] += BLOCK
        numbers["spilled"] += 1

    def refill(self, state: State) -> None:
        """Fetch the oldest block from the file to the end of the head, which is all but used up."""
        numbers = state.numbers[0]
        if numbers["slots"] < BLOCK:
            self.spill(state)
        self._file.pop(self._block)
        numbers["slots"] -= BLOCK
        slots = state.slots["free"][numbers["slots"] : numbers["slots"] + BLOCK].copy()
        state.parcels[slots], state.gradients[slots] = self._parcels, self._gradients
        rest = _places(state, int(numbers["head"]), int(numbers["tail"]))
        state.slots["queued"][(rest + BLOCK) % len(state.slots)] = state.slots["queued"][rest]
        state.slots["queued"][_places(state, int(numbers["head"]))] = slots
        numbers["head"] += BLOCK
        numbers["spilled"] -= 1
        if not numbers["spilled"]:
            numbers["head"], numbers["tail"] = numbers["head"] + numbers["tail"], 0

    def write(self, file: IO[bytes]) -> None:
        """Write all blocks, oldest first."""
        for block in self._file.read_all(self._block):
            file.write(block.data)

    def restore(self, folder: Path, blocks: int) -> None:
        """Fill an empty file with the blocks that were written."""
        with (folder / NAME).open("rb") as file:
            for _ in range(blocks):
                file.readinto(self._block.data)
                self._file.push(self._block)


def _places(state: State, start: int, count: int = BLOCK) -> NDArray[np.int64]:
    """Return where the `count` entries from the queue's `start` on stand in its ring."""
    first = int(state.numbers["queue_first"][0])
    return (first + start + np.arange(count)) % len(state.slots)
