"""What could be changed: each change is another system, simulated with the durations and seeds of the present one."""

import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

import numpy as np

from a3c.advise import knobs
from a3c.advise.costs import Costs
from a3c.advise.simulator import DRAIN, PAUSE, UNBOUNDED, Outcome, System
from a3c.advise.words import Interval, interval, percent

SEEDS = 8  # of the simulation, and of the log's steps drawn again
MORE = 1.5  # times as many devices
ENOUGH = 0.98  # of the throughput: less is lost
_WORTH = 0.01  # of the throughput: a smaller gain is none
_ASYNC_AGE = 0.5  # a bound on age for a synchronous run made asynchronous: typical of verl's documents
_FEW = 3  # seeds, to find what could go
_SLOW_SYNC = 0.05  # of the learner's time
_PARTS = 4  # of a batch that is trained on as it comes in, as in verl's documents
_A_TIE = 0.05  # gains so close are equal: the change without further devices comes first
_FRACTIONS = (0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2)  # of generators or trainers, to find what could go


class Change(NamedTuple):
    """Another way to work, and what it comes to."""

    name: str
    setting: str  # as the user's system names it
    needs: str  # further devices, or nothing
    gain: Interval  # of rollouts learned from per second, as a share: 0.1 is a tenth more
    staleness: float
    idle: float  # the trainer's
    system: System
    grows: bool = False  # its queue does, without end


class Split(NamedTuple):
    """A number of generators and trainers, and what they come to."""

    generators: int
    trainers: int
    step_s: Interval  # between two weight syncs
    idle: float  # the trainer's
    slots_idle: float
    staleness: float
    hours: float  # machine-hours of a thousand steps


def measure(costs: list[Costs], change: Callable[[System], System]) -> list[Outcome]:
    """Return what a change comes to, once for each of the costs, which differ by the log's steps and the seed."""
    return [one.simulate(change(one.system), seed) for seed, one in enumerate(costs, 1)]


def best_changes(costs: list[Costs], whose: str) -> list[Change]:
    """Return the changes that help, the best first."""
    now = measure(costs, lambda system: system)
    changes = []
    for name, setting, needs, change in _candidates(costs[0], whose):
        then = measure(costs, change)
        gain = interval([new.throughput / old.throughput - 1.0 for old, new in zip(now, then, strict=True)])
        if gain.mean < _WORTH:
            continue
        outcome = then[0]
        system = change(costs[0].system)
        grows = needs_bound(system) and outcome.growth > 0.01 * outcome.throughput
        changes.append(Change(name, setting, needs, gain, outcome.staleness, outcome.idle, system, grows))
    most = max((change.gain.mean for change in changes), default=0.0)
    return sorted(changes, key=lambda one: _rank(one, most))


def _rank(change: Change, most: float) -> tuple[int, bool, float]:
    """Return what to sort by: much gain, then no further devices, then fresh data."""
    return math.floor((most - change.gain.mean) / _A_TIE), bool(change.needs), change.staleness


def _candidates(costs: Costs, whose: str) -> Iterator[tuple[str, str, str, Callable[[System], System]]]:
    """Yield (name, setting, further devices, what to change) of what makes sense for a system."""
    system = costs.system
    if system.colocated:
        yield from _without_turns(whose)
        return
    if system.one_ahead or (system.staleness == 0 and system.sync_every == 1):
        value = 0.5 if whose == "verl" else 1.0
        parts = " in quarter batches" if system.one_ahead else ""
        yield (
            f"asynchronous training{parts} with a bound on age of {value:g}",
            knobs.setting(whose, knobs.ASYNC if system.one_ahead else knobs.STALENESS, value)
            or knobs.setting(whose, knobs.AHEAD),
            "",
            lambda now: (streaming if now.one_ahead else _same)(
                now._replace(one_ahead=False, staleness=value, sync_mode=PAUSE)
            ),
        )
    elif system.staleness >= 0:
        value = min(1.0, system.staleness + 0.5) if system.staleness < 1.0 else 2.0 * system.staleness
        yield (
            f"a bound on age of {value:g} instead of {system.staleness:g}",
            knobs.setting(whose, knobs.STALENESS, value),
            "",
            lambda now: now._replace(staleness=value),
        )
    if system.sync_mode == DRAIN and not system.one_ahead:
        yield (
            "rollouts that go on after a weight sync",
            knobs.setting(whose, knobs.PARTIAL),
            "",
            lambda now: now._replace(sync_mode=PAUSE),
        )
    if system.sync_s > _SLOW_SYNC * system.update_s:
        yield (
            "weight syncs in half the time",
            knobs.setting(whose, knobs.SYNC),
            "",
            lambda now: now._replace(sync_s=now.sync_s / 2),
        )
    if (system.sync_s > 0 or system.staleness > 0) and system.staleness != 0 and knobs.has(whose, knobs.SYNC_EVERY):
        often = 2 * system.sync_every
        yield (
            f"a weight sync every {often} updates",
            knobs.setting(whose, knobs.SYNC_EVERY, often),
            "",
            lambda now: now._replace(sync_every=2 * now.sync_every),
        )
    if system.in_flight != UNBOUNDED and system.in_flight < system.workers + system.group * 8:
        yield (
            "twice the rollouts in flight",
            "",
            "",
            lambda now: now._replace(in_flight=2 * now.in_flight),
        )
    yield (
        f"{MORE:g} times the generators",
        knobs.setting(whose, knobs.GENERATORS, times=MORE),
        f"{MORE:g} times the generators",
        lambda now: now._replace(workers=round(MORE * now.workers)),
    )
    yield (
        f"{MORE:g} times the trainer's devices, if updates scale perfectly",
        knobs.setting(whose, knobs.TRAINERS, times=MORE),
        f"{MORE:g} times the trainer's devices",
        lambda now: now._replace(service_s=now.service_s / MORE, stall_s=now.stall_s / MORE),
    )


def _without_turns(whose: str) -> Iterator[tuple[str, str, str, Callable[[System], System]]]:
    """Yield what could replace generation and training by turns on the same devices."""
    yield (
        "unfinished rollouts go on in the next step (partial rollouts)",
        knobs.setting(whose, knobs.PARTIAL),
        "",
        lambda now: now._replace(staleness=1.0),
    )
    yield (
        "one step off, half of the devices each",
        knobs.setting(whose, knobs.AHEAD),
        "",
        partial(one_step_off, share=0.5, serial=0.0),
    )
    yield (
        "asynchronous training in quarter batches, half of the devices each",
        knobs.setting(whose, knobs.ASYNC, _ASYNC_AGE),
        "",
        partial(fully_async, share=0.5, serial=0.0),
    )


def one_step_off(system: System, share: float, serial: float) -> System:
    """Return a synchronous system whose next batch is generated during training, on a share of the devices."""
    return _apart(system, share, serial)._replace(one_ahead=True, staleness=0.0, sync_mode=PAUSE)


def fully_async(system: System, share: float, serial: float, staleness: float = _ASYNC_AGE) -> System:
    """Return a synchronous system made asynchronous, with partial rollouts and a bound on age."""
    return streaming(_apart(system, share, serial)._replace(staleness=staleness, sync_mode=PAUSE))


def _same(system: System) -> System:
    return system


def streaming(system: System) -> System:
    """Return a system that trains on a quarter of a batch as soon as it is there, and syncs weights once a batch."""
    if system.batch % (_PARTS * system.group):
        return system
    return system._replace(
        batch=system.batch // _PARTS, service_s=system.service_s / _PARTS, sync_every=_PARTS * system.sync_every
    )


def _apart(system: System, share: float, serial: float) -> System:
    """Return a synchronous system with generators on a share of the devices, and the trainer on the others."""
    slots = max(system.group, round(system.workers * share))
    return system._replace(
        colocated=False, workers=slots, service_s=scaled_update_s(system.service_s, 1 - share, serial)
    )


def scaled_update_s(update_s: float, times: float, serial: float) -> float:
    """Return the seconds of an update on so many times the devices; the serial share of it does not shrink."""
    return update_s * (serial + (1.0 - serial) / times)


def removable(costs: list[Costs]) -> tuple[float, float]:
    """Return the shares of the generators and of the trainer's devices that could go without loss."""
    costs = costs[:_FEW]
    now = np.mean([one.throughput for one in measure(costs, lambda system: system)])

    def spare(change: Callable[[System, float], System]) -> float:
        kept = 1.0
        for fraction in _FRACTIONS:
            then = np.mean([one.throughput for one in measure(costs, lambda system: change(system, fraction))])  # noqa: B023
            if then < ENOUGH * now:
                break
            kept = fraction
        return 1.0 - kept

    generators = spare(lambda system, share: system._replace(workers=max(system.group, round(system.workers * share))))
    trainers = spare(lambda system, share: system._replace(service_s=system.service_s / share))
    return generators, trainers


def splits(costs: list[Costs], budget: int, now: tuple[int, int], serial: float) -> list[Split]:
    """Return what each way to divide a budget of devices between generators and trainers comes to.

    Args:
        costs: one for each seed.
        budget: devices, generators and trainers together.
        now: the (generators, trainers) of the log; of a colocated run both are all of its devices.
        serial: the share of an update's time that does not shrink with the trainer's devices.
    """
    chosen = sorted({max(1, min(budget - 1, round(budget * share / 16))) for share in range(1, 16)})
    found = []
    for generators in chosen:
        trainers = budget - generators

        def change(system: System, generators: int = generators, trainers: int = trainers) -> System:
            apart = system
            if system.colocated:
                apart = streaming(system._replace(colocated=False, staleness=_ASYNC_AGE, sync_mode=PAUSE))
            slots = max(system.group, round(system.workers * generators / now[0]))
            update_s = scaled_update_s(apart.service_s, trainers / now[1], serial)
            return apart._replace(workers=slots, service_s=update_s)

        outcomes = measure(costs, change)
        often = change(costs[0].system).sync_every
        step_s = interval([often / one.updates if one.updates else math.inf for one in outcomes])
        mean = [
            float(np.mean([getattr(one, name) for one in outcomes])) for name in ("idle", "slots_idle", "staleness")
        ]
        found.append(Split(generators, trainers, step_s, mean[0], mean[1], mean[2], budget * step_s.mean * 1000 / 3600))
    return found


def what_if_async(costs: list[Costs], serial: float) -> list[Change]:
    """Return what overlap of generation and training would gain a synchronous run, with the best share of devices."""
    now = measure(costs, lambda system: system)
    shares = [share / 16 for share in range(2, 15)]
    ways: dict[str, dict[float, Callable[[System], System]]] = {
        "partial rollouts, still by turns": {1.0: lambda system: system._replace(staleness=1.0)},
        "one step off": {share: partial(one_step_off, share=share, serial=serial) for share in shares},
        "fully asynchronous, in quarter batches": {
            share: partial(fully_async, share=share, serial=serial) for share in shares
        },
    }
    found = []
    for name, changes in ways.items():
        rates = {share: costs[0].simulate(change(costs[0].system)).throughput for share, change in changes.items()}
        share = max(rates, key=lambda one: rates[one])
        then = measure(costs, changes[share])
        gain = interval([new.throughput / old.throughput - 1.0 for old, new in zip(now, then, strict=True)])
        where = "the same devices" if share == 1.0 else f"generators on {percent(share)} of the devices"
        system = changes[share](costs[0].system)
        found.append(Change(name, where, "", gain, then[0].staleness, then[0].idle, system))
    return found


def needs_bound(system: System) -> bool:
    """Return whether a queue of this system may grow without end."""
    bounded = system.waits or system.queue != UNBOUNDED or system.staleness >= 0 or system.drop_age >= 0
    return not bounded and bool(system.workers / system.slowdown > system.n0)
