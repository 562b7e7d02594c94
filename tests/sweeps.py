"""Small sweeps for the tests, run as a user runs them."""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import yaml

ROOT = Path(__file__).parent.parent
WITH_PAGE = [sys.executable, str(ROOT / "run_sweep.py")]
COMMAND = [*WITH_PAGE, "--no-page"]  # which would take longer than a small sweep
PATIENCE_S = 900.0  # ends what hangs, and nothing else: a busy machine may take minutes for what takes seconds


def write_grid(folder: Path, name: str = "tiny", **content) -> Path:
    """Write a grid file and return its path; by default two cells of a second."""
    grid = {
        "name": name,
        "question": "Does it work?",
        "base": {"episodes": 300, "profile": "uniform"},
        "axes": {"workers": [2, 4]},
        **content,
    }
    path = folder / f"{name}.yaml"
    path.write_text(yaml.safe_dump(grid, sort_keys=False))
    return path


def sweep(folder: Path, *arguments: str) -> subprocess.CompletedProcess:
    """Run run_sweep.py in the folder and return how it ended."""
    return subprocess.run([*COMMAND, *arguments], cwd=folder, capture_output=True, text=True, timeout=PATIENCE_S)


@contextmanager
def started_sweep(folder: Path, *arguments: str, command: Sequence[str] = COMMAND) -> Iterator[subprocess.Popen]:
    """Start run_sweep.py in the folder, with its output in output.txt; kill it at the end if it still runs."""
    with (folder / "output.txt").open("ab") as output:
        process = subprocess.Popen([*command, *arguments], cwd=folder, stdout=output, stderr=output)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def wait_for(condition: Callable[[], object], limit_s: float = PATIENCE_S) -> None:
    """Wait until the condition holds."""
    deadline = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < deadline, "it took too long"
        time.sleep(0.02)


def cell_processes(folder: Path) -> dict[str, int]:
    """Return {cell: process id} of the cells of sweeps that were started in the folder."""
    return {words[-2]: process for process, words in _processes(folder, "experiments.sweep.cell")}


def tracker_processes(folder: Path) -> list[int]:
    """Return the process ids of the tracking processes of sweeps that were started in the folder."""
    return [process for process, _ in _processes(folder, "experiments.tracking.tracker")]


def page_processes(folder: Path) -> list[int]:
    """Return the process ids of what makes pages for sweeps that were started in the folder."""
    return [process for process, _ in _processes(folder, "experiments.sweep.page")]


def _processes(folder: Path, module: str) -> Iterator[tuple[int, list[str]]]:
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            words = (process / "cmdline").read_bytes().decode().split("\0")
            if module in words and (process / "cwd").readlink() == folder:
                yield int(process.name), words


def way_on(output: str) -> str:
    """Return the command that a sweep printed, to bring MLflow up to date."""
    return output.partition("Nothing is lost: ")[2].partition("\n")[0]


def metadata(cell: Path) -> dict:
    return json.loads((cell / "metadata.json").read_text())


def forget_digests(run: Path) -> None:
    """Write a run's summary anew as older programs did: without digests, so that nothing can be verified."""
    summary = json.loads((run / "summary.json").read_bytes())
    plain = {name: value for name, value in summary.items() if "sha256" not in name}
    (run / "summary.json").write_text(json.dumps(plain))


def results(cell: Path) -> dict:
    """Return what equal runs must have equal: records, final learner, and summary but for the real clock."""
    summary = json.loads((cell / "summary.json").read_text())
    newest = max((cell / "checkpoints").iterdir())
    return {
        "records": (cell / "episodes.parquet").read_bytes(),
        "learner": (newest / "learner.npz").read_bytes(),
        "summary": {key: value for key, value in summary.items() if key not in ("wall_s", "summary_sha256")},
    }


def everything_in(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}
