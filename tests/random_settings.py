"""Random settings for comparing twins: every option of the exchange, the schedule, the game and the learner occurs."""

from typing import Any

import numpy as np

from a3c_core.algorithms.base import LearnerSettings
from a3c_core.config import RunConfig

_WORKERS = ("1", "3", "12", "25", "auto", "2->9")


def random_config(rng: np.random.Generator, profile: str) -> RunConfig:
    """Return a small run's settings."""

    def one_of(*values: Any) -> Any:
        return values[int(rng.integers(len(values)))]

    in_pieces = rng.random() < 0.3
    settings: dict[str, Any] = {
        "workers": one_of(*_WORKERS),
        "episodes": int(rng.integers(1, 400)),
        "seed": int(rng.integers(1 << 32)),
        "profile": profile,
        "slowdown": one_of(None, 0.5),
        "environment": {
            "reward": one_of("ple", "alive"),
            "seeding": one_of("episode", "ple", "recreated"),
            "actions": one_of("own", "shared"),
            "observation": one_of("report", "pixels"),
            "max_episode_steps": one_of(40, 55, 20_000),
            "wait_s": one_of(0.0, 0.0, 0.002),
        },
        "learner": {
            "t_max": (t_max := one_of(1, 6, 20) if in_pieces else one_of(None, 10)),
            "update_every": "t_max" if in_pieces else "episode",
            "standardise": t_max is None,
            "discounts": one_of("exact", "stretched") if t_max is None else "exact",
            "value_loss": one_of("huber", "squared"),
            "entropy_coefficient": one_of(0.0, 0.01),
            "optimizer": one_of("adam", "rmsprop", "sgd"),
            "learning_rate": one_of(1e-4, 1e-2),
            "anneal": one_of(False, True),
            "clip_norm": one_of(None, 1.0),
        },
        "exchange": {
            "channel": one_of("mailbox", "latest"),
            "pull": one_of("at_once", "after_apply"),
            "queue": one_of("unbounded", "bounded", "dropping"),
            "queue_size": int(rng.integers(1, 5)),
            "overload_limit": one_of(None, None, 3, 40),
        },
        "schedule": {
            "rule": one_of("report", "slides", "repeated"),
            "first_s": one_of(0.05, 0.3),
            "further_s": one_of(0.02, 0.2),
            "window": one_of(1, 7, 30),
            "spacing": one_of(0, 5, 40),
            "auto_min": 2,
            "auto_max": 14,
        },
    }
    settings["exchange"] |= {
        **_random_hold(settings["exchange"], rng),
        "batch": 1 if settings["workers"] == "auto" else one_of(1, 1, 3, 16),
        "combine": one_of("mean", "sum"),
        "rate": one_of("constant", "staleness"),
        "bound": one_of(None, None, 0, 5),
    }
    settings["learner"] |= {"epsilon": one_of(None, None, 0.01), "decay": one_of(0.99, 0.9)}
    return RunConfig.model_validate(settings)


def random_value_config(rng: np.random.Generator, profile: str) -> RunConfig:
    """Return a small run's settings with a value method, or A3C in pieces without a master."""

    def one_of(*values: Any) -> Any:
        return values[int(rng.integers(len(values)))]

    known = random_config(rng, profile).model_dump(mode="json")
    optimizer = {name: known["learner"][name] for name in LearnerSettings.model_fields}
    values = {
        **optimizer,
        "t_max": one_of(1, 5, 20),
        "target_every": one_of(1, 300, 5_000),
        "epsilon_steps": one_of(0, 3_000, 100_000),
        "final_epsilons": one_of((0.1, 0.01, 0.5), (0.0, 0.0, 0.02)),
    }
    ends = {"env_steps": one_of(None, 1, 4_000), "episodes": int(rng.integers(1, 200))}
    shared = {"topology": "hogwild", "exchange": {}, "jitter": "none"} if rng.random() < 0.4 else {}
    if shared and rng.random() < 0.3:
        return RunConfig.model_validate({**known, **shared, **ends})
    return RunConfig.model_validate(
        {**known, **shared, **ends, "algorithm": one_of("q", "sarsa", "n_step_q"), "learner": values}
    )


def _random_hold(exchange: dict[str, Any], rng: np.random.Generator) -> dict[str, Any]:
    """Return how many gradients the master holds back, where it may hold any."""
    room = 20 if exchange["queue"] == "unbounded" else exchange["queue_size"]
    most = min(room, exchange["overload_limit"] or room)
    return {"hold": int(rng.integers(most)) if exchange["pull"] == "at_once" else 0}


def random_profile(rng: np.random.Generator) -> dict[str, Any]:
    """Return the costs of a profile, of which many are 0."""
    costs = "gradient_step_s gradient_call_s reset_s load_s send_s oversleep_s resume_s wake_s receive_s read_s"
    further = "publish_s record_s pull_latency_s push_latency_s"
    some = {name: float(rng.random() * 1e-3 * rng.integers(2)) for name in (*costs.split(), *further.split())}
    return {
        **some,
        "step_s": float(rng.random() * 5e-3),
        "update_s": float(rng.random() * 2e-2),
        "stall_every": int(rng.choice([0, 1, 7, 50])),
        "stall_s": float(rng.random() * 0.1),
        "stall_growth_s": float(rng.random() * 1e-3),
        "worker_start_s": float(rng.random()),
        "cores": int(rng.choice([2, 5, 1_000_000])),
        "threads_per_core": int(rng.integers(1, 3)),
        "threading_gain": 1.3,
        "master_first": bool(rng.integers(2)),
        "jitter": str(rng.choice(["none", "lognormal", "exponential"])),
        "jitter_deviation": float(0.1 + rng.random()),
    }
