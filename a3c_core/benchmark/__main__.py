"""The command line of the benchmarks."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from a3c_core.tools.command_line import Parser, new_file, positive_seconds

if TYPE_CHECKING:
    from a3c_core.benchmark.measure import Results

EXAMPLES = """\
examples:
  python -m a3c_core.benchmark env                      # steps per second of every way to play Flappy Bird
  python -m a3c_core.benchmark env --seconds 5          # measure each for longer: steadier numbers
  python -m a3c_core.benchmark env --json bench.json    # keep the numbers as well
  python -m a3c_core.benchmark engine                   # play, gradient and update of every engine, in a minute
  python -m a3c_core.benchmark engine --seconds 20      # so long that the report's engine, too, plays 5,000 steps
  python -m a3c_core.benchmark runtime                  # whole runs with real workers, in some minutes
  python -m a3c_core.benchmark peers                    # what people would use instead, on the same game
  python -m a3c_core.benchmark frames                   # the convolutional network, by agents per worker

Each row is measured in the same run, so its last ratio holds on other machines better than its absolute rate does.
"""


BENCHMARKS = {
    "env": "steps per second: compiled loop, Python class, Gymnasium, and PLE if it is installed",
    "engine": "steps per second: play, gradient, both, and all with Adam's update, for each engine",
    "runtime": "steps per second of whole runs: runtimes, transports, engines; memory and start-up",
    "peers": "steps per second of learning: ours, and Stable-Baselines3 and JAX if they are installed",
    "frames": "steps per second from frames: acting and learning, by agents per worker and by workers",
}


def _parser() -> Parser:
    listed = "\n".join(f"  {name:8} {summary}" for name, summary in BENCHMARKS.items())
    examples = f"benchmarks:\n{listed}\n\n{EXAMPLES}"
    parser = Parser("a3c_core.benchmark", "Measure how fast the parts are on this machine.", examples)
    parser.add_argument("benchmark", choices=BENCHMARKS, metavar="BENCHMARK", help=", ".join(BENCHMARKS))
    parser.add_argument("--seconds", type=positive_seconds, default=1.0, help="time to spend on each row (default: 1)")
    parser.add_argument("--json", type=new_file, metavar="FILE", help="also write the numbers to FILE")
    return parser


def main(arguments: list[str] | None = None) -> None:
    """Run one benchmark, print its table, and write its JSON file if asked to."""
    parser = _parser()
    options = parser.parse_args(arguments)
    from a3c_core.benchmark.measure import print_table, write_json

    results = _measurement(options.benchmark)(options.seconds)
    print_table(results)
    try:
        if options.json is not None:
            write_json(results, options.json)
    except OSError as error:
        parser.error(f"can't write {options.json}: {error.strerror or error}")


def _measurement(name: str) -> "Callable[[float], Results]":
    """Return what measures, imported only now: --help need not wait for a compiler, nor `env` for TensorFlow."""
    if name == "engine":
        from a3c_core.benchmark.engine import measure_engine

        return measure_engine
    if name == "runtime":
        from a3c_core.benchmark.runtime import measure_runtime

        return measure_runtime
    if name == "peers":
        from a3c_core.benchmark.peers import measure_peers

        return measure_peers
    if name == "frames":
        from a3c_core.benchmark.frames import measure_frames

        return measure_frames
    from a3c_core.benchmark.env import measure_env

    return measure_env


if __name__ == "__main__":
    main()
