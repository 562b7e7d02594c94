"""The command line of the benchmarks."""

from pathlib import Path
from typing import NamedTuple

from a3c_core.command_line.arguments import Parser, new_file, positive_seconds
from a3c_core.registry import load

EXAMPLES = """\
examples:
  python -m a3c.benchmark env                      # steps per second of every way to play Flappy Bird
  python -m a3c.benchmark env --seconds 5          # measure each for longer: steadier numbers
  python -m a3c.benchmark env --json bench.json    # keep the numbers as well
  python -m a3c.benchmark engine                   # play, gradient and update of every engine, in a minute
  python -m a3c.benchmark engine --seconds 20      # so long that the report's engine, too, plays 5,000 steps
  python -m a3c.benchmark runtime                  # whole runs with real workers, in some minutes
  python -m a3c.benchmark peers                    # what people would use instead, on the same game
  python -m a3c.benchmark frames                   # the convolutional network, by agents per worker
  python -m a3c.benchmark start --seconds 10       # what a run needs before its first episode; 10 million episodes
  python -m a3c.benchmark engine --against old.json                # beside numbers that --json kept elsewhere
  python -m a3c.benchmark peers --into docs/performance.md         # the table goes to its place in a document

Each row is measured in the same run, so its last ratio holds on other machines better than its absolute rate does.
"""


class Benchmark(NamedTuple):
    """What can be measured, and the function that does so, given seconds."""

    summary: str
    function: str  # imported only when asked for: --help need not wait for a compiler, nor `env` for TensorFlow


BENCHMARKS = {
    "env": Benchmark(
        "steps per second: compiled loop, Python class, Gymnasium, and PLE if it is installed",
        "a3c.benchmark.env:measure_env",
    ),
    "engine": Benchmark(
        "steps per second: play, gradient, both, and all with Adam's update, for each engine",
        "a3c.benchmark.engine:measure_engine",
    ),
    "limit": Benchmark(
        "steps per second: each part of a step, beside what a core's arithmetic could do",
        "a3c.benchmark.limit:measure_limit",
    ),
    "virtual": Benchmark(
        "episodes per second of virtual time: compiled and in Python, with few and many workers",
        "a3c.benchmark.virtual:measure_virtual",
    ),
    "runtime": Benchmark(
        "steps per second of whole runs: runtimes, transports, engines; memory and start-up",
        "a3c.benchmark.runtime:measure_runtime",
    ),
    "start": Benchmark(
        "core time and memory before the first episode, and of a long run",
        "a3c.benchmark.start:measure_start",
    ),
    "peers": Benchmark(
        "steps per second of learning: ours, and Stable-Baselines3 and JAX if they are installed",
        "a3c.benchmark.peers:measure_peers",
    ),
    "frames": Benchmark(
        "steps per second from frames: acting and learning, by agents per worker and by workers",
        "a3c.benchmark.frames:measure_frames",
    ),
}


def _parser() -> Parser:
    listed = "\n".join(f"  {name:8} {benchmark.summary}" for name, benchmark in BENCHMARKS.items())
    examples = f"benchmarks:\n{listed}\n\n{EXAMPLES}"
    parser = Parser("a3c.benchmark", "Measure how fast the parts are on this machine.", examples)
    parser.add_argument("benchmark", choices=BENCHMARKS, metavar="BENCHMARK", help=", ".join(BENCHMARKS))
    parser.add_argument("--seconds", type=positive_seconds, default=1.0, help="time to spend on each row (default: 1)")
    parser.add_argument("--json", type=new_file, metavar="FILE", help="also write the numbers to FILE")
    parser.add_argument("--against", type=Path, metavar="FILE", help="compare with numbers that --json wrote")
    parser.add_argument("--into", type=Path, metavar="FILE", help="also put the table into a document that has a place")
    return parser


def main(arguments: list[str] | None = None) -> None:
    """Run one benchmark, print its table, and keep its numbers where asked to."""
    parser = _parser()
    options = parser.parse_args(arguments)
    from a3c.benchmark.document import put_into, refuse_without_place
    from a3c.benchmark.measure import markdown, print_table, rates_in, write_json

    try:  # before the minutes that it takes to measure
        before = None if options.against is None else rates_in(options.against)
        if options.into is not None:
            refuse_without_place(options.into, options.benchmark)
    except (OSError, ValueError) as error:
        parser.error(str(error))
    results = load(BENCHMARKS[options.benchmark].function)(options.seconds)
    print_table(results, before)
    try:
        if options.json is not None:
            write_json(results, options.json)
        if options.into is not None:
            put_into(options.into, results.benchmark, markdown(results, before))
    except OSError as error:
        parser.error(f"can't write {error.filename or options.json}: {error.strerror or error}")


if __name__ == "__main__":
    main()
