"""One run as a script of a user's would start it: `python -m tests.storm.run SETTINGS DIRECTORY`.

Without a directory: a master that lives on, through a calm run and stormy ones after it, and says how many descriptors
it held at the beginning and the end of each, and after it.
"""

import gc
import json
import os
import sys
from functools import partial
from pathlib import Path
from typing import Any

STORMY_RUNS = 3
EVERY = 20  # episodes between two looks at the descriptors
LOOKS = 20  # of which the lowest counts: a worker that is just being replaced has some more


def main(arguments: list[str]) -> int:
    """Train as the arguments say; an error of the project's own is a sentence, as a user's script might have it."""
    from a3c_core.config import RunConfig
    from a3c_core.train import train

    config = RunConfig.model_validate_json(arguments[0])
    try:
        if arguments[1:]:
            train(config, Path(arguments[1]))
        else:
            live_long(config, train)
    except Exception as error:
        if not type(error).__module__.startswith("a3c_core"):
            raise
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


def live_long(config: Any, train: Any) -> None:
    """Train again and again, and print a line of JSON after each run."""
    for number in range(1 + STORMY_RUNS):
        during: list[int] = []
        short = {"episodes": 200} if number == 0 else {}
        summary = train(config.model_copy(update=short), on_episode=partial(look, during))
        gc.collect()  # what nobody can reach any more is no leak
        said = {"after": descriptors(), "first": min(during[:LOOKS]), "last": min(during[-LOOKS:])}
        print(json.dumps({"descriptors": said, "summary": summary._asdict()}), flush=True)


def look(seen: list[int], record: Any) -> None:
    """Note the number of descriptors, every few episodes."""
    if record.episode % EVERY == 0:
        seen.append(descriptors())


def descriptors() -> int:
    """Return how many descriptors this process holds."""
    return len(os.listdir("/proc/self/fd"))


if __name__ == "__main__":
    try:
        code = main(sys.argv[1:])
    except KeyboardInterrupt:
        code = 130
    sys.exit(code)
