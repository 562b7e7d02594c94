"""An episode as an animated GIF."""

from pathlib import Path

from numpy.typing import NDArray
from PIL import Image

from a3c_core.games import make_game
from a3c_core.games.base import EnvironmentConfig, Policy

EVERY = 2  # env steps between two pictures
PICTURE_MS = 70  # two of the game's frames, in the hundredths of a second that GIF counts
LAST_PICTURE_MS = 1500
HEIGHT = 256  # pixels
COLOURS = 64  # with 300 pictures this keeps a file at about a megabyte


def film(policy: Policy, environment: EnvironmentConfig, seed: int, episode: int, env_steps: int) -> list[Image.Image]:
    """Return pictures of the first `env_steps` steps of the episode (seed, worker 0, episode)."""
    game = make_game(environment).new_environment(render_mode="rgb_array")
    game.begin_episode(seed, 0, episode)
    pictures = [_picture(game.env.render())]
    for step in range(1, env_steps + 1):
        game.step(policy(game))
        if step % EVERY == 0 or step == env_steps:
            pictures.append(_picture(game.env.render()))
    return pictures


def write_gif(path: Path, pictures: list[Image.Image]) -> None:
    """Write the animation, at the game's own speed; the last picture stays for a while."""
    first, *others = [picture.quantize(palette=_palette(pictures), dither=Image.Dither.NONE) for picture in pictures]
    durations = [PICTURE_MS] * len(others) + [LAST_PICTURE_MS]
    path.parent.mkdir(parents=True, exist_ok=True)
    first.save(path, format="GIF", save_all=True, append_images=others, duration=durations, loop=0, optimize=False)


def _picture(screen: NDArray) -> Image.Image:
    picture = Image.fromarray(screen)
    return picture.resize((picture.width * HEIGHT // picture.height, HEIGHT), Image.Resampling.BOX)


def _palette(pictures: list[Image.Image]) -> Image.Image:
    """Return an image whose colours suit a sample of the pictures."""
    sample = pictures[:: max(1, len(pictures) // 8)]
    strip = Image.new("RGB", (sum(picture.width for picture in sample), HEIGHT))
    for place, picture in enumerate(sample):
        strip.paste(picture, (place * picture.width, 0))
    return strip.quantize(COLOURS, Image.Quantize.MAXCOVERAGE, kmeans=3)  # gives the few pixels of a bird their due
