"""Training frames, 84 x 84 grey: the game's plain picture, drawn small at once instead of drawn large and shrunk.

The plain picture (`render.draw(..., plain=True)`) is made of rectangles, so its 512 rows fall into a few bands of equal
rows. Painting one row of each band and averaging areas gives, to rounding, what shrinking the whole picture would give.
"""

import functools
import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from a3c_core.games import flappy
from a3c_core.games.flappy import BIRD_HEIGHT, BIRD_LEFT, BIRD_RIGHT, HEIGHT, PIPE_GAP, PIPE_WIDTH, PIPES, WIDTH
from a3c_core.system.jit import exact

SIDE, STACK = 84, 4  # pixels; frames in one observation
GROUND_ROW = int(flappy.GROUND_Y)
LUMINANCE = (0.299, 0.587, 0.114)  # ITU-R BT.601

# Colours whose greys lie at least 30 levels apart, so that a network can tell them from each other.
SKY_RGB, PIPE_RGB, GROUND_RGB, BIRD_RGB = (113, 197, 207), (72, 140, 40), (186, 130, 74), (255, 220, 64)
SKY, PIPE, GROUND, BIRD = (round(float(np.dot(rgb, LUMINANCE))) for rgb in (SKY_RGB, PIPE_RGB, GROUND_RGB, BIRD_RGB))


@exact(allocates=True)
def draw_frame(game, out):
    """Write the plain picture of `game`, shrunk to uint8 [84, 84]; row 0 is the top."""
    line = np.empty(WIDTH, np.uint8)
    narrow = np.empty(SIDE, np.uint32)
    sums = np.zeros((SIDE, SIDE), np.uint32)  # grey x area: whole numbers, as a pixel is SIDE x SIDE units large
    top = 0
    while top < HEIGHT:
        bottom = _band_end(game, top)
        _paint_line(game, top, line)
        _shrink_line(line, narrow)
        _add_band(narrow, top, bottom, sums)
        top = bottom
    area = np.uint32(WIDTH * HEIGHT)
    for i in range(SIDE):
        for j in range(SIDE):
            out[i, j] = (sums[i, j] + np.uint32(WIDTH * HEIGHT // 2)) // area


@exact
def _band_end(game, top):
    """Return the first row below `top` that looks different from it."""
    bird = math.floor(game.bird_y)
    end = HEIGHT
    for edge in (GROUND_ROW, bird, bird + BIRD_HEIGHT):
        if top < edge < end:
            end = edge
    for i in range(PIPES):
        gap = int(game.pipe_gap[i])
        for edge in (gap, gap + PIPE_GAP):
            if top < edge < end:
                end = edge
    return end


@exact
def _paint_line(game, y, line):
    """Paint row `y` of the plain picture: sky, pipes in it or else ground, and the bird in front."""
    line[:] = SKY if y < GROUND_ROW else GROUND
    if y < GROUND_ROW:
        for i in range(PIPES):
            gap = game.pipe_gap[i]
            if not gap <= y < gap + PIPE_GAP:
                left = math.floor(game.pipe_x[i] - PIPE_WIDTH / 2)
                line[max(left, 0) : max(min(left + PIPE_WIDTH, WIDTH), 0)] = PIPE
    if 0 <= y - math.floor(game.bird_y) < BIRD_HEIGHT:
        line[BIRD_LEFT:BIRD_RIGHT] = BIRD


@exact
def _shrink_line(line, narrow):
    """Sum `line` (uint8 [288]) into 84 equal cells; one pixel is SIDE units wide, one cell WIDTH units."""
    for j in range(SIDE):
        start, stop = j * WIDTH, (j + 1) * WIDTH
        total = np.int64(0)
        for k in range(start // SIDE, (stop - 1) // SIDE + 1):
            total += np.int64(line[k]) * (min(stop, (k + 1) * SIDE) - max(start, k * SIDE))
        narrow[j] = total


@exact
def _add_band(narrow, top, bottom, sums):
    """Add rows `top` to `bottom` of the picture, all equal, to the rows of the frame that they cover."""
    start, stop = top * SIDE, bottom * SIDE
    for i in range(start // HEIGHT, (stop - 1) // HEIGHT + 1):
        height = np.uint32(min(stop, (i + 1) * HEIGHT) - max(start, i * HEIGHT))
        for j in range(SIDE):
            sums[i, j] += height * narrow[j]


@exact(allocates=True)
def push_frame(game, stack):
    """Draw `game` as the newest of the frames in `stack`, uint8 [84, 84, 4], oldest first; the oldest drops out."""
    frame = np.empty((SIDE, SIDE), np.uint8)
    draw_frame(game, frame)
    for i in range(SIDE):
        for j in range(SIDE):
            stack[i, j, 0] = stack[i, j, 1]
            stack[i, j, 1] = stack[i, j, 2]
            stack[i, j, 2] = stack[i, j, 3]
            stack[i, j, 3] = frame[i, j]


@exact(allocates=True)
def fill_stack(game, stack):
    """Draw `game` into all frames of `stack`, uint8 [84, 84, 4]."""
    frame = np.empty((SIDE, SIDE), np.uint8)
    draw_frame(game, frame)
    for i in range(SIDE):
        for j in range(SIDE):
            stack[i, j, :] = frame[i, j]


def shrink(picture: ArrayLike) -> NDArray[np.uint8]:
    """Return a picture, uint8 [height, width, 3], as a grey frame, uint8 [84, 84], each pixel the mean of its area."""
    red, green, blue = np.moveaxis(np.asarray(picture), -1, 0)
    levels = LUMINANCE[0] * red + LUMINANCE[1] * green + LUMINANCE[2] * blue
    height, width = levels.shape
    return np.rint(_area_weights(height) @ levels @ _area_weights(width).T).astype(np.uint8)


@functools.cache
def _area_weights(size: int) -> NDArray[np.float64]:
    """Return float64 [84, size]: how much of each of 84 equal cells every one of `size` equal pixels covers."""
    cells, pixels = np.arange(SIDE)[:, None] * size, np.arange(size)[None, :] * SIDE
    overlaps = np.minimum(cells + size, pixels + SIDE) - np.maximum(cells, pixels)
    return np.maximum(overlaps, 0) / size
