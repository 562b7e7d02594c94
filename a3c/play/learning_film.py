"""How a run learned, as an animation: the same episode played by its snapshots, side by side."""

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from PIL import Image, ImageDraw, ImageFont

from a3c.play.animation import film
from a3c.play.policies import environment_of, play_game, policy_of, refuse_untrusted_modules
from a3c_core.records import checkpoints
from a3c_core.records.layout import SNAPSHOTS

HEIGHT = 160  # pixels of a game: several stand side by side
_TITLE, _GAP = 30, 4  # pixels above and between games
_PAPER, _INK = "white", "black"
_FADED = 0.6  # of a game that is over


class Part(NamedTuple):
    """What one snapshot plays."""

    episodes: int  # that it had learned from
    score: float
    pictures: list[Image.Image]


def film_learning(run: Path, seed: int, env_steps: int, trusted: Sequence[str] = ()) -> list[Image.Image]:
    """Return pictures of the episode (seed, worker 0, 0) by every snapshot of a run, at most `env_steps` long."""
    folder = run / SNAPSHOTS
    paths = checkpoints.found(folder)[::-1] if folder.is_dir() else []
    if not paths:
        raise checkpoints.CheckpointError(f"{run} holds no {SNAPSHOTS}: train it with --set snapshots=4, for example")
    parts = [_play(path, seed, env_steps, trusted) for path in paths]
    longest = max(len(part.pictures) for part in parts)
    return [_side_by_side(parts, place) for place in range(longest)]


def _play(path: Path, seed: int, env_steps: int, trusted: Sequence[str]) -> Part:
    checkpoint = checkpoints.load(path)
    refuse_untrusted_modules(checkpoint, trusted)
    environment = environment_of(checkpoint, env_steps)
    policy = policy_of(checkpoint, environment)
    game = play_game(policy, environment, seed, 0)
    pictures = [_small(picture) for picture in film(policy, environment, seed, 0, game.env_steps)]
    if game.terminated:
        pictures.append(Image.blend(pictures[-1], Image.new("RGB", pictures[-1].size, _PAPER), _FADED))
    return Part(checkpoints.records_of(path) or 0, game.score, pictures)


def _small(picture: Image.Image) -> Image.Image:
    return picture.resize((picture.width * HEIGHT // picture.height, HEIGHT), Image.Resampling.BOX)


def _side_by_side(parts: list[Part], place: int) -> Image.Image:
    """Return one picture of all games; one that is over stays as it ended."""
    shown = [part.pictures[min(place, len(part.pictures) - 1)] for part in parts]
    lefts = list(itertools.accumulate((picture.width + _GAP for picture in shown), initial=0))
    whole = Image.new("RGB", (lefts[-1] - _GAP, _TITLE + HEIGHT), _PAPER)
    pen, font = ImageDraw.Draw(whole), ImageFont.load_default(size=11)
    for left, picture, part in zip(lefts, shown, parts, strict=False):
        whole.paste(picture, (left, _TITLE))
        is_over = place >= len(part.pictures) - 1
        words = f"{part.episodes:,} episodes\n" + (f"score {part.score:g}" if is_over else "")
        pen.text((left + 2, 1), words, _INK, font)
    return whole
