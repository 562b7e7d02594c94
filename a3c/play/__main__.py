"""Watch a checkpoint play: `python -m a3c.play --help`."""

import argparse
import sys
import warnings
from pathlib import Path

import gymnasium
import rich.console

from a3c.play.policies import environment_of, model_of, play_game, policy_of, random_policy, refuse_untrusted_modules
from a3c.play.scores import Played, score_table
from a3c_core.command_line.arguments import Parser, whole_number
from a3c_core.games.base import EnvironmentConfig, Policy
from a3c_core.models.base import Model
from a3c_core.optimizers import Optimizer
from a3c_core.records.checkpoints import Checkpoint, CheckpointError, load, save
from a3c_core.section import MOST_EPISODES

EXAMPLES = """\
examples:
  python -m a3c.play --checkpoint results/run                      # ten episodes of a run's newest checkpoint
  python -m a3c.play --checkpoint results/run --gif bird.gif       # and an animation of the best of them
  python -m a3c.play --checkpoint results/run --episodes 30        # its mean, how sure that is, and its best
  python -m a3c.play --checkpoint results/run --random             # and what chance alone scores in that game
  python -m a3c.play --checkpoint results/run --live               # watch it, in a window or in the terminal
  python -m a3c.play --learning results/run                        # its snapshots side by side: learning.gif
  python -m a3c.play --checkpoint results/run --greedy             # always the likeliest action, no dice
  python -m a3c.play --checkpoint results/run/checkpoints/000000012000 --episodes 100 --seed 7
  python -m a3c.play --checkpoint results/run --copy best          # a copy to share, without what training needs
  python -m a3c.play --checkpoint results/run --trust mine:build   # it names this part of your own, from mine.py

DIR is a run's directory, its folder of checkpoints, or one checkpoint. Equal seeds give equal games. A checkpoint never
chooses the code that runs: a module is imported only if it is named here.
"""


def main(arguments: list[str] | None = None) -> None:
    """Play as the command line says; a user's mistake ends with exit code 2 and one line."""
    parser = _parser()
    options = parser.parse_args(arguments)
    try:
        if options.learning is not None:
            _show_learning(options)
            return
        checkpoint = _load(options.checkpoint)
        refuse_untrusted_modules(checkpoint, options.trust)
        environment = environment_of(checkpoint, options.max_steps)
        policy = random_policy(environment) if options.random else policy_of(checkpoint, environment, options.greedy)
        if options.live:
            _watch(options, policy, environment)
            return
        games = [play_game(policy, environment, options.seed, episode) for episode in range(options.episodes)]
        rich.console.Console().print(score_table(_title(checkpoint, options), games))
        for path in (options.gif, options.mp4):
            if path is not None:
                _save_film(path, options, policy, environment, games)
        if options.copy is not None:
            _save_copy(checkpoint, model_of(checkpoint, environment), options.copy)
    except (CheckpointError, OSError, ValueError, gymnasium.error.Error) as error:
        parser.error(" ".join(str(error).split()))


def _load(directory: Path) -> Checkpoint:
    """Load, and show warnings as plain lines."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        checkpoint = load(directory)
    for warning in caught:
        print(f"warning: {warning.message}", file=sys.stderr)
    return checkpoint


def _watch(options: argparse.Namespace, policy: Policy, environment: EnvironmentConfig) -> None:
    """Show one episode after the other, until somebody has seen enough."""
    from a3c.play.live import new_screen, watch

    screen = new_screen()
    try:
        for episode in range(options.episodes):
            if not watch(policy, environment, options.seed, episode, screen):
                return
    except KeyboardInterrupt:
        return


def _title(checkpoint: Checkpoint, options: argparse.Namespace) -> str:
    if options.random:
        return "random actions"
    way = "likeliest actions" if options.greedy else "actions drawn"
    return f"{checkpoint.model_name} after {checkpoint.updates:,} updates, {way}"


def _save_film(
    path: Path, options: argparse.Namespace, policy: Policy, environment: EnvironmentConfig, games: list[Played]
) -> None:
    from a3c.play.animation import film, write_film  # Pillow and pygame, which only those who look need to load

    best = max(games, key=lambda game: (game.score, game.env_steps))
    pictures = film(policy, environment, options.seed, best.episode, min(options.gif_steps, best.env_steps))
    write_film(path, pictures)
    print(f"{path}: episode {best.episode}, {len(pictures)} pictures, {path.stat().st_size / 1000:,.0f} kB")


def _save_copy(checkpoint: Checkpoint, model: Model, directory: Path) -> None:
    """Write what plays, once, and as Keras opens it: no moving averages, and nothing that waited."""
    bare = Optimizer(checkpoint.parameters.size, "sgd")
    bare.updates, settings = checkpoint.updates, {"config": checkpoint.info.get("config", {})}
    path = save(directory, checkpoint.model_name, model, checkpoint.parameters, bare, settings, for_play=True)
    print(f"{path}: {sum(file.stat().st_size for file in path.iterdir()) / 1000:,.0f} kB")


def _show_learning(options: argparse.Namespace) -> None:
    from a3c.play.animation import write_gif
    from a3c.play.learning_film import film_learning

    path = options.gif or Path("learning.gif")
    pictures = film_learning(options.learning, options.seed, options.max_steps or options.gif_steps, options.trust)
    write_gif(path, pictures)
    print(f"{path}: {len(pictures)} pictures, {path.stat().st_size / 1000:,.0f} kB")


def _parser() -> Parser:
    parser = Parser(
        "a3c.play", "Let a checkpoint play, print its scores, and make an animation of its best episode.", EXAMPLES
    )
    count = whole_number(1, 1_000_000)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--checkpoint", type=Path, metavar="DIR", help="what to play")
    what.add_argument(
        "--learning", type=Path, metavar="DIR", help="a run: all of its snapshots play the same game, side by side"
    )
    parser.add_argument("--episodes", type=count, default=10, metavar="N", help="how many (default: 10)")
    acting = parser.add_mutually_exclusive_group()
    acting.add_argument("--greedy", action="store_true", help="take the likeliest action instead of drawing one")
    acting.add_argument("--random", action="store_true", help="take any action instead: what chance alone scores")
    parser.add_argument(
        "--trust",
        action="append",
        default=[],
        metavar="NAME",
        help="a part of your own that it names: module:attribute",
    )
    parser.add_argument(
        "--seed", type=whole_number(0, MOST_EPISODES), default=0, help="of games and actions drawn (default: 0)"
    )
    parser.add_argument("--max-steps", type=count, metavar="N", help="end episodes here (default: as in training)")
    parser.add_argument("--live", action="store_true", help="watch it instead: in a window, or here without a display")
    parser.add_argument("--gif", type=Path, metavar="FILE", help="write an animation of the best one's beginning")
    parser.add_argument("--mp4", type=Path, metavar="FILE", help="the same as a film, with the extra atari's OpenCV")
    parser.add_argument("--copy", type=Path, metavar="DIR", help="write a copy of it, without what only training needs")
    parser.add_argument("--gif-steps", type=count, default=600, metavar="N", help="its length (default: 600)")
    return parser


if __name__ == "__main__":
    main()
