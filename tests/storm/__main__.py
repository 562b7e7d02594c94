"""`python -m tests.storm --minutes 10`: round after round of signals, damages and resumes, and what came of it."""

import argparse
import itertools
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import FrameType

from tests.storm.plans import Plan, draw
from tests.storm.rounds import Round
from tests.storm.tally import Tally, table

FINE, FOUND, INTERRUPTED = 0, 1, 130  # exit codes
_INTERRUPTS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def parser() -> argparse.ArgumentParser:
    """Return the command line's parser."""
    made = argparse.ArgumentParser(
        prog="python -m tests.storm",
        description="Start runs and sweeps, send them signals, damage their files, resume them, and count.",
        epilog="Exit codes: 0 nothing found, 1 something found, 2 a mistake on the command line, 130 interrupted.",
    )
    made.add_argument("--seed", type=int, default=0, help="what all rounds are drawn from (default: 0)")
    length = made.add_mutually_exclusive_group()
    length.add_argument("--minutes", type=float, metavar="M", help="begin no round after so long (default: 1)")
    length.add_argument("--seconds", type=float, metavar="S", help="the same in seconds")
    length.add_argument("--rounds", type=int, metavar="N", help="as many rounds, however long they take")
    length.add_argument("--round", type=int, metavar="K", help="only the round of this number, to repeat a finding")
    made.add_argument("--keep", type=Path, metavar="DIR", help="keep the folders of rounds with findings there")
    return made


def numbers(options: argparse.Namespace) -> Iterator[int]:
    """Yield the numbers of the rounds that the command line asks for."""
    if options.round is not None:
        yield options.round
    elif options.rounds is not None:
        yield from range(options.rounds)
    else:
        length_s = options.seconds if options.seconds is not None else 60 * (options.minutes or 1)
        end_s = time.monotonic() + length_s
        yield from itertools.takewhile(lambda _: time.monotonic() < end_s, itertools.count())


def storm(plans: Iterable[Plan], tally: Tally, keep: Path | None) -> None:
    """Carry out the plans one after the other, each in a folder that is gone afterwards."""
    for plan in plans:
        folder = Path(tempfile.mkdtemp(prefix="storm-"))
        began_s = time.monotonic()
        try:
            done = Round(plan, folder).carry_out()
            if done.findings and keep is not None:
                kept = keep / f"{plan.seed}-{plan.number}"
                shutil.copytree(folder, kept, ignore=shutil.ignore_patterns("tmp"), dirs_exist_ok=True)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        print(progress(plan, done, time.monotonic() - began_s), flush=True)
        done.counts["rounds"] = 1
        done.findings = [f"seed {plan.seed} round {plan.number}: {finding}" for finding in done.findings]
        tally.add(done)


def progress(plan: Plan, done: Tally, seconds: float) -> str:
    """Return the line about a round, and one about each finding."""
    verdict = f"{len(done.findings)} FOUND" if done.findings else "fine"
    what = f"{done.signals.total()} signals, {done.damages.total()} damages, {done.counts['attempts']} attempts"
    line = f"round {plan.number}: {plan}: {what}: {verdict} ({seconds:.0f} s)"
    return "\n    ".join([line, *done.findings])


def interrupt_once(number: int, frame: FrameType | None) -> None:
    """Stop the storm, and let nobody interrupt the clearing up that follows."""
    for one in _INTERRUPTS:
        signal.signal(one, signal.SIG_IGN)
    raise KeyboardInterrupt


def main(arguments: list[str] | None = None) -> int:
    """Do what the command line asks for; return the exit code."""
    options = parser().parse_args(arguments)
    for number in _INTERRUPTS:
        signal.signal(number, interrupt_once)
    tally, code = Tally(), FINE
    try:
        storm((draw(options.seed, number) for number in numbers(options)), tally, options.keep)
    except KeyboardInterrupt:
        code = INTERRUPTED
    print("\n".join(["", *table(tally), "", f"findings: {len(tally.findings)}", *tally.findings]))
    if tally.findings:
        print("Repeat one with: python -m tests.storm --seed SEED --round ROUND")
    return code or (FOUND if tally.findings else FINE)


if __name__ == "__main__":
    sys.exit(main())
