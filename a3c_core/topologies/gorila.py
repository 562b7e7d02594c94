"""The `gorila` topology (Nair et al. 2015): actors play, replay memories keep, learners differentiate, servers apply.

In virtual time these are as many as asked for. A real master serves bundles, each of an actor, a memory and a learner.
"""

from typing import ClassVar, Literal

from pydantic import Field

from a3c_core.algorithms.base import HandsOver
from a3c_core.section import LARGEST_FACTOR, MOST_EPISODES
from a3c_core.topologies.base import Arrow, Description, Topology
from a3c_core.topologies.exchange import ExchangeConfig
from a3c_core.topologies.sharded import ServersConfig


class GorilaConfig(ServersConfig):
    """Learners and their memories, and which gradients are thrown away."""

    learners: int | None = Field(None, ge=1, le=65_536, description="null: one for each actor")
    memory: Literal["own", "shared"] = Field(
        "own", description="own: each learner has one, which its actors feed; shared: one for all"
    )
    pace: Literal["free", "in_step"] = Field(
        "free", description="in_step: a gradient for each piece of play, and the actor waits until that is dealt with"
    )
    bound: int | None = Field(None, ge=0, le=MOST_EPISODES, description="older gradients are dropped; empty: none")
    outliers: float | None = Field(
        None, ge=0, le=LARGEST_FACTOR, description="standard deviations above the mean from which on a loss is outlying"
    )

    @property
    def gradients(self) -> ExchangeConfig:
        """How gradients come to a real master."""
        return ExchangeConfig(pull="after_apply", queue="unbounded", bound=self.bound)

    @property
    def why_not_real(self) -> str | None:
        """What keeps real workers, each an actor with a memory and a learner of its own, from doing as asked."""
        if self.learners is None and (self.memory, self.pace, self.shards) == ("own", "in_step", 1):
            return None
        return "topology gorila needs exchange: {pace: in_step, shards: 1}, memory: own and as many learners as actors"


class GorilaTopology(Topology):
    """N actors, L learners with their memories, k servers."""

    description = Description(
        ("N actors", "memories", "L learners", "k servers"),
        (
            Arrow("N actors", "memories", "experience"),
            Arrow("memories", "L learners", "minibatches"),
            Arrow("L learners", "k servers", "gradients"),
            Arrow("k servers", "L learners", "with target"),
            Arrow("k servers", "N actors", "parameters"),
        ),
    )
    Settings = GorilaConfig
    simulated_as = "gorila"
    takes: ClassVar[tuple[HandsOver, ...]] = ("experience",)
    learns_at_arrival: ClassVar[bool] = False
