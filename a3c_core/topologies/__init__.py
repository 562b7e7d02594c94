"""The topologies by name: who is there in virtual time, and who hands what to whom."""

from typing import Literal

from a3c_core.topologies.base import Topology
from a3c_core.topologies.hogwild import HogwildTopology
from a3c_core.topologies.master import MasterTopology

TopologyName = Literal["master", "hogwild"]
TOPOLOGIES: dict[str, type[Topology]] = {"master": MasterTopology, "hogwild": HogwildTopology}
