"""A game: a corridor with its exit on the left or on the right, which a sign at the start tells."""

import gymnasium
import numpy as np

LENGTH = 3  # steps from the middle to either end


class Corridor(gymnasium.Env):
    """environment.id: corridor:Corridor-v0"""

    metadata = {
        "render_modes": [],
        "score": {"name": "exits", "unit": "exits", "learned_above": 0.6, "marks": (0.6, 0.9), "whole": True},
    }
    observation_space = gymnasium.spaces.Box(-1, 1, (2,), np.float32)  # place, sign
    action_space = gymnasium.spaces.Discrete(2)  # left, right

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)  # all chance must come from self.np_random: an episode is played again from its seed
        self._place, self._exit = 0, int(self.np_random.choice([-LENGTH, LENGTH]))
        return self._observation(), {}

    def step(self, action):
        self._place += 1 if action else -1
        out = self._place == self._exit
        over = abs(self._place) == LENGTH
        return self._observation(), float(out), over, False, {"score": int(out)}

    def _observation(self):
        return np.array([self._place, self._exit], np.float32) / LENGTH


gymnasium.register("Corridor-v0", Corridor, max_episode_steps=30)
