"""What every topology is: rules about who hands what to whom, the same in virtual time and with real processes.

Rules know no clock. A master, simulated or real, asks them how many waiting gradients make its next update (`take`),
what is applied for these (`combine`), and which gradients it does not take at all (`is_late`, and a full queue with
`drops_when_full`). Corrections for staleness are in remedies.py. How virtual time plays a topology is in
a3c_core/virtual, in the file of the same name.
"""

import math
from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

from a3c_core.algorithms.base import HandsOver
from a3c_core.models.parameters import Vector
from a3c_core.section import Section
from a3c_core.topologies.exchange import ExchangeConfig


class Arrow(NamedTuple):
    """What goes from one kind of station to another."""

    sender: str
    receiver: str
    what: str


class Description(NamedTuple):
    """A topology in a few words, for pages and drawings."""

    stations: tuple[str, ...]  # in the order in which a gradient passes them
    arrows: tuple[Arrow, ...]


class Topology:
    """The rules of one run.

    Most topologies of one's own inherit from `master.MasterTopology` and override `take` and `combine`, which hold in
    virtual time and with real processes. `Settings` is the section `exchange:` of a run.

    Example:
        `topology: my_module:MyTopology` in a grid uses the class `MyTopology` of my_module.py.

    >>> rules = MasterTopology(ExchangeConfig(batch=4))  # doctest: +SKIP
    >>> rules.take(waiting=9, playing=2)
    4
    """

    description: ClassVar[Description] = Description((), ())
    Settings: ClassVar[type[Section]]  # the section `exchange:` of a run
    simulated_as: ClassVar[str]  # a row of STATIONS in virtual/simulation.py, or one's own package.module:attribute
    takes: ClassVar[tuple[HandsOver, ...]] = ("gradient",)  # what workers may hand over; not inherited
    statistics: ClassVar[tuple[str, ...]] = ()  # numbers that it adds to the record of each update
    has_master: ClassVar[bool] = True  # or else workers apply their gradients themselves
    learns_at_arrival: ClassVar[bool] = True  # a worker's parcel is work for the master, or only food for others
    has_predictors: ClassVar[bool] = False  # workers have no model, but ask for their actions
    has_limit: ClassVar[bool] = True  # one master's pace bounds how many workers there can be
    counts_players: ClassVar[bool] = False  # whether `take` needs their number, or else if there are any

    def __init_subclass__(cls) -> None:
        """Let a class that says nothing take gradients: one that averages them, say, can't do so with trajectories."""
        super().__init_subclass__()
        cls.takes = cls.__dict__.get("takes", ("gradient",))

    def __init__(self, exchange: Any):
        """`exchange`: settings of the class that `Settings` names."""
        given = getattr(exchange, "gradients", exchange)
        gradients = given if isinstance(given, ExchangeConfig) else ExchangeConfig()  # there is no master
        self.exchange, self.gradients = exchange, gradients
        self.queue_size = math.inf if gradients.queue == "unbounded" else gradients.queue_size
        self.drops_when_full = gradients.queue == "dropping"  # or else workers wait then
        self.overload_limit = math.inf if gradients.overload_limit is None else gradients.overload_limit
        self.waits_for_apply = gradients.pull == "after_apply"
        self.has_mailboxes = gradients.channel == "mailbox"
        self.most_under_way = 1 + (gradients.bound or 0) if gradients.makes_workers_wait else math.inf  # gradients

    @classmethod
    def why_not(cls, config: Any) -> tuple[str, str] | None:
        """Return the first of a run's settings that the topology can't go with, and why not; or None."""
        return None

    def service_s(self, learning_s: float, writing_s: float) -> float:
        """Return how long the busiest of those who learn is at work for a parcel.

        One master would learn from it in `learning_s`, and write up its episodes in `writing_s`.
        """
        return learning_s + writing_s

    def take(self, waiting: int, playing: int) -> int:
        """Return of how many of the `waiting` parcels the master makes its next update now; 0: it waits for more.

        `playing`: workers from whom more may come.
        """
        return min(waiting, 1)

    def combine(self, gradients: Sequence[Vector]) -> Vector:
        """Return the one gradient that is applied for those taken."""
        return gradients[0]

    def is_late(self, staleness: int) -> bool:
        """Return whether a parcel that arrives with this staleness is not even queued, but dropped."""
        return False
