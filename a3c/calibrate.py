"""Measure what things cost on this machine, as a profile for virtual time: `python -m a3c.calibrate --help`."""

import importlib.metadata
import os
import platform
from pathlib import Path
from typing import Any

import rich.console
import rich.table
import yaml

from a3c_core.command_line.arguments import Parser, new_file, positive_seconds
from a3c_core.engines import ENGINES
from a3c_core.records.files import write_whole
from a3c_core.virtual.costs import CostProfile

EXAMPLES = """\
examples:
  python -m a3c.calibrate                                      # compiled engine, shared memory: profile.yaml
  python -m a3c.calibrate --transport queue --out queue.yaml   # as the report sent gradients and models
  python -m a3c.calibrate --engine report --seconds 20         # the report's way to play, on this machine
  python -m a3c.calibrate --transport none                     # no processes are started: worker and update only

A run in virtual time uses the profile by its path: `profile: profile.yaml` in its settings.
"""
TRANSPORTS = ("shared", "queue", "none")
_PACKAGES = {"compiled": ("numpy", "numba"), "tensorflow": ("numpy", "tensorflow"), "report": ("numpy", "tensorflow")}
_COUNTED = ("cores", "threads_per_core")


def main(arguments: list[str] | None = None) -> None:
    """Measure, print and write; a user's mistake ends with exit code 2 and one line."""
    parser = _parser()
    options = parser.parse_args(arguments)
    try:
        profile = calibrate(options.engine, options.transport, options.seconds)
        replaced = " (replaced)" if options.out.exists() else ""
        write_profile(profile, options.out)
    except OSError as error:
        parser.error(f"can't write {options.out}: {error.strerror or error}")
    console = rich.console.Console()
    console.print(profile_table(profile))
    console.print(f"Written to {options.out}{replaced}.", highlight=False, soft_wrap=True)


def calibrate(engine: str, transport: str = "shared", seconds: float = 2.0) -> CostProfile:
    """Return this machine's profile for an engine and a transport, each part measured for about `seconds`."""
    from a3c.exchange_costs import (  # imported late: --help need not wait for them
        exchange_costs,
        update_cost,
    )
    from a3c.worker_costs import worker_costs

    costs: dict[str, Any] = {
        "about": _about(engine, transport),
        **worker_costs(engine, seconds),
        "update_s": update_cost(),
        "cores": os.cpu_count() or 1,
        "master_first": True,  # workers of real runs give way to it
    }
    if transport != "none":
        costs |= exchange_costs(engine, transport, CostProfile(**costs), seconds)
    return CostProfile(**costs)


def write_profile(profile: CostProfile, path: Path) -> None:
    """Write a profile as YAML, whole, in the order of its fields; costs to four digits."""
    rounded = {name: _rounded(value) for name, value in profile.model_dump(exclude_defaults=True).items()}
    text = yaml.safe_dump(rounded, sort_keys=False, allow_unicode=True, width=120)
    write_whole(path, lambda temporary: temporary.write_text(text, encoding="utf-8"))


def profile_table(profile: CostProfile) -> rich.table.Table:
    """Return the costs as a table, in microseconds."""
    table = rich.table.Table("cost", title="what things cost here", caption=profile.about, caption_justify="left")
    table.add_column("µs", justify="right")
    table.add_column("who and what", overflow="fold")
    for name, field in CostProfile.model_fields.items():
        if name.endswith("_s") and getattr(profile, name) is not None:
            table.add_row(name, f"{getattr(profile, name) * 1e6:,.2f}", field.description)
    for name in _COUNTED:
        table.add_row(name, str(getattr(profile, name)), CostProfile.model_fields[name].description or "")
    return table


def _rounded(value: Any) -> Any:
    return float(f"{value:.4g}") if isinstance(value, float) else value


def _about(engine: str, transport: str) -> str:
    """Return what was measured and where: machine and versions, but no date, so that equal is equal."""
    versions = [f"{name} {importlib.metadata.version(name)}" for name in _PACKAGES[engine]]
    exchange = "no exchange" if transport == "none" else f"transport {transport}"
    return (
        f"Measured by a3c.calibrate: engine {engine}, {exchange}, on {_processor()} with {os.cpu_count()} cores; "
        f"Python {platform.python_version()}, {', '.join(versions)}."
    )


def _processor() -> str:
    """Return the processor's name as the system knows it."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8").splitlines() if info.is_file() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def _parser() -> Parser:
    parser = Parser("a3c.calibrate", "Measure this machine's costs, for runs in virtual time.", EXAMPLES)
    parser.add_argument("--engine", choices=ENGINES.names(), default="compiled", help="default: compiled")
    parser.add_argument("--transport", choices=TRANSPORTS, default="shared", help="default: shared")
    parser.add_argument("--out", type=new_file, default="profile.yaml", metavar="FILE", help="default: profile.yaml")
    parser.add_argument("--seconds", type=positive_seconds, default=2.0, help="to spend on each part (default: 2)")
    return parser


if __name__ == "__main__":
    main()
