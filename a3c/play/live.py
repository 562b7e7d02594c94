"""An episode while it is played: in a window where there is a display, else in the terminal, as half blocks."""

import os
import sys
import time
from collections.abc import Iterator
from typing import Any, Protocol, TextIO

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from a3c_core.games import make_game
from a3c_core.games.base import EnvironmentConfig, Policy

FRAME_S = 1 / 30  # PLE's own speed
_COLUMNS = 48  # characters of a terminal; a character is two pixels high
_HOME, _CLEAR, _PLAIN = "\x1b[H", "\x1b[2J", "\x1b[0m"


class Screen(Protocol):
    """Where frames are shown: uint8 [height, width, 3]."""

    def show(self, frame: NDArray) -> bool:
        """Show a frame; return whether somebody still looks."""


class Terminal:
    """Shows frames as coloured half blocks."""

    def __init__(self, output: TextIO):
        self._output = output
        output.write(_CLEAR)

    def show(self, frame: NDArray) -> bool:
        self._output.write(_HOME + blocks(frame))
        self._output.flush()
        return True


class Window:
    """Shows frames in a window, until it is closed."""

    def __init__(self) -> None:
        import pygame

        self._pygame = pygame
        pygame.display.init()
        self._surface: Any = None

    def show(self, frame: NDArray) -> bool:
        pygame = self._pygame
        self._surface = self._surface or pygame.display.set_mode(frame.shape[1::-1])
        self._surface.blit(pygame.surfarray.make_surface(frame.swapaxes(0, 1)), (0, 0))
        pygame.display.flip()
        return all(event.type != pygame.QUIT for event in pygame.event.get())


def new_screen() -> Screen:
    """Return a window if there is a display, else the terminal."""
    has_display = any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY"))
    return Window() if has_display or sys.platform in ("darwin", "win32") else Terminal(sys.stdout)


def watch(
    policy: Policy, environment: EnvironmentConfig, seed: int, episode: int, screen: Screen, frame_s: float = FRAME_S
) -> bool:
    """Show the episode (seed, worker 0, episode) at the game's speed; return whether somebody still looks."""
    next_s = time.monotonic()
    for frame in _frames(policy, environment, seed, episode):
        if not screen.show(frame):
            return False
        next_s += frame_s
        time.sleep(max(0.0, next_s - time.monotonic()))
    return True


def blocks(frame: NDArray) -> str:
    """Return a frame as lines of upper half blocks: the text's colour is the upper pixel, its ground the lower."""
    height, width, _ = frame.shape
    rows = max(1, round(_COLUMNS * height / width / 2))
    pixels = np.asarray(Image.fromarray(frame).resize((_COLUMNS, 2 * rows), Image.Resampling.BOX))
    lines = []
    for upper, lower in zip(pixels[::2], pixels[1::2], strict=True):  # [columns, 3] each
        lines.append("".join(map(_block, upper, lower)) + _PLAIN + "\n")
    return "".join(lines)


def _block(upper: NDArray, lower: NDArray) -> str:
    return "\x1b[38;2;{};{};{}m\x1b[48;2;{};{};{}m▀".format(*upper, *lower)


def _frames(policy: Policy, environment: EnvironmentConfig, seed: int, episode: int) -> Iterator[NDArray]:
    game = make_game(environment).new_environment(render_mode="rgb_array")
    game.begin_episode(seed, 0, episode)
    yield game.env.render()
    over = False
    while not over:
        _, terminated, truncated = game.step(policy(game))
        over = terminated or truncated
        yield game.env.render()
