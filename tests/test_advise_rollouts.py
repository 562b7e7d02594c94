"""The simulator of the rollout queue: equal to a slow and obvious twin, and to published closed forms."""

import numpy as np
import pytest

from a3c.advise.distributions import by_tail, exponential, largest, lognormal, pareto
from a3c.advise.simulator import (
    DRAIN,
    IN_FLIGHT,
    PAUSE,
    System,
    fit_concurrency,
    simulate,
    simulate_seeds,
)
from tests.rollout_queue_twin import Queue

BASE = System(24, 1.0, 0.0, 0.4, batch=12, group=4)
SYSTEMS = {
    "groups": BASE,
    "a bound on age": BASE._replace(staleness=1.0),
    "half a batch ahead": BASE._replace(staleness=0.5, sync_every=2),
    "synchronous": BASE._replace(staleness=0.0, colocated=True),
    "partial rollouts by turns": BASE._replace(staleness=1.0, colocated=True, sync_s=0.2),
    "one step off": BASE._replace(staleness=0.0, one_ahead=True, sync_mode=DRAIN, sync_s=0.1),
    "a limit in flight": BASE._replace(in_flight=16),
    "a sync that pauses": BASE._replace(staleness=2.0, sync_s=0.3, sync_mode=PAUSE),
    "a sync that drains": BASE._replace(staleness=2.0, sync_s=0.3, sync_mode=DRAIN, sync_every=3),
    "a sync in flight": BASE._replace(staleness=2.0, sync_s=0.3, sync_mode=IN_FLIGHT),
    "dropping by age": BASE._replace(service_s=1.0, drop_age=2.0),
    "dropping by age under a bound": BASE._replace(service_s=0.9, drop_age=1.0, staleness=3.0),
    "a queue that drops its oldest": BASE._replace(service_s=1.0, queue=24, drops_oldest=True),
    "a queue that blocks": BASE._replace(service_s=1.0, queue=16),
    "workers that wait": BASE._replace(service_s=0.2, waits=True),
}


@pytest.mark.parametrize("name", SYSTEMS)
def test_the_compiled_loop_is_its_slow_twin(name):
    system, events = SYSTEMS[name], 12_000
    cycle, service = lognormal(0.8), lognormal(0.2)
    fast = simulate(system, cycle, service, seed=7, events=events)
    slow = Queue(system, cycle, service, seed=7)
    while len(slow.stalenesses) < 600:
        slow.step()
    warm = len(slow.stalenesses)
    at_s, busy_s, come, dropped = slow.now_s, slow.busy_s, slow.come, slow.dropped
    while len(slow.stalenesses) < 3_000:
        slow.step()
    seconds = slow.now_s - at_s
    assert fast.throughput == pytest.approx(system.group * (len(slow.stalenesses) - warm) / seconds, rel=0.04)
    assert fast.utilisation == pytest.approx((slow.busy_s - busy_s) / seconds, rel=0.04)
    assert fast.staleness == pytest.approx(np.mean(slow.stalenesses[warm:]), rel=0.04, abs=0.02)
    assert fast.staleness_before == pytest.approx(np.mean(slow.before[warm:]), rel=0.06, abs=0.03)
    assert fast.dropped == pytest.approx((slow.dropped - dropped) / (slow.come - come), rel=0.08, abs=0.01)


def test_from_the_beginning_the_two_are_the_same_events():
    """Before any warm-up is left out: as many updates after as many events, of the same ages."""
    system = BASE._replace(staleness=1.0, sync_s=0.3)
    slow = Queue(system, lognormal(0.8), lognormal(0.2), seed=3)
    for _ in range(4_000):
        slow.step()
    fast = simulate(system, lognormal(0.8), lognormal(0.2), seed=3, events=4_000)
    late = slow.stalenesses[len(slow.stalenesses) // 4 :]
    assert fast.staleness == pytest.approx(np.mean(late), rel=0.01)
    assert fast.throughput == pytest.approx(system.group * len(slow.stalenesses) / slow.now_s, rel=0.02)


def test_admission_by_age_bounds_staleness_of_rollouts_that_are_learned_from_in_order():
    for bound in (0.0, 1.0, 3.0):
        seen = simulate(System(64, 0.01, 0.0, 1.0, batch=32, staleness=bound))
        assert seen.staleness == pytest.approx(bound)
        assert seen.idle_age > 0.5


def test_a_closed_form_for_a_trainer_that_waits():
    """Applied Compute: staleness = C M / B + rho where rollouts are the limit."""
    factors = by_tail(1.42, 8)
    system = System(120, 1.0, 0.0, 240 * 0.5 / 120, batch=240, group=8, queue=480, drops_oldest=True)
    assert largest(factors, 8) == pytest.approx(1.42, rel=0.01)
    assert simulate(system, factors).staleness == pytest.approx(120 * 1.42 / 240 + 0.5, rel=0.05)


def test_what_is_dropped_in_the_long_run_is_what_is_produced_too_much():
    for queue in (96, 384, 2048):
        system = System(64, 1.0, 0.0, 0.8, batch=32, queue=queue, drops_oldest=True)
        seen = simulate(system, lognormal(0.3), events=600_000)
        assert seen.dropped == pytest.approx(1 - 40 / 64, rel=0.02)
        assert seen.length_bias == pytest.approx(0.0, abs=0.01)


def test_dropping_by_age_favours_short_rollouts():
    seen = simulate(System(64, 1.0, 0.0, 0.3, batch=32, drop_age=3.0), lognormal(1.0), events=200_000)
    assert seen.dropped > 0.05
    assert seen.length_bias < -0.05


def test_a_sync_costs_what_its_way_says():
    base = System(64, 1.0, 0.0, 0.2, batch=32, staleness=4.0, sync_s=0.3)
    rates = [simulate(base._replace(sync_mode=mode), lognormal(0.5)).throughput for mode in (DRAIN, PAUSE, IN_FLIGHT)]
    assert rates[0] < 0.8 * rates[1] < rates[1] < 0.95 * rates[2]
    rare = simulate(base._replace(sync_mode=PAUSE, sync_every=4), lognormal(0.5))
    assert rare.throughput > 1.1 * rates[1]


def test_partial_rollouts_do_not_wait_for_the_slowest():
    turns = System(64, 1.0, 0.0, 1.0, batch=64, staleness=0.0, colocated=True)
    whole = simulate(turns, lognormal(0.8))
    partial = simulate(turns._replace(staleness=1.0), lognormal(0.8))
    assert partial.throughput > 1.3 * whole.throughput
    assert (whole.staleness, partial.staleness) == (0.0, pytest.approx(1.0, abs=0.1))


def test_longer_rollouts_at_the_end_take_longer_on_average():
    base = System(64, 1.0, 0.0, 1e-3, batch=32)
    assert simulate(base._replace(grows=3.0)).throughput == pytest.approx(64 / 2.25, rel=0.05)  # of the last 3/4


def test_a_curve_of_throughput_is_found_again_and_simulated():
    alone, contention, coherence = 0.5, 0.02, 1e-4
    points = [(n, alone * n / (1 + contention * (n - 1) + coherence * n * (n - 1))) for n in (4.0, 32.0, 128.0, 256.0)]
    found = fit_concurrency(points)
    assert found == pytest.approx((alone, contention, coherence), rel=1e-6)
    for count, rate in points:
        system = System(int(count), 1 / found[0], 0.0, 1e-6, contention=found[1], coherence=found[2])
        assert simulate(system, exponential()).throughput == pytest.approx(rate, rel=0.05)
    with pytest.raises(ValueError, match="three points"):
        fit_concurrency(points[:2])
    assert fit_concurrency([(1.0, 1.0), (2.0, 2.1), (4.0, 4.3)])[1:] == (0.0, 0.0)  # no negative slowdown


def test_a_power_law_has_its_tail():
    factors = pareto(2.5)
    assert factors.mean() == pytest.approx(1.0)
    assert factors.max() > 5 * lognormal(0.3).max()
    with pytest.raises(ValueError, match="above 1"):
        pareto(1.0)


def test_seeds_differ_and_what_could_never_run_is_refused():
    outcomes = simulate_seeds(BASE._replace(staleness=1.0), lognormal(1.0), seeds=4)
    assert len({one.throughput for one in outcomes}) == 4
    with pytest.raises(ValueError, match="a group of 32"):
        simulate(BASE._replace(group=32))
    with pytest.raises(ValueError, match="in flight"):
        simulate(BASE._replace(in_flight=3))
