"""A first-in-first-out queue of parcels that takes the same memory however long it grows."""

import tempfile
from collections import deque
from collections.abc import Iterator
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from a3c_core.models.parameters import Vector

BLOCK = 256  # gradients per block


class BlockFile:
    """Blocks of equal size in a temporary file that has no name, so that nothing is left behind whatever happens."""

    def __init__(self) -> None:
        self._file: IO[bytes] | None = None
        self._waiting: deque[int] = deque()  # places of the blocks in the file, oldest first
        self._next = 0

    def __len__(self) -> int:
        return len(self._waiting)

    def push(self, block: NDArray[Any]) -> None:
        if self._file is None:
            self._file = tempfile.TemporaryFile(prefix="gradients-")  # noqa: SIM115, it lives as long as the queue
        self._file.seek(self._next * block.nbytes)
        self._file.write(block.data)
        self._waiting.append(self._next)
        self._next += 1

    def pop(self, block: NDArray[Any]) -> None:
        """Read the oldest block into `block`."""
        self._read(self._waiting.popleft(), block)
        if not self._waiting:
            self._next = 0  # the file's space can be used again

    def read_all(self, block: NDArray[Any]) -> Iterator[NDArray[Any]]:
        """Yield all blocks, oldest first, each read into `block`; they stay in the file."""
        for place in self._waiting:
            self._read(place, block)
            yield block

    def _read(self, place: int, block: NDArray[Any]) -> None:
        assert self._file is not None
        self._file.seek(place * block.nbytes)
        read = self._file.readinto(block.data.cast("B"))  # type: ignore[attr-defined]
        assert read == block.nbytes


class ParcelQueue:
    """Holds (item, gradient) pairs. Only the first and the last block of gradients are in memory.

    An overloaded master leaves tens of thousands of gradients waiting. Full blocks in the middle go to a file.
    """

    def __init__(self, size: int):
        self._size = size
        self._items: deque[Any] = deque()
        self._head = np.empty((BLOCK, size), np.float32)  # being read
        self._tail = np.empty((BLOCK, size), np.float32)  # being written
        self._read = self._head_filled = self._tail_filled = 0
        self._spilled = BlockFile()

    def __len__(self) -> int:
        return len(self._items)

    def append(self, item: Any, gradient: Vector) -> None:
        if self._tail_filled == BLOCK:
            self._spilled.push(self._tail)
            self._tail_filled = 0
        place = self._tail[self._tail_filled]
        place[: gradient.size] = gradient
        place[gradient.size :] = 0  # of a trajectory that is shorter than it might be
        self._tail_filled += 1
        self._items.append(item)

    def popleft(self) -> tuple[Any, Vector]:
        """Return the oldest pair; the gradient stays valid until the next call."""
        item = self._items.popleft()
        if self._read == self._head_filled:
            self._refill_head()
        self._read += 1
        return item, self._head[self._read - 1]

    def popleft_many(self, count: int) -> list[tuple[Any, Vector]]:
        """Return the oldest pairs; one gradient alone stays valid until the next call, several for good."""
        if count == 1:
            return [self.popleft()]
        pairs = (self.popleft() for _ in range(count))
        return [(item, gradient.copy()) for item, gradient in pairs]

    def items(self) -> list[Any]:
        """Return all waiting items, oldest first."""
        return list(self._items)

    def write_gradients(self, file: IO[bytes]) -> None:
        """Write all waiting gradients to `file` as raw float32, oldest first, a block at a time."""
        file.write(self._head[self._read : self._head_filled].tobytes())
        for block in self._spilled.read_all(np.empty_like(self._head)):
            file.write(block.data)
        file.write(self._tail[: self._tail_filled].tobytes())

    def restore(self, items: list[Any], file: IO[bytes]) -> None:
        """Fill an empty queue with what `items` and `write_gradients` gave."""
        for item in items:
            self.append(item, np.frombuffer(file.read(4 * self._size), np.float32))

    def _refill_head(self) -> None:
        self._read = 0
        if self._spilled:
            self._spilled.pop(self._head)
            self._head_filled = BLOCK
        else:
            self._head, self._tail = self._tail, self._head
            self._head_filled, self._tail_filled = self._tail_filled, 0
