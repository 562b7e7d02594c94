"""The sweep's side of its tracking process: start it, tell it when to finish, and learn what it could not do."""

import threading
from pathlib import Path

from experiments import processes
from experiments.processes import Message


class BackgroundTracker:
    """A tracking process. It works by itself between `begin` and `finish`."""

    def __init__(self, study: Path, uri: str):
        self._process = processes.start("experiments.tracker", [str(study), uri])
        self._answered = threading.Event()  # it has said whether the store is there
        self._error: str | None = None
        self._last: Message | None = None
        self._behind: list[str] = []
        self.complete = 0  # cells
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    def wait_until_ready(self) -> str | None:
        """Wait until it has reached the store; return the reason if it can't."""
        self._answered.wait()
        return self._error

    def begin(self) -> None:
        """The study is on disk: follow it."""
        self._say("begin")

    def finish(self, patience_s: float | None = None) -> str | None:
        """Let it make a last pass, for as long as our patience lasts; return what kept it from telling everything."""
        self._say("finish")
        self._listener.join(patience_s)
        self.abandon()
        if self._error is not None:
            return self._error
        if self._last is None:
            return "it took too long" if patience_s is not None else "the tracking process died"
        return self._last["reason"] or (
            f"{len(self._last['behind'])} cells are missing" if self._last["behind"] else None
        )

    def abandon(self) -> None:
        """End it at once."""
        processes.kill(self._process)
        self._process.wait()

    def _say(self, word: str) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(f"{word}\n".encode())
            self._process.stdin.flush()
        except BrokenPipeError:
            pass  # it is gone; `finish` says so

    def _listen(self) -> None:
        for message in processes.messages(self._process):
            if "error" in message:
                self._error = message["error"]
            self.complete += "complete" in message
            if message.get("last"):
                self._last = message
            self._answered.set()
        if not self._answered.is_set():
            self._error = "the tracking process died"
            self._answered.set()
