"""What the commands have in common: a user's mistake is one line and exit code 2."""

import argparse
from typing import NoReturn


class Parser(argparse.ArgumentParser):
    """Shows examples as they were written, and says what is wrong in one line."""

    def __init__(self, program: str, description: str, examples: str):
        super().__init__(
            prog=f"python -m {program}",
            description=description,
            epilog=examples,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"error: {' '.join(message.split())} (--help shows examples)\n")


def positive_seconds(text: str) -> float:
    """Return the seconds that `text` says, which must be more than 0."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"a positive number of seconds is needed, not {text!r}")
    return value
