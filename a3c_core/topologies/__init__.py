"""The topologies by name: who is there, and who hands what to whom."""

from a3c_core.registry import Registry
from a3c_core.section import Section
from a3c_core.topologies.base import Topology

TOPOLOGIES = Registry(
    "topology",
    {
        "master": "a3c_core.topologies.master:MasterTopology",
        "synchronous": "a3c_core.topologies.synchronous:SynchronousTopology",
        "sharded": "a3c_core.topologies.sharded:ShardedTopology",
        "gorila": "a3c_core.topologies.gorila:GorilaTopology",
        "ga3c": "a3c_core.topologies.ga3c:GA3CTopology",
        "hogwild": "a3c_core.topologies.hogwild:HogwildTopology",
    },
    needs=["Settings", "takes", "why_not"],
)


def settings_of(name: str) -> type[Section]:
    """Return the class of a topology's settings, the section `exchange:` of a run."""
    settings: type[Section] = TOPOLOGIES.get(name).Settings
    return settings


def statistics_of(name: str) -> tuple[str, ...]:
    """Return what a topology calls the numbers that it adds to the record of each update, if any."""
    statistics: tuple[str, ...] = TOPOLOGIES.get(name).statistics
    return statistics


def rules_of(name: str, exchange: Section) -> Topology:
    """Return the rules of a topology with a run's settings for it."""
    rules: Topology = TOPOLOGIES.get(name)(exchange)
    return rules
