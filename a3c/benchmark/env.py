"""Steps per second of Flappy Bird, from the compiled loop up to the real PLE, all under the same random policy."""

from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np

from a3c.benchmark.measure import Results, Row, per_second
from a3c_core.games import flappy
from a3c_core.games.flappy_env import FlappyBirdEnv
from a3c_core.games.flappy_vector import FlappyBirdVectorEnv
from a3c_core.games.ple import LegacyRandom, import_ple, make_game
from a3c_core.streams import next_word, stream_words
from a3c_core.system.jit import exact

SEED = 24
ACTIONS: list[int] = np.random.RandomState(SEED).randint(0, 2, 1000).tolist()  # env steps between looks at the clock
VECTOR = 2048  # games


def measure_env(seconds: float) -> Results:
    """Return steps per second of each way to play, each measured for about `seconds`."""
    rows = [
        Row("compiled loop", per_second(compiled_loop(), 1_000_000, seconds), "random policy, observation written"),
        Row("Python class", per_second(_python_class(), len(ACTIONS), seconds), "act and game_state"),
        Row("Gymnasium, report", per_second(_gymnasium("report"), len(ACTIONS), seconds), "step, float32 [8]"),
        Row("Gymnasium, vector", per_second(_vector(), VECTOR, seconds), f"{VECTOR:,} games in one call, float32 [8]"),
        Row("Gymnasium, frames", per_second(_gymnasium("frames"), len(ACTIONS), seconds), "step, uint8 [84, 84, 4]"),
        _measure_ple(seconds),
    ]
    reference = rows[-1] if rows[-1].per_second else rows[1]
    return Results("env", "steps", reference.name, rows)


@exact
def _play_randomly(games, actions, observation, steps):
    game = games[0]
    for _ in range(steps):
        _, died = flappy.step(game, next_word(actions) >> np.uint64(63))
        flappy.write_observation(game, observation)
        if died:
            flappy.reset(game)


def compiled_loop() -> Callable[[int], object]:
    """Return what plays so many steps at random."""
    game_words, actions = stream_words(SEED, 0, 0)
    games, observation = flappy.new_game(), np.empty(flappy.STATE_SIZE, np.float32)
    flappy.seed_episode(games, game_words)
    flappy.reset(games[0])
    return lambda steps: _play_randomly(games, actions, observation, steps)


def _python_class() -> Callable[[int], object]:
    game = flappy.FlappyBird(SEED)

    def act(action: int) -> bool:
        game.act(action == 1)
        game.game_state()
        return game.game_over

    return _loop(act, game.reset_game)


def _gymnasium(observation: str) -> Callable[[int], object]:
    env = FlappyBirdEnv(observation)
    env.reset(seed=SEED)

    def act(action: int) -> bool:
        _, _, terminated, truncated, _ = env.step(action)
        return terminated or truncated

    return _loop(act, env.reset)


def _vector() -> Callable[[int], object]:
    env = FlappyBirdVectorEnv(VECTOR)
    env.reset(seed=SEED)
    actions = np.random.RandomState(SEED).randint(0, 2, VECTOR)
    return lambda _: env.step(actions)


def _measure_ple(seconds: float) -> Row:
    try:
        play = _ple(import_ple())
    except gymnasium.error.DependencyNotInstalled:
        return Row("PLE", None, "absent or without its pictures: make setup-ple")
    return Row("PLE", per_second(play, len(ACTIONS), seconds), "act and getGameState")


def _ple(package: Any) -> Callable[[int], object]:
    ple = package.PLE(make_game(package, "FlappyBird"), rng=LegacyRandom(SEED))
    keys = None, ple.game.actions["up"]

    def act(action: int) -> bool:
        ple.act(keys[action])
        ple.getGameState()
        return ple.game_over()

    return _loop(act, ple.reset_game)


def _loop(act: Callable[[int], bool], reset: Callable[[], object]) -> Callable[[int], object]:
    """Return what plays all ACTIONS; `act` plays one and says whether the game is over and needs a `reset`."""

    def play(_: int) -> None:
        for action in ACTIONS:
            if act(action):
                reset()

    return play
