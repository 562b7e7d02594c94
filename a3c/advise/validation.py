"""Predicted and measured: writes docs/advise-validation.md from published tables and committed runs.

Rules, fixed before the predictions were computed:

Applied Compute: nothing is fitted. C slots, groups of 8, lognormal lengths whose spread gives the row's E[max of 8]
/ E[one], a queue of q batches that drops its oldest, an update of batch * rho / C mean rollouts.

AReaL: a batch of 64, lognormal rollouts with a standard deviation of 0.5, admission by age, no sync time. Three
unknowns (slots per batch, update per rollout, tokens per batch) are fitted to the throughput at bounds 0, 1 and
infinity by least squares of relative errors; bounds 2, 4, 8 and 16 are predicted.

verl, bound on age: samples as units, batch 128, a sync every 4 updates, 16 servers with 16 samples each (at most
what may begin), partial rollouts, lognormal samples with a standard deviation of 0.5, the update and the rest of
the step as at threshold 0. The mean sample is fitted to the wait at threshold 0; wait and step at 0.1, 0.3 and 0.5
are predicted.

verl, splits: an update takes a + b / devices with a, b >= 0, through two splits; the mean sample is the geometric
mean of those that explain the two waits, with 4 samples in flight for each device of generation; the third split is
predicted, for each of the three choices. The steps are wait and update.

Sleeping trainer: costs are fitted by fit_steps to the log of its own 30 s run, with --staleness 2. A setting
replaces the options that it names and nothing else: the bound, slots, group, update or sync.
"""

import csv
import math
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from a3c.advise.costs import Costs
from a3c.advise.distributions import by_tail, exponential, lognormal
from a3c.advise.fit_steps import Given, fit_steps
from a3c.advise.readers import areal
from a3c.advise.simulator import PAUSE, Factors, Outcome, System, simulate
from a3c.advise.words import number
from a3c_core.command_line.arguments import Parser
from a3c_core.records.files import write_whole

EXAMPLES = """\
examples:
  python -m a3c.advise.validation                    # writes docs/advise-validation.md: half a minute
  python -m a3c.advise.validation --out page.md      # somewhere else
"""
ROOT = Path(__file__).parents[2]
SLEEPING = ROOT / "docs/advise/sleeping"  # the log, and runs.csv with what was measured
SEEDS = 5

# www.appliedcompute.com/research/staleness-in-fully-async-rl (2026-07-03), six Qwen3-8B GRPO runs, by two public notes:
# C, batch, q, rho, E[max of 8] / E[one], staleness published as predicted, and measured.
APPLIED_COMPUTE = (
    (120, 240, 2, 0.63, 1.42, 1.34, 1.26),
    (240, 120, 2, 0.92, 1.43, 3.86, 3.59),
    (128, 128, 2, 1.07, 1.44, 3.29, 3.09),
    (240, 120, 1, 0.86, 1.42, 3.34, 3.40),
    (120, 120, 1, 0.67, 1.42, 1.95, 1.92),
    (128, 128, 1, 1.14, 1.45, 2.24, 2.01),
)
# areal-project/AReaL, blog/AReaL_v0_3.md, figure 7: bound on age, 1,000 tokens per second (1.5B model).
AREAL = ((0.0, 128.7), (1.0, 269.3), (2.0, 356.6), (4.0, 356.6), (8.0, 371.7), (16.0, 382.4), (math.inf, 396.8))
AREAL_FITTED = (0.0, 1.0, math.inf)
# verl-project/verl, docs/advance/fully_async.md: threshold, step, the trainer's wait, update (seconds; 64:64 devices).
VERL_STALENESS = (
    (0.0, 231.34, 128.47, 98.77),
    (0.1, 171.30, 58.17, 109.12),
    (0.3, 146.11, 38.88, 103.22),
    (0.5, 150.63, 33.14, 113.16),
)
# The same document: devices of generation (and as many of training), step, wait, update; threshold 0.5.
VERL_SPLITS = ((16, 294.77, 21.26, 313.81), (32, 189.26, 28.46, 156.98), (64, 150.63, 33.14, 113.16))
# The same document: devices, colocated step, generation, and the step of half generators, half trainers.
VERL_TURNS = ((32, 790.10, 357.41, 294.77), (64, 365.28, 150.72, 189.26), (128, 356.30, 177.85, 150.63))


class Row(NamedTuple):
    """A setting: what was predicted, and what was measured."""

    name: str
    predicted: float
    measured: float

    @property
    def error(self) -> float:
        """The relative error of the prediction."""
        return self.predicted / self.measured - 1.0 if self.measured else 0.0 if not self.predicted else math.inf


def mean_of(system: System, factors: Factors, seeds: int = SEEDS) -> Outcome:
    """Return the mean outcome over seeds."""
    outcomes = [simulate(system, factors, seed=seed) for seed in range(1, seeds + 1)]
    return Outcome(*np.mean(np.array(outcomes), axis=0).tolist())


def applied_compute() -> list[Row]:
    """Return staleness, predicted by the simulator and measured."""
    rows = []
    for slots, batch, q, rho, tail, _, measured in APPLIED_COMPUTE:
        system = System(slots, 1.0, 0.0, batch * rho / slots, batch=batch, group=8, queue=q * batch, drops_oldest=True)
        predicted = mean_of(system, by_tail(tail, 8)).staleness
        rows.append(Row(f"C {slots}, B {batch}, q {q}, rho {rho}", predicted, measured))
    return rows


def areal_throughput() -> tuple[list[Row], tuple[float, float]]:
    """Return throughput by bound on age, and the fitted (slots per batch, update per rollout)."""
    factors = lognormal(0.5)

    def rates(slots: float, update: float, bounds: tuple[float, ...]) -> list[float]:
        base = System(max(1, round(64 * slots)), 1.0, 0.0, update, batch=64)
        limits = (base._replace(staleness=-1.0 if math.isinf(bound) else bound) for bound in bounds)
        return [simulate(system, factors).throughput for system in limits]

    wanted = np.array([dict(AREAL)[bound] for bound in AREAL_FITTED])
    best = (math.inf, 0.0, 0.0, 0.0)
    for slots in np.arange(0.25, 3.01, 0.125):
        for update in np.geomspace(0.05, 4.0, 40):
            found = np.array(rates(slots, float(update), AREAL_FITTED))
            scale = float(np.sum(found / wanted) / np.sum((found / wanted) ** 2))  # tokens of a rollout
            error = float(np.sum((scale * found / wanted - 1.0) ** 2))
            best = min(best, (error, float(slots), float(update), scale))
    _, slots, update, scale = best
    predicted = rates(slots, update, tuple(bound for bound, _ in AREAL))
    names = (f"{bound:g}{', fitted' if bound in AREAL_FITTED else ''}" for bound, _ in AREAL)
    return [Row(name, scale * one, known) for name, one, (_, known) in zip(names, predicted, AREAL, strict=True)], (
        slots,
        update,
    )


def _verl(mean_s: float, threshold: float, update_s: float, rest_s: float, slots: int) -> Outcome:
    """Return what verl's asynchronous trainer comes to: four updates of 128 samples between two syncs."""
    at_most = min(slots, int(512 * (1.0 + threshold)))
    system = System(
        at_most, mean_s, 0.0, update_s / 4, batch=128, staleness=threshold, sync_s=rest_s, sync_every=4, sync_mode=PAUSE
    )
    return mean_of(system, lognormal(0.5))


def _wait(outcome: Outcome) -> float:
    """Return the trainer's wait in a step of four updates."""
    return 4.0 * outcome.idle / outcome.updates


def _mean_that_explains(wait_s: float, threshold: float, update_s: float, rest_s: float, slots: int) -> float:
    """Return the mean sample for which the trainer waits so long, by halving."""
    low, high = math.log(1.0), math.log(1000.0)
    for _ in range(16):
        middle = 0.5 * (low + high)
        waits_s = _wait(_verl(math.exp(middle), threshold, update_s, rest_s, slots))
        low, high = (middle, high) if waits_s < wait_s else (low, middle)
    return math.exp(0.5 * (low + high))


def verl_staleness() -> tuple[list[Row], list[Row], float]:
    """Return waits and steps by threshold, and the fitted mean sample."""
    threshold, step_s, wait_s, update_s = VERL_STALENESS[0]
    rest_s = step_s - wait_s - update_s
    mean_s = _mean_that_explains(wait_s, threshold, update_s, rest_s, 256)
    waits, steps = [], []
    for threshold, known_step_s, known_wait_s, _ in VERL_STALENESS:
        outcome = _verl(mean_s, threshold, update_s, rest_s, 256)
        name = f"{threshold:g}{', fitted' if threshold == 0 else ''}"
        waits.append(Row(name, _wait(outcome), known_wait_s))
        steps.append(Row(name, 4.0 / outcome.updates, known_step_s))
    return waits, steps, mean_s


def verl_splits() -> list[tuple[Row, Row, Row]]:
    """Return update, wait and step of each split, predicted from the other two."""
    rows = []
    for place, (devices, step_s, wait_s, update_s) in enumerate(VERL_SPLITS):
        (n1, _, w1, u1), (n2, _, w2, u2) = VERL_SPLITS[:place] + VERL_SPLITS[place + 1 :]
        b = max(0.0, (u1 - u2) / (1.0 / n1 - 1.0 / n2))
        a = max(0.0, u1 - b / n1)
        means = [_mean_that_explains(w, 0.5, u, 0.0, 4 * n) for n, w, u in ((n1, w1, u1), (n2, w2, u2))]
        predicted_s = a + b / devices
        outcome = _verl(math.sqrt(means[0] * means[1]), 0.5, predicted_s, 0.0, 4 * devices)
        name = f"{devices}:{devices}"
        rows.append(
            (
                Row(name, predicted_s, update_s),
                Row(name, _wait(outcome), wait_s),
                Row(name, 4.0 / outcome.updates, step_s),
            )
        )
    return rows


def verl_what_if() -> list[Row]:
    """Return the step of half generators and half trainers, predicted from the colocated run alone."""
    from a3c.advise.measurements import SYNCHRONOUS, Measurements
    from a3c.advise.remedies import fully_async

    rows = []
    for devices, step_s, gen_s, known_s in VERL_TURNS:
        known = (np.array([step_s]), np.array([gen_s]), np.array([step_s - gen_s]))
        found = Measurements("verl", "table", SYNCHRONOUS, step_s=known[0], wait_s=known[1], update_s=known[2])
        costs = fit_steps(found, Given(batch=512))
        for serial in (0.0, 1.0):
            outcome = mean_of(fully_async(costs.system, 0.5, serial), costs.cycle_factors)
            name = f"{devices} by turns to {devices // 2}:{devices // 2}, --serial {serial:g}"
            rows.append(Row(name, 512 / outcome.throughput, known_s))
    return rows


def closed_forms() -> list[Row]:
    """Return what the simulator gives, and what published and textbook forms give."""
    constant = np.ones(1)
    long = 1_000_000
    update_s, cycle_s = 0.03, 0.5
    service = System(1, cycle_s, 0.0, update_s)
    rows = [
        Row(
            "N0 = C / S: busy with half as many workers",
            simulate(service._replace(workers=8), constant, events=long).utilisation,
            8 / service.n0,
        ),
        Row(
            "N* = (C + S) / S: rate of fewer workers that wait",
            simulate(service._replace(workers=12, waits=True), events=long).throughput,
            12 / (cycle_s + update_s),
        ),
        Row(
            "batches of 8: rate of an overloaded learner",
            simulate(service._replace(workers=400, batch=8), events=long).throughput,
            8 / update_s,
        ),
    ]
    # M/D/1: many sources whose cycles have no memory and which do not wait are a Poisson process.
    for load in (0.5, 0.8):
        many = System(2_000, 2_000 * update_s / load, 0.0, update_s)
        seen = simulate(many, exponential(), constant, events=6 * long)
        rows.append(
            Row(
                f"M/D/1, load {load}: seconds in the queue",
                seen.waiting / seen.throughput,
                load * update_s / (2 * (1 - load)),
            )
        )
    weights = [1.0]
    for present in range(12):
        weights.append(weights[-1] * (12 - present) * update_s / cycle_s)
    seen = simulate(service._replace(workers=12, waits=True), exponential(), exponential(), events=long)
    rows.append(Row("machine repair M/M/1//12: busy", seen.utilisation, 1 - weights[0] / sum(weights)))
    for bound in (0.0, 2.0, 5.0):  # AReaL's capacity: generation that costs nothing is as far ahead as admission allows
        fast = System(64, 1e-4, 0.0, 1.0, batch=32, staleness=bound)
        rows.append(Row(f"AReaL's capacity at bound {bound:g}: 1 + staleness", 1 + simulate(fast).staleness, 1 + bound))
    for workers in (96, 192):  # SkyRL: more than B (S + 1) workers add nothing
        limited = System(workers, 1.0, 0.0, 1e-4, batch=32, staleness=2.0)
        seen = simulate(limited, lognormal(0.5), events=long)
        beyond = simulate(limited._replace(workers=96), lognormal(0.5), events=long)
        rows.append(Row(f"SkyRL's most workers, B (S + 1) = 96: rate of {workers}", seen.throughput, beyond.throughput))
    production, consumption = 64.0, 32 / 0.806
    for queue in (96, 384, 2048):  # drops in the long run, whatever the queue
        dropping = System(64, 1.0, 0.0, 0.806, batch=32, queue=queue, drops_oldest=True)
        seen = simulate(dropping, lognormal(0.3), events=long)
        rows.append(Row(f"share dropped, a queue of {queue}", seen.dropped, (production - consumption) / production))
    return rows


def sleeping() -> list[tuple[Row, Row]]:
    """Return throughput and staleness of the sleeping trainer's settings, predicted from the log of its own run."""
    found = areal.read_folder(SLEEPING / "log")
    assert found is not None
    given = Given(staleness=2.0)
    base = fit_steps(found, given)
    rows = []
    with (SLEEPING / "runs.csv").open(encoding="utf-8") as file:
        for line in csv.DictReader(file):
            system = changed(base, line["setting"])
            outcome = mean_of(system, base.cycle_factors)
            name = line["setting"]
            rows.append(
                (
                    Row(name, outcome.throughput, float(line["rollouts_per_s"])),
                    Row(name, outcome.staleness, float(line["staleness"])),
                )
            )
    return rows


def changed(base: Costs, setting: str) -> System:
    """Return the system of a setting: the log's, with what the setting names."""
    changes: dict[str, dict[str, float]] = {
        "base": {},
        "staleness_0": {"staleness": 0.0},
        "slots_16": {"workers": 16},
        "group_8": {"group": 8},
        "update_1s": {"service_s": 1.0},
        "sync_400ms": {"sync_s": 0.4, "staleness": 1.0},
    }
    return base.system._replace(**changes[setting])  # type: ignore[arg-type]


# The page


def page() -> Iterator[str]:
    """Yield the blocks of the page."""
    yield "# How well `a3c advise` predicts"
    yield (
        "Made by `python -m a3c.advise.validation`. Each prediction is a mean of five seeds. The rules of "
        "each fit stand in a3c/advise/validation.py; they were committed before the predictions were "
        "computed. Coarser trials on the tables of Applied Compute and AReaL had been seen before."
    )
    yield "## Closed forms"
    rows = closed_forms()
    yield (
        "Textbook forms, and published rules (AReaL areal/infra/staleness_manager.py; SkyRL docs, "
        f"fully_async.mdx). The largest error is {_percent(max(abs(row.error) for row in rows), 1)}."
    )
    yield _table("form", rows, "simulated", "closed form")
    yield "## Applied Compute: staleness of six runs"
    rows = applied_compute()
    errors = [abs(row.predicted - row.measured) for row in rows]
    yield (
        "Six GRPO runs of Qwen3-8B (www.appliedcompute.com/research/staleness-in-fully-async-rl, "
        "2026-07-03). Caveat: the table comes from two public notes on that page, not from the page "
        "itself, and the published predictions of two rows do not follow from the formula as noted. "
        f"Nothing is fitted. The mean error is {np.mean(errors):.2f} updates, the largest "
        f"{max(errors):.2f}."
    )
    yield _table("setting", rows)
    yield "## AReaL: throughput by bound on age"
    rows, (slots, update) = areal_throughput()
    held = [abs(row.error) for row in rows if "fitted" not in row.name]
    yield (
        f"1,000 tokens a second (areal-project/AReaL, blog/AReaL_v0_3.md, figure 7). Fitted: {slots:g} "
        f"slots for each rollout of a batch, an update of {update:.2f} mean rollouts, and the scale. The "
        f"four predicted are within {_percent(max(held))}, {_percent(float(np.mean(held)))} on average."
    )
    yield _table("bound", rows)
    yield "## verl: bound on age"
    waits, steps, mean_s = verl_staleness()
    yield (
        "Seconds a step (verl-project/verl, docs/advance/fully_async.md, 64:64 devices). Fitted: a mean "
        f"sample of {mean_s:.0f} s, to the wait at threshold 0. The document itself notes that response "
        "lengths changed between these runs, as do their updates (98.8 to 113.2 s)."
    )
    yield _table("threshold: wait", waits)
    yield _table("threshold: step", steps)
    held = [abs(row.error) for row in steps[1:]]
    yield (
        f"The three predicted steps are within {_percent(max(held))}, {_percent(float(np.mean(held)))} on "
        f"average; the waits within {_percent(max(abs(row.error) for row in waits[1:]))}. The model has "
        "the validation of every 20 steps and the growth of responses in none of the settings, and "
        "predicts too short a wait in all."
    )
    yield "## verl: splits"
    yield (
        "Seconds a step (the same document), each split predicted from the other two. At 16:16 the "
        "document's update alone exceeds its step, so that its means are not of the same steps."
    )
    triples = verl_splits()
    for place, what in enumerate(("update", "wait", "step")):
        yield _table(f"split: {what}", [triple[place] for triple in triples])
    held = [abs(triple[2].error) for triple in triples]
    yield (
        f"Steps are within {_percent(max(held))}, {_percent(float(np.mean(held)))} on average. What a "
        "third split costs can't be told from two: updates halve from 16 to 32 devices, and shrink by 28 "
        "% from 32 to 64."
    )
    yield "## verl: asynchronous training, predicted from synchronous logs alone"
    rows = verl_what_if()
    yield (
        "`--what-if async` on the document's colocated runs, with the split that was run. Seconds a step; "
        f"errors of {_percent(min(row.error for row in rows))} to "
        f"{_percent(max(row.error for row in rows))}: the gain is underestimated. Two reasons are in the "
        "document: with 64 of 128 devices an update took as long as with all (113.2 and 113.8 s), which "
        "only `--serial 1` assumes; and the asynchronous trainer left out old_log_prob (54 to 108 s), "
        "which a colocated log can't tell."
    )
    yield _table("devices", rows)
    if (SLEEPING / "runs.csv").exists():
        yield "## A trainer of sleeping processes"
        pairs = sleeping()
        worst = max(abs(pair[0].error) for pair in pairs)
        stale = max(abs(pair[1].predicted - pair[1].measured) for pair in pairs)
        yield (
            "[sleeping_trainer.py](advise/sleeping_trainer.py) at six settings, 75 s each on a busy "
            "machine with two cores, predicted from the log of a run of 30 s ([log](advise/sleeping/log), "
            "[runs.csv](advise/sleeping/runs.csv), made by [sleeping_runs.sh](advise/sleeping_runs.sh)). "
            f"Throughput is within {_percent(worst)}, staleness within {stale:.2f} updates."
        )
        yield _table("setting: rollouts per second", [pair[0] for pair in pairs])
        yield _table("setting: staleness", [pair[1] for pair in pairs])
    yield "## Workers and a learner"
    yield (
        "The runs of the PyTorch actor-learner, of our own processes and of the paced ones stand in "
        "[advise.md](advise.md), with their commands."
    )


def _table(first: str, rows: list[Row], predicted: str = "predicted", measured: str = "measured") -> str:
    lines = [f"| {first} | {predicted} | {measured} | error |", "|---|---|---|---|"]
    lines += [
        f"| {row.name} | {_figure(row.predicted)} | {_figure(row.measured)} | {_percent(row.error, 1)} |"
        for row in rows
    ]
    return "\n".join(lines)


def _figure(value: float) -> str:
    return number(value) if value >= 1 else f"{value:.3g}"


def _percent(share: float, digits: int = 0) -> str:
    text = f"{100 * share:.{digits}f} %"
    return text.removeprefix("-") if float(text.removesuffix(" %")) == 0 else text


def main(arguments: list[str] | None = None) -> int:
    """Write the page."""
    parser = Parser(
        "a3c.advise.validation", "Predicted and measured, from published tables and committed runs.", EXAMPLES
    )
    parser.add_argument("--out", type=Path, default=ROOT / "docs/advise-validation.md", help="where to")
    options = parser.parse_args(arguments)
    text = "\n\n".join(page()) + "\n"
    try:
        write_whole(options.out, lambda path: path.write_text(text, encoding="utf-8"))
    except OSError as error:
        parser.error(f"can't write to {options.out}: {error.strerror or error}")
    print(options.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
