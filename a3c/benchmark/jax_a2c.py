"""A peer: A2C on Flappy Bird with game, network, gradient and Adam in one compiled JAX function (`pip install jax`).

The rules are those of games/flappy.py, in float32; pipes come from JAX's own generator, and a dead bird's next episode
begins within the same step.
"""

import time
from functools import partial
from typing import Any

from a3c_core.games import flappy

UNITS = 128
GAMMA, RATE = 0.99, 1e-4


def measure(games: int, horizon: int, seconds: float) -> float:
    """Return env steps per second of learning with so many games side by side, updating every `horizon` steps."""
    import jax

    keys = jax.random.split(jax.random.PRNGKey(0), 3)
    parameters = _new_parameters(keys[0])
    state = (parameters, _adam_zeros(parameters), _new_games(keys[1], games), keys[2])
    learn = jax.jit(partial(_learn, horizon=horizon))
    state = jax.block_until_ready(learn(state))  # compiles
    updates, began = 0, time.perf_counter()
    while (elapsed := time.perf_counter() - began) < seconds or not updates:
        state = jax.block_until_ready(learn(state))
        updates += 1
    return updates * games * horizon / elapsed


def _new_parameters(key: Any) -> dict[str, Any]:
    import jax

    hidden, policy, value = jax.random.split(key, 3)
    glorot = jax.nn.initializers.glorot_uniform()
    zeros = jax.numpy.zeros
    return {
        "hidden": (glorot(hidden, (flappy.STATE_SIZE, UNITS)), zeros(UNITS)),
        "policy": (glorot(policy, (UNITS, 2)), zeros(2)),
        "value": (glorot(value, (UNITS, 1)), zeros(1)),
    }


def _adam_zeros(parameters: Any) -> Any:
    import jax

    blank = jax.tree.map(jax.numpy.zeros_like, parameters)
    return blank, blank, 0


def _new_games(key: Any, games: int) -> dict[str, Any]:
    import jax.numpy as jnp

    first = [flappy.WIDTH + flappy.PIPE_WIDTH + i * flappy.WIDTH / 2 for i in range(flappy.PIPES)]
    return {
        "y": jnp.full(games, float(flappy.BIRD_START_Y)),
        "speed": jnp.zeros(games),
        "x": jnp.tile(jnp.array(first), (games, 1)),
        "gap": _gaps(key, (games, flappy.PIPES)),
        "pending": jnp.ones(games, bool),
        "thrusting": jnp.zeros(games, bool),
    }


def _gaps(key: Any, shape: tuple[int, ...]) -> Any:
    import jax

    return jax.random.randint(key, shape, flappy.GAP_START_MIN, flappy.GAP_START_MAX + 1).astype("float32")


def _observe(game: dict[str, Any]) -> Any:
    """Return the report's observation [games, 8]."""
    import jax.numpy as jnp

    ahead = jnp.where(game["x"] + flappy.PIPE_WIDTH / 2 > flappy.BIRD_X, game["x"], jnp.inf)
    nearest = jnp.argsort(ahead, axis=1)[:, :2]
    x, gap = (jnp.take_along_axis(game[name], nearest, axis=1) for name in ("x", "gap"))
    y = game["y"][:, None]
    distance = (x + flappy.PIPE_WIDTH / 2 - flappy.BIRD_X) / flappy.WIDTH
    start, end = (gap - y) / flappy.HEIGHT, (gap + flappy.PIPE_GAP - y) / flappy.HEIGHT
    bird = jnp.stack([game["y"] / flappy.HEIGHT, game["speed"] / flappy.MAX_FALL_SPEED], axis=1)
    return jnp.concatenate([bird, jnp.stack([distance, start, end], axis=2).reshape(len(bird), 6)], axis=1)


def _step(game: dict[str, Any], flap: Any, key: Any) -> tuple[dict[str, Any], Any, Any]:
    """Return (games, rewards [games], deaths [games]) after one step."""
    import jax
    import jax.numpy as jnp

    new_gap, new_game = jax.random.split(key)
    flap = flap & (game["y"] > flappy.CEILING_FOR_FLAP)
    speed, pending = jnp.where(flap, 0.0, game["speed"]), game["pending"] | flap
    died, passed = _hits(game), _passes(game)
    reused = game["x"] < -flappy.PIPE_WIDTH
    x = jnp.where(reused, flappy.PIPE_REUSED_X, game["x"])
    gap = jnp.where(reused, _gaps(new_gap, x.shape), game["gap"])
    thrusting = game["thrusting"]
    speed = speed + ((speed < flappy.MAX_FALL_SPEED) & ~thrusting) * flappy.GRAVITY
    thrusts = pending & ~thrusting
    speed = speed - thrusts * flappy.FLAP_SPEED
    moved = {"y": game["y"] + speed, "speed": speed, "x": x - flappy.PIPE_SPEED, "gap": gap}
    moved |= {"pending": pending & thrusts, "thrusting": thrusts}
    fresh = _new_games(new_game, len(died))
    after = {name: jnp.where(_like(died, moved[name]), fresh[name], moved[name]) for name in moved}
    return after, passed + died * flappy.REWARDS["ple"].death, died


def _hits(game: dict[str, Any]) -> Any:
    x, y = game["x"], game["y"][:, None]
    inside = (x - flappy.PIPE_WIDTH / 2 - 20 <= flappy.BIRD_X) & (x + flappy.PIPE_WIDTH / 2 > flappy.BIRD_X)
    left = (x - flappy.PIPE_WIDTH / 2).astype(int)
    overlaps = (left < flappy.BIRD_RIGHT) & (left + flappy.PIPE_WIDTH > flappy.BIRD_LEFT)
    outside = (y <= game["gap"]) | (y + flappy.BIRD_HEIGHT > game["gap"] + flappy.PIPE_GAP)
    on_the_ground = (game["y"] >= flappy.GROUND_Y - flappy.BIRD_HEIGHT) | (game["y"] <= 0)
    return (inside.any(axis=1) & (overlaps & outside).any(axis=1)) | on_the_ground


def _passes(game: dict[str, Any]) -> Any:
    left = game["x"] - flappy.PIPE_WIDTH / 2
    return ((left <= flappy.BIRD_X) & (left + flappy.PIPE_SPEED > flappy.BIRD_X)).sum(axis=1).astype("float32")


def _like(flags: Any, values: Any) -> Any:
    return flags.reshape(len(flags), *[1] * (values.ndim - 1))


def _forward(parameters: dict[str, Any], observations: Any) -> tuple[Any, Any]:
    """Return (logits [..., 2], values [...])."""
    import jax

    weights, bias = parameters["hidden"]
    hidden = jax.nn.relu(observations @ weights + bias)
    logits = hidden @ parameters["policy"][0] + parameters["policy"][1]
    return logits, (hidden @ parameters["value"][0] + parameters["value"][1])[..., 0]


def _learn(state: Any, horizon: int) -> Any:
    """Play `horizon` steps of all games, and make one update."""
    import jax

    parameters, adam, games, key = state

    def play(carried: Any, _: Any) -> Any:
        game, key = carried
        key, acting, stepping = jax.random.split(key, 3)
        observations = _observe(game)
        actions = jax.random.categorical(acting, _forward(parameters, observations)[0])
        game, rewards, deaths = _step(game, actions == 1, stepping)
        return (game, key), (observations, actions, rewards, deaths)

    (games, key), played = jax.lax.scan(play, (games, key), None, length=horizon)
    following = _forward(parameters, _observe(games))[1]
    gradient = jax.grad(_loss)(parameters, played, following)
    parameters, adam = _adam(parameters, adam, gradient)
    return parameters, adam, games, key


def _loss(parameters: Any, played: Any, following: Any) -> Any:
    import jax
    import jax.numpy as jnp

    observations, actions, rewards, deaths = played

    def back(value: Any, step: Any) -> Any:
        value = step[0] + GAMMA * value * ~step[1]
        return value, value

    returns = jax.lax.scan(back, following, (rewards, deaths), reverse=True)[1]
    logits, values = _forward(parameters, observations)
    chosen = jnp.take_along_axis(jax.nn.log_softmax(logits), actions[..., None], axis=-1)[..., 0]
    errors = returns - values
    return (-chosen * jax.lax.stop_gradient(errors) + 0.5 * errors**2).sum()


def _adam(parameters: Any, adam: Any, gradient: Any) -> tuple[Any, Any]:
    import jax

    first, second, count = adam
    count = count + 1
    first = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, first, gradient)
    second = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, second, gradient)
    rate = RATE * (1 - 0.999**count) ** 0.5 / (1 - 0.9**count)
    change = jax.tree.map(lambda p, m, v: p - rate * m / (v**0.5 + 1e-7), parameters, first, second)
    return change, (first, second, count)
