"""Ctrl-C and a polite kill, heeded between two events instead of in the middle of one."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Interruption:
    """Whether the user, or whoever started us, asked to stop."""

    def __init__(self) -> None:
        self.asked = False

    def ask(self, signal_number: int, frame: FrameType | None) -> None:
        """Remember the request; a second one is not to be ignored."""
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True


@contextmanager
def deferred_interrupts() -> Iterator[Interruption]:
    """Within this block SIGINT and SIGTERM set `asked`; outside of the main thread nothing changes."""
    interruption = Interruption()
    if threading.current_thread() is not threading.main_thread():
        yield interruption
        return
    before = {number: signal.signal(number, interruption.ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield interruption
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
