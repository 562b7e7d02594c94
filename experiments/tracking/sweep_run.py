"""A sweep's own run in MLflow: what its schedules came to, its page, and links to its cells' curves side by side."""

import csv
import json
import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

if TYPE_CHECKING:
    from mlflow import MlflowClient

PAGE, FIGURE, TABLE = "index.html", "main.png", "tables/schedules.csv"  # as the analysis writes them
_MOST_COMPARED = 60  # runs in one plot
_MOST_ROWS = 12  # of the description's table: MLflow takes 8,000 characters
_METRICS = {  # metric: column
    "score_iqm": "final_score",
    "score_low": "final_score_low",
    "score_high": "final_score_high",
    "learned_share": "learned_share",
    "clock_s": "clock_s",
}
Rows = list[dict[str, str]]


def describe(
    client: "MlflowClient", run: str, experiment: str, study: Path, question: str, cells: Sequence[str], ended_ms: int
) -> None:
    """Fill a sweep's run: description and links, and what a page that is newer than its cells has to show."""
    shown = [question]
    if (study / PAGE).exists() and (study / PAGE).stat().st_mtime * 1000 >= ended_ms:
        rows = _schedules(study / TABLE)
        _log_aggregates(client, run, rows, ended_ms)
        shown += [_table(rows), *_log_files(client, run, study)]
    client.set_tag(run, "mlflow.note.content", "\n\n".join([*shown, *_links(experiment, cells)]))


def comparison(experiment: str, runs: Sequence[str], metric: str, axis: str) -> str:
    """Return the address, within MLflow's UI, of the runs' curves in one plot; the axis is step, wall or relative."""
    arguments = {"runs": runs, "metric": metric, "experiments": [experiment], "plot_metric_keys": [metric]}
    query = "&".join(f"{key}={quote(json.dumps(value))}" for key, value in arguments.items())
    return f"#/metric?{query}&x_axis={axis}"


def _links(experiment: str, cells: Sequence[str]) -> list[str]:
    runs = cells[:_MOST_COMPARED]
    return [
        f"[Mean score by {name}]({comparison(experiment, runs, 'mean_100/score', axis)})"
        for name, axis in (("episodes", "step"), ("time", "relative"))
    ]


def _schedules(path: Path) -> Rows:
    try:
        with path.open(encoding="utf-8", newline="") as file:
            return list(csv.DictReader(file))
    except OSError:
        return []


def _label(row: dict[str, str]) -> str:
    """Return what a row is about, in the characters that MLflow's metrics may have."""
    words = " ".join(filter(None, (row.get("variant"), row.get("schedule"))))
    return re.sub(r"[^\w.\- ]", "-", words.replace("→", "to"))


def _number(text: str | None) -> float:
    try:
        return float(text or "nan")
    except ValueError:
        return math.nan


def _log_aggregates(client: "MlflowClient", run: str, rows: Rows, stamp_ms: int) -> None:
    """Log a metric per schedule and quantity, in groups by quantity, so that charts of schedules stand together."""
    from mlflow.entities import Metric

    for row in rows:
        numbers = {name: _number(row.get(column)) for name, column in _METRICS.items()}
        finite = {name: value for name, value in numbers.items() if math.isfinite(value)}
        client.log_batch(run, [Metric(f"{name}/{_label(row)}", value, stamp_ms, 0) for name, value in finite.items()])


def _log_files(client: "MlflowClient", run: str, study: Path) -> list[str]:
    """Log page and figure; return what shows the figure."""
    client.log_artifact(run, str(study / PAGE))
    if not (study / FIGURE).exists():
        return []
    client.log_artifact(run, str(study / FIGURE))
    return [f"![The study's main figure](get-artifact?path={Path(FIGURE).name}&run_uuid={run})"]


def _table(rows: Rows) -> str:
    """Return the aggregates as Markdown."""
    lines = ["| schedule | runs | learned | score, IQM [95 % interval] | clock |", "|---|---|---|---|---|"]
    for row in rows[:_MOST_ROWS]:
        score, low, high, clock_s = (_number(row.get(_METRICS[name])) for name in (*list(_METRICS)[:3], "clock_s"))
        learned = f"{row.get('learned', '')} | {score:.1f} [{low:.1f}, {high:.1f}]"
        lines.append(f"| {_label(row)} | {row.get('runs', '')} | {learned} | {clock_s:,.0f} s |")
    left_out = [f"\n{len(rows) - _MOST_ROWS} more are on the page."] if len(rows) > _MOST_ROWS else []
    return "\n".join(lines + left_out)
