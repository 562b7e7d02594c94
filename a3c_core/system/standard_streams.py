"""Standard streams that can't fail: when nobody reads them any more, the words are lost and never the work."""

import io
import os
import sys


class _Unbroken(io.RawIOBase):
    """A descriptor to write to, whether or not anybody still reads from it."""

    def __init__(self, descriptor: int):
        self._descriptor = descriptor

    def write(self, data) -> int:
        try:
            return os.write(self._descriptor, data)
        except OSError:  # a closed pipe, a terminal that is gone, a full disk
            return len(data)

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._descriptor

    def isatty(self) -> bool:
        return os.isatty(self._descriptor)


def secure_streams() -> None:
    """Let standard output and error survive their readers; what was closed before we began leads nowhere."""
    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free: this one, else a file of ours would
    if sys.stdout is sys.__stdout__:  # nobody else, such as a test, has taken it over
        sys.stdout = _stream(1)
    if sys.stderr is sys.__stderr__:
        sys.stderr = _stream(2)


def _stream(descriptor: int) -> io.TextIOWrapper:
    before = (sys.__stdin__, sys.__stdout__, sys.__stderr__)[descriptor]
    if before is not None:
        before.flush()
    encoding = getattr(before, "encoding", None) or "utf-8"
    errors = getattr(before, "errors", None) or "backslashreplace"
    buffer = io.BufferedWriter(_Unbroken(descriptor))
    return io.TextIOWrapper(buffer, encoding, errors, line_buffering=descriptor == 2 or os.isatty(descriptor))
