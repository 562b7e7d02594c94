"""An algorithm: Monte-Carlo Q-learning. Action values, ε-greedy play, squared error to the discounted returns."""

from pydantic import Field

from a3c_core.algorithms.base import LearnerSettings
from a3c_core.algorithms.returns import discounted_returns
from a3c_core.streams import uniform
from a3c_core.system.tensorflow import import_tensorflow


class Settings(LearnerSettings):
    """The section `learner:` of a run, with optimizer, learning_rate, anneal and clip_norm from LearnerSettings."""

    gamma: float = Field(0.99, ge=0, le=1)
    epsilon: float = Field(0.05, ge=0, le=1, description="share of random actions in the run's second half")


class MonteCarloQ:
    """algorithm: monte_carlo_q:MonteCarloQ"""

    Settings = Settings
    hands_over = "gradient"  # what a worker gives the master
    steps_at_once = None  # env steps for one gradient; None: a whole episode

    def __init__(self, settings):
        self.settings = settings

    def heads(self, actions):
        return (("action_values", actions),)

    def act(self, outputs, stream, progress):
        epsilon = max(self.settings.epsilon, 1 - 2 * progress.share)
        if uniform(stream) < epsilon:
            return int(uniform(stream) * outputs[0].size)
        return int(outputs[0].argmax())

    def value(self, outputs):
        return float(outputs[0].max())

    def targets(self, trajectory):
        rewards, values, beyond = trajectory.rewards, trajectory.values, trajectory.bootstrap_value
        return discounted_returns(rewards, values, beyond, self.settings.gamma, 0)  # float32 [T]

    def losses(self, outputs, actions, targets):
        tf = import_tensorflow()
        chosen = tf.gather(outputs[0], actions, batch_dims=1)  # [T]
        losses = 0.5 * tf.square(targets - chosen)
        return losses, tf.zeros_like(losses)  # a greedy policy has no entropy
