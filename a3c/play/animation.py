"""An episode as an animated GIF, or as a film in MP4."""

import importlib
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from a3c_core.games import make_game
from a3c_core.games.base import SETUP_ATARI, EnvironmentConfig, Policy

EVERY = 2  # env steps between two pictures
PICTURE_MS = 70  # two of the game's frames, in the hundredths of a second that GIF counts
LAST_PICTURE_MS = 1500
HEIGHT = 256  # pixels
COLOURS = 64  # with 300 pictures this keeps a file at about a megabyte


def film(policy: Policy, environment: EnvironmentConfig, seed: int, episode: int, env_steps: int) -> list[Image.Image]:
    """Return pictures of the first `env_steps` steps of the episode (seed, worker 0, episode)."""
    game = make_game(environment).new_environment(render_mode="rgb_array")
    game.begin_episode(seed, 0, episode)
    every = 1 if environment.id.startswith("ALE/") else EVERY  # an action is held there for four frames of 60 a second
    pictures = [_picture(game.env.render())]
    for step in range(1, env_steps + 1):
        game.step(policy(game))
        if step % every == 0 or step == env_steps:
            pictures.append(_picture(game.env.render()))
    return pictures


def write_film(path: Path, pictures: list[Image.Image]) -> None:
    """Write the pictures as MP4 if the file's name says so, else as GIF."""
    if path.suffix == ".mp4":
        write_mp4(path, pictures)
    else:
        write_gif(path, pictures)


def write_mp4(path: Path, pictures: list[Image.Image]) -> None:
    """Write a film at the game's own speed, by OpenCV; raise ValueError where that is missing or can't."""
    try:
        cv2 = importlib.import_module("cv2")
    except ImportError:
        raise ValueError(f"MP4 needs OpenCV, which is not installed: `{SETUP_ATARI}` adds it") from None
    path.parent.mkdir(parents=True, exist_ok=True)
    writer = cv2.VideoWriter(str(path), cv2.VideoWriter_fourcc(*"mp4v"), 1000 / PICTURE_MS, pictures[0].size)
    if not writer.isOpened():
        raise ValueError(f"OpenCV can't write {path}")
    for picture in pictures:
        writer.write(np.asarray(picture)[:, :, ::-1])  # it takes blue, green, red
    writer.release()


def write_gif(path: Path, pictures: list[Image.Image]) -> None:
    """Write the animation, at the game's own speed; the last picture stays for a while."""
    palette = _palette(pictures)
    first, *others = [picture.quantize(palette=palette, dither=Image.Dither.NONE) for picture in pictures]
    durations = [PICTURE_MS] * len(others) + [LAST_PICTURE_MS]
    path.parent.mkdir(parents=True, exist_ok=True)
    first.save(path, format="GIF", save_all=True, append_images=others, duration=durations, loop=0, optimize=False)


def _picture(screen: NDArray) -> Image.Image:
    picture = Image.fromarray(screen)
    width = picture.width * HEIGHT // picture.height // 2 * 2  # even, as films need it
    return picture.resize((width, HEIGHT), Image.Resampling.BOX)


def _palette(pictures: list[Image.Image]) -> Image.Image:
    """Return an image whose colours suit a sample of the pictures."""
    sample = pictures[:: max(1, len(pictures) // 8)]
    strip = Image.new("RGB", (sum(picture.width for picture in sample), HEIGHT))
    for place, picture in enumerate(sample):
        strip.paste(picture, (place * picture.width, 0))
    return strip.quantize(COLOURS, Image.Quantize.MAXCOVERAGE, kmeans=3)  # gives the few pixels of a bird their due
