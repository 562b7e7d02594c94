"""The settings of topologies with a master: how it and its workers hand gradients and parameters to each other."""

from typing import Literal

from pydantic import Field, field_validator, model_validator

from a3c_core.section import LARGEST_FACTOR, MOST_EPISODES, Section


class ExchangeConfig(Section):
    """How workers and master hand gradients and parameters to each other. The report had the first of each."""

    transport: Literal["shared", "queue"] = Field(
        "shared", description="real runtimes: shared memory, or pickled messages with mailboxes (the report)"
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
    queue_size: int = Field(8, ge=1, le=MOST_EPISODES, description="gradients that a bounded or dropping queue holds")
    overload_limit: int | None = Field(
        None,
        ge=1,
        le=MOST_EPISODES,
        description="gradients waiting in an unbounded queue at which the run ends as `overloaded`",
    )
    hold: int = Field(
        0,
        ge=0,
        le=MOST_EPISODES,
        description="gradients that the master holds back: it takes the oldest once more than these wait",
    )
    batch: int = Field(1, ge=1, le=256, description="waiting gradients, at most, of which the master makes one update")
    combine: Literal["mean", "sum"] = Field("mean", description="what is applied for the gradients of one update")
    rate: Literal["constant", "staleness", "gap"] = Field(
        "constant", description="learning rate: divided by staleness (Zhang 2016), or by the gap (Barkai 2020)"
    )
    compensation: float = Field(
        0.0, ge=0, le=LARGEST_FACTOR, description="delay compensation (DC-ASGD, Zheng 2017): its λ; 0: none"
    )
    bound: int | None = Field(None, ge=0, le=MOST_EPISODES, description="staleness that is borne; empty: any")
    beyond: Literal["drop", "wait"] = Field(
        "drop", description="gradients beyond the bound are dropped, or workers wait so that there are none on average"
    )

    @field_validator("transport", mode="before")
    @classmethod
    def _not_a_topology(cls, value: object) -> object:
        if value == "hogwild":
            raise ValueError("hogwild is a topology: write topology: hogwild, and leave out the transport")
        return value

    @property
    def carries_parameters(self) -> bool:
        """Whether a parcel has the parameters with it that its worker held."""
        return self.rate == "gap" or self.compensation > 0

    @property
    def makes_workers_wait(self) -> bool:
        """Whether workers wait so that gradients are not too old."""
        return self.bound is not None and self.beyond == "wait"

    @model_validator(mode="after")
    def _can_hold(self) -> "ExchangeConfig":
        """Refuse what would wait for ever, or lose everything, while the master holds gradients back."""
        if not self.hold:
            return self
        if self.pull == "after_apply":
            raise ValueError("hold needs pull: at_once, or workers would wait for gradients that are held back")
        if self.queue != "unbounded" and self.queue_size <= self.hold:
            raise ValueError(f"hold must be less than queue_size ({self.queue_size}), or no gradient would be taken")
        if self.overload_limit is not None and self.overload_limit <= self.hold:
            raise ValueError(f"hold must be less than overload_limit ({self.overload_limit}), or all would be overload")
        if self.makes_workers_wait and self.bound is not None and self.bound < self.hold:
            raise ValueError(f"hold must not exceed bound ({self.bound}), or workers would wait for what is held back")
        return self


class RoundsConfig(Section):
    """How workers and master keep in step."""

    backups: int = Field(
        0, ge=0, le=MOST_EPISODES, description="workers that a round does not wait for: the slowest of it (Chen 2016)"
    )

    @property
    def gradients(self) -> ExchangeConfig:
        """How gradients come to the master within a round."""
        return ExchangeConfig(pull="after_apply", queue="unbounded")
