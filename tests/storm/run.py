"""One run as a script of a user's would start it: `python -m tests.storm.run SETTINGS DIRECTORY`.

Without a directory: a master that lives on, through a calm run and stormy ones after it, and says how many descriptors
it holds after each.
"""

import gc
import json
import os
import sys
from pathlib import Path
from typing import Any

STORMY_RUNS = 3


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
        short = {"episodes": 200} if number == 0 else {}
        summary = train(config.model_copy(update=short))
        gc.collect()  # what nobody can reach any more is no leak
        said = {"descriptors": len(os.listdir("/proc/self/fd")), "summary": summary._asdict()}
        print(json.dumps(said), flush=True)


if __name__ == "__main__":
    try:
        code = main(sys.argv[1:])
    except KeyboardInterrupt:
        code = 130
    sys.exit(code)
