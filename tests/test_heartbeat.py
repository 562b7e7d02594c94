"""Nobody waits in silence: a line that is live in a terminal, and comes again and again elsewhere."""

import io
import itertools
import threading

import pytest
from rich.console import Console

from a3c_core.command_line import heartbeat


@pytest.mark.parametrize("terminal", [False, True])
def test_the_line_is_shown_as_it_changes(terminal, monkeypatch):
    monkeypatch.setattr(heartbeat, "EVERY_S", 0.001)
    output, numbers, enough = io.StringIO(), itertools.count(), threading.Event()

    def line():
        number = next(numbers)
        if number == 3:
            enough.set()
        return f"[{number}] of 9"

    with heartbeat.shown(line, Console(file=output, force_terminal=terminal, width=80)):
        enough.wait()
    assert "[1] of 9" in output.getvalue()
    assert output.getvalue().startswith("[0] of 9\n[1] of 9\n") or terminal


def test_it_ends_with_its_block():
    before = set(threading.enumerate())
    with heartbeat.repeated(lambda: None, every_s=1000.0):
        started = set(threading.enumerate()) - before
        assert started
    assert not any(thread.is_alive() for thread in started)
