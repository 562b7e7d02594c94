"""How compiled virtual time plays: by the kernels of the algorithm, chosen by the type of its settings."""

import numpy as np
from numba.extending import overload

from a3c_core.engines import actor_critic_kernels as kernels
from a3c_core.engines import value_kernels
from a3c_core.system.jit import inner

NOT_CHOSEN = np.int64(-1)  # in place of an action


@inner
def _rollout_of_a3c(published, games, stream, steps_left, settings, buffers, epsilon, chosen, gradient):
    played = kernels.rollout(published, games, stream, steps_left, settings, buffers, gradient)
    return (*played, NOT_CHOSEN)


@inner
def _rollout_of_values(published, games, stream, steps_left, settings, buffers, epsilon, chosen, gradient):
    buffers.epsilon[0], buffers.chosen[0] = epsilon, chosen
    played = value_kernels.rollout(published, games, stream, steps_left, settings, buffers, gradient)
    return (*played, buffers.chosen[0])


_ROLLOUTS = {kernels.Settings: _rollout_of_a3c, value_kernels.Settings: _rollout_of_values}


def rollout(published, games, stream, steps_left, settings, buffers, epsilon, chosen, gradient):
    """Play and differentiate into `gradient`; return what the kernels' `rollout` does, and an action chosen already.

    `epsilon`: how often to act at random; `chosen`: the action that was chosen with the last piece of play. Neither
    concerns an algorithm that draws its actions.
    """
    raise NotImplementedError("for compiled code only")


@overload(rollout)
def _typed(published, games, stream, steps_left, settings, buffers, epsilon, chosen, gradient):
    """Return the rollout of the algorithm that has settings of this type."""
    chosen_rollout = _ROLLOUTS[settings.instance_class]

    def implementation(published, games, stream, steps_left, settings, buffers, epsilon, chosen, gradient):
        return chosen_rollout(published, games, stream, steps_left, settings, buffers, epsilon, chosen, gradient)

    return implementation
