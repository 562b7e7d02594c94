"""`python -m analysis.search results/search_ppo` says which settings of a search were best, as a line for a grid.

The rule was fixed before any search was run: of each algorithm's settings the best are those whose mean score over the
whole run (the area under its learning curve, by env steps where these end a run) is highest on average over the seeds;
of equal ones the first in the grid. Every planned run must be there.
"""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from a3c_core.command_line.arguments import Parser
from a3c_core.errors import on_a_screen

EXAMPLES = """\
examples:
  python -m analysis.search results/search_ppo                       # which settings of PPO were best
  python -m analysis.search results/search_a3c results/search_ppo    # a line for each algorithm

The lines are cases of a grid, as experiments/grids/algorithms.yaml has them.
Exit codes: 0 said, 2 a mistake on the command line, or a search that is not complete.
"""
CRITERION = "mean_score"


class Winner(NamedTuple):
    """The best settings of one algorithm."""

    algorithm: str
    settings: dict[str, Any]  # those of the algorithm that are not its defaults, by their names in a grid
    score: float  # the mean over seeds of CRITERION
    tried: int  # settings

    @property
    def line(self) -> str:
        """The winner as a case of a grid."""
        pairs = {"algorithm": self.algorithm, **self.settings}
        return f"  {self.algorithm}: {{{', '.join(f'{name}: {_yaml(value)}' for name, value in pairs.items())}}}"


def winners(folder: Path) -> list[Winner]:
    """Return the best settings of each algorithm that a search tried, in the order of its grid."""
    from analysis.data.load import load_study, read_plan  # slow to import, and not needed for --help
    from analysis.data.study import StudyError

    study = load_study(folder)
    if len(study.missing):
        raise StudyError(f"{folder}: {len(study.missing)} of {len(study.runs)} runs are missing, so none has won yet")
    configs = {cell["id"]: cell["config"] for cell in read_plan(folder).cells}
    found = []
    for algorithm, runs in study.runs.groupby("algorithm", sort=False):
        scores = runs.groupby("variant", sort=False)[CRITERION].mean()
        cell = runs.loc[runs["variant"] == scores.idxmax(), "cell"].iloc[0]
        found.append(Winner(str(algorithm), own_settings(configs[cell]), float(scores.max()), len(scores)))
    return found


def own_settings(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a run's algorithm was told beyond its defaults, by the settings' names in a grid."""
    from a3c_core.algorithms import settings_of

    defaults = settings_of(config.get("algorithm", "a3c"))().model_dump(mode="json")
    chosen = config.get("learner", {})
    return {f"learner.{name}": value for name, value in chosen.items() if value != defaults.get(name)}


def _yaml(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_yaml, value))}]"
    return "null" if value is None else str(value)


def parser() -> Parser:
    """Return the command line's parser."""
    made = Parser("analysis.search", "Say which settings of a search were best, as lines for a grid.", EXAMPLES)
    made.add_argument("searches", type=Path, nargs="+", metavar="SEARCH", help="a study's folder: results/search_ppo")
    return made


def main(arguments: list[str] | None = None) -> int:
    """Print a line for each algorithm; return the exit code."""
    options = parser().parse_args(arguments)
    from a3c_core.records.layout import ResultsError

    try:
        found = [winner for folder in options.searches for winner in winners(folder)]
    except (ResultsError, OSError, ValueError) as error:
        print(f"error: {on_a_screen(str(error))}", file=sys.stderr)
        return 2
    for winner in found:
        print(f"  # {winner.algorithm}: {winner.score:.3g} on average over a run, the best of {winner.tried} settings")
        print(winner.line)
    return 0


if __name__ == "__main__":
    sys.exit(main())
