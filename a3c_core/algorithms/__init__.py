"""The algorithms by name. One is added by writing a class with the members of `base.Algorithm` and naming it here."""

from a3c_core.algorithms.base import Algorithm, LearnerSettings
from a3c_core.registry import Registry

ALGORITHMS = Registry(
    "algorithm",
    {
        "a3c": "a3c_core.algorithms.a3c:A3C",
        "ppo": "a3c_core.algorithms.ppo:PPO",
        "dppo": "a3c_core.algorithms.dppo:DPPO",
        "vtrace": "a3c_core.algorithms.vtrace:VTrace",
        "q": "a3c_core.algorithms.q:Q",
        "sarsa": "a3c_core.algorithms.sarsa:Sarsa",
        "n_step_q": "a3c_core.algorithms.n_step_q:NStepQ",
        "dqn": "a3c_core.algorithms.dqn:DQN",
    },
    needs=["Settings", "hands_over"],
)


def settings_of(name: str) -> type[LearnerSettings]:
    """Return the class of an algorithm's settings, the section `learner:` of a run."""
    settings: type[LearnerSettings] = ALGORITHMS.get(name).Settings
    return settings


def make_algorithm(name: str, settings: LearnerSettings) -> Algorithm:
    """Return an algorithm.

    Args:
        name: of a row in ALGORITHMS, or `package.module:Class`.
        settings: the section `learner:`, of the class that the algorithm declares.

    Raises:
        ValueError: there is no such algorithm.
    """
    algorithm: Algorithm = ALGORITHMS.get(name)(settings)
    return algorithm


def statistics_of(name: str) -> tuple[str, ...]:
    """Return what an algorithm calls the numbers that its learner adds to the record of each update, if any."""
    statistics: tuple[str, ...] = getattr(ALGORITHMS.get(name), "statistics", ())
    return statistics
