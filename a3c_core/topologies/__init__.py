"""The topologies by name: who is there, and who hands what to whom."""

from a3c_core.registry import Registry

TOPOLOGIES = Registry(
    "topology",
    {
        "master": "a3c_core.topologies.master:MasterTopology",
        "hogwild": "a3c_core.topologies.hogwild:HogwildTopology",
    },
)
