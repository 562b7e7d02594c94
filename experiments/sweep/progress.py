"""Progress of a sweep: a live table in a terminal, plain lines elsewhere."""

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from rich.console import Console
from rich.live import Live
from rich.markup import escape
from rich.table import Table

from a3c_core.command_line import heartbeat
from a3c_core.command_line.arguments import duration
from a3c_core.errors import printable
from experiments.grid.cells import Cell
from experiments.sweep.cell import Progress

_NOTHING = Progress(0, 0.0, 0.0, 0, 0.0)


@dataclass
class _Running:
    """A cell at work."""

    cell: Cell
    started_s: float
    first: Progress | None = None  # the first report: a resumed cell does not begin at 0
    first_s: float = 0.0
    latest: Progress = _NOTHING

    def speed(self, now_s: float) -> float:
        """Return episodes per real second."""
        if self.first is None or now_s <= self.first_s:
            return 0.0
        return (self.latest.episodes - self.first.episodes) / (now_s - self.first_s)

    def share(self, progress: Progress) -> float:
        """Return how much of the run was done by then: of its episodes, or of the env steps that end it."""
        config = self.cell.config
        share = progress.env_steps / config.env_steps if config.env_steps else progress.episodes / config.episodes
        return min(1.0, share)  # episodes that are under way when env steps end a run are played to their end

    def eta_s(self, now_s: float) -> float | None:
        if self.first is None or now_s <= self.first_s:
            return None
        done = self.share(self.latest) - self.share(self.first)
        return (1 - self.share(self.latest)) * (now_s - self.first_s) / done if done > 0 else None


class Board:
    """What is known of a sweep's progress. Cells report from several threads."""

    def __init__(self, cells: Sequence[Cell], console: Console):
        self._console = console
        self._lock = threading.Lock()
        self._running: dict[str, _Running] = {}
        self._waiting = {cell.id: cell for cell in cells}
        self._total, self._ended, self._failed = len(cells), 0, 0
        self._began_s = time.monotonic()
        self._played = 0.0  # by cells that have ended: see `_length`

    def started(self, cell: Cell, note: str | None = None) -> None:
        with self._lock:
            self._waiting.pop(cell.id, None)
            self._running[cell.id] = _Running(cell, time.monotonic())
        self._say(f"{cell.id}: {note or 'started'}", always=note is not None)

    def progressed(self, cell: Cell, progress: Progress) -> None:
        with self._lock:
            running = self._running.get(cell.id)
            if running is None:  # late news of one that was given up
                return
            if running.first is None:
                running.first, running.first_s = progress, time.monotonic()
            running.latest = progress

    def ended(self, cell: Cell, status: str, reason: str | None) -> None:
        with self._lock:
            running = self._running.pop(cell.id, None)
            if running is None:
                return
            self._ended += 1
            self._failed += status == "failed"
            self._played += _length(cell)
        took = duration(time.monotonic() - running.started_s)
        self._say(f"{cell.id}: {status} after {took}" + (f": {reason}" if reason else ""), always=status == "failed")

    def given_up(self, cell: Cell, status: str, reason: str | None) -> None:
        """A cell ended without a word, and had perhaps not even begun."""
        if cell.id not in self._running:
            self.started(cell)
        self.ended(cell, status, reason)

    @contextmanager
    def shown(self) -> Iterator[None]:
        """Show the progress within this block."""
        if self._console.is_terminal:
            with Live(get_renderable=self.table, console=self._console, refresh_per_second=4, transient=True):
                yield
            return
        with heartbeat.repeated(self._print_lines, heartbeat.EVERY_S):
            yield

    def table(self) -> Table:
        """Return the running cells as a table, with the sweep's own progress as its title."""
        table = Table(title=escape(self.headline()), title_justify="left")
        table.add_column("cell", no_wrap=True)
        for name in ("episodes", "score", "staleness", "workers", "clock", "episodes/s", "ETA"):
            table.add_column(name, justify="right")
        now_s = time.monotonic()
        with self._lock:
            for identity, running in self._running.items():
                table.add_row(escape(identity), *_row(running, now_s))
        return table

    def headline(self) -> str:
        """Return the sweep's own progress in one line."""
        eta_s = self._eta_s()
        failed = f", {self._failed} failed" if self._failed else ""
        left = f", {duration(eta_s)} to go" if eta_s is not None else ""
        elapsed = duration(time.monotonic() - self._began_s)
        return f"{self._ended} of {self._total} cells{failed}, {len(self._running)} running, {elapsed}{left}"

    def _eta_s(self) -> float | None:
        """Return the seconds to go, at the speed so far."""
        with self._lock:
            running = list(self._running.values())
            left = float(sum(map(_length, self._waiting.values())))
        played = self._played
        for one in running:
            left += (1 - one.share(one.latest)) * _length(one.cell)
            if one.first is not None:
                played += (one.share(one.latest) - one.share(one.first)) * _length(one.cell)
        return left * (time.monotonic() - self._began_s) / played if played else None

    def _print_lines(self) -> None:
        now_s = time.monotonic()
        with self._lock:
            lines = [_line(running, now_s) for running in self._running.values()]
        for line in (*lines, self.headline()):
            self._say(line)

    def _say(self, line: str, always: bool = False) -> None:
        if always or not self._console.is_terminal:
            self._console.print(printable(line), markup=False, highlight=False, soft_wrap=True)


def _length(cell: Cell) -> int:
    """Return how long a run is: in episodes, or in the env steps that end it."""
    return cell.config.env_steps or cell.config.episodes


def _line(running: _Running, now_s: float) -> str:
    if running.first is None:
        return f"{running.cell.id}: starting"
    episodes, score, staleness, workers, _, speed, eta = _row(running, now_s)
    numbers = f"{episodes} episodes, score {score}, staleness {staleness}, {workers} workers, {speed} episodes/s"
    return f"{running.cell.id}: {numbers}" + (f", {eta} to go" if eta else "")


def _row(running: _Running, now_s: float) -> tuple[str, ...]:
    latest, config = running.latest, running.cell.config
    of_all = "" if config.env_steps else f"/{config.episodes:,}"  # nobody knows how many fit into the env steps
    if running.first is None:
        return (f"0{of_all}", "", "", "", "", "", "starting")
    eta_s = running.eta_s(now_s)
    return (
        f"{latest.episodes:,}{of_all}",
        f"{latest.score:.1f}",
        f"{latest.staleness:,.1f}",
        str(latest.workers),
        duration(latest.clock_s),
        f"{running.speed(now_s):,.0f}",
        duration(eta_s) if eta_s is not None else "",
    )
