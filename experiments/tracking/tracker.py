"""A sweep's tracking process, `python -m experiments.tracking.tracker STUDY ADDRESS`: fills MLflow beside the cells.

It has a low priority, so that learners go first, unless --full-priority is added. It is told `begin` and `finish` on
its standard input, says how it stands in lines of JSON on its standard output, and ends at once when the sweep is gone:
what is missing then, the next sweep or `--sync` makes up for.
"""

import json
import os
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from experiments.study_folder import lock_file
from experiments.tracking.background import FULL_PRIORITY
from experiments.tracking.mirror import Tracker, one_line
from experiments.tracking.store import connect

Message = dict[str, Any]
PASS_S = 2.0  # between two passes over the cells
_PRIORITY = 15  # 3 % of a core that a learner wants too, all of one that nobody wants
_LOCK_PATIENCE_S = 600.0


class Orders:
    """What the sweep has asked for so far."""

    def __init__(self) -> None:
        self.begin, self.finish = threading.Event(), threading.Event()
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        for line in sys.stdin:
            (self.begin if line.strip() == "begin" else self.finish).set()
        os._exit(1)  # the sweep is gone


def main() -> None:
    """Track the study that the command line names."""
    if FULL_PRIORITY not in sys.argv[3:]:
        _give_way()
    channel = os.dup(1)
    os.dup2(2, 1)  # what libraries print is not for the sweep

    def tell(message: Message) -> None:
        os.write(channel, json.dumps(message).encode() + b"\n")

    study, uri = Path(sys.argv[1]), sys.argv[2]
    orders = Orders()
    try:
        client = connect(uri)
    except Exception as error:
        tell({"error": one_line(error)})
        sys.exit(1)
    tell({"ready": True})
    orders.begin.wait()
    with lock_file(study / "cells" / ".tracking.lock", _LOCK_PATIENCE_S):
        _follow(lambda: Tracker(client, uri, study), orders, tell)


def _give_way() -> None:
    """Take a low priority. Where Linux groups processes by session, a process's own counts within its group only."""
    os.nice(_PRIORITY)
    with suppress(OSError):
        Path("/proc/self/autogroup").write_text(str(_PRIORITY))


def _follow(make_tracker: Callable[[], Tracker], orders: Orders, tell: Callable[[Message], None]) -> None:
    """Pass over the study again and again; a last time when asked to finish."""
    tracker: Tracker | None = None
    while True:
        last = orders.finish.is_set()
        try:
            tracker = tracker or make_tracker()
            result = tracker.sync(lambda cell: tell({"complete": cell}))
            if last and result.reason is None:
                tracker.end_sweeps()
            tell({"behind": result.behind, "reason": result.reason, "last": last})
        except Exception as error:
            tell({"behind": [], "reason": one_line(error), "last": last})
        if last:
            return
        orders.finish.wait(PASS_S)


if __name__ == "__main__":
    main()
