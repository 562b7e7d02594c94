"""What a round will do, drawn from (seed, round) alone: what is started, what strikes it, what is damaged."""

import random
from dataclasses import dataclass, field
from signal import SIGINT, SIGKILL, SIGSTOP, SIGTERM, Signals
from typing import Any

KINDS = {"run": 5, "sweep": 4, "long-lived master": 1}  # what a round starts: weight
SIGNALS = {SIGKILL: 10, SIGTERM: 4, SIGINT: 3, SIGSTOP: 3}
MOMENTS = {"start": 2, "sight": 4, "checkpoint": 4}  # from when on a strike's delay counts: see Strike
MOST_STRIKES = {"run": 7, "sweep": 7, "long-lived master": 20}  # in one attempt
GROUP = "process group"  # of the command: what a terminal's Ctrl-C, or a batch system, reaches
HELPERS = {"worker": 5, "fork server": 3, "resource tracker": 1}  # a run survives the loss of any of them
TARGETS = {
    "run": {**HELPERS, "master": 2, GROUP: 2},
    "sweep": {**HELPERS, "cell": 3, "sweep": 3, GROUP: 2},
    "long-lived master": HELPERS,
}
_TO_A_RUN = (
    "part flipped",
    "part swapped",
    "records flipped",
    "records swapped",
    "summary flipped",
    "summary swapped",
    "part missing",
    "part truncated",
    "records missing",
    "records truncated",
    "checkpoint damaged",
    "checkpoints missing",
    "summary emptied",
)
DAMAGES: dict[str, tuple[str, ...]] = {  # see damages.py
    "run": _TO_A_RUN,
    "sweep": (*_TO_A_RUN, "metadata emptied", "cells missing", "study damaged"),
    "long-lived master": (),
}
FEW_DESCRIPTORS = (40, 64)  # which workers alone may need: a run has to raise the limit
_IN_PIECES = {"t_max": 20, "update_every": "t_max", "standardise": False}
_SCHEDULE = {"first_s": 0.3, "further_s": 0.01, "window": 10, "spacing": 40, "auto_min": 1, "auto_max": 6}
_MANY = 10_000  # lost workers that a run may replace: the storm is to find faults, not to use up a budget


@dataclass(frozen=True)
class Strike:
    """One signal to one process."""

    moment: str  # start: at once; sight: when a target is there; checkpoint: when the attempt has left one
    delay_s: float  # after that moment
    target: str  # a role, see processes.py
    signal: Signals
    pause_s: float  # from SIGSTOP to SIGCONT
    choice: float  # in [0, 1): which of several targets


@dataclass(frozen=True)
class Attempt:
    """The command once more, what strikes it, and what is damaged before the next one."""

    strikes: tuple[Strike, ...] = ()
    damages: tuple[str, ...] = ()  # the first of them for which there is a file
    choice: float = 0.0  # in [0, 1): which of several files
    is_damaged_running: bool = False  # the damage comes after the last strike, else after the end
    is_hasty: bool = False  # the next one does not wait until the last process of this one is gone


@dataclass(frozen=True)
class Plan:
    """One round."""

    seed: int
    number: int
    kind: str
    settings: dict[str, Any]  # of a run, or of a sweep's base
    axes: dict[str, list[Any]] = field(default_factory=dict)  # of a sweep's grid
    is_tracked: bool = False  # in MLflow
    descriptors: int | None = None  # the soft limit that it begins with; None: as here
    attempts: tuple[Attempt, ...] = ()

    @property
    def cells(self) -> int:
        """Runs that must be finished at the end."""
        return max(1, sum(map(len, self.axes.values())))

    def __str__(self) -> str:
        real = self.settings["runtime"] != "simulate"
        how = self.settings["exchange"].get("transport", "hogwild") if real else "virtual time"
        agents = self.settings["agents_per_worker"]
        details = [how, f"workers {self.axes.get('workers') or self.settings['workers']}"]
        details += [f"{agents} agents"] if agents > 1 else []
        details += ["t_max"] if "t_max" in self.settings["learner"] else []
        details += ["MLflow"] if self.is_tracked else []
        details += [f"{self.descriptors} descriptors"] if self.descriptors else []
        return f"{self.kind} ({', '.join(details)})"


def draw(seed: int, number: int) -> Plan:
    """Return the plan of a round: the same for the same numbers, on every machine."""
    rng = random.Random(f"storm {seed} {number}")
    kind = weighted(rng, KINDS)
    is_tracked = kind == "sweep" and rng.random() < 0.3
    settings = draw_settings(rng, is_real=kind != "sweep" or rng.random() < 0.7)
    axes: dict[str, list[Any]] = {}
    if kind == "sweep":
        axes = {"workers": rng.sample([1, 2, 4, "2->6"], 2)}
        settings = {name: value for name, value in settings.items() if name not in ("workers", "seed")}
    targets = {**TARGETS[kind], **({"MLflow tracker": 6} if is_tracked else {})}
    if settings["runtime"] == "simulate":
        targets = {target: weight for target, weight in targets.items() if target not in HELPERS}
    if kind == "long-lived master":
        settings["workers"] = rng.choice(["1", "2", "4", "8"])  # as many descriptors at the end as at the beginning
    count = 1 if kind == "long-lived master" else rng.randint(2, 3)
    attempts = tuple(draw_attempt(rng, kind, targets) for _ in range(count))
    descriptors = rng.choice(FEW_DESCRIPTORS) if kind != "long-lived master" and rng.random() < 0.2 else None
    return Plan(seed, number, kind, settings, axes, is_tracked, descriptors, attempts)


def draw_settings(rng: random.Random, is_real: bool) -> dict[str, Any]:
    """Return the settings of a run of some seconds."""
    in_pieces, slow_game = rng.random() < 0.3, rng.random() < 0.2
    transport = rng.choice(["shared", "queue", "hogwild"])
    has_master = not is_real or transport != "hogwild"
    exchange = {"queue": rng.choice(["bounded", "bounded", "dropping"]), "pull": rng.choice(["at_once", "after_apply"])}
    if is_real and has_master:
        exchange |= {"transport": transport, "channel": "mailbox" if transport == "queue" else "latest"}
    fast_episodes = 8_000 if in_pieces else 20_000
    return {
        "runtime": "processes" if is_real else "simulate",
        "profile": "uniform",
        "workers": rng.choice(["1", "2", "4", "8", "2->6", "auto"]),
        "episodes": 1_000 if is_real and slow_game else fast_episodes,
        "agents_per_worker": rng.choice([1, 1, 1, 4]),
        "seed": rng.randrange(1000),
        "restarts": _MANY,
        "worker_limit_s": rng.choice([600.0, 600.0, 5.0]),
        "checkpoint_s": rng.choice([0.1, 0.5]),
        "environment": {"max_episode_steps": 200, "wait_s": 2e-4 if slow_game else 0.0},
        "learner": _IN_PIECES if in_pieces else {},
        "topology": "master" if has_master else "hogwild",
        "exchange": exchange if has_master else {},
        "schedule": _SCHEDULE,
    }


def draw_attempt(rng: random.Random, kind: str, targets: dict[str, int]) -> Attempt:
    """Return an attempt with some strikes and perhaps a damage."""
    most = MOST_STRIKES[kind]
    moments = MOMENTS if kind != "long-lived master" else {"sight": 1}  # it leaves no checkpoints
    strikes = tuple(draw_strike(rng, targets, moments) for _ in range(rng.randint(1 + most // 4, most)))
    damages = DAMAGES[kind] if rng.random() < 0.6 else ()
    in_some_order = tuple(rng.sample(damages, len(damages)))
    return Attempt(strikes, in_some_order, rng.random(), bool(damages) and rng.random() < 0.25, rng.random() < 0.3)


def draw_strike(rng: random.Random, targets: dict[str, int], moments: dict[str, int]) -> Strike:
    """Return a strike; its delay is mostly short, for what is fragile is what has just begun."""
    moment, delay_s, target = weighted(rng, moments), 1.5 * rng.random() ** 2, weighted(rng, targets)
    if target == GROUP:  # fragile from its first line on
        moment = rng.choice(["start", "sight"])
    return Strike(
        moment,
        delay_s,
        target,
        weighted(rng, {SIGINT: 3, SIGTERM: 2, SIGKILL: 1} if target == GROUP else SIGNALS),
        rng.uniform(0.1, 2.0),
        rng.random(),
    )


def weighted(rng: random.Random, weights: dict[Any, int]) -> Any:
    """Return one of the keys, by weight."""
    return rng.choices(list(weights), list(weights.values()))[0]
