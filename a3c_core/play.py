"""Watch a checkpoint play: `python -m a3c_core.play --help`."""

import argparse
import sys
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import rich.console
import rich.table
from pydantic import ValidationError

from a3c_core.algorithms import ALGORITHMS, settings_of
from a3c_core.algorithms.base import Algorithm
from a3c_core.config import read_section
from a3c_core.engines import build_engine
from a3c_core.games import make_game
from a3c_core.games.base import EnvironmentConfig, Policy
from a3c_core.models.base import Forward
from a3c_core.outsiders import refuse_untrusted
from a3c_core.progress import Progress
from a3c_core.results.checkpoints import Checkpoint, CheckpointError, load
from a3c_core.section import MOST_EPISODES
from a3c_core.tools.command_line import Parser, whole_number
from a3c_core.tools.errors import in_words, shown

EXAMPLES = """\
examples:
  python -m a3c_core.play --checkpoint results/run                      # ten episodes of a run's newest checkpoint
  python -m a3c_core.play --checkpoint results/run --gif bird.gif       # and an animation of the best of them
  python -m a3c_core.play --checkpoint results/run --live               # watch it, in a window or in the terminal
  python -m a3c_core.play --checkpoint results/run --greedy             # always the likeliest action, no dice
  python -m a3c_core.play --checkpoint results/run/checkpoints/000000012000 --episodes 100 --seed 7
  python -m a3c_core.play --checkpoint results/run --trust mine         # it names parts of your own module mine.py

DIR is a run's directory, its folder of checkpoints, or one checkpoint. Equal seeds give equal games. A checkpoint never
chooses the code that runs: a module is imported only if it is named here.
"""


@dataclass(frozen=True)
class Played:
    """One episode."""

    episode: int
    score: float
    env_steps: int
    reward: float
    terminated: bool


def main(arguments: list[str] | None = None) -> None:
    """Play as the command line says; a user's mistake ends with exit code 2 and one line."""
    parser = _parser()
    options = parser.parse_args(arguments)
    try:
        checkpoint = _load(options.checkpoint)
        refuse_outsiders(checkpoint, options.trust)
        environment = environment_of(checkpoint, options.max_steps)
        policy = policy_of(checkpoint, environment, options.greedy)
        if options.live:
            _watch(options, policy, environment)
            return
        games = [play_game(policy, environment, options.seed, episode) for episode in range(options.episodes)]
        rich.console.Console().print(_table(checkpoint, games))
        if options.gif is not None:
            _save_gif(options, policy, environment, games)
    except (CheckpointError, OSError, ValueError, gymnasium.error.Error) as error:
        parser.error(" ".join(str(error).split()))


def environment_of(checkpoint: Checkpoint, max_steps: int | None = None) -> EnvironmentConfig:
    """Return the environment that the checkpoint was trained in, each episode with a stream of its own."""
    saved = _settings(checkpoint).get("environment", {})
    if not isinstance(saved, dict):
        raise CheckpointError(f"{checkpoint.path}: its environment must be a mapping, not {shown(saved)}")
    limit = {} if max_steps is None else {"max_episode_steps": max_steps}
    try:
        return EnvironmentConfig.model_validate({**saved, "seeding": "episode", "actions": "own", **limit})
    except ValidationError as error:
        first = error.errors()[0]
        reason = f"environment.{'.'.join(map(str, first['loc']))}: {in_words(first)}"
        raise CheckpointError(f"{checkpoint.path}: {reason}") from error


def _settings(checkpoint: Checkpoint) -> dict[str, Any]:
    """Return the settings of the run in a checkpoint; none are there if the checkpoint is not a run's."""
    settings = checkpoint.info.get("config", {})
    if not isinstance(settings, dict):
        raise CheckpointError(f"{checkpoint.path}: its configuration must be a mapping, not {shown(settings)}")
    return settings


def refuse_outsiders(checkpoint: Checkpoint, trusted: Sequence[str] = ()) -> None:
    """Refuse a checkpoint that would import modules which are not among those `trusted`."""
    try:
        refuse_untrusted({**_settings(checkpoint), "model": checkpoint.model_name}, trusted, str(checkpoint.path))
    except ValueError as error:
        raise CheckpointError(str(error)) from error


def policy_of(checkpoint: Checkpoint, environment: EnvironmentConfig, greedy: bool = False) -> Policy:
    """Return how the checkpoint acts: through NumPy where the model allows it, else by way of TensorFlow."""
    config = {"algorithm": "a3c", "learner": {}, **_settings(checkpoint)}
    settings = read_section(settings_of(config["algorithm"]), config["learner"])
    algorithm: Algorithm = ALGORITHMS.get(config["algorithm"])(settings)
    forward = checkpoint.model.numpy_forward(checkpoint.parameters)
    if forward is None:
        engine: Any = build_engine("tensorflow", make_game(environment), checkpoint.model, algorithm)
        forward = engine.forward(checkpoint.parameters)
    return greedy_policy(forward) if greedy else learned_policy(forward, algorithm)


def learned_policy(forward: Forward, algorithm: Algorithm) -> Policy:
    """Return the policy that acts as it does at the end of training."""
    end = Progress(share=1.0, env_steps=sys.maxsize)
    return lambda environment: algorithm.act(forward(environment.observation), environment.stream, end)


def greedy_policy(forward: Forward) -> Policy:
    """Return the policy that takes the likeliest or most valued action: that of the first head's largest number."""
    return lambda environment: int(forward(environment.observation)[0].argmax())


def play_game(policy: Policy, environment: EnvironmentConfig, seed: int, episode: int) -> Played:
    """Return how the episode (seed, worker 0, episode) went."""
    game = make_game(environment).new_environment()
    game.begin_episode(seed, 0, episode)
    env_steps, total = 0, 0.0
    while True:
        reward, terminated, truncated = game.step(policy(game))
        env_steps, total = env_steps + 1, total + reward
        if terminated or truncated:
            return Played(episode, game.score, env_steps, total, terminated)


def _load(directory: Path) -> Checkpoint:
    """Load, and show warnings as plain lines."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        checkpoint = load(directory)
    for warning in caught:
        print(f"warning: {warning.message}", file=sys.stderr)
    return checkpoint


def _table(checkpoint: Checkpoint, games: list[Played]) -> rich.table.Table:
    scores = [game.score for game in games]
    table = rich.table.Table(title=f"{checkpoint.model_name} after {checkpoint.updates:,} updates", show_footer=True)
    table.add_column("episode", "mean\nmedian\nmax", justify="right")
    table.add_column("score", f"{np.mean(scores):,.1f}\n{np.median(scores):,.1f}\n{max(scores):,}", justify="right")
    table.add_column("steps", justify="right")
    table.add_column("return", justify="right")
    table.add_column("ended by")
    for game in games:
        ending = "death" if game.terminated else "time limit"
        table.add_row(str(game.episode), f"{game.score:,}", f"{game.env_steps:,}", f"{game.reward:,.0f}", ending)
    return table


def _watch(options: argparse.Namespace, policy: Policy, environment: EnvironmentConfig) -> None:
    """Show one episode after the other, until somebody has seen enough."""
    from a3c_core.tools.live import new_screen, watch

    screen = new_screen()
    try:
        for episode in range(options.episodes):
            if not watch(policy, environment, options.seed, episode, screen):
                return
    except KeyboardInterrupt:
        return


def _save_gif(options: argparse.Namespace, policy: Policy, environment: EnvironmentConfig, games: list[Played]) -> None:
    from a3c_core.tools.animation import film, write_gif  # Pillow and pygame, which only those who look need to load

    best = max(games, key=lambda game: (game.score, game.env_steps))
    pictures = film(policy, environment, options.seed, best.episode, min(options.gif_steps, best.env_steps))
    write_gif(options.gif, pictures)
    size_kb = options.gif.stat().st_size / 1000
    print(f"{options.gif}: episode {best.episode}, {len(pictures)} pictures, {size_kb:,.0f} kB")


def _parser() -> Parser:
    parser = Parser(
        "a3c_core.play", "Let a checkpoint play, print its scores, and make an animation of its best episode.", EXAMPLES
    )
    count = whole_number(1, 1_000_000)
    parser.add_argument("--checkpoint", type=Path, required=True, metavar="DIR", help="what to play")
    parser.add_argument("--episodes", type=count, default=10, metavar="N", help="how many (default: 10)")
    parser.add_argument("--greedy", action="store_true", help="take the likeliest action instead of drawing one")
    parser.add_argument(
        "--trust", action="append", default=[], metavar="MODULE", help="your own, whose parts the checkpoint names"
    )
    parser.add_argument(
        "--seed", type=whole_number(0, MOST_EPISODES), default=0, help="of games and actions drawn (default: 0)"
    )
    parser.add_argument("--max-steps", type=count, metavar="N", help="end episodes here (default: as in training)")
    parser.add_argument("--live", action="store_true", help="watch it instead: in a window, or here without a display")
    parser.add_argument("--gif", type=Path, metavar="FILE", help="write an animation of the best one's beginning")
    parser.add_argument("--gif-steps", type=count, default=600, metavar="N", help="its length (default: 600)")
    return parser


if __name__ == "__main__":
    main()
