"""The `sharded` topology: workers hand gradients to a parameter server in shards (Dean et al. 2012).

A record's version is the oldest of the shards' that its worker pulled, its staleness that of the part that waited
longest.
"""

from typing import Literal

from pydantic import Field

from a3c_core.section import Section
from a3c_core.topologies.base import Arrow, Description, Topology
from a3c_core.topologies.exchange import ExchangeConfig


class ServersConfig(Section):
    """How many servers there are, and what each costs."""

    shards: int = Field(2, ge=1, le=1_024, description="parts of the parameters, each with its own server")
    fixed: float = Field(0.0, ge=0, le=1, description="share of an update's cost that does not depend on its size")

    def cost_share(self, share: float) -> float:
        """Return what a server with this share of the parameters costs, as a share of a whole update."""
        return self.fixed + (1.0 - self.fixed) * share


class ShardsConfig(ServersConfig):
    """A parameter server's settings, and when workers pull."""

    pull: Literal["at_once", "after_apply"] = Field(
        "at_once", description="when a worker takes new parameters: without waiting, or after its gradient was applied"
    )

    @property
    def gradients(self) -> ExchangeConfig:
        """How gradients come to the servers."""
        return ExchangeConfig(pull=self.pull, queue="unbounded")

    @property
    def why_not_real(self) -> str:
        """What keeps real workers from having servers: their master is one process."""
        return "topology sharded is for virtual time: real workers have one master, and its shards would take turns"


class ShardedTopology(Topology):
    """N workers and k servers."""

    description = Description(
        ("N workers", "k queues", "k servers"),
        (
            Arrow("N workers", "k queues", "gradients\nin k parts"),
            Arrow("k queues", "k servers", "the oldest part"),
            Arrow("k servers", "N workers", "parameters, perhaps of mixed versions"),
        ),
    )
    Settings = ShardsConfig
    simulated_as = "sharded"

    def service_s(self, learning_s: float, writing_s: float) -> float:
        """Return a server's work on its part; nobody writes anything up."""
        return learning_s * self.exchange.cost_share(1.0 / self.exchange.shards)
