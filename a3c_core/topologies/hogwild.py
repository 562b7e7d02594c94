"""The `hogwild` topology: no master; every worker applies its own gradient to the parameters that all share.

Recht et al. 2011; Mnih et al. 2016.
"""

from a3c_core.section import Section
from a3c_core.topologies.base import Arrow, Description, Topology


class HogwildTopology(Topology):
    """N workers, and nobody else: there is nothing to set, and nothing to decide."""

    description = Description(
        ("N workers", "shared parameters"),
        (
            Arrow("N workers", "shared parameters", "updates,\nwithout a lock"),
            Arrow("shared parameters", "N workers", "parameters, perhaps amid an update"),
        ),
    )
    Settings = Section
    simulated_as = "hogwild"
    has_master = False
