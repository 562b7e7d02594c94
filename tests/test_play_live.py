"""Watching an agent while it plays: in a terminal without a display, and in a window."""

import io

import numpy as np
import pytest

from a3c.play import __main__ as play
from a3c.play import live
from a3c_core.config import RunConfig
from a3c_core.games.base import EnvironmentConfig
from a3c_core.train import train

SHORT = EnvironmentConfig(max_episode_steps=5)


def test_a_frame_in_a_terminal_has_two_pixels_per_character():
    frame = np.zeros((96, 48, 3), np.uint8)
    frame[::2] = (255, 0, 0)
    lines = live.blocks(frame).splitlines()
    assert [line.count("▀") for line in lines] == [48] * 48
    assert lines[0].startswith("\x1b[38;2;255;0;0m\x1b[48;2;0;0;0m▀")
    assert all(line.endswith("\x1b[0m") for line in lines)


def test_an_episode_is_shown_from_its_first_frame_to_its_last():
    output = io.StringIO()
    assert live.watch(lambda game: 0, SHORT, 0, 0, live.Terminal(output), frame_s=0.0)
    assert output.getvalue().count("\x1b[H") == 6


def test_a_window_shows_frames_until_it_is_closed(monkeypatch):
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    window = live.Window()
    assert live.watch(lambda game: 0, SHORT, 0, 0, window, frame_s=0.0)
    import pygame

    pygame.event.post(pygame.event.Event(pygame.QUIT))
    assert not live.watch(lambda game: 0, SHORT, 0, 0, window, frame_s=0.0)


@pytest.mark.parametrize(("display", "kind"), [("", live.Terminal), (":0", live.Window)])
def test_a_window_is_for_those_who_have_a_display(monkeypatch, display, kind):
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    monkeypatch.setenv("DISPLAY", display)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    assert isinstance(live.new_screen(), kind)


def test_the_command_shows_a_checkpoint_at_play(tmp_path, monkeypatch, capsys):
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    train(RunConfig(workers="2", episodes=20), tmp_path)
    play.main(["--checkpoint", str(tmp_path), "--live", "--episodes", "1", "--max-steps", "3"])
    assert capsys.readouterr().out.count("\x1b[H") == 4
