"""The game drawn for people, with pygame and from shapes alone; only `Window` ever needs a screen.

The bird is drawn where it collides: from BIRD_LEFT to BIRD_RIGHT, and from the game's `bird_y` 24 pixels down.
"""

import functools
import math
import os

import numpy as np
from numpy.typing import NDArray

from a3c_core.games.flappy import BIRD_HEIGHT, BIRD_LEFT, BIRD_WIDTH, HEIGHT, PIPE_GAP, PIPE_SPEED, PIPE_WIDTH, WIDTH
from a3c_core.games.frames import BIRD_RGB, GROUND_RGB, GROUND_ROW, PIPE_RGB, SKY_RGB

os.environ["PYGAME_HIDE_SUPPORT_PROMPT"] = "1"  # read while pygame is imported
import pygame

FRAMES_PER_SECOND = 30  # PLE's
OUTLINE, WHITE, ORANGE = (72, 48, 56), (255, 255, 255), (244, 122, 44)
LIGHT_GRASS, DARK_GRASS = (156, 214, 88), (112, 178, 60)
CAP_HEIGHT, GRASS_HEIGHT, STRIPE = 22, 16, 12  # pixels
SMOOTH = 6  # curves are drawn this many times larger and then shrunk, which smooths their edges
# Each digit as five rows of three blocks, a row being an octal digit.
DIGITS = ("75557", "26227", "71747", "71717", "55711", "74717", "74757", "71111", "75757", "75717")
BLOCK = 6  # pixels


def draw(game: np.void, frame: int = 0, plain: bool = False) -> NDArray[np.uint8]:
    """Return the picture of a game record, uint8 [512, 288, 3], row 0 at the top.

    `frame` counts frames since the episode began and only scrolls the ground. A `plain` picture has flat rectangles and
    no score: it is what `frames.draw_frame` shows to a network.
    """
    canvas = pygame.Surface((WIDTH, HEIGHT), depth=24)
    if plain:
        _draw_plain(canvas, game)
    else:
        _draw_pretty(canvas, game, frame)
    return np.ascontiguousarray(pygame.surfarray.array3d(canvas).swapaxes(0, 1))


class Window:
    """A window on the screen that shows pictures at the game's own speed."""

    def __init__(self) -> None:
        pygame.display.init()
        pygame.display.set_caption("Flappy Bird")
        self._screen = pygame.display.set_mode((WIDTH, HEIGHT))
        self._clock = pygame.time.Clock()

    def show(self, picture: NDArray[np.uint8]) -> None:
        """Show `picture` (uint8 [512, 288, 3]) and wait until the next frame is due."""
        pygame.event.pump()
        pygame.surfarray.blit_array(self._screen, picture.swapaxes(0, 1))
        pygame.display.flip()
        self._clock.tick(FRAMES_PER_SECOND)

    def close(self) -> None:
        pygame.display.quit()


def _pipes(game: np.void) -> list[tuple[int, int]]:
    """Return (left edge, start of the gap) of every pipe."""
    return [(math.floor(x - PIPE_WIDTH / 2), int(gap)) for x, gap in zip(game["pipe_x"], game["pipe_gap"], strict=True)]


def _draw_plain(canvas: pygame.Surface, game: np.void) -> None:
    canvas.fill(SKY_RGB)
    for left, gap in _pipes(game):
        canvas.fill(PIPE_RGB, (left, 0, PIPE_WIDTH, gap))
        canvas.fill(PIPE_RGB, (left, gap + PIPE_GAP, PIPE_WIDTH, HEIGHT))
    canvas.fill(GROUND_RGB, (0, GROUND_ROW, WIDTH, HEIGHT))
    canvas.fill(BIRD_RGB, (BIRD_LEFT, math.floor(game["bird_y"]), BIRD_WIDTH, BIRD_HEIGHT))


def _draw_pretty(canvas: pygame.Surface, game: np.void, frame: int) -> None:
    canvas.blit(_backdrop(), (0, 0))
    body, cap = _pipe_body(), _pipe_cap()
    for left, gap in _pipes(game):
        canvas.blit(body, (left, 0), (0, 0, PIPE_WIDTH, gap))
        canvas.blit(body, (left, gap + PIPE_GAP))
        canvas.blit(cap, (left, gap - CAP_HEIGHT))
        canvas.blit(cap, (left, gap + PIPE_GAP))
    canvas.blit(_ground(), (-(frame * int(PIPE_SPEED)) % (2 * STRIPE) - 2 * STRIPE, GROUND_ROW))
    bird = _bird(int(game["bird_speed"]))
    centre = BIRD_LEFT + BIRD_WIDTH // 2, math.floor(game["bird_y"]) + BIRD_HEIGHT // 2
    canvas.blit(bird, bird.get_rect(center=centre))
    _draw_score(canvas, int(game["score"]))


@functools.cache
def _backdrop() -> pygame.Surface:
    """Return sky, clouds, a far skyline and bushes."""
    large = pygame.Surface((WIDTH * 2, HEIGHT * 2), depth=24)
    large.fill(SKY_RGB)
    random = np.random.default_rng(3)  # only for looks: the same scenery every time
    horizon = GROUND_ROW * 2
    for x in range(-20, WIDTH * 2 + 40, 34):
        pygame.draw.circle(large, (222, 243, 240), (x, horizon - 120), int(random.integers(30, 62)))
    large.fill((222, 243, 240), (0, horizon - 130, WIDTH * 2, 130))
    for x in range(0, WIDTH * 2, 36):
        height = int(random.integers(60, 150))
        large.fill((186, 226, 222), (x, horizon - height, 30, height))
        for y in range(horizon - height + 10, horizon - 60, 16):
            large.fill((206, 236, 230), (x + 6, y, 6, 8))
            large.fill((206, 236, 230), (x + 18, y, 6, 8))
    for x in range(-10, WIDTH * 2 + 40, 30):
        pygame.draw.circle(large, (142, 208, 142), (x, horizon - 8), int(random.integers(28, 48)))
    return pygame.transform.smoothscale(large, (WIDTH, HEIGHT))


@functools.cache
def _pipe_body() -> pygame.Surface:
    return _tube(PIPE_WIDTH - 4, HEIGHT, inset=2)


@functools.cache
def _pipe_cap() -> pygame.Surface:
    cap = _tube(PIPE_WIDTH, CAP_HEIGHT, inset=0)
    pygame.draw.rect(cap, OUTLINE, cap.get_rect(), width=2)
    return cap


def _tube(width: int, height: int, inset: int) -> pygame.Surface:
    """Return an upright green tube, lit from the left, its edges dark."""
    tube = pygame.Surface((PIPE_WIDTH, height), pygame.SRCALPHA)
    for x in range(width):
        across = x / width
        light = 0.62 + 0.75 * math.exp(-(((across - 0.27) / 0.2) ** 2)) + 0.3 * math.exp(-(((across - 0.6) / 0.3) ** 2))
        shade = [min(255, int(channel * light)) for channel in PIPE_RGB]
        tube.fill(shade if 2 <= x < width - 2 else OUTLINE, (inset + x, 0, 1, height))
    return tube


@functools.cache
def _ground() -> pygame.Surface:
    """Return a strip of ground that is two stripes wider than the picture, so that it can scroll."""
    ground = pygame.Surface((WIDTH + 4 * STRIPE, HEIGHT - GROUND_ROW), depth=24)
    ground.fill(GROUND_RGB)
    ground.fill(LIGHT_GRASS, (0, 0, ground.get_width(), GRASS_HEIGHT))
    for x in range(-2 * STRIPE, ground.get_width(), 2 * STRIPE):
        corners = (x + STRIPE, 0), (x + 2 * STRIPE, 0), (x + STRIPE, GRASS_HEIGHT - 1), (x, GRASS_HEIGHT - 1)
        pygame.draw.polygon(ground, DARK_GRASS, corners)
        ground.fill((168, 114, 62), (x + 4, 40, 7, 3))
        ground.fill((206, 152, 94), (x + 14, 66, 5, 3))
    ground.fill(OUTLINE, (0, 0, ground.get_width(), 2))
    ground.fill((92, 140, 52), (0, GRASS_HEIGHT, ground.get_width(), 3))
    ground.fill((150, 98, 54), (0, GRASS_HEIGHT + 3, ground.get_width(), 3))
    return ground


@functools.cache
def _bird(speed: int) -> pygame.Surface:
    """Return the bird, which looks up and beats its wing down as it rises, and dives as it falls."""
    rising = speed < 0
    size = BIRD_WIDTH + 4, BIRD_HEIGHT + 4
    large = pygame.Surface((size[0] * SMOOTH, size[1] * SMOOTH), pygame.SRCALPHA)
    large.fill((*OUTLINE, 0))  # what smoothing mixes into the edges

    def ellipse(colour: tuple[int, int, int], x: float, y: float, width: float, height: float) -> None:
        for grow, paint in ((1.5, OUTLINE), (0.0, colour)):
            box = x - grow, y - grow, width + 2 * grow, height + 2 * grow
            pygame.draw.ellipse(large, paint, [SMOOTH * side for side in box])

    ellipse(BIRD_RGB, 3.5, 3.5, 28, 21)
    pygame.draw.ellipse(large, (255, 240, 170), [SMOOTH * side for side in (9, 15.5, 17, 8)])
    ellipse(WHITE, 20.5, 4.5, 9.5, 10)
    pygame.draw.ellipse(large, OUTLINE, [SMOOTH * side for side in (25.5, 7.5, 3, 4.5)])
    ellipse(ORANGE, 23.5, 16.5, 12, 3.5)
    ellipse(ORANGE, 23.5, 19, 10, 2.5)
    ellipse((255, 246, 205), 2.5, 13.5 if rising else 8, 12, 8)
    tilted = pygame.transform.rotate(large, max(-60.0, min(22.0, -6.0 * speed + (0 if rising else 6))))
    return pygame.transform.smoothscale(tilted, (tilted.get_width() // SMOOTH, tilted.get_height() // SMOOTH))


def _draw_score(canvas: pygame.Surface, score: int) -> None:
    text = str(score)
    left = (WIDTH - (4 * len(text) - 1) * BLOCK) // 2
    blocks = [
        pygame.Rect(left + (4 * place + column) * BLOCK, 48 + row * BLOCK, BLOCK, BLOCK)
        for place, digit in enumerate(text)
        for row, bits in enumerate(DIGITS[int(digit)])
        for column in range(3)
        if int(bits) >> (2 - column) & 1
    ]
    for block in blocks:
        canvas.fill(OUTLINE, block.inflate(6, 6))
    for block in blocks:
        canvas.fill(WHITE, block)
