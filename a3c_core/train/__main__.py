"""Train one run from the command line: `python -m a3c_core.train --help`."""

import argparse
import sys
import time
from collections import deque
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import gymnasium
import rich.console
import yaml

from a3c_core.build import misfit
from a3c_core.command_line import heartbeat
from a3c_core.command_line.arguments import Parser, duration, python_command
from a3c_core.command_line.assignments import all_settings, read_settings, run_name
from a3c_core.command_line.learning_curve import WINDOW, draw_curve
from a3c_core.config import RunConfig
from a3c_core.games import score_of
from a3c_core.real.shared_memory import NoSharedMemory
from a3c_core.real.worker_manager import RunFailed
from a3c_core.records.checkpoints import CheckpointError
from a3c_core.records.files import write_json
from a3c_core.records.layout import CONFIG, ResultsError
from a3c_core.records.tables import EpisodeRecord, RecordsLost, read_records
from a3c_core.system.descriptors import TooFewDescriptors
from a3c_core.system.ray_cluster import NoCluster
from a3c_core.train import OnEpisode, RunMismatch, train
from a3c_core.train.summary import RunSummary
from a3c_core.virtual.capacity import profile_of

_LACKING = (NoCluster, NoSharedMemory, TooFewDescriptors)  # what a machine may lack
EXAMPLES = """\
examples:
  python -m a3c_core.train --workers 10 --episodes 20000                    # ten workers, in virtual time
  python -m a3c_core.train --workers 10 --set learner.learning_rate=1e-3    # --set changes any setting of a run
  python -m a3c_core.train --workers '10->20' --set schedule.first_s=2      # workers join as episodes get longer
  python -m a3c_core.train --workers 4 --set runtime=processes              # four real processes
  python -m a3c_core.train --settings                                       # all settings, and what they are now

It ends with a sentence and a picture, score.png. Everything is kept in --out, by default results/train/ and a name made
of what was given; the same command goes on where an interrupted run stopped. Exit codes: 0 done, 1 the run failed, 2 a
mistake on the command line, 130 interrupted.
"""


def main(arguments: list[str] | None = None) -> int:
    """Train as the command line says; return the exit code."""
    parser = _parser()
    options = parser.parse_args(arguments)
    console = rich.console.Console()
    try:
        config = _config(options)
        directory = options.out or Path("results", "train", _name(options))
        if options.settings:
            print("\n".join(all_settings(config)))
            return 0
        return _train(config, directory, console, options.tensorboard)
    except (_Refused, RunMismatch, ResultsError, CheckpointError, *_LACKING, gymnasium.error.Error) as error:
        parser.error(str(error))
    except OSError as error:
        parser.error(f"{error.filename or options.out}: {error.strerror or error}")
    except MemoryError:
        parser.error("there is not enough memory for this run")
    except (RunFailed, RecordsLost) as error:
        print(f"failed: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("Interrupted. The same command goes on from here.", file=sys.stderr)
        return 130


def _train(config: RunConfig, directory: Path, console: rich.console.Console, tensorboard: Path | None) -> int:
    """Run to the end, showing how far it is; then say what came of it, and draw it."""
    progress = RunProgress(config)
    with heartbeat.shown(progress.line, console), _also_written(tensorboard) as write:

        def on_episode(record: EpisodeRecord) -> None:
            progress(record)
            write(record)

        summary = train(config, directory, on_episode, run=directory.name)
    write_json(directory / CONFIG, config.model_dump(mode="json"))  # as a sweep's cells have it
    picture = directory / "score.png"
    draw_curve(read_records(directory), directory.name, picture)
    watch = _watch_command(config, directory)
    for line in (closing(config, summary), f"Picture: {picture}", f"Watch it play: {watch}"):
        console.print(line, markup=False, highlight=False, soft_wrap=True)
    return 0


def _watch_command(config: RunConfig, directory: Path) -> str:
    """Return what shows the run at play: as it learned, if it kept snapshots."""
    if config.snapshots:
        return python_command("-m", "a3c.play", "--learning", directory)
    return python_command("-m", "a3c.play", "--checkpoint", directory, "--gif", "bird.gif")


def _also_written(tensorboard: Path | None) -> AbstractContextManager[OnEpisode]:
    """Give what else is to be done with a record."""
    if tensorboard is None:
        return nullcontext(lambda record: None)
    from a3c_core.command_line.tensorboard import writer

    return writer(tensorboard)


def closing(config: RunConfig, summary: RunSummary) -> str:
    """Return a sentence that says what a run came to."""
    score, tenth = summary.score_last_tenth, f"on average in the last tenth of {summary.episodes:,} episodes"
    learned = f"learned to score {score:.1f} {tenth}"
    learned_above = score_of(config.environment.id).learned_above
    if learned_above is not None and score < learned_above:
        learned = f"learned nothing: a score of {score:.2f} {tenth}"
    clock = "virtual time" if config.is_virtual else "its profile's time" if config.is_paced else "real time"
    master = f"the master was busy {summary.master_utilisation:.0%} of the time"
    late = f"gradients came {summary.staleness_mean:,.1f} updates late"
    ending = ", and its queue outgrew it" if summary.outcome == "overloaded" else ""
    workers = "1 worker" if config.workers == "1" else f"{config.workers} workers"
    time_taken = f"after {duration(summary.clock_s)} of {clock}"
    return f"{workers} {learned}, {time_taken}; {master}{ending}, and {late} on average.{_pace_kept(summary)}"


def _pace_kept(summary: RunSummary) -> str:
    """Return how well a paced run kept its pace, in a sentence."""
    if summary.worker_late_share is None:
        return ""
    workers, master = summary.worker_late_share, summary.master_late_share or 0.0
    return f" Of the workers' work {workers:.1%} was late, and of the master's {master:.1%}."


class RunProgress:
    """Heeds a run's records, and says how far it is."""

    def __init__(self, config: RunConfig):
        self._episodes, self._env_steps = config.episodes, config.env_steps
        self._played = 0  # env steps since it began, or was resumed
        self._scores: deque[float] = deque(maxlen=WINDOW)
        self._first = 0  # a resumed run does not begin at 0
        self._latest: EpisodeRecord | None = None
        self._began_s = 0.0

    def __call__(self, record: EpisodeRecord) -> None:
        if self._latest is None:
            self._first, self._began_s = record.episode, time.monotonic()
        self._latest = record
        self._played += record.steps
        self._scores.append(record.score)

    def line(self) -> str:
        """Return the line."""
        if self._latest is None:
            return "getting ready"
        done, scores = self._latest.episode + 1, tuple(self._scores)
        elapsed_s = max(time.monotonic() - self._began_s, 1e-9)
        speed = (done - self._first) / elapsed_s
        of_all, left_s = f" of {self._episodes:,}", (self._episodes - done) / speed
        if self._env_steps is not None:
            of_all, left_s = "", min(left_s, max(0, self._env_steps - self._played) * elapsed_s / self._played)
        return (
            f"{done:,}{of_all} episodes, score {sum(scores) / len(scores):.1f} (mean of the last"
            f" {len(scores)}), {self._latest.workers_alive} workers, {speed:,.0f} episodes/s, {duration(left_s)} to go"
        )


class _Refused(Exception):
    """What the user can mend."""


def _assignments(options: argparse.Namespace) -> list[str]:
    """Return all that was given as key=value."""
    short = {name: getattr(options, name) for name in ("workers", "episodes", "seed")}
    return [f"{name}={value}" for name, value in short.items() if value is not None] + options.set


def _name(options: argparse.Namespace) -> str:
    try:
        return run_name(_assignments(options))
    except ValueError as error:
        raise _Refused(str(error)) from error


def _config(options: argparse.Namespace) -> RunConfig:
    """Return the settings, or say what keeps them from running."""
    try:
        config = read_settings(_assignments(options))
        if config.is_virtual or config.is_paced:
            profile_of(config)
    except (ValueError, OSError, yaml.YAMLError) as error:
        raise _Refused(str(error)) from error
    if (found := misfit(config)) is not None:
        raise _Refused(": ".join(found))
    return config


def _parser() -> Parser:
    parser = Parser("a3c_core.train", "Train one run; keep its records, its learner and a picture.", EXAMPLES)
    parser.add_argument("--workers", metavar="N", help="10, '10->20' or auto (default: 10)")
    parser.add_argument("--episodes", metavar="N", help="over all workers (default: 100,000)")
    parser.add_argument("--seed", metavar="N", help="equal seeds give equal runs in virtual time (default: 0)")
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="change a setting; may be repeated"
    )
    parser.add_argument("--out", type=Path, metavar="DIR", help="where to keep it (default: results/train/NAME)")
    parser.add_argument("--tensorboard", type=Path, metavar="DIR", help="also write curves for TensorBoard there")
    parser.add_argument("--settings", action="store_true", help="show all settings instead of training")
    return parser


if __name__ == "__main__":
    sys.exit(main())
