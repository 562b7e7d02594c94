"""Queueing without play agrees with theory where there is one: closed networks, deterministic bounds, shared cores."""

import numpy as np
import pytest

from a3c.advise.distributions import FACTORS, empirical, exponential, lognormal
from a3c.advise.simulator import System, simulate

CYCLE_S, SERVICE_S = 0.5, 0.03
COUNTS = (1, 4, 10, 16, 17, 18, 40, 1_000, 10_000)


def mean_value_analysis(workers: int) -> tuple[float, float]:
    """Return throughput and mean number at the learner, of a closed network with delays and one exponential station."""
    present = throughput = 0.0
    for count in range(1, workers + 1):
        stay_s = SERVICE_S * (1.0 + present)
        throughput = count / (CYCLE_S + stay_s)
        present = throughput * stay_s
    return throughput, present


def machine_repair(workers: int) -> float:
    """Return the utilisation of M/M/1//N, from its birth and death equations."""
    weight, weights = 1.0, [1.0]
    for present in range(workers):
        weight *= (workers - present) * SERVICE_S / CYCLE_S
        weights.append(weight)
    return 1.0 - weights[0] / sum(weights)


def events(workers: int) -> int:
    return 1_000_000 + 40 * workers


def test_the_two_theories_agree():
    assert machine_repair(12) == pytest.approx(mean_value_analysis(12)[0] * SERVICE_S)


@pytest.mark.parametrize("workers", COUNTS)
@pytest.mark.parametrize(
    "cycle", [exponential(), lognormal(0.5), np.ones(1)], ids=["memoryless", "lognormal", "constant"]
)
def test_a_closed_network_is_that_of_mean_value_analysis(workers, cycle):
    """A delay's distribution does not matter, only that of the service: three answers in one."""
    throughput, present = mean_value_analysis(workers)
    seen = simulate(System(workers, CYCLE_S, 0.0, SERVICE_S, waits=True), cycle, exponential(), events=events(workers))
    assert seen.throughput == pytest.approx(throughput, rel=0.01)
    assert seen.utilisation == pytest.approx(throughput * SERVICE_S, rel=0.01)
    assert seen.waiting + seen.utilisation == pytest.approx(present, rel=0.01, abs=0.01)
    assert seen.staleness == pytest.approx(workers - 1, rel=0.01)  # every other worker comes once in a cycle


@pytest.mark.parametrize("workers", COUNTS)
@pytest.mark.parametrize("latency_s", [0.0, 0.2])
def test_without_jitter_the_bounds_are_reached(workers, latency_s):
    waiting = System(workers, CYCLE_S, latency_s, SERVICE_S, waits=True)
    cycle_s = CYCLE_S + latency_s
    assert waiting.n_star == pytest.approx((cycle_s + SERVICE_S) / SERVICE_S)
    expected = min(workers / (cycle_s + SERVICE_S), 1 / SERVICE_S)
    assert simulate(waiting, events=events(workers)).throughput == pytest.approx(expected, rel=1e-3)
    hasty = waiting._replace(waits=False)
    seen = simulate(hasty, events=events(workers))
    assert hasty.n0 == pytest.approx(cycle_s / SERVICE_S)
    assert seen.utilisation == pytest.approx(min(workers / hasty.n0, 1.0), rel=0.01)
    assert seen.growth == pytest.approx(max(0.0, workers / cycle_s - 1 / SERVICE_S), rel=0.01, abs=0.01)
    assert seen.played == pytest.approx(workers / cycle_s, rel=0.01)


def test_a_bounded_queue_holds_staleness_and_loses_no_throughput():
    endless = simulate(System(40, CYCLE_S, 0.0, SERVICE_S))
    bounded = simulate(System(40, CYCLE_S, 0.0, SERVICE_S, queue=8))
    assert bounded.throughput == pytest.approx(endless.throughput, rel=0.01)
    assert bounded.growth == pytest.approx(0.0, abs=0.01)
    assert bounded.waiting == pytest.approx(8, rel=0.01)
    assert bounded.staleness == pytest.approx(40 + 8, rel=0.03)  # those under way, and those in the queue
    assert endless.staleness > 10 * bounded.staleness


def test_batches_stalls_and_shared_cores():
    batches = simulate(System(100, CYCLE_S, 0.0, SERVICE_S, batch=8, waits=True), events=200_000)
    assert batches.throughput == pytest.approx(100 / (CYCLE_S + SERVICE_S), rel=0.1)
    assert simulate(System(200, CYCLE_S, 0.0, SERVICE_S, batch=8)).throughput == pytest.approx(8 / SERVICE_S, rel=1e-3)
    assert simulate(System(3, CYCLE_S, 0.0, SERVICE_S, batch=8, waits=True)).throughput > 5  # not stuck for lack of 8
    stalls = System(40, CYCLE_S, 0.0, SERVICE_S, stall_s=1.0, stall_every=100)
    assert simulate(stalls).throughput == pytest.approx(1 / (SERVICE_S + 0.01), rel=0.02)
    assert stalls.n0 == pytest.approx(CYCLE_S / 0.04)
    crowded = System(12, CYCLE_S, 0.0, 1e-6, waits=True, cores=4)
    assert simulate(crowded).throughput == pytest.approx(4 / CYCLE_S, rel=1e-3)
    first = System(12, CYCLE_S, 0.0, SERVICE_S, waits=True, cores=4, master_first=True)
    alike = first._replace(master_first=False)
    assert simulate(first).utilisation < simulate(alike).utilisation


def test_factors_are_the_distributions_they_stand_for():
    assert exponential().std() == pytest.approx(1.0, rel=0.01)
    assert lognormal(0.2).std() == pytest.approx(0.2, rel=0.01)
    drawn = np.random.default_rng(0).gamma(4.0, size=50_000)
    factors = empirical(drawn)
    assert factors.size == FACTORS
    assert factors.mean() == pytest.approx(1.0)
    assert factors.std() == pytest.approx(0.5, rel=0.01)


def test_equal_seeds_give_equal_numbers_and_others_do_not():
    system = System(20, CYCLE_S, 0.01, SERVICE_S)
    again = [simulate(system, lognormal(0.3), exponential(), seed) for seed in (3, 3, 4)]
    assert again[0] == again[1] != again[2]
