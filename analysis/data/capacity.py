"""How many workers a study's masters bear, by what was known before its runs: never by what these came to.

N0 = C / S is where an exchange that does not wait overflows, N* = (C + S) / S where one that waits is full; C is a
worker's cycle and S the master's service, both of an untrained agent (a3c_core/virtual/capacity.py).
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from a3c_core.config import RunConfig
from a3c_core.trusted_modules import modules_of
from a3c_core.virtual.capacity import capacity
from a3c_core.virtual.costs import CostProfile
from analysis.data.study import Study
from analysis.words import duration

COLUMNS = ("n0", "n_star", "limit_workers", "untrained_cycle_s", "untrained_service_s")
_FORMULAS = {"N0": "C / S", "N*": "(C + S) / S"}


class Limit(NamedTuple):
    """The number of workers that one master bears: the median over seeds, whose untrained agents differ."""

    name: str  # N0 or N*
    workers: float
    low: float  # over the seeds
    high: float
    cycle_s: float  # C
    service_s: float  # S

    @property
    def short(self) -> str:
        """The number, as in "N0 = 13.8"."""
        return f"{self.name} = {self.workers:.1f}"

    @property
    def words(self) -> str:
        """The number with its formula, and its range where seeds differ."""
        low, high = f"{self.low:.1f}", f"{self.high:.1f}"
        spread = f" ({low} to {high} by seed)" if low != high else ""
        return f"{self.name} = {_FORMULAS[self.name]} = {self.workers:.1f}{spread}"

    @property
    def costs(self) -> str:
        """What C and S are."""
        return (
            f"an untrained agent's episode takes its worker C = {duration(self.cycle_s)} and the master "
            f"S = {duration(self.service_s)}"
        )


def limit_of(study: Study) -> Limit | None:
    """Return the limit of a study's runs; None where it is not known, there is none, or settings have one each."""
    done = study.done
    if "limit_workers" not in done or done["limit_workers"].isna().all():
        return None
    known = done[done["limit_workers"].notna()]
    if known["limit_name"].nunique() > 1 or (known.groupby("seed")["limit_workers"].nunique() > 1).any():
        return None
    by_seed = known.groupby("seed")[list(COLUMNS)].first()
    workers = by_seed["limit_workers"]
    if not (np.isfinite(workers) & (workers > 0)).all():
        return None
    costs = (float(by_seed[name].median()) for name in ("untrained_cycle_s", "untrained_service_s"))
    return Limit(
        known["limit_name"].iloc[0], float(workers.median()), float(workers.min()), float(workers.max()), *costs
    )


def numbers_of(config: Mapping[str, Any], summary: Mapping[str, Any], profile: CostProfile | None) -> dict[str, Any]:
    """Return a run's capacity as its summary has it, or of an older run from its settings and its costs then."""
    names = (*COLUMNS, "limit_name")
    numeric = all(isinstance(summary.get(name), int | float) for name in COLUMNS)
    if numeric and summary.get("limit_name") in _FORMULAS:
        return {name: summary[name] for name in names}
    if profile is None or modules_of(dict(config)):  # reading results imports no modules that they name
        return {}
    try:
        known = capacity(RunConfig.model_validate(dict(config)), profile)
    except ValueError:  # settings of another version
        return {}
    values = (known.n0, known.n_star, known.limit, known.cycle_s, known.service_s, known.limit_name)
    return dict(zip(names, values, strict=True))
