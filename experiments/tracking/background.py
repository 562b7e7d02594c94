"""The sweep's side of its tracking process: start it, tell it when to finish, and learn what it could not do.

Beside the cells it gives way to them, and a process without privileges can't take its priority back. So what it has not
done soon after the last cell is left to a fresh one of full priority, which goes on where the other stopped.
"""

import threading
import time
from pathlib import Path

from experiments import processes
from experiments.processes import Message

FULL_PRIORITY = "--full-priority"
_HANDOVER_S = 3.0  # for the end of what gives way: on an idle machine it needs no successor


class BackgroundTracker:
    """Tracking in the background. It works by itself between `begin` and `finish`."""

    def __init__(self, study: Path, uri: str):
        self._study, self._uri = study, uri
        self._complete: set[str] = set()
        self._tracking = _Process(study, uri, self._complete)

    @property
    def complete(self) -> int:
        """The cells of which MLflow has everything."""
        return len(self._complete)

    def wait_until_ready(self) -> str | None:
        """Wait until it has reached the store; return the reason if it can't."""
        self._tracking.answered.wait()
        return self._tracking.missing() if self._tracking.ended else None

    def begin(self) -> None:
        """The study is on disk: follow it."""
        self._tracking.say("begin")

    def finish(self, patience_s: float | None = None) -> str | None:
        """Let it make a last pass, for as long as our patience lasts; return what kept it from telling everything."""
        deadline_s = time.monotonic() + (patience_s or 0.0)
        self._tracking.say("finish")
        self._tracking.join(_HANDOVER_S)
        if not self._tracking.is_done:
            self._hand_over()
            self._tracking.join(None if patience_s is None else max(0.0, deadline_s - time.monotonic()))
        missing = self._tracking.missing()
        self.abandon()
        return missing

    def abandon(self) -> None:
        """End it at once."""
        self._tracking.kill()

    def _hand_over(self) -> None:
        self.abandon()  # nothing is lost: what it was about to tell is on disk
        self._tracking = _Process(self._study, self._uri, self._complete, FULL_PRIORITY)
        self._tracking.say("begin")
        self._tracking.say("finish")


class _Process:
    """One tracking process, and what it has said so far."""

    def __init__(self, study: Path, uri: str, complete: set[str], *options: str):
        self._process = processes.start("experiments.tracking.tracker", [str(study), uri, *options])
        self._complete = complete  # cells, filled by us
        self._last: Message | None = None
        self._error: str | None = None
        self.ended = False
        self.answered = threading.Event()  # it has said whether the store is there, or has ended
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    @property
    def is_done(self) -> bool:
        """Whether another in its place could do no more."""
        return self._last is not None or self._error is not None

    def missing(self) -> str | None:
        """Return what kept it from telling everything."""
        if self._error is not None:
            return self._error
        if self._last is None:
            return "the tracking process died" if self.ended else "it took too long"
        behind = len(self._last["behind"])
        return self._last["reason"] or (f"{behind} cells are missing" if behind else None)

    def join(self, seconds: float | None) -> None:
        """Wait for its end, for so long."""
        self._listener.join(seconds)

    def kill(self) -> None:
        """End it at once."""
        processes.kill(self._process)
        self._process.wait()

    def say(self, word: str) -> None:
        """Tell it something."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(f"{word}\n".encode())
            self._process.stdin.flush()
        except BrokenPipeError:
            pass  # it is gone; `missing` says so

    def _listen(self) -> None:
        for message in processes.messages(self._process):
            self._error = message.get("error", self._error)
            if "complete" in message:
                self._complete.add(message["complete"])
            if message.get("last"):
                self._last = message
            self.answered.set()
        self.ended = True
        self.answered.set()
