"""From measurements of a trainer's steps to costs: a system that, simulated, takes the time that the log says."""

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from a3c.advise.costs import Costs
from a3c.advise.distributions import by_tail, empirical, lognormal
from a3c.advise.measurements import ASYNCHRONOUS, ONE_STEP_OFF, SYNCHRONOUS, LogError, Measurements, mean
from a3c.advise.simulator import DRAIN, PAUSE, UNBOUNDED, UNLIMITED, Factors, System, simulate
from a3c_core.command_line.arguments import in_seconds

SPREAD = 0.5  # lognormal standard deviation of a rollout where the log has none
_BATCH = 64  # groups of an update, where nobody says: only ratios of times matter
_LIMITS = {"areal": 2.0, "verl": 8.0}  # bounds on age, where the log has none: typical values of their documents
_QUEUES = {"rllib": 3}  # batches that may wait, by default; then the oldest is dropped
_HELD_UP = 0.03  # of a step: a trainer that waits longer is held up by generation
_NEARLY, _FASTER = 0.97, 1.05  # of training's speed, and than that: where the log can't tell how fast generation is
_HALVINGS = 12  # of two decades: to a thousandth
_FEW = 10  # steps: fewer have no distribution of their own
_DIFFERENT = 0.15  # between a rollout's measured duration and the one that explains the wait


class Given(NamedTuple):
    """What the command line says of a system; None where it says nothing."""

    staleness: float | None = None
    group: int | None = None
    in_flight: int | None = None
    batch: int | None = None
    sync_s: float | None = None
    sync_every: int | None = None
    sync_mode: int | None = None
    queue: int | None = None
    drops_oldest: bool | None = None
    drop_age: float | None = None
    update_s: float | None = None
    cycle_factors: Factors | None = None
    curve: tuple[float, float, float] | None = None  # of throughput against rollouts side by side
    mode: str | None = None
    grows: float = 1.0  # rollouts take so many times as long at the end of what is predicted


def fit_steps(found: Measurements, given: Given = Given()) -> Costs:  # noqa: B008 - immutable
    """Return the costs that explain measurements, with what the command line says otherwise."""
    mode = given.mode or found.mode
    update_s = _update_s(found, given)
    group = 1 if found.unit == "sample" else given.group or found.group or 1
    batch = given.batch or found.batch or _BATCH * group
    updates = given.sync_every or found.updates_a_step
    step_s = found.step_mean_s / found.updates_a_step if found.steps else float("nan")
    sync_s = given.sync_s if given.sync_s is not None else _known(mean(found.sync_s))
    factors, rollout_s, notes = _rollouts(found, given, batch)
    if found.rollouts_s.size and found.steps and _sync_mode(found, given) == PAUSE:
        rollout_s *= 1.0 - found.shares["sync"]  # pauses are part of the durations that were logged
    wait_s = _known(mean(found.wait_s)) / found.updates_a_step
    held_up = mode == SYNCHRONOUS or wait_s > _HELD_UP * step_s
    slots = given.in_flight or found.slots or _slots(mode, batch, step_s, rollout_s, held_up)
    slots = max(slots, group)
    system = System(
        workers=slots,
        cycle_s=rollout_s if rollout_s > 0 else slots * step_s / batch,
        latency_s=0.0,
        service_s=update_s,
        batch=batch,
        queue=given.queue if given.queue is not None else _QUEUES.get(found.system, UNBOUNDED) * batch,
        group=group,
        staleness=_limit(found, given, mode),
        drop_age=given.drop_age if given.drop_age is not None else UNLIMITED,
        drops_oldest=found.system in _QUEUES if given.drops_oldest is None else given.drops_oldest,
        sync_s=sync_s,
        sync_every=updates,
        sync_mode=_sync_mode(found, given),
        colocated=mode == SYNCHRONOUS and found.system != "rllib",
        one_ahead=mode == ONE_STEP_OFF,
    )
    if given.curve is not None:
        system = system._replace(contention=given.curve[1], coherence=given.curve[2])
        system = system._replace(cycle_s=system.cycle_s / system.slowdown)
    if held_up and step_s > 0:
        system = _explain(system, factors, step_s)
        ratio = system.cycle_s / rollout_s if rollout_s > 0 else 1.0
        if abs(ratio - 1.0) > _DIFFERENT and given.curve is None:
            notes += (
                f"{found.unit}s of {in_seconds(rollout_s)} do not explain the wait, {in_seconds(system.cycle_s)} "
                "would: fewer than assumed are generated side by side, or something else holds generation up",
            )
    elif step_s > 0 and (rollout_s == 0 or simulate(system, factors).idle > _HELD_UP):  # the log's trainer hardly waits
        system = _explain(system, factors, step_s / _NEARLY)
        system = system._replace(cycle_s=system.cycle_s / _FASTER)
    steps = found.update_s[~np.isnan(found.update_s)]
    return Costs(
        system=system._replace(grows=given.grows),
        about=f"by the log {found.source}",
        cycle_factors=factors,
        service_factors=empirical(steps) if steps.size >= _FEW and steps.min() > 0 else np.ones(1),
        notes=(*found.notes, *notes),
        parcels=found.steps,
    )


def resampled(found: Measurements, seed: int) -> Measurements:
    """Return the same number of steps, drawn with replacement: what another log of the same run might have said."""
    if found.steps < 2:
        return found
    drawn = np.random.default_rng(seed).integers(0, found.steps, found.steps)
    names = ("step_s", "wait_s", "update_s", "sync_s")
    parts = {name: getattr(found, name) for name in names}
    return replace(found, **{name: part[drawn] for name, part in parts.items() if part.size == found.steps})


def _update_s(found: Measurements, given: Given) -> float:
    """Return the seconds of an update, with whatever else the trainer does in a step."""
    if given.update_s is not None:
        return given.update_s
    if not found.steps or np.isnan(mean(found.update_s)):
        raise LogError("the log does not say how long an update takes: say it with --update")
    parts_s = _known(mean(found.wait_s)) + _known(mean(found.sync_s))
    rest_s = found.step_mean_s - parts_s
    update_s = rest_s if rest_s > 0 else mean(found.update_s)
    if not update_s > 0:
        raise LogError("by the log updates take no time at all: are its times in seconds, with their fractions?")
    return update_s / found.updates_a_step


def _rollouts(found: Measurements, given: Given, batch: int) -> tuple[Factors, float, tuple[str, ...]]:
    """Return how rollouts vary, how long one takes (0 if unknown), and what is remarkable."""
    if found.rollouts_s.size:
        factors, rollout_s = empirical(found.rollouts_s), float(found.rollouts_s.mean())
    elif found.durations is not None:
        known = found.durations
        rollout_s = known.mean_s
        if known.p95_s > known.median_s > 0:
            sigma = np.log(known.p95_s / known.median_s) / 1.645
            factors = lognormal(float(np.sqrt(np.expm1(sigma**2))))
        else:
            factors = by_tail(known.most_s / known.mean_s, batch) if known.most_s > known.mean_s else lognormal(SPREAD)
    else:
        factors, rollout_s = lognormal(SPREAD), 0.0
    return (factors if given.cycle_factors is None else given.cycle_factors), rollout_s, ()


def _slots(mode: str, batch: int, step_s: float, rollout_s: float, held_up: bool) -> int:
    """Return how many rollouts are generated side by side: all of a batch, or what explains the rate (Little)."""
    if mode == ASYNCHRONOUS and rollout_s > 0 and held_up and step_s > 0:
        return max(1, round(batch / step_s * rollout_s))
    return batch


def _limit(found: Measurements, given: Given, mode: str) -> float:
    if given.staleness is not None:
        return given.staleness
    if mode in (SYNCHRONOUS, ONE_STEP_OFF):
        return 0.0
    return found.staleness_limit if found.staleness_limit is not None else _LIMITS.get(found.system, UNLIMITED)


def _sync_mode(found: Measurements, given: Given) -> int:
    if given.sync_mode is not None:
        return given.sync_mode
    return DRAIN if found.partial is False else PAUSE


def _explain(system: System, factors: Factors, step_s: float) -> System:
    """Return the system with rollouts as long as explains the time of a step, by halving."""
    low, high = np.log(system.cycle_s / 10.0), np.log(system.cycle_s * 10.0)
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        rate = simulate(system._replace(cycle_s=float(np.exp(middle))), factors).throughput
        low, high = (middle, high) if rate * step_s > system.batch else (low, middle)
    return system._replace(cycle_s=float(np.exp(0.5 * (low + high))))


def _known(value: float) -> float:
    return 0.0 if np.isnan(value) else value
