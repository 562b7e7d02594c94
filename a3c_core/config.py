"""Every setting of a run: frozen, documented once, and rejected with a reason where it makes no sense."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from a3c_core.optimizers import OptimizerName


class Section(BaseModel):
    """A group of settings: unknown keys are errors, and values never change."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class EnvironmentConfig(Section):
    """The game."""

    id: str = "a3c_core/FlappyBird-v0"
    observation: Literal["report", "raw", "frames"] = "report"
    reward: Literal["ple", "alive"] = "ple"
    max_episode_steps: int = Field(20_000, ge=1, description="env steps after which an episode is truncated")
    seeding: Literal["episode", "ple"] = Field("episode", description="own stream per episode, or PLE's shared one")


class LearnerConfig(Section):
    """Returns, loss and optimizer."""

    gamma: float = Field(0.99, ge=0, le=1)
    t_max: int | None = Field(None, ge=1, description="n-step returns over chunks of t_max; null: to the episode's end")
    update_every: Literal["episode", "t_max"] = "episode"
    standardise: bool = Field(True, description="returns to mean 0 and deviation 1 within each episode")
    value_loss: Literal["huber", "squared"] = "huber"
    value_coefficient: float = Field(1.0, ge=0)
    entropy_coefficient: float = Field(0.0, ge=0)
    optimizer: OptimizerName = "adam"
    learning_rate: float = Field(1e-4, gt=0)
    anneal: bool = Field(False, description="learning rate falls linearly to 0 over the run's episodes")
    clip_norm: float | None = Field(None, gt=0, description="largest global norm of a gradient; null: no limit")

    @model_validator(mode="after")
    def _consistent(self) -> "LearnerConfig":
        if self.update_every == "t_max" and self.t_max is None:
            raise ValueError("update_every: t_max needs a t_max, the number of env steps between updates")
        if self.update_every == "t_max" and self.standardise:
            raise ValueError("standardise works on whole episodes: set it to false with update_every: t_max")
        return self
