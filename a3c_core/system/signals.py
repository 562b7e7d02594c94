"""Ctrl-C and a polite kill: heeded between two events instead of in the middle of one, and answered in one line.

So is a lack of memory, which can show at any import.
"""

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType, TracebackType

INTERRUPTED, _MISTAKE = 130, 2  # exit codes; docs/exit_codes.md has them all
_LEAST_MEMORY = 10**9  # bytes of addresses: with less, NumPy's libraries end a run with real workers in their own way
_WITHOUT_MEMORY = (MemoryError, ImportError, OSError, RuntimeError, SystemError)  # what libraries raise then
_INTERRUPTS = (signal.SIGINT, signal.SIGTERM)


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
    before = {number: signal.signal(number, interruption.ask) for number in _INTERRUPTS}
    try:
        yield interruption
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def blocked_interrupts() -> Iterator[None]:
    """Start a process within this block, and SIGINT and SIGTERM have to wait until it hears them: it inherits that.

    Our own may still come, by another thread.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _INTERRUPTS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def heard_interrupts() -> Iterator[None]:
    """Within this block SIGINT and SIGTERM raise KeyboardInterrupt in a process that began with them blocked."""
    for number in _INTERRUPTS:
        signal.signal(number, signal.default_int_handler)
    try:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _INTERRUPTS)  # what has waited comes now
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_BLOCK, _INTERRUPTS)  # one more must not disturb the last words


def answer_in_one_line() -> None:
    """Let SIGINT and SIGTERM that nobody else heeds end this command with a word and an exit code, at imports too."""
    sys.excepthook = _end_or_show
    limit = _memory_limit()
    if limit is not None and limit < _LEAST_MEMORY:
        _end(f"error: {_limit_words(limit)} is not enough for any command: {_LEAST_MEMORY / 1e6:,.0f} MB are", _MISTAKE)
    for number in _INTERRUPTS:
        if signal.getsignal(number) != signal.SIG_IGN:  # as `nohup` and `&` have it
            signal.signal(number, _end_or_interrupt)


def _end_or_interrupt(number: int, frame: FrameType | None) -> None:
    """Raise KeyboardInterrupt; at an import end at once, where a library's callback could swallow the exception."""
    if not _is_import(frame):
        raise KeyboardInterrupt
    with suppress(Exception):
        sys.stdout.flush()
        os.write(2, b"interrupted\n")
    os._exit(INTERRUPTED)


def _is_import(frame: FrameType | None) -> bool:
    while frame is not None and not frame.f_code.co_filename.startswith("<frozen importlib"):
        frame = frame.f_back
    return frame is not None


def _end_or_show(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    limit = _memory_limit()
    if issubclass(kind, KeyboardInterrupt):
        _end("interrupted", INTERRUPTED)
    elif limit is not None and issubclass(kind, _WITHOUT_MEMORY):
        reason = " ".join(f"{kind.__name__}: {error}".split())[:200]
        _end(f"error: {_limit_words(limit)} is not enough here ({reason}): raise it", _MISTAKE)
    elif issubclass(kind, MemoryError):
        _end("error: there is not enough memory", _MISTAKE)
    else:
        sys.__excepthook__(kind, error, trace)


def _end(words: str, code: int) -> None:
    """End with a line and a code; without memory there is none for what else Python would do at its end."""
    with suppress(Exception):
        sys.stdout.flush()
    os.write(2, f"{words}\n".encode())
    os._exit(code) if code == _MISTAKE else sys.exit(code)


def _limit_words(limit: int) -> str:
    return f"the limit of {limit / 1e6:,.0f} MB of memory (ulimit -v)"


def _memory_limit() -> int | None:
    """Return the limit on this process's addresses in bytes, if there is one."""
    try:
        import resource
    except ImportError:
        return None
    soft, _ = resource.getrlimit(resource.RLIMIT_AS)
    return None if soft == resource.RLIM_INFINITY else soft
