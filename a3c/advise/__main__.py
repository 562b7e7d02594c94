"""How many workers can a learner bear? `python -m a3c.advise --help`."""

import argparse
import json
import math
import re

import rich.console

from a3c.advise import sources, words
from a3c.advise.advice import Advice, advise
from a3c.advise.costs import Costs
from a3c.advise.jitter import Factors
from a3c.advise.log import LogError
from a3c.advise.queueing import MOST_WORKERS, UNBOUNDED
from a3c_core.command_line.arguments import Parser, new_file, positive_seconds, whole_number
from a3c_core.errors import shown
from a3c_core.records.files import write_whole
from a3c_core.virtual.costs import load_profile

EXAMPLES = """\
examples:
  python -m a3c.advise --episode 518ms --update 31.6ms                 # costs that you know
  python -m a3c.advise --episode 40s --update 9s --batch 8 --latency 2s --jitter 0.5 --workers 16,64
  python -m a3c.advise --log times.csv --html advice.html              # worker,start,end,update_start,update_end
  python -m a3c.advise --log results/quick/cells/workers=4,seed=0      # a run of ours; runs:/ID is one in MLflow
  python -m a3c.advise --costs report                                  # a cost profile of virtual time
  python -m a3c.advise --measure CartPole-v1 --profile cartpole.yaml   # measured here, for virtual time

a3c/advise/timing.py writes such a log from any Python program; docs/advise.md shows how.
"""
_UNITS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0, "": 1.0}
_LONGEST_S = 1e6
_MOST_ASKED = 12


def main(arguments: list[str] | None = None) -> None:
    """Advise; a user's mistake ends with exit code 2 and one line."""
    parser = _parser()
    options = parser.parse_args(arguments)
    if error := _contradiction(options):
        parser.error(error)
    try:
        costs = _changed(_costs(options), options)
        load = costs.system.n_star
        if load > MOST_WORKERS:
            raise ValueError(f"by these costs {load:,.0f} workers can be fed, more than the {MOST_WORKERS:,} looked at")
        advice = advise(costs, options.workers, options.aim)
        _write_files(advice, options)
    except (LogError, ValueError) as error:
        parser.error(str(error))
    except OSError as error:
        parser.error(f"can't write: {error.strerror or error}")
    if not options.json:
        _print(advice)


def _costs(options: argparse.Namespace) -> Costs:
    """Return the costs from the one place that was named."""
    if options.log is not None:
        return sources.from_log(options.log)
    if options.costs is not None:
        return sources.from_profile(options.costs)
    if options.measure is not None:
        return sources.measured(options.measure, options.seconds)
    episode_s = options.episode + (options.pull or 0.0) + (options.push or 0.0)
    return sources.by_hand(episode_s, options.update, 2 * (options.latency or 0.0), options.grows)


def _changed(costs: Costs, options: argparse.Namespace) -> Costs:
    """Return the costs with what the command line says otherwise: one may ask "what if"."""
    changes = {"cores": options.cores, "batch": options.batch, "queue": options.queue}
    if options.latency is not None:
        changes["latency_s"] = 2 * options.latency
    if options.exchange is not None:
        changes["waits"] = options.exchange == "after_apply"
    system = costs.system._replace(**{name: value for name, value in changes.items() if value is not None})
    shared = system._replace(service_s=system.service_s / options.shards, stall_s=system.stall_s / options.shards)
    costs = costs._replace(system=shared)
    if options.jitter is not None:
        costs = costs._replace(cycle_factors=options.jitter, service_factors=options.jitter)
    return costs


def _write_files(advice: Advice, options: argparse.Namespace) -> None:
    if options.html is not None:
        from a3c.advise.page import page

        write_whole(options.html, lambda path: path.write_text(page(advice), encoding="utf-8"))
    if options.profile is not None:
        from a3c.calibrate import write_profile

        write_profile(sources.as_profile(advice.costs), options.profile)
    if options.json:
        text = json.dumps(words.as_json(advice), indent=2, ensure_ascii=False)
        if options.json == "-":
            print(text)
        else:
            write_whole(new_file(options.json), lambda path: path.write_text(f"{text}\n", encoding="utf-8"))


def _print(advice: Advice) -> None:
    console = rich.console.Console(highlight=False)
    for sentence in words.sentences(advice):
        console.print(f"• {sentence}", markup=False)
    if advice.schedule is not None:
        console.print(f"\n{advice.schedule.line}", markup=False, soft_wrap=True)
    console.print(words.table(advice))
    console.print(words.chart(advice), markup=False, soft_wrap=True)
    if max(advice.asked) > advice.costs.system.n0:
        console.print(words.remedy_table(advice))


def _contradiction(options: argparse.Namespace) -> str:
    """Return what is wrong with the options together, or nothing."""
    by_hand = {"--episode": options.episode, "--update": options.update}
    places = {"--log": options.log, "--costs": options.costs, "--measure": options.measure}
    named = [name for name, value in places.items() if value is not None]
    given = [name for name, value in by_hand.items() if value is not None]
    only_by_hand = [*given, *(f"--{name}" for name in ("pull", "push") if getattr(options, name) is not None)]
    if options.grows != 1.0:
        only_by_hand.append("--grows")
    if len(named) > 1:
        return f"{' and '.join(named)} are two places of costs: name one"
    if named and only_by_hand:
        return f"{only_by_hand[0]} can't be given together with {named[0]}, which says it"
    if not named and len(given) < 2:
        missing = [name for name in by_hand if name not in given]
        return f"{' and '.join(missing)} is missing: give both costs, or a --log, --costs or --measure"
    return ""


def length(text: str) -> float:
    """Return the seconds that 518ms, 31.6 ms, 2s, 1.5min or 0.5 stand for."""
    found = re.fullmatch(r"\s*([0-9]*\.?[0-9]+(?:e[-+]?[0-9]{1,3})?)\s*(ns|us|µs|ms|s|min|h|)\s*", text[:60], re.ASCII)
    seconds = float(found[1]) * _UNITS[found[2]] if found else math.inf
    if not seconds <= _LONGEST_S:
        raise argparse.ArgumentTypeError(f"a duration such as 518ms, 2s or 1.5min is needed, not {shown(text)}")
    return seconds


def _positive_length(text: str) -> float:
    seconds = length(text)
    if seconds < 1e-9:
        raise argparse.ArgumentTypeError(f"a duration of at least 1 ns is needed, not {shown(text)}")
    return seconds


def _number(least: float, most: float, what: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not least <= value <= most:
        raise argparse.ArgumentTypeError(f"{what} from {least:g} to {most:g} is needed, not {shown(text)}")
    return value


def _jitter(text: str) -> Factors:
    if text not in ("none", "exponential"):
        _number(0.0, 10.0, "none, exponential, or a standard deviation (of a mean of 1)", text)
    return sources.jitter(text)


def _queue(text: str) -> int:
    return UNBOUNDED if text == "unbounded" else whole_number(1, 1_000_000)(text)


def _workers(text: str) -> tuple[int, ...]:
    counts = tuple(sorted({whole_number(1, MOST_WORKERS)(part) for part in text.split(",")}))
    if len(counts) > _MOST_ASKED:
        raise argparse.ArgumentTypeError(f"at most {_MOST_ASKED} numbers of workers can be asked for")
    return counts


def _profile(text: str) -> str:
    try:
        load_profile(text)
    except (ValueError, OSError) as error:
        raise argparse.ArgumentTypeError(str(error)) from error
    return text


def _json(text: str) -> str:
    return text if text == "-" else str(new_file(text))


def _parser() -> Parser:
    parser = Parser("a3c.advise", "How many workers can my learner bear?", EXAMPLES)
    costs = parser.add_argument_group("costs: by hand, or from one of --log, --costs and --measure")
    costs.add_argument("--episode", type=_positive_length, metavar="TIME", help="a worker's, for one gradient: 518ms")
    costs.add_argument("--update", type=_positive_length, metavar="TIME", help="the learner's, for one update")
    costs.add_argument("--pull", type=length, metavar="TIME", help="a worker takes over new parameters")
    costs.add_argument("--push", type=length, metavar="TIME", help="a worker hands over a gradient")
    costs.add_argument("--grows", type=lambda text: _number(0.01, 1e4, "a factor", text), default=1.0, metavar="FACTOR",
                       help="episodes take so many times as long at the end (default: 1)")  # fmt: skip
    costs.add_argument("--log", metavar="FILE", help="CSV, Parquet, a cell's directory, or runs:/ID in MLflow")
    costs.add_argument("--costs", type=_profile, metavar="PROFILE", help="report, uniform or a YAML file")
    costs.add_argument("--measure", nargs="?", const="compiled", metavar="GAME", help="an engine or a Gymnasium id")
    costs.add_argument("--seconds", type=positive_seconds, default=5.0, help="to measure for (default: 5)")
    system = parser.add_argument_group("the system: what a log or profile says, if not given")
    system.add_argument("--latency", type=length, metavar="TIME", help="under way, each way")
    system.add_argument("--jitter", type=_jitter, metavar="J", help="none, exponential, or a standard deviation: 0.2")
    system.add_argument("--cores", type=whole_number(1, 1_000_000), help="shared by workers and learner")
    system.add_argument("--batch", type=whole_number(1, 100_000), help="gradients that an update takes")
    system.add_argument("--shards", type=whole_number(1, 10_000), default=1, help="that share each update (default: 1)")
    system.add_argument("--exchange", choices=("at_once", "after_apply"), help="whether workers wait for their update")
    system.add_argument("--queue", type=_queue, help="unbounded, or gradients that may wait before workers do")
    answer = parser.add_argument_group("the answer")
    answer.add_argument("--workers", type=_workers, default=(4, 10, 20, 40), help="to ask about (default: 4,10,20,40)")
    answer.add_argument("--aim", type=lambda text: _number(0.05, 0.99, "a utilisation", text), default=0.8,
                        help="how busy a schedule is to keep the learner (default: 0.8)")  # fmt: skip
    answer.add_argument("--html", type=new_file, metavar="FILE", help="a page with sliders")
    answer.add_argument("--json", type=_json, nargs="?", const="-", metavar="FILE", help="for machines; alone: printed")
    answer.add_argument("--profile", type=new_file, metavar="FILE", help="a cost profile for virtual time")
    return parser


if __name__ == "__main__":
    main()
