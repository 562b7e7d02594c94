"""Optimizers on the flat parameter vector: pure updates, compiled, each a few microseconds.

Adam is Keras's (Kingma & Ba 2015, with the bias correction folded into the step size); RMSProp is the non-centred one
that the A3C paper shares among its workers (by default decay 0.99, epsilon 0.1 inside the root); SGD is plain.
"""

import math
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from a3c_core.models.parameters import Vector
from a3c_core.system.jit import compilable, exact, fast

OptimizerName = Literal["adam", "rmsprop", "sgd"]

_RULES = ("adam", "rmsprop", "sgd")
_ADAM, _RMSPROP = _RULES.index("adam"), _RULES.index("rmsprop")
_SLOTS: dict[str, int] = {"adam": 2, "rmsprop": 1, "sgd": 0}  # moving averages per parameter
_BETA_1, _BETA_2 = np.float32(0.9), np.float32(0.999)
_EPSILONS: dict[str, float] = {"adam": 1e-7, "rmsprop": 0.1, "sgd": 0.0}
DECAY = 0.99  # of RMSProp's average
_ZERO, _ONE = np.float32(0.0), np.float32(1.0)
# Averages of a unit that has fallen silent decay for ever. Below this they change no update, but become denormal
# numbers, which cost the processor a hundred cycles each: an update would take 15 µs instead of 4.
_NEGLIGIBLE = np.float32(1e-30)


class UpdateResult(NamedTuple):
    """What became of one gradient, or of a batch."""

    applied: bool  # False: it was not finite, and the parameters are untouched
    gradient_norm: float  # before clipping; of a batch the mean over its updates
    learning_rate: float
    settles: Literal["parcel", "batch", "nothing"] = "parcel"  # the parcel that came; all that wait; it waits itself


class Optimizer:
    """Applies gradients in place to a parameter vector that it is given; keeps the moving averages and counts."""

    def __init__(
        self,
        size: int,
        name: OptimizerName = "adam",
        learning_rate: float = 1e-4,
        anneal: bool = False,
        clip_norm: float | None = None,
        epsilon: float | None = None,
        decay: float = DECAY,
    ):
        """`anneal`: whether the learning rate falls linearly to 0 over the run; `epsilon`: None for the optimizer's."""
        self.name = name
        self.rule = _RULES.index(name)
        self.slots: NDArray[np.float32] = np.zeros((_SLOTS[name], size), np.float32)
        self.updates = 0  # gradients applied
        self.rejected = 0  # gradients refused because they were not finite
        self.initial_rate = learning_rate
        self.anneal = anneal
        self.clip_norm = math.inf if clip_norm is None else clip_norm
        self.epsilon = _EPSILONS[name] if epsilon is None else epsilon
        self.decay = decay

    def rate_at(self, progress: float) -> float:
        """Return the learning rate when the share `progress` of the run is done."""
        return rate_at(self.initial_rate, self.anneal, progress)

    def apply(self, parameters: Vector, gradient: Vector, progress: float = 0.0, rate: float = 1.0) -> UpdateResult:
        """Update `parameters` [P] in place with `gradient` [P], unless it holds a NaN or an infinity.

        `progress`: share of the run that is done, which an annealed rate goes by; `rate`: what that is multiplied by.
        """
        initial_rate = self.rate_at(progress) if self.anneal else self.initial_rate
        learning_rate, count = initial_rate * rate, self.updates + 1
        norm = update(
            self.rule,
            parameters,
            gradient,
            self.slots,
            learning_rate,
            self.clip_norm,
            self.epsilon,
            self.decay,
            count,
        )
        if norm < math.inf:  # which NaN is not either
            self.updates = count
            return UpdateResult(True, norm, learning_rate)
        self.rejected += 1
        return UpdateResult(False, norm, learning_rate)


@compilable
def rate_at(initial_rate, anneal, progress):
    """Return the learning rate when the share `progress` of a run's episodes has been dealt with."""
    return initial_rate * max(0.0, 1.0 - progress) if anneal else initial_rate


@fast
def global_norm(gradient):
    """Return the Euclidean length of `gradient` [P], summed in float64; NaN or infinite if any entry is."""
    total = 0.0
    for i in range(gradient.size):
        value = np.float64(gradient[i])
        total += value * value
    return math.sqrt(total)


@exact
def _without_denormals(average):
    return average if abs(average) > _NEGLIGIBLE else _ZERO


@exact
def update(rule, parameters, gradient, slots, learning_rate, clip_norm, epsilon, decay, updates):
    """Update in place and return the gradient's norm before clipping; if that is not finite, change nothing.

    One call for all of it: a master that is woken for every gradient makes thousands a second.
    """
    norm = global_norm(gradient)
    if np.isfinite(norm):
        rate, scale = np.float32(learning_rate), np.float32(min(1.0, clip_norm / norm) if norm > 0.0 else 1.0)
        if rule == _ADAM:
            _adam(parameters, gradient, slots, rate, scale, np.float32(epsilon), np.float32(updates))
        elif rule == _RMSPROP:
            rmsprop(parameters, gradient, slots, rate, scale, np.float32(epsilon), np.float32(decay))
        else:
            _sgd(parameters, gradient, rate, scale)
    return norm


@exact
def _adam(parameters, gradient, slots, learning_rate, scale, epsilon, updates):
    momentum, velocity = slots[0], slots[1]
    step = learning_rate * np.sqrt(_ONE - _BETA_2**updates) / (_ONE - _BETA_1**updates)
    for i in range(parameters.size):
        g = gradient[i] * scale
        momentum[i] = _without_denormals(momentum[i] + (g - momentum[i]) * (_ONE - _BETA_1))
        velocity[i] = _without_denormals(velocity[i] + (g * g - velocity[i]) * (_ONE - _BETA_2))
        parameters[i] -= momentum[i] * step / (np.sqrt(velocity[i]) + epsilon)


@exact
def rmsprop(parameters, gradient, slots, learning_rate, scale, epsilon, decay):
    """The A3C paper's equations 8 and 9; safe to call from several processes on shared memory without a lock."""
    mean_square = slots[0]
    for i in range(parameters.size):
        g = gradient[i] * scale
        mean_square[i] = _without_denormals(decay * mean_square[i] + (_ONE - decay) * g * g)
        parameters[i] -= learning_rate * g / np.sqrt(mean_square[i] + epsilon)


@exact
def _sgd(parameters, gradient, learning_rate, scale):
    for i in range(parameters.size):
        parameters[i] -= learning_rate * scale * gradient[i]
