"""A stand-in for a checkout of PLE: one game, one picture, and a setup that leaves it out."""

from pathlib import Path

SETUP = """
from setuptools import find_packages, setup
setup(name="ple", version="0.0.1", packages=find_packages(), include_package_data=False)
"""
PACKAGE = """
class PLE:
    def __init__(self, game, display_screen, rng):
        self.game = game
    def reset_game(self):
        pass
    def getGameState(self):
        return {str(number): 0.0 for number in range(8)}
"""
GAMES = """
import os
class Screen:
    def fill(self, colour):
        pass
class FlappyBird:
    actions, screen = {"up": 119}, Screen()
    def __init__(self):
        with open(os.path.join(os.path.dirname(__file__), "assets", "bird.png")):
            pass
"""


def write_checkout(folder: Path, pictures: bool = True) -> Path:
    """Write the checkout, with or without its pictures, and return its folder."""
    games = folder / "ple" / "games"
    (games / "assets").mkdir(parents=True)
    (folder / "setup.py").write_text(SETUP)
    (folder / "ple" / "__init__.py").write_text(PACKAGE)
    (games / "__init__.py").write_text(GAMES)
    if pictures:
        (games / "assets" / "bird.png").write_bytes(b"")
    return folder
