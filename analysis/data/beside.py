"""Two studies beside each other: their runs as one study, whose settings begin with the name of the study they are of.

So everything that can be asked of a study's settings (figures, verdicts, tables) can be asked of two studies.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from a3c_core.config import RunConfig
from a3c_core.saved_settings import of_config
from analysis.data.study import Schedule, Study, StudyError
from analysis.words import listed

OF = ": "  # between a study's name and its settings


def beside(studies: Sequence[Study]) -> Study:
    """Return the runs of several studies of one game as one; cells and settings are named after their study."""
    names = [study.name for study in studies]
    if len(set(names)) < len(names):
        raise StudyError(f"studies to compare need names of their own, not {listed(names)}")
    if len({study.score.name for study in studies}) > 1:
        raise StudyError(f"{listed(names)} can't be compared: their games count different scores")
    parts = [_named(study) for study in studies]
    runs = pd.concat([part.runs for part in parts], ignore_index=True)
    curves = pd.concat([part.curves for part in parts], ignore_index=True)
    question = f"How do {listed(names)} differ?"
    return Study("+".join(names), question, {}, runs, curves, studies[0].score, origins=_origins(studies))


def _named(study: Study) -> Study:
    """Return the study with its name before its cells and its settings."""
    variants = [f"{study.name}{OF}{variant}" if variant else study.name for variant in study.runs["variant"]]
    runs = study.runs.assign(study=study.name, variant=variants, cell=_cells(study, study.runs))
    return replace(study, runs=runs, curves=study.curves.assign(cell=_cells(study, study.curves)))


def _cells(study: Study, table: pd.DataFrame) -> pd.Series:
    return f"{study.name}/" + table["cell"].astype(str)


def _origins(studies: Sequence[Study]) -> tuple[str, ...]:
    return tuple(str(study.folder or f"results/{study.name}") for study in studies)


def differing_settings(study: Study) -> pd.DataFrame:
    """Return the settings that are not the same in all of the studies: a row each, with the values of every study."""
    rows = []
    for name in _setting_names(study):
        values = {str(origin): _values(runs[name]) for origin, runs in study.runs.groupby("study", sort=False)}
        if len(set(values.values())) > 1:
            rows.append({"setting": name, **values})
    return pd.DataFrame(rows)


def _setting_names(study: Study) -> list[str]:
    """Return the columns that are settings; counts and seeds stand in every table anyway, and env steps were played."""
    plain = of_config(RunConfig()).keys() - {"workers", "seed", "env_steps"}
    return [name for name in map(str, study.runs) if "." in name or name in plain]


def _values(column: pd.Series) -> str:
    return ", ".join(dict.fromkeys("none" if pd.isna(value) else f"{value}" for value in column))


def paired(ours: tuple[Study, Schedule], theirs: tuple[Study, Schedule], column: str) -> tuple[np.ndarray, np.ndarray]:
    """Return `column` of a schedule of one study and one of another, for the seeds that both have."""
    columns = [study.values(schedule, column) for study, schedule in (ours, theirs)]
    both = pd.concat(columns, axis=1, join="inner").dropna()
    return both.iloc[:, 0].to_numpy(float), both.iloc[:, 1].to_numpy(float)
