"""Watch a checkpoint play: `python -m a3c_core.play --help`."""

import argparse
import sys
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import gymnasium
import numpy as np
import rich.console
import rich.table

from a3c_core.algorithms import ALGORITHMS, settings_of
from a3c_core.algorithms.base import Algorithm
from a3c_core.checkpoints import Checkpoint, CheckpointError, load
from a3c_core.config import read_section
from a3c_core.engines import build_engine
from a3c_core.games import make_game
from a3c_core.games.base import EnvironmentConfig, Policy
from a3c_core.models.base import Forward

EXAMPLES = """\
examples:
  python -m a3c_core.play --checkpoint results/run                      # ten episodes of a run's newest checkpoint
  python -m a3c_core.play --checkpoint results/run --gif bird.gif       # and an animation of the best of them
  python -m a3c_core.play --checkpoint results/run --greedy             # always the likeliest action, no dice
  python -m a3c_core.play --checkpoint results/run/checkpoints/000000012000 --episodes 100 --seed 7

DIR is a run's directory, its folder of checkpoints, or one checkpoint. Equal seeds give equal games.
"""


@dataclass(frozen=True)
class Played:
    """One episode."""

    episode: int
    score: float
    env_steps: int
    reward: float
    terminated: bool


class _Parser(argparse.ArgumentParser):
    """Says what is wrong in one line."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"error: {message} (--help shows examples)\n")


def main(arguments: list[str] | None = None) -> None:
    """Play as the command line says; a user's mistake ends with exit code 2 and one line."""
    parser = _parser()
    options = parser.parse_args(arguments)
    try:
        checkpoint = _load(options.checkpoint)
        if (others := parts_from_outside(checkpoint)) and not options.trust:
            raise CheckpointError(f"{checkpoint.path} names {', '.join(others)}: --trust imports what others wrote")
        environment = environment_of(checkpoint, options.max_steps)
        policy = policy_of(checkpoint, environment, options.greedy)
        games = [play_game(policy, environment, options.seed, episode) for episode in range(options.episodes)]
        rich.console.Console().print(_table(checkpoint, games))
        if options.gif is not None:
            _save_gif(options, policy, environment, games)
    except (CheckpointError, OSError, ValueError, gymnasium.error.Error) as error:
        parser.error(" ".join(str(error).split()))


def environment_of(checkpoint: Checkpoint, max_steps: int | None = None) -> EnvironmentConfig:
    """Return the environment that the checkpoint was trained in, each episode with a stream of its own."""
    saved = checkpoint.info.get("config", {}).get("environment", {})
    limit = {} if max_steps is None else {"max_episode_steps": max_steps}
    return EnvironmentConfig.model_validate({**saved, "seeding": "episode", **limit})


def parts_from_outside(checkpoint: Checkpoint) -> list[str]:
    """Return the names of parts that are not this project's: to play them is to import modules that others wrote."""
    config = checkpoint.info.get("config", {})
    names = [checkpoint.model_name, config.get("algorithm", ""), config.get("environment", {}).get("id", "")]
    return [name for name in names if ":" in name]


def policy_of(checkpoint: Checkpoint, environment: EnvironmentConfig, greedy: bool = False) -> Policy:
    """Return how the checkpoint acts: through NumPy where the model allows it, else by way of TensorFlow."""
    config = {"algorithm": "a3c", "learner": {}, **checkpoint.info.get("config", {})}
    settings = read_section(settings_of(config["algorithm"]), config["learner"])
    algorithm: Algorithm = ALGORITHMS.get(config["algorithm"])(settings)
    forward = checkpoint.model.numpy_forward(checkpoint.parameters)
    if forward is None:
        engine: Any = build_engine("tensorflow", make_game(environment), checkpoint.model, algorithm)
        forward = engine.forward(checkpoint.parameters)
    return greedy_policy(forward) if greedy else learned_policy(forward, algorithm)


def learned_policy(forward: Forward, algorithm: Algorithm) -> Policy:
    """Return the policy that acts as it does at the end of training."""
    return lambda environment: algorithm.act(forward(environment.observation), environment.stream, progress=1.0)


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


def _save_gif(options: argparse.Namespace, policy: Policy, environment: EnvironmentConfig, games: list[Played]) -> None:
    from a3c_core.animation import film, write_gif  # Pillow and pygame, which only those who look need to load

    best = max(games, key=lambda game: (game.score, game.env_steps))
    pictures = film(policy, environment, options.seed, best.episode, min(options.gif_steps, best.env_steps))
    write_gif(options.gif, pictures)
    size_kb = options.gif.stat().st_size / 1000
    print(f"{options.gif}: episode {best.episode}, {len(pictures)} pictures, {size_kb:,.0f} kB")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="python -m a3c_core.play",
        description="Let a checkpoint play, print its scores, and make an animation of its best episode.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--checkpoint", type=Path, required=True, metavar="DIR", help="what to play")
    parser.add_argument("--episodes", type=_positive, default=10, metavar="N", help="how many (default: 10)")
    parser.add_argument("--greedy", action="store_true", help="take the likeliest action instead of drawing one")
    parser.add_argument("--seed", type=_natural, default=0, help="of the games and of the actions drawn (default: 0)")
    parser.add_argument("--max-steps", type=_positive, metavar="N", help="end episodes here (default: as in training)")
    parser.add_argument("--trust", action="store_true", help="import modules of your own that the checkpoint names")
    parser.add_argument("--gif", type=Path, metavar="FILE", help="write an animation of the best episode's beginning")
    parser.add_argument("--gif-steps", type=_positive, default=600, metavar="N", help="its length (default: 600)")
    return parser


def _natural(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"a whole number is needed, not {text!r}")
    return int(text)


def _positive(text: str) -> int:
    if _natural(text) < 1:
        raise argparse.ArgumentTypeError("at least 1 is needed")
    return int(text)


if __name__ == "__main__":
    main()
