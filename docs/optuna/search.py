"""Search for settings with Optuna over `train()`: `pip install optuna`, then `python docs/optuna/search.py`."""

from typing import Any

from a3c_core.config import RunConfig
from a3c_core.train import train

EPISODES = 20_000  # of each trial
SEEDS = (0, 1, 2)  # a setting that is good by luck is of no use
TRIALS = 30


def settings_of(trial: Any, episodes: int, seed: int) -> RunConfig:
    """Return the settings that a trial proposes."""
    return RunConfig(
        workers=str(trial.suggest_int("workers", 2, 16)),
        learner={"learning_rate": trial.suggest_float("learning_rate", 1e-5, 1e-2, log=True)},
        episodes=episodes,
        seed=seed,
    )


def objective(trial: Any, episodes: int = EPISODES, seeds: tuple[int, ...] = SEEDS) -> float:
    """Return the mean score of the last tenth over seeds; in virtual time equal proposals give equal numbers."""
    scores = [train(settings_of(trial, episodes, seed)).score_last_tenth for seed in seeds]
    return sum(scores) / len(scores)


def main() -> None:
    """Search, and print the best settings found."""
    import optuna

    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=0))
    study.optimize(objective, n_trials=TRIALS)
    print(study.best_value, study.best_params)


if __name__ == "__main__":
    main()
