"""The `ga3c` topology: agents hold no model; predictors choose their actions in batches, trainers learn in batches.

Babaeizadeh et al. 2017. An agent queues the state of its game for a predictor, plays the action that it is told, and
queues the next; what it has played goes to a trainer. Predictors and trainers share one model, so that the parameters
may change within an episode: each step has the version that chose its action, and a lag, the updates since then. A
trajectory's staleness is the lag of its oldest step; the mean over its steps is recorded beside it.
"""

from typing import Any

from pydantic import Field

from a3c_core.section import MOST_EPISODES, MOST_SECONDS, Section
from a3c_core.topologies.base import Arrow, Description, Topology
from a3c_core.topologies.exchange import ExchangeConfig

MOST_STEPS = 4_096  # of a trajectory in shared memory


class GA3CConfig(Section):
    """How agents, predictors and trainers work together; `workers` is the number of agents."""

    predictors: int = Field(2, ge=1, le=1_024, description="who answer agents; the first number, if it is adapted")
    trainers: int = Field(2, ge=1, le=1_024, description="who learn; the first number, if it is adapted")
    predict_min: int = Field(1, ge=1, le=65_536, description="states that a predictor waits for, if as many can come")
    predict_max: int = Field(128, ge=1, le=65_536, description="states, at most, that it answers together")
    train_min: int = Field(1, ge=1, le=MOST_EPISODES, description="env steps that a trainer waits for")
    train_max: int | None = Field(
        None, ge=1, le=MOST_EPISODES, description="env steps up to which it takes what waits; null: just enough"
    )
    queue_size: int = Field(100, ge=1, le=MOST_EPISODES, description="waiting trajectories that make agents wait")
    adapt_every_s: float | None = Field(
        None, gt=0, le=MOST_SECONDS, description="seconds between steps of a random walk of all numbers; null: none"
    )

    @property
    def gradients(self) -> ExchangeConfig:
        """How trajectories come to a real trainer."""
        return ExchangeConfig(queue_size=self.queue_size)


class GA3CTopology(Topology):
    """N agents, predictors and trainers. A real trainer takes one trajectory, of which its learner makes batches."""

    description = Description(
        ("predictors", "N agents", "trainers"),
        (
            Arrow("N agents", "predictors", "states"),
            Arrow("predictors", "N agents", "actions,\nin batches"),
            Arrow("N agents", "trainers", "trajectories"),
            Arrow("trainers", "predictors", "parameters, also within an episode"),
        ),
    )
    Settings = GA3CConfig
    simulated_as = "ga3c"
    has_predictors = True
    has_limit = False  # workers that are too many make batches larger
    statistics = ("lag_mean", "batch_steps", "predict_states", "predictors", "trainers", "predictor_busy_s")

    @classmethod
    def why_not(cls, config: Any) -> tuple[str, str] | None:
        if config.algorithm != "a3c":
            return "algorithm", "trainers of topology ga3c learn as A3C does: algorithm: a3c"
        if config.is_virtual and config.engine != "compiled":
            return "engine", "in virtual time topology ga3c steps its agents in compiled batches: engine: compiled"
        if config.agents_per_worker > 1:
            return "agents_per_worker", "a worker of topology ga3c is one agent: set workers instead"
        if config.exchange.adapt_every_s and (config.span.auto or config.span.start != config.span.end):
            return "exchange.adapt_every_s", "adapts the number of agents, too: let workers be one number"
        return None if config.is_virtual else _unfit_for_processes(config)


def _unfit_for_processes(config: Any) -> tuple[str, str] | None:
    """Return the first setting that real agents can't go with, and why not."""
    exchange, environment, learner = config.exchange, config.environment, config.learner
    if config.engine == "report":
        return "engine", "engine report looks at one observation at a time, predictors of topology ga3c at many"
    if config.runtime == "ray":
        return "runtime", "agents of topology ga3c share memory with their predictors, and runtime ray has none"
    for name, only in {"trainers": 1, "predict_min": 1, "train_max": None, "adapt_every_s": None}.items():
        if getattr(exchange, name) != only:
            said = "null" if only is None else only
            return f"exchange.{name}", f"the trainer of real agents is their master, which has it at {said} only"
    steps = learner.t_max if learner.update_every == "t_max" else environment.max_episode_steps
    if steps > MOST_STEPS:
        limits = "environment.max_episode_steps, or learner.t_max with update_every: t_max"
        return "environment.max_episode_steps", f"real agents have room for {MOST_STEPS:,} env steps: lower {limits}"
    return None
