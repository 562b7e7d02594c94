"""What MLflow keeps of a finished cell: its files, a picture of its learning, and its final policy at play."""

import shutil
from pathlib import Path

from a3c_core.command_line.learning_curve import draw_curve
from a3c_core.records import checkpoints
from a3c_core.records.layout import SNAPSHOTS
from a3c_core.records.tables import read_records

FILES = ("config.json", "metadata.json", "summary.json", "episodes.parquet", "updates.parquet", "log.txt")
_GIF_STEPS = 400


def collect(cell: Path, into: Path) -> list[str]:
    """Fill the folder `into` with a cell's artifacts; return what could not be made, and why."""
    for name in FILES:
        if (cell / name).exists():
            shutil.copy2(cell / name, into / name)
    problems = []
    to_make = {"learning_curve.png": _draw_curve, "checkpoint": _copy_checkpoint, "policy.gif": _film}
    if (cell / SNAPSHOTS).is_dir():
        to_make["learning.gif"] = _film_learning
    for name, make in to_make.items():
        try:
            make(cell, into / name)
        except Exception as error:  # a picture less is no reason to lose the rest
            problems.append(f"{name}: {type(error).__name__}: {error}")
    return problems


def _draw_curve(cell: Path, path: Path) -> None:
    draw_curve(read_records(cell), cell.name, path)


def _copy_checkpoint(cell: Path, path: Path) -> None:
    shutil.copytree(checkpoints.load(cell).path, path)


def _film(cell: Path, path: Path) -> None:
    """Show the beginning of one episode of the final policy."""
    from a3c.play.animation import film, write_gif
    from a3c.play.policies import environment_of, play_game, policy_of, refuse_untrusted_modules

    checkpoint = checkpoints.load(cell)
    try:
        refuse_untrusted_modules(checkpoint)
    except checkpoints.CheckpointError:
        return  # whoever brings results to MLflow need not trust what they name
    environment = environment_of(checkpoint, max_steps=_GIF_STEPS)
    policy = policy_of(checkpoint, environment)
    game = play_game(policy, environment, seed=0, episode=0)
    write_gif(path, film(policy, environment, seed=0, episode=0, env_steps=game.env_steps))


def _film_learning(cell: Path, path: Path) -> None:
    """Show the same episode as the run's snapshots play it."""
    from a3c.play.animation import write_gif
    from a3c.play.learning_film import film_learning

    try:
        write_gif(path, film_learning(cell, seed=0, env_steps=_GIF_STEPS))
    except checkpoints.CheckpointError:
        return  # as above
