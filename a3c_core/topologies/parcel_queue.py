"""A first-in-first-out queue of parcels that takes the same memory however long it grows."""

import tempfile
from collections import deque
from typing import IO, Any

import numpy as np

from a3c_core.models.parameters import Vector

_BLOCK = 256  # gradients per block


class ParcelQueue:
    """Holds (item, gradient) pairs. Only the first and the last block of gradients are in memory.

    An overloaded master leaves tens of thousands of gradients waiting. Full blocks in the middle go to a temporary file
    that has no name, so that nothing is left behind whatever happens.
    """

    def __init__(self, size: int):
        self._size = size
        self._items: deque[Any] = deque()
        self._head = np.empty((_BLOCK, size), np.float32)  # being read
        self._tail = np.empty((_BLOCK, size), np.float32)  # being written
        self._read = self._head_filled = self._tail_filled = 0
        self._spill: IO[bytes] | None = None
        self._spilled: deque[int] = deque()  # numbers of the blocks in the file, in order
        self._next_block = 0

    def __len__(self) -> int:
        return len(self._items)

    def append(self, item: Any, gradient: Vector) -> None:
        if self._tail_filled == _BLOCK:
            self._spill_tail()
        self._tail[self._tail_filled] = gradient
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
        for number in self._spilled:
            file.write(self._read_block(number).tobytes())
        file.write(self._tail[: self._tail_filled].tobytes())

    def restore(self, items: list[Any], file: IO[bytes]) -> None:
        """Fill an empty queue with what `items` and `write_gradients` gave."""
        for item in items:
            self.append(item, np.frombuffer(file.read(4 * self._size), np.float32))

    def _spill_tail(self) -> None:
        if self._spill is None:
            self._spill = tempfile.TemporaryFile(prefix="gradients-")  # noqa: SIM115, it lives as long as the queue
        self._spill.seek(self._next_block * self._tail.nbytes)
        self._spill.write(self._tail.data)
        self._spilled.append(self._next_block)
        self._next_block += 1
        self._tail_filled = 0

    def _refill_head(self) -> None:
        self._read = 0
        if self._spilled:
            self._head[:] = self._read_block(self._spilled.popleft())
            self._head_filled = _BLOCK
            if not self._spilled:
                self._next_block = 0  # the file's space can be used again
        else:
            self._head, self._tail = self._tail, self._head
            self._head_filled, self._tail_filled = self._tail_filled, 0

    def _read_block(self, number: int) -> np.ndarray:
        assert self._spill is not None
        self._spill.seek(number * self._tail.nbytes)
        block = np.frombuffer(self._spill.read(self._tail.nbytes), np.float32)
        return block.reshape(_BLOCK, self._size)
