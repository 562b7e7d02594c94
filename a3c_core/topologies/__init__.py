"""The topologies by name: who is there, and who hands what to whom."""

from a3c_core.registry import Registry
from a3c_core.section import Section

TOPOLOGIES = Registry(
    "topology",
    {
        "master": "a3c_core.topologies.master:MasterTopology",
        "synchronous": "a3c_core.topologies.synchronous:SynchronousTopology",
        "sharded": "a3c_core.topologies.sharded:ShardedTopology",
        "hogwild": "a3c_core.topologies.hogwild:HogwildTopology",
    },
)


def settings_of(name: str) -> type[Section]:
    """Return the class of a topology's settings, the section `exchange:` of a run."""
    settings: type[Section] = TOPOLOGIES.get(name).Settings
    return settings
