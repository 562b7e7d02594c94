"""Every setting of a run: frozen, documented once, and rejected with a reason where it makes no sense."""

from typing import Literal

from pydantic import Field, field_validator, model_validator

from a3c_core.optimizers import OptimizerName
from a3c_core.schedules import ScheduleConfig, Span, parse_workers
from a3c_core.section import Section


class EnvironmentConfig(Section):
    """The game."""

    id: str = "a3c_core/FlappyBird-v0"
    observation: Literal["report", "raw", "frames"] = "report"
    reward: Literal["ple", "alive"] = "ple"
    max_episode_steps: int = Field(20_000, ge=1, description="env steps after which an episode is truncated")
    seeding: Literal["episode", "ple"] = Field("episode", description="own stream per episode, or PLE's shared one")
    wait_s: float = Field(0.0, ge=0, description="seconds that the game waits per env step, without using a core")


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


class ExchangeConfig(Section):
    """How workers and master hand gradients and parameters to each other. The report had the first of each."""

    transport: Literal["shared", "queue", "hogwild"] = Field(
        "shared", description="real runtimes: shared memory, pickled messages with mailboxes (the report), or no master"
    )
    channel: Literal["mailbox", "latest"] = Field(
        "latest", description="mailbox: one slot per worker, filled only when empty, so that a model may be old"
    )
    pull: Literal["at_once", "after_apply"] = Field(
        "at_once", description="when a worker takes new parameters: without waiting, or after its gradient was applied"
    )
    queue: Literal["unbounded", "bounded", "dropping"] = Field(
        "bounded", description="a full queue makes workers wait (bounded) or loses their gradients (dropping)"
    )
    queue_size: int = Field(8, ge=1, description="gradients that a bounded or dropping queue holds")
    overload_limit: int | None = Field(
        None, ge=1, description="gradients waiting in an unbounded queue at which the run ends as `overloaded`"
    )


class RunConfig(Section):
    """One run: one cell of a sweep."""

    workers: str = Field("10", description="10, 10->20 or auto")
    episodes: int = Field(100_000, ge=1, description="episodes to play, over all workers")
    seed: int = Field(0, ge=0)
    runtime: Literal["simulate", "processes", "threads", "ray"] = Field(
        "simulate", description="virtual time, or real workers: processes or threads here, or Ray's on any machine"
    )
    engine: Literal["compiled", "tensorflow", "report"] = "compiled"
    model: Literal["dense", "conv"] = Field("dense", description="conv learns from frames, and needs TensorFlow")
    agents_per_worker: int = Field(1, ge=1, description="games that a worker plays at once, for one gradient of all")
    profile: str = Field("report", description="cost profile of virtual time: a shipped one's name or a YAML file")
    slowdown: float | None = Field(None, gt=0, description="replaces the profile's")
    update_s: float | None = Field(None, ge=0, description="replaces the profile's: a faster or slower master")
    gpus: tuple[int, ...] = Field((), description="GPUs that workers use in turn; empty: none")
    restarts: int = Field(100, ge=0, description="lost workers that are replaced before the run is given up")
    worker_limit_s: float = Field(600.0, gt=0, description="a worker that delivers nothing for so long is replaced")
    start_limit_s: float = Field(
        600.0, gt=0, description="a worker that is not up so long after it was started, or another came up, is replaced"
    )
    checkpoint_s: float = Field(60.0, gt=0, description="real seconds between checkpoints")
    environment: EnvironmentConfig = EnvironmentConfig()
    learner: LearnerConfig = LearnerConfig()
    exchange: ExchangeConfig = ExchangeConfig()
    schedule: ScheduleConfig = ScheduleConfig()

    @field_validator("workers", mode="before")
    @classmethod
    def _as_text(cls, value: object) -> object:
        return str(value) if isinstance(value, int) and not isinstance(value, bool) else value

    @model_validator(mode="after")
    def _valid_workers(self) -> "RunConfig":
        parse_workers(self.workers, self.schedule)
        return self

    @model_validator(mode="after")
    def _fitting_channel(self) -> "RunConfig":
        channels = {"shared": "latest", "queue": "mailbox"}
        fitting = channels.get(self.exchange.transport, self.exchange.channel)
        if self.runtime != "simulate" and self.exchange.channel != fitting:
            raise ValueError(f"transport {self.exchange.transport} needs channel {fitting}")
        return self

    @model_validator(mode="after")
    def _fitting_transport(self) -> "RunConfig":
        if self.runtime == "ray" and self.exchange.transport != "shared":
            raise ValueError(
                f"runtime: ray has a transport of its own, Ray's object store: leave out exchange.transport"
                f" ({self.exchange.transport})"
            )
        return self

    @model_validator(mode="after")
    def _fitting_model(self) -> "RunConfig":
        frames = self.environment.observation == "frames"
        if frames != (self.model == "conv"):
            raise ValueError("model: conv and environment.observation: frames need each other")
        if frames and self.learner.update_every == "episode":
            raise ValueError("an episode of frames is too large to hold: set learner.update_every: t_max")
        return self

    @property
    def span(self) -> Span:
        """The parsed worker count."""
        return parse_workers(self.workers, self.schedule)
