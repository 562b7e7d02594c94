"""What MLflow keeps of a finished cell: its files, a picture of its learning, and its final policy at play."""

import shutil
from pathlib import Path

import numpy as np

from a3c_core import checkpoints
from a3c_core.config import names_of_others
from a3c_core.records import read_records
from experiments.episode_metrics import rolling_mean

FILES = ("config.json", "metadata.json", "summary.json", "episodes.parquet", "log.txt")
_GIF_STEPS = 400
_CURVE_POINTS = 2000


def collect(cell: Path, into: Path) -> list[str]:
    """Fill the folder `into` with a cell's artifacts; return what could not be made, and why."""
    for name in FILES:
        if (cell / name).exists():
            shutil.copy2(cell / name, into / name)
    problems = []
    for name, make in (("learning_curve.png", _draw_curve), ("checkpoint", _copy_checkpoint), ("policy.gif", _film)):
        try:
            make(cell, into / name)
        except Exception as error:  # a picture less is no reason to lose the rest
            problems.append(f"{name}: {type(error).__name__}: {error}")
    return problems


def _draw_curve(cell: Path, path: Path) -> None:
    """Draw the mean score over 100 episodes, against episodes and against the run's clock."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    records = read_records(cell)
    shown = np.unique(np.linspace(0, len(records) - 1, min(len(records), _CURVE_POINTS)).astype(int))
    score = rolling_mean(records["score"].to_numpy())[shown]
    figure = Figure(figsize=(10, 4), layout="constrained")
    FigureCanvasAgg(figure)
    left, right = figure.subplots(1, 2, sharey=True)
    left.plot(shown, score)
    left.set(xlabel="episodes", ylabel="mean score of the last 100 episodes (pipes)")
    right.plot(records["applied_s"].to_numpy()[shown] / 3600, score)
    right.set(xlabel="the run's clock (hours)")
    figure.suptitle(cell.name)
    figure.savefig(path, dpi=80)


def _copy_checkpoint(cell: Path, path: Path) -> None:
    shutil.copytree(checkpoints.load(cell).path, path)


def _film(cell: Path, path: Path) -> None:
    """Show the beginning of one episode of the final policy."""
    from a3c_core.animation import film, write_gif
    from a3c_core.play import environment_of, play_game, policy_of, settings_in

    checkpoint = checkpoints.load(cell)
    if names_of_others(settings_in(checkpoint)):
        return  # whoever brings results to MLflow need not trust what they name
    environment = environment_of(checkpoint, max_steps=_GIF_STEPS)
    policy = policy_of(checkpoint, environment)
    game = play_game(policy, environment, seed=0, episode=0)
    write_gif(path, film(policy, environment, seed=0, episode=0, env_steps=game.env_steps))
