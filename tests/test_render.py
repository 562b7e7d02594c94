"""Pictures: what people see, and the small grey frames that a network sees."""

import itertools
import math
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import gymnasium
import numpy as np
import pytest
from gymnasium.wrappers import RecordVideo

from a3c_core.games import frames, render
from a3c_core.games.flappy import FlappyBird
from a3c_core.games.flappy_env import FlappyBirdEnv


def games():
    """Yield records of mid-flight games, among them the moments around crashes into pipes and ground."""
    random = np.random.default_rng(0)
    game = FlappyBird(2)
    for step in range(1500):
        y, speed, _, _, gap_end, *_ = game.game_state()
        game.act(bool(y + 24 + speed > gap_end - 14) ^ bool(random.random() < 0.03))
        if step % 23 == 0 or game.game_over:
            yield game.record
        if game.game_over:
            game.reset_game()


def flying(steps=60):
    game = FlappyBird(2)
    for step in range(steps):
        game.act(step % 17 == 0)
    assert not game.game_over
    return game.record


def test_frame_is_the_shrunk_plain_picture():
    frame = np.empty((frames.SIDE, frames.SIDE), np.uint8)
    for game in games():
        frames.draw_frame(game, frame)
        shrunk = frames.shrink(render.draw(game, plain=True))
        assert np.abs(frame.astype(int) - shrunk).max() <= 1  # grey levels: the two round at different places


def test_frame_resembles_what_people_see():
    frame = np.empty((frames.SIDE, frames.SIDE), np.uint8)
    for game in games():
        frames.draw_frame(game, frame)
        shrunk = frames.shrink(render.draw(game))
        assert np.abs(frame.astype(int) - shrunk).mean() < 16  # grey levels: clouds, shading and the score differ


def test_greys_are_far_apart():
    greys = sorted([frames.SKY, frames.PIPE, frames.GROUND, frames.BIRD])
    assert np.diff(greys).min() >= 30


def test_shrink_keeps_flat_colours_and_averages_areas():
    white_left = np.zeros((168, 168, 3), np.uint8)
    white_left[:, :83] = 255
    shrunk = frames.shrink(white_left)
    assert shrunk.shape == (84, 84)
    assert (set(shrunk[:, :41].flat), set(shrunk[:, 41].flat), set(shrunk[:, 42:].flat)) == ({255}, {128}, {0})


def test_stack_holds_the_last_four_frames_oldest_first():
    env = FlappyBirdEnv("frames")
    stack, _ = env.reset(seed=1)
    history = [stack[..., 3]] * 4
    for place in range(3):
        np.testing.assert_array_equal(stack[..., place], stack[..., 3])
    for step in range(12):
        stack, *_ = env.step(int(step == 5))
        history.append(stack[..., 3])
        np.testing.assert_array_equal(stack, np.stack(history[-4:], axis=-1))
    assert (history[-1] != history[-2]).any()


@pytest.mark.parametrize("plain", [False, True])
def test_picture_shows_every_part_where_it_is(plain):
    game = flying()
    picture = render.draw(game, plain=plain)
    assert (picture.shape, picture.dtype) == ((512, 288, 3), np.uint8)
    assert tuple(picture[20, 20]) == frames.SKY_RGB
    assert tuple(picture[500, 100]) == frames.GROUND_RGB
    y = math.floor(game["bird_y"])
    yellow = np.argwhere(
        (np.abs(picture.astype(int) - frames.BIRD_RGB) < 8).all(axis=2)
    )  # smoothing shifts it a little
    assert len(yellow) > 50
    assert (yellow.min(axis=0) >= (y, 40)).all()
    assert (yellow.max(axis=0) < (y + 24, 74)).all()
    for x, gap in zip(game["pipe_x"], game["pipe_gap"], strict=True):
        if 0 <= x < 288:
            column = picture[:, int(x)].astype(int)
            red, green, blue = column[[10, int(gap) - 30, int(gap) + 130]].T
            assert (green > red).all()
            assert (green > 2 * blue).all()
            assert tuple(column[int(gap) + 50]) == frames.SKY_RGB


def test_bird_moves_with_the_game():
    rows = []
    for steps in (40, 50):
        game = flying(steps)
        yellow = (render.draw(game, plain=True) == frames.BIRD_RGB).all(axis=2)
        rows.append(np.flatnonzero(yellow.any(axis=1)))
        assert rows[-1].tolist() == list(range(int(game["bird_y"]), int(game["bird_y"]) + 24))
        assert np.flatnonzero(yellow.any(axis=0)).tolist() == list(range(40, 74))
    assert rows[0][0] != rows[1][0]


def test_score_is_shown():
    game = flying().copy()
    before = render.draw(game)
    game["score"] = 128
    changed = np.argwhere((render.draw(game) != before).any(axis=2))
    assert changed.min(axis=0)[0] > 30
    assert changed.max(axis=0)[0] < 100


def test_render_returns_a_picture_without_touching_the_screen(monkeypatch):
    monkeypatch.setattr(render.pygame.display, "set_mode", lambda *_, **__: pytest.fail("a screen was opened"))
    env = FlappyBirdEnv(render_mode="rgb_array")
    with pytest.raises(gymnasium.error.ResetNeeded, match="no episode has begun"):
        env.render()
    env.reset(seed=1)
    first = env.render()
    env.step(1)
    assert first.shape == (512, 288, 3)
    assert (env.render() != first).any()


def test_human_mode_shows_every_step_in_a_window(monkeypatch):
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    shown = []
    show = render.Window.show
    monkeypatch.setattr(render.Window, "show", lambda self, picture: (shown.append(picture), show(self, picture)))
    env = FlappyBirdEnv(render_mode="human")
    env.reset(seed=1)
    env.step(0)
    assert len(shown) == 2
    env.close()
    assert not render.pygame.display.get_init()
    env.close()


def test_render_without_a_mode_says_how():
    env = FlappyBirdEnv()
    env.reset(seed=1)
    with pytest.warns(UserWarning, match="render_mode"):
        assert env.render() is None


def test_gymnasium_records_films_of_it(monkeypatch, tmp_path):
    """RecordVideo hands pictures to moviepy, which is here replaced by something that counts them."""
    clips = []

    class Clip:
        def __init__(self, pictures, fps):
            clips.append((len(pictures), fps))

        def write_videofile(self, path, logger):
            Path(path).touch()

    for name in ("moviepy", "moviepy.video", "moviepy.video.io"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    monkeypatch.setitem(sys.modules, "moviepy.video.io.ImageSequenceClip", SimpleNamespace(ImageSequenceClip=Clip))
    env = RecordVideo(gymnasium.make("a3c_core/FlappyBird-v0", render_mode="rgb_array"), str(tmp_path / "films"))
    env.reset(seed=0)
    steps = next(step for step in itertools.count(1) if env.step(0)[2])
    env.close()
    assert clips == [(steps + 1, 30)]
    assert [path.suffix for path in (tmp_path / "films").iterdir()] == [".mp4"]
