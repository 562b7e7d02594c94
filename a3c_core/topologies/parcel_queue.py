"""A first-in-first-out queue of parcels that takes the same memory however long it grows."""

import tempfile
from collections import deque
from collections.abc import Collection, Iterable, Iterator
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
    """Holds (item, gradient) pairs, of which only the first and the last few are in memory.

    An overloaded master leaves tens of thousands of gradients waiting. Full blocks in the middle go to a file. A
    gradient is held, not copied: it must not change until it is taken.

    >>> queue = ParcelQueue(size=2)
    >>> queue.append("first", np.ones(2, np.float32))
    >>> queue.popleft()
    ('first', array([1., 1.], dtype=float32))
    """

    def __init__(self, size: int):
        """`size`: the length of a gradient, at most."""
        self._size = size
        self._length = 0
        self._head: deque[tuple[Any, Vector]] = deque()  # the oldest
        self._spilled = BlockFile()
        self._spilled_items: deque[Any] = deque()
        self._tail: deque[tuple[Any, Vector]] = deque()  # the newest

    def __len__(self) -> int:
        return self._length

    def append(self, item: Any, gradient: Vector) -> None:
        if len(self._tail) >= BLOCK:
            self._spill()
        self._tail.append((item, gradient))
        self._length += 1

    def popleft(self) -> tuple[Any, Vector]:
        """Return the oldest pair; the gradient may be longer than it was if it has been in the file."""
        if not self._head:
            self._refill()
        self._length -= 1
        return self._head.popleft()

    def popleft_many(self, count: int) -> list[tuple[Any, Vector]]:
        """Return the oldest pairs."""
        return [self.popleft() for _ in range(count)]

    def items(self) -> list[Any]:
        """Return all waiting items, oldest first."""
        return [*_first(self._head), *self._spilled_items, *_first(self._tail)]

    def write_gradients(self, file: IO[bytes]) -> None:
        """Write all waiting gradients to `file` as raw float32, oldest first, a block at a time."""
        file.write(self._block_of(self._head).data)
        for block in self._spilled.read_all(np.empty((BLOCK, self._size), np.float32)):
            file.write(block.data)
        file.write(self._block_of(self._tail).data)

    def restore(self, items: list[Any], file: IO[bytes]) -> None:
        """Fill an empty queue with what `items` and `write_gradients` gave."""
        for item in items:
            self.append(item, np.frombuffer(file.read(4 * self._size), np.float32).copy())

    def _spill(self) -> None:
        """Bring the newest pairs to the file, unless there is room at the front."""
        if not self._head and not self._spilled:
            self._head, self._tail = self._tail, self._head
            return
        self._spilled.push(self._block_of(self._tail))
        self._spilled_items += _first(self._tail)
        self._tail.clear()

    def _refill(self) -> None:
        """Bring the next pairs to the front."""
        if not self._spilled:
            self._head, self._tail = self._tail, self._head
            return
        block = np.empty((BLOCK, self._size), np.float32)
        self._spilled.pop(block)
        self._head.extend([(self._spilled_items.popleft(), gradient) for gradient in block])

    def _block_of(self, pairs: Collection[tuple[Any, Vector]]) -> NDArray[np.float32]:
        """Return gradients as rows; one that is shorter than it might be, such as a trajectory, ends with zeros."""
        block = np.zeros((len(pairs), self._size), np.float32)
        for row, (_, gradient) in zip(block, pairs, strict=True):
            row[: gradient.size] = gradient
        return block


def _first(pairs: Iterable[tuple[Any, Vector]]) -> list[Any]:
    return [item for item, _ in pairs]
