"""Flappy Bird by PLE's exact rules, as compiled functions over a small state record, and as a class for people.

The rules, the order inside a step and the order of random draws are those of ntasfi/PyGame-Learning-Environment,
checked against recordings of the real game. All positions are in pixels of a 288 x 512 screen, y growing downwards.

Two ways to seed:
- *episode streams* (`seed_episode`), the default for training: every (run, worker, episode) has an independent stream
  and the bird starts at rest, so an episode depends on nothing that happened before it;
- *PLE's stream* (`seed_like_ple`): one legacy `RandomState` for the life of the game. The bird then starts each
  episode with the speed it died with, and workers that share a seed share their pipes, as the report's did (24).
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from a3c_core.streams import MT_WORDS, next_legacy_word, next_word, stream_words
from a3c_core.system.jit import copy, exact

WIDTH, HEIGHT = 288, 512
BIRD_X, BIRD_START_Y, BIRD_WIDTH, BIRD_HEIGHT = 57, 256, 34, 24
BIRD_LEFT, BIRD_RIGHT = BIRD_X - BIRD_WIDTH // 2, BIRD_X + BIRD_WIDTH // 2
GROUND_Y = 0.79 * HEIGHT
PIPE_WIDTH, PIPE_GAP, PIPES = 52, 100, 3
GAP_START_MIN, GAP_START_MAX = 25, 192  # both included
PIPE_SPEED, PIPE_REUSED_X = 4.0, WIDTH + PIPE_WIDTH + WIDTH * 0.2
GRAVITY, FLAP_SPEED, MAX_FALL_SPEED = 1.0, 9.0, 10.0  # pixels per step, per step
CEILING_FOR_FLAP = -2.0 * BIRD_HEIGHT
STATE_SIZE = 8

PLE_SEED = 24  # PLE's default, which the report never changes


class Rewards(NamedTuple):
    """What a step earns; passing a pipe comes on top of the rest."""

    pipe: float
    death: float
    alive: float


REWARDS = {
    "ple": Rewards(pipe=1.0, death=-5.0, alive=0.0),
    "alive": Rewards(pipe=0.0, death=-1000.0, alive=1.0),  # the report's later experiment
}

GAME = np.dtype(
    [
        ("bird_y", "f8"),
        ("bird_speed", "f8"),
        ("pipe_x", "f8", PIPES),  # centre
        ("pipe_gap", "f8", PIPES),  # where the gap starts; it is PIPE_GAP high
        ("stream", "u8", 4),
        ("score", "i8"),  # pipes passed
        ("legacy_position", "i8"),
        ("legacy_words", "u4", MT_WORDS),
        ("legacy", "u1"),  # 1: draws come from PLE's RandomState
        ("flap_pending", "u1"),
        ("thrusting", "u1"),
        ("over", "u1"),
    ],
    align=True,
)


@exact
def _draw_below(game, limit, mask):
    """Return a uniform integer in [0, limit] by masked rejection: exactly NumPy's legacy `randint`."""
    while True:
        if game.legacy:
            word, game.legacy_position = next_legacy_word(game.legacy_words, game.legacy_position)
            value = np.int64(word) & mask
        else:
            value = np.int64(next_word(game.stream) >> np.uint64(32)) & mask
        if value <= limit:
            return value


@exact
def _draw_gap(game):
    return float(GAP_START_MIN + _draw_below(game, GAP_START_MAX - GAP_START_MIN, 255))


@exact
def reset(game):
    """Start a new episode. In PLE's stream the bird keeps the speed it had; otherwise it starts at rest."""
    if game.legacy:
        _draw_below(game, 1, 1)  # PLE picks a backdrop,
        _draw_below(game, 2, 3)  # a bird's colour
        _draw_below(game, 1, 1)  # and a pipe's colour
    else:
        game.bird_speed = 0.0
    for i in range(PIPES):
        game.pipe_gap[i] = _draw_gap(game)
        game.pipe_x[i] = WIDTH + PIPE_WIDTH + i * (WIDTH / 2)
    game.bird_y = BIRD_START_Y
    game.flap_pending = 1
    game.thrusting = 0
    game.score = 0
    game.over = 0


@exact
def begin_episode(game, stream, words, own_stream, own_actions, resets):
    """Start an episode; `words` (uint64 [2, 4]) seed its own streams: the game's, and the actions' (uint64 [4])."""
    if own_stream:
        game.legacy = 0
        copy(words[0], game.stream)
    if own_actions:
        copy(words[1], stream)
    for _ in range(resets):
        reset(game)


@exact
def step(game, flap):
    """Advance one frame and return (pipes passed in it, whether the bird died in it)."""
    passed = 0
    died = False
    for i in range(PIPES):
        x = game.pipe_x[i]
        if x - PIPE_WIDTH / 2 - 20 > BIRD_X:
            continue  # far ahead, as most pipes are
        if x + PIPE_WIDTH / 2 > BIRD_X:
            died |= _hits_a_pipe(game)
        if x - PIPE_WIDTH / 2 <= BIRD_X < x - PIPE_WIDTH / 2 + PIPE_SPEED:
            passed += 1
        if x < -PIPE_WIDTH:
            game.pipe_gap[i] = _draw_gap(game)
            game.pipe_x[i] = PIPE_REUSED_X
    died |= game.bird_y >= GROUND_Y - BIRD_HEIGHT or game.bird_y <= 0
    game.score += passed
    game.over = died
    # Last, though PLE has it first, as the pipes don't depend on it: a processor must guess at it, often wrongly.
    if flap and game.bird_y > CEILING_FOR_FLAP:
        game.bird_speed = 0.0
        game.flap_pending = 1
    _move(game)
    return passed, died


@exact
def _hits_a_pipe(game):
    y = game.bird_y
    for i in range(PIPES):
        left = int(game.pipe_x[i] - PIPE_WIDTH / 2)
        overlaps = left < BIRD_RIGHT and left + PIPE_WIDTH > BIRD_LEFT
        if overlaps and (y <= game.pipe_gap[i] or y + BIRD_HEIGHT > game.pipe_gap[i] + PIPE_GAP):
            return True
    return False


@exact
def _move(game):
    if game.bird_speed < MAX_FALL_SPEED and not game.thrusting:
        game.bird_speed += GRAVITY
    if game.flap_pending and not game.thrusting:
        game.thrusting = 1
        game.bird_speed -= FLAP_SPEED
    else:
        game.thrusting = 0
        game.flap_pending = 0
    game.bird_y += game.bird_speed
    for i in range(PIPES):
        game.pipe_x[i] -= PIPE_SPEED


@exact
def nearest_pipes(game):
    """Return the indices of the nearest two pipes that the bird has not left behind, nearest first.

    It has left one behind at most, and behind each pipe comes the next, behind the last the first.
    """
    nearest, x = 0, game.pipe_x[0]
    for i in range(1, PIPES):
        other_x = game.pipe_x[i]
        if (other_x < x and other_x + PIPE_WIDTH / 2 > BIRD_X) or x + PIPE_WIDTH / 2 <= BIRD_X:
            nearest, x = i, other_x
    return nearest, nearest + 1 if nearest + 1 < PIPES else 0


@exact
def write_state(game, out):
    """Write PLE's game state, [8]: bird y and speed; then, for the nearest two pipes, distance, gap start, gap end."""
    out[0] = game.bird_y
    out[1] = game.bird_speed
    first, second = nearest_pipes(game)
    for k, i in enumerate((first, second)):
        out[2 + 3 * k] = game.pipe_x[i] + PIPE_WIDTH / 2 - BIRD_X
        out[3 + 3 * k] = game.pipe_gap[i]
        out[4 + 3 * k] = game.pipe_gap[i] + PIPE_GAP


@exact
def write_observation(game, out):
    """Write the report's observation [8]: gaps relative to the bird, all scaled to about [-1, 1]."""
    y = game.bird_y
    out[0] = y / HEIGHT
    out[1] = game.bird_speed / MAX_FALL_SPEED
    first, second = nearest_pipes(game)
    for k, i in enumerate((first, second)):
        out[2 + 3 * k] = (game.pipe_x[i] + PIPE_WIDTH / 2 - BIRD_X) / WIDTH
        out[3 + 3 * k] = (game.pipe_gap[i] - y) / HEIGHT
        out[4 + 3 * k] = (game.pipe_gap[i] + PIPE_GAP - y) / HEIGHT


def new_game() -> NDArray[np.void]:
    """Return a blank game, GAME [1]; compiled code takes its record, `game[0]`. Seed it before the first reset."""
    return np.zeros(1, GAME)


def seed_episode(game: NDArray[np.void], words: NDArray[np.uint64]) -> None:
    """Give `game` a stream of its own, uint64 [4] (see `streams.stream_words`), for its next episode."""
    game["legacy"] = 0
    game["stream"] = words


def seed_like_ple(game: NDArray[np.void], seed: int) -> None:
    """Give `game` PLE's stream and do what building `PLE(FlappyBird(), rng=seed)` does: one first start."""
    random_state = np.random.RandomState(seed)
    random_state.rand()  # PLE draws a start height that it then overwrites,
    for _ in range(PIPES):
        random_state.randint(GAP_START_MIN, GAP_START_MAX + 1)  # and three pipes that it re-draws
    legacy = random_state.get_state(legacy=False)["state"]
    game["legacy"] = 1
    game["legacy_words"] = legacy["key"]
    game["legacy_position"] = legacy["pos"]
    game["bird_speed"] = 0.0
    reset(game[0])


@exact
def share_stream(game, seeded):
    """Let `game` stand where another stands that was seeded like PLE."""
    game.legacy = 1
    copy(seeded.legacy_words, game.legacy_words)
    game.legacy_position = seeded.legacy_position
    game.bird_speed = seeded.bird_speed


class FlappyBird:
    """PLE's Flappy Bird for people: `FlappyBird(seed)` is what `PLE(FlappyBird(), rng=seed)` builds.

    >>> game = FlappyBird(seed=24)
    >>> game.reset_game()
    >>> while not game.game_over:
    ...     reward = game.act(flap=False)
    >>> game.score
    0
    """

    def __init__(self, seed: int = PLE_SEED):
        self._game = new_game()
        seed_like_ple(self._game, seed)

    @classmethod
    def with_streams(cls, seed: int, worker: int = 0, episode: int = 0) -> "FlappyBird":
        """Return a game whose one episode has its own stream, as training plays it."""
        bird = cls.__new__(cls)
        bird._game = new_game()
        bird.reset_episode(seed, worker, episode)
        return bird

    @property
    def record(self) -> np.void:
        """The state record (dtype GAME) that compiled functions take."""
        return self._game[0]

    def reset_game(self) -> None:
        """Start the next episode of the stream."""
        reset(self._game[0])

    def reset_episode(self, seed: int, worker: int, episode: int) -> None:
        """Start an episode of its own stream."""
        seed_episode(self._game, stream_words(seed, worker, episode)[0])
        reset(self._game[0])

    def game_state(self) -> NDArray[np.float64]:
        """Return float64 [8]: bird y, speed, then distance, gap start and gap end of the nearest two pipes."""
        state = np.empty(STATE_SIZE)
        write_state(self._game[0], state)
        return state

    def act(self, flap: bool) -> float:
        """Play one frame and return PLE's reward."""
        if self.game_over:
            raise RuntimeError("the bird is dead: call reset_game() before the next act()")
        passed, died = step(self._game[0], bool(flap))
        rewards = REWARDS["ple"]
        return rewards.pipe * passed + (rewards.death if died else rewards.alive)

    @property
    def game_over(self) -> bool:
        return bool(self._game[0]["over"])

    @property
    def score(self) -> int:
        """Pipes passed in this episode."""
        return int(self._game[0]["score"])
