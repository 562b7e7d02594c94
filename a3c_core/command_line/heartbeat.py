"""What is under way, in one line: live in a terminal, repeated elsewhere, so that nobody waits in silence."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.live import Live
from rich.text import Text

EVERY_S = 8.0  # between two lines where there is no terminal: one in 10 s, also where threads wait for a turn


@contextmanager
def shown(line: Callable[[], str], console: Console) -> Iterator[None]:
    """Show what `line` returns, as it changes, within this block."""
    if console.is_terminal:
        with Live(get_renderable=lambda: Text(line()), console=console, refresh_per_second=4, transient=True):
            yield
        return
    with repeated(lambda: console.print(line(), markup=False, highlight=False, soft_wrap=True), EVERY_S):
        yield


@contextmanager
def repeated(act: Callable[[], object], every_s: float) -> Iterator[None]:
    """Call `act` every so many seconds within this block, from a thread of its own."""
    over = threading.Event()

    def go_on() -> None:
        while not over.wait(every_s):
            act()

    thread = threading.Thread(target=go_on, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
