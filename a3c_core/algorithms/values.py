"""What asynchronous value methods share (Mnih et al. 2016): action values, ε-greedy play, a target network."""

from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from a3c_core.algorithms.base import HandsOver, LearnerSettings, TargetSettings, Trajectory
from a3c_core.algorithms.returns import discounted_returns
from a3c_core.models.base import Heads, Outputs
from a3c_core.progress import Progress
from a3c_core.streams import uniform
from a3c_core.system.tensorflow import import_tensorflow

Epsilon = Annotated[float, Field(ge=0, le=1)]

_BOUNDS = (0.4, 0.7)  # of a worker's draw: its final ε is the first, second or third with probability 0.4, 0.3, 0.3


def which_epsilon(draw: float) -> int:
    """Return which of the three final ε a worker has, given its own number in [0, 1)."""
    return int(draw >= _BOUNDS[0]) + int(draw >= _BOUNDS[1])


def annealed(final: float, env_steps: int, epsilon_steps: int) -> float:
    """Return ε after `env_steps` of the run: from 1 it falls to `final` over its first `epsilon_steps`."""
    if epsilon_steps == 0:
        return final
    left = max(0.0, 1.0 - env_steps / epsilon_steps)
    return final + (1.0 - final) * left


class ValueSettings(TargetSettings):
    """Returns, exploration and optimizer; the defaults are the paper's, in steps of four frames."""

    gamma: float = Field(0.99, ge=0, le=1)
    t_max: int = Field(5, ge=1, le=1_000_000, description="env steps whose gradients are added up for one update")
    epsilon_steps: int = Field(
        1_000_000, ge=0, le=10**12, description="env steps of the run over which ε falls from 1 to its final value"
    )
    final_epsilons: tuple[Epsilon, Epsilon, Epsilon] = Field(
        (0.1, 0.01, 0.5), description="what each worker draws its final ε from, with probabilities 0.4, 0.3, 0.3"
    )


class ValueAlgorithm:
    """Acts by the largest action value, or with probability ε at random; learns from the squared error."""

    Settings: ClassVar[type[LearnerSettings]] = ValueSettings
    hands_over: ClassVar[HandsOver] = "gradient"
    statistics: ClassVar[tuple[str, ...]] = ("target_age", "epsilon")  # env steps; of the worker, by then
    one_step: ClassVar[bool]  # a return goes on with a value after one reward, or only at the trajectory's end

    def __init__(self, settings: ValueSettings):
        self.settings = settings

    @property
    def steps_at_once(self) -> int:
        return self.settings.t_max

    def heads(self, actions: int) -> Heads:
        return (("action_values", actions),)

    def epsilon(self, progress: Progress) -> float:
        """Return how often the worker in question acts at random."""
        final = self.settings.final_epsilons[which_epsilon(progress.draw)]
        return annealed(final, progress.env_steps, self.settings.epsilon_steps)

    def exploration(self, progress: Progress) -> dict[str, float]:
        """Return what is recorded with each update of the worker in question."""
        return {"epsilon": self.epsilon(progress)}

    def act(self, outputs: Outputs, stream: NDArray[np.uint64], progress: Progress) -> int:
        if uniform(stream) < self.epsilon(progress):
            return int(uniform(stream) * outputs[0].size)
        return int(outputs[0].argmax())

    def value(self, outputs: Outputs) -> float:
        return float(outputs[0].max())

    def targets(self, trajectory: Trajectory) -> NDArray[np.float32]:
        """Return float32 [T]: rewards, and what the target network says of the state where they are cut off."""
        rewards, values, beyond = trajectory.rewards, trajectory.values, trajectory.bootstrap_value
        returns: NDArray[np.float32] = discounted_returns(
            rewards, values, beyond, self.settings.gamma, 1 if self.one_step else 0
        )
        return returns

    def losses(self, outputs: tuple[Any, ...], actions: Any, targets: Any) -> tuple[Any, Any]:
        """Return (squared errors [T] of the values of the actions taken, zeros [T]: such a policy has no entropy)."""
        tf = import_tensorflow()
        losses = tf.square(targets - tf.gather(outputs[0], actions, batch_dims=1))
        return losses, tf.zeros_like(losses)
