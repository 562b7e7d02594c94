"""How many workers can a learner keep up with, and what limits a trainer? `python -m a3c.advise --help`."""

import argparse
import json
import math
import re
from typing import Any

import rich.console

from a3c.advise import answer, readers, sources, workers
from a3c.advise.costs import Costs
from a3c.advise.fit_rollouts import fit
from a3c.advise.fit_steps import Given
from a3c.advise.measurements import ASYNCHRONOUS, ONE_STEP_OFF, SYNCHRONOUS, LogError, Measurements
from a3c.advise.readers import columns
from a3c.advise.remedies import splits, what_if_async
from a3c.advise.simulator import MOST_WORKERS, SYNCS, UNBOUNDED, Factors, fit_concurrency
from a3c_core.command_line.arguments import Parser, new_file, positive_seconds, whole_number
from a3c_core.errors import shown
from a3c_core.records.files import write_whole
from a3c_core.virtual.costs import load_profile

EXAMPLES = """\
examples:
  python -m a3c.advise --episode 518ms --update 31.6ms                 # workers and a learner, costs that you know
  python -m a3c.advise --episode 40s --update 9s --batch 64 --group 8 --staleness 2 --workers 64,128
  python -m a3c.advise --log train.log                                 # verl, AReaL, slime, Sample Factory, RLlib
  python -m a3c.advise --log train.log --what-if async                 # what overlap would gain a synchronous run
  python -m a3c.advise --log train.log --budget 32 --split 16:16       # how to divide 32 devices
  python -m a3c.advise --log metrics.csv --columns rollout=timing_s/gen,update=timing_s/update_actor
  python -m a3c.advise --log times.csv --html advice.html              # worker,start,end,update_start,update_end
  python -m a3c.advise --log results/quick/cells/workers=4,seed=0      # a run of ours; runs:/ID is one in MLflow
  python -m a3c.advise --measure CartPole-v1 --profile cartpole.yaml   # measured here, for virtual time

a3c/advise/timing.py writes times.csv from any Python program; docs/advise.md has an example for each system.
"""
_UNITS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0, "": 1.0}
_LONGEST_S = 1e6
_MOST_ASKED = 12
_WORKERS = (4, 10, 20, 40)  # to ask about


def main(arguments: list[str] | None = None) -> None:
    """Advise; a user's mistake ends with exit code 2 and one line."""
    parser = _parser()
    options = parser.parse_args(arguments)
    if error := _contradiction(options):
        parser.error(error)
    try:
        found = None if options.log is None else readers.read(options.log, options.format, options.columns)
        if found is not None and found.events is None:
            _answer_log(found, options)
        else:
            _answer_workers(found, options)
    except (LogError, ValueError) as error:
        parser.error(str(error))
    except OSError as error:
        parser.error(f"can't write: {error.strerror or error}")


# Workers and a learner


def _answer_workers(found: Measurements | None, options: argparse.Namespace) -> None:
    """Answer how many workers the learner keeps up with."""
    if found is not None and options.grows != 1.0:
        raise ValueError("--grows can't be given together with a --log of single rollouts, which says it")
    for name in ("budget", "what_if"):
        if getattr(options, name) is not None:
            raise ValueError(f"--{name.replace('_', '-')} needs a --log of a trainer's steps")
    costs = _changed(_costs(found, options), options)
    load = costs.system.n_star
    if load > MOST_WORKERS:
        raise ValueError(
            f"by these costs the learner keeps up with {load:,.0f} workers, more than the {MOST_WORKERS:,} looked at"
        )
    asked = (
        options.workers
        or tuple(count for count in _WORKERS if count >= costs.system.group)
        or (2 * costs.system.group,)
    )
    advice = workers.advise(costs, asked, options.aim)
    if options.html is not None:
        from a3c.advise.page import page_of_workers

        write_whole(options.html, lambda path: path.write_text(page_of_workers(advice), encoding="utf-8"))
    if options.profile is not None:
        from a3c.calibrate import write_profile

        write_profile(sources.as_profile(advice.costs), options.profile)
    if options.json:
        _write_json(workers.as_json(advice), options.json)
    else:
        _print_workers(advice)


def _costs(found: Measurements | None, options: argparse.Namespace) -> Costs:
    """Return the costs from the one place that was named."""
    if found is not None and found.events is not None:
        return fit(found.events, f"by the log {found.source}")
    if options.costs is not None:
        return sources.from_profile(options.costs)
    if options.measure is not None:
        return sources.measured(options.measure, options.seconds)
    episode_s = options.episode + (options.pull or 0.0) + (options.push or 0.0)
    return sources.by_hand(episode_s, options.update, 2 * (options.latency or 0.0), options.grows)


def _changed(costs: Costs, options: argparse.Namespace) -> Costs:
    """Return the costs with what the command line says otherwise: one may ask "what if"."""
    changes = {
        "cores": options.cores,
        "batch": options.batch,
        "queue": options.queue,
        "group": options.group,
        "in_flight": options.in_flight,
        "staleness": options.staleness,
        "drop_age": options.drop_age,
        "drops_oldest": None if options.full is None else options.full == "drop-oldest",
        "sync_s": options.sync,
        "sync_every": options.sync_every,
        "sync_mode": None if options.sync_mode is None else SYNCS.index(options.sync_mode),
    }
    if options.latency is not None:
        changes["latency_s"] = 2 * options.latency
    if options.exchange is not None:
        changes["waits"] = options.exchange == "after_apply"
    if options.curve is not None:
        _, changes["contention"], changes["coherence"] = options.curve
    system = costs.system._replace(**{name: value for name, value in changes.items() if value is not None})
    shared = system._replace(service_s=system.service_s / options.shards, stall_s=system.stall_s / options.shards)
    costs = costs._replace(system=shared)
    if options.jitter is not None:
        costs = costs._replace(cycle_factors=options.jitter, service_factors=options.jitter)
    return costs


def _print_workers(advice: workers.Advice) -> None:
    console = rich.console.Console(highlight=False)
    for sentence in workers.sentences(advice):
        console.print(f"• {sentence}", markup=False)
    if advice.schedule is not None:
        console.print(f"\n{advice.schedule.line}", markup=False, soft_wrap=True)
    console.print(workers.table(advice))
    console.print(workers.chart(advice), markup=False, soft_wrap=True)
    if workers.needs_remedy(advice):
        console.print(workers.remedy_table(advice))


# A trainer's log


def _answer_log(found: Measurements, options: argparse.Namespace) -> None:
    """Answer what limits a trainer, and what to change."""
    if options.profile is not None:
        raise ValueError("--profile needs costs of single rollouts, which this log does not have")
    told = answer.answer(found, _given(options))
    split = None if options.budget is None else splits(told.costs, options.budget, _now(told, options), options.serial)
    overlap = None if options.what_if is None else what_if_async(_synchronous(told), options.serial)
    if options.html is not None:
        from a3c.advise.page import page_of_log

        write_whole(options.html, lambda path: path.write_text(page_of_log(told), encoding="utf-8"))
    if options.json:
        numbers = answer.as_json(told)
        if split is not None:
            rows = [{**one._asdict(), "step_s": one.step_s._asdict()} for one in split]
            numbers["budget"] = {"devices": options.budget, "serial": options.serial, "splits": rows}
        if overlap is not None:
            numbers["what_if_async"] = [answer.change_json(change) for change in overlap]
        _write_json(numbers, options.json)
        return
    console = rich.console.Console(highlight=False)
    for sentence in answer.sentences(told):
        console.print(f"• {sentence}", markup=False)
    if split is not None:
        console.print(answer.split_table(split, options.budget))
        console.print(answer.split_words(split), markup=False)
        console.print(answer.scaling_words(told.costs[0], options.serial), markup=False)
    if overlap is not None:
        console.print()
        for sentence in answer.what_if_words(overlap, options.serial):
            console.print(f"• {sentence}", markup=False)
        console.print(answer.scaling_words(told.costs[0], options.serial), markup=False)


def _given(options: argparse.Namespace) -> Given:
    """Return what the command line says of the system."""
    return Given(
        staleness=options.staleness,
        group=options.group,
        in_flight=options.in_flight,
        batch=options.batch,
        sync_s=options.sync,
        sync_every=options.sync_every,
        sync_mode=None if options.sync_mode is None else SYNCS.index(options.sync_mode),
        queue=options.queue,
        drops_oldest=None if options.full is None else options.full == "drop-oldest",
        drop_age=options.drop_age,
        update_s=options.update,
        cycle_factors=options.jitter,
        curve=options.curve,
        mode=options.mode,
        grows=options.grows,
    )


def _now(told: answer.Answer, options: argparse.Namespace) -> tuple[int, int]:
    """Return the generators and trainers of the log: of turns on the same devices both are all of them."""
    if not told.costs:
        raise ValueError("--budget needs a log with the times of updates")
    if options.split is not None:
        split: tuple[int, int] = options.split
        return split
    if told.costs[0].system.colocated:
        return options.budget, options.budget
    raise ValueError(
        "--budget needs the devices of this log: say them with --split, as in --split 16:16 (generators:trainer)"
    )


def _synchronous(told: answer.Answer) -> list[Costs]:
    if not told.costs or not told.costs[0].system.colocated:
        raise ValueError("--what-if async needs a log of synchronous training on shared devices, and this is none")
    return told.costs


def _write_json(numbers: dict[str, Any], target: str) -> None:
    text = json.dumps(numbers, indent=2, ensure_ascii=False)
    if target == "-":
        print(text)
    else:
        write_whole(new_file(target), lambda path: path.write_text(f"{text}\n", encoding="utf-8"))


def _contradiction(options: argparse.Namespace) -> str:
    """Return what is wrong with the options together, or nothing."""
    by_hand = {"--episode": options.episode, "--update": options.update}
    places = {"--log": options.log, "--costs": options.costs, "--measure": options.measure}
    named = [name for name, value in places.items() if value is not None]
    given = [name for name, value in by_hand.items() if value is not None]
    only_by_hand = [f"--{name}" for name in ("episode", "pull", "push") if getattr(options, name) is not None]
    if options.update is not None and options.log is None:
        only_by_hand.append("--update")
    if options.grows != 1.0 and options.log is None:
        only_by_hand.append("--grows")
    for name in ("format", "columns", "mode"):
        if getattr(options, name) is not None and options.log is None:
            return f"--{name} is about a --log"
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
    if text.startswith("pareto:"):
        _number(1.01, 1e3, "pareto: and a shape", text.removeprefix("pareto:"))
    elif text not in ("none", "exponential"):
        _number(0.0, 10.0, "none, exponential, pareto:SHAPE, or a standard deviation (of a mean of 1)", text)
    return sources.jitter(text)


def _columns(text: str) -> dict[str, str]:
    try:
        return columns.parse(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _curve(text: str) -> tuple[float, float, float]:
    try:
        points = [(float(count), float(rate)) for count, rate in (part.split(":") for part in text.split(","))]
        return fit_concurrency(points)
    except (ValueError, OverflowError) as error:
        reason = "three points or more are needed, as in 16:2.1,64:6.0,256:11 (rollouts side by side:rollouts a second)"
        raise argparse.ArgumentTypeError(f"{reason}, not {shown(text)}") from error


def _split(text: str) -> tuple[int, int]:
    generators, colon, trainers = text.partition(":")
    if not colon:
        raise argparse.ArgumentTypeError(f"generators:trainer is needed, as in 16:16, not {shown(text)}")
    read = whole_number(1, 1_000_000)
    return read(generators), read(trainers)


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
    parser = Parser("a3c.advise", "How many workers can a learner keep up with, and what limits a trainer?", EXAMPLES)
    costs = parser.add_argument_group("costs: by hand, or from one of --log, --costs and --measure")
    costs.add_argument("--episode", type=_positive_length, metavar="TIME", help="a worker's, for one gradient: 518ms")
    costs.add_argument("--update", type=_positive_length, metavar="TIME", help="the learner's, for one update")
    costs.add_argument("--pull", type=length, metavar="TIME", help="a worker takes over new parameters")
    costs.add_argument("--push", type=length, metavar="TIME", help="a worker hands over a gradient")
    costs.add_argument("--grows", type=lambda text: _number(0.01, 1e4, "a factor", text), default=1.0, metavar="FACTOR",
                       help="episodes take so many times as long at the end (default: 1)")  # fmt: skip
    costs.add_argument(
        "--log", metavar="FILE", help="a trainer's log, times of our timer, a run's directory, or runs:/ID"
    )
    costs.add_argument("--format", choices=readers.FORMATS, help="of the log, where it is not recognised")
    costs.add_argument(
        "--columns", type=_columns, metavar="MAP", help="of any CSV or JSONL: update=train_s,wait=wait_s"
    )
    costs.add_argument(
        "--mode", choices=(ASYNCHRONOUS, SYNCHRONOUS, ONE_STEP_OFF), help="of training, if the log is unclear"
    )
    costs.add_argument("--costs", type=_profile, metavar="PROFILE", help="report, uniform or a YAML file")
    costs.add_argument("--measure", nargs="?", const="compiled", metavar="GAME", help="an engine or a Gymnasium id")
    costs.add_argument("--seconds", type=positive_seconds, default=5.0, help="to measure for (default: 5)")
    system = parser.add_argument_group("the system: what a log or profile says, if not given")
    system.add_argument("--latency", type=length, metavar="TIME", help="under way, each way")
    system.add_argument(
        "--jitter", type=_jitter, metavar="J", help="none, exponential, pareto:2.5, or a deviation: 0.2"
    )
    system.add_argument("--cores", type=whole_number(1, 1_000_000), help="shared by workers and learner")
    system.add_argument("--batch", type=whole_number(1, 100_000), help="rollouts or gradients that an update takes")
    system.add_argument("--group", type=whole_number(1, 10_000), help="rollouts of one prompt, handed over together")
    system.add_argument(
        "--in-flight", type=whole_number(1, MOST_WORKERS), metavar="N", help="rollouts in flight at most"
    )
    system.add_argument("--staleness", type=lambda text: _number(0.0, 1e4, "a bound on age", text), metavar="S",
                        help="admission by age: syncs that rollouts may be ahead (AReaL, SkyRL, verl)")  # fmt: skip
    system.add_argument("--drop-age", type=lambda text: _number(0.0, 1e4, "an age", text), metavar="A",
                        help="rollouts more updates old are dropped")  # fmt: skip
    system.add_argument("--full", choices=("wait", "drop-oldest"), help="what a full --queue does (default: wait)")
    system.add_argument("--sync", type=length, metavar="TIME", help="weights under way to the generators: 3s")
    system.add_argument("--sync-every", type=whole_number(1, 10_000), metavar="N", help="updates between two syncs")
    system.add_argument("--sync-mode", choices=SYNCS, help="generation pauses, finishes first, or goes on meanwhile")
    system.add_argument(
        "--curve", type=_curve, metavar="POINTS", help="throughput by rollouts side by side: 16:2.1,64:6,256:11"
    )
    system.add_argument("--shards", type=whole_number(1, 10_000), default=1, help="that share each update (default: 1)")
    system.add_argument("--exchange", choices=("at_once", "after_apply"), help="whether workers wait for their update")
    system.add_argument("--queue", type=_queue, help="unbounded, or gradients that may wait before workers do")
    answers = parser.add_argument_group("the answer")
    answers.add_argument("--workers", type=_workers, help="to ask about (default: 4,10,20,40)")
    answers.add_argument("--aim", type=lambda text: _number(0.05, 0.99, "a utilisation", text), default=0.8,
                         help="how busy a schedule is to keep the learner (default: 0.8)")  # fmt: skip
    answers.add_argument("--budget", type=whole_number(2, 1_000_000), metavar="N", help="devices to divide")
    answers.add_argument("--split", type=_split, metavar="G:T", help="generators and trainer devices of the log: 16:16")
    answers.add_argument("--serial", type=lambda text: _number(0.0, 1.0, "a share", text), default=0.0, metavar="SHARE",
                         help="of an update's time that does not shrink with devices (default: 0)")  # fmt: skip
    answers.add_argument("--what-if", choices=("async",), help="the gain of overlap for a synchronous run")
    answers.add_argument("--html", type=new_file, metavar="FILE", help="a page with sliders")
    answers.add_argument(
        "--json", type=_json, nargs="?", const="-", metavar="FILE", help="for machines; alone: printed"
    )
    answers.add_argument("--profile", type=new_file, metavar="FILE", help="a cost profile for virtual time")
    return parser


if __name__ == "__main__":
    main()
