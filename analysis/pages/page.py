"""The page: a study's answer, claims, figures and tables as one HTML file that needs nothing else."""

import re
import shlex
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import jinja2
import pandas as pd

from analysis.claims.catalogue import judge_all
from analysis.claims.documents import DOCUMENTS, cited
from analysis.claims.finding import RULES
from analysis.data import metrics
from analysis.data.capacity import limit_of
from analysis.data.statistics import FEWEST, Estimate
from analysis.data.study import Study
from analysis.pages import gallery
from analysis.pages.answer import answer, as_shown
from analysis.pages.comparison import shown_tables
from analysis.pages.extras import NO_EXTRAS, Extras, rebuild_command
from analysis.pages.gallery import OnFigure, Setting, nobody_asks
from analysis.words import count, duration, listed, number, percent, with_interval

_TEMPLATE = Path(__file__).with_name("page.html")
NARROW = "\u202f"  # a space where no line ends
_MOST_MISSING = 30  # rows of missing cells on the page


def render(
    study: Study,
    tables: dict[str, pd.DataFrame],
    extras: Extras = NO_EXTRAS,
    on_figure: OnFigure = nobody_asks,
) -> str:
    """Return the page; `on_figure` gets each figure as it is drawn. No line ends before a %."""
    environment = jinja2.Environment(autoescape=True, trim_blocks=True, undefined=jinja2.StrictUndefined)
    template = environment.from_string(_TEMPLATE.read_text(encoding="utf-8"))
    settings = gallery.settings_of(study)
    groups = [_claims(study, setting, extras) for setting in settings] if len(study.done) else []
    html = template.render(
        study=study,
        facts=facts(study),
        answer=answer(study),
        missing=_missing(study),
        settings=settings,
        main=gallery.main_figures(study, on_figure) if len(study.done) else [],
        compared=shown_tables(study, tables),
        claims=[group for group in groups if group["claims"]],
        verdicts=_verdicts(study, groups),
        sections=gallery.sections(study, extras, on_figure),
        answers=as_shown(study) if len(study.done) else None,
        tables=[make(study, tables["schedules"]) for make in (_learning_table, _master_table)]
        if len(study.done)
        else [],
        files=list(tables),
        rules=RULES,
        documents=DOCUMENTS,
        papers=cited(judgement.claim.source for judgement in judge_all(study)) if len(study.done) else [],
        method=_method(study),
        commands={"rebuild": rebuild_command(study, extras), "rerun": rerun_command(study)},
        commits=commits(study),
    )
    return html.replace(" %", f"{NARROW}%")


def facts(study: Study) -> str:
    """Return the study in one line: its name, how much of it is there, on which clock."""
    seeds = study.runs["seed"].nunique()
    name = f"Studies {listed(study.origins)}" if study.origins else f"Study {study.name}"
    parts = [name, f"{len(study.done)} of {count(len(study.runs), 'run')} done"]
    fewest = int(study.runs["planned"].min())
    differ = study.planned_env_steps is None and fewest < study.planned_episodes
    parts += [f"{f'{fewest:,} to ' if differ else ''}{study.length} each", count(seeds, "seed")]
    parts.append(_clocks(set(study.runs["runtime"])))
    crowded = int((study.done["oversubscribed"] == True).sum())  # noqa: E712  None is not False
    if crowded:
        parts.append(f"{count(crowded, 'run')} with more processes than cores")
    return " · ".join(parts)


def _clocks(runtimes: set[str]) -> str:
    """Return on which clocks a study's runs are."""
    real = sorted(runtimes - {"simulate"})
    clocks = ["virtual time"] if "simulate" in runtimes else []
    return listed(clocks + ([f"real time ({listed(real)})"] if real else []))


def rerun_command(study: Study) -> str:
    """Return what runs the study again: its name holds the settings that the command line changed."""
    if study.origins:  # each of the studies compared has a page that says how to repeat it
        return ""
    grid, _, changes = study.name.partition("+")
    settings = [word for change in changes.split(",") if change for word in ("--set", change)]
    seeds = sorted(set(study.runs["seed"]))
    chosen = str(len(seeds)) if seeds == list(range(len(seeds))) else ",".join(map(str, seeds))
    return shlex.join(["python", "run_sweep.py", "--grid", grid, *settings, "--seeds", chosen])


def _missing(study: Study) -> dict[str, Any] | None:
    """Return what to say of cells without a usable run."""
    rows = study.missing
    if not len(rows):
        return None
    columns = ["cell", "status", "played", "planned", "reason"]
    kinds = ", ".join(f"{number} {status}" for status, number in rows["status"].value_counts().items())
    shown = [
        {
            "cell": cell,
            "status": status,
            "episodes": f"{played:,.0f} of {planned:,}",
            "reason": reason if isinstance(reason, str) else "",
        }
        for cell, status, played, planned, reason in rows.head(_MOST_MISSING)[columns]
        .fillna({"played": 0})
        .values.tolist()
    ]
    title = f"{count(len(rows), 'run')} of {len(study.runs)} missing ({kinds}): everything below rests on the others"
    return {"title": title, "rows": shown, "more": max(0, len(rows) - _MOST_MISSING)}


def _claims(study: Study, setting: Setting, extras: Extras) -> dict[str, Any]:
    """Return the claims that the runs of a setting can judge, those of which they say why not, and the others."""
    every = judge_all(study, setting.variant, extras.claims)
    judged = [judgement for judgement in every if judgement.is_judged]
    unfit = [judgement for judgement in every if not judgement.is_judged and judgement.rests_on_data]
    others = [str(judgement.number) for judgement in every if judgement not in (*judged, *unfit)]
    return {"setting": setting, "claims": judged, "unfit": unfit, "others": listed(others) if others else ""}


def _verdicts(study: Study, groups: list[dict[str, Any]]) -> dict[str, Any] | None:
    """Return the verdicts by setting, if there are several settings to compare."""
    numbers = sorted({judgement.number for group in groups for judgement in group["claims"]})
    if len(groups) < 2 or not numbers:
        return None
    rows = []
    for group in groups:
        verdicts = {judgement.number: judgement.verdict for judgement in group["claims"]}
        rows.append({"variant": group["setting"].variant, "verdicts": [verdicts.get(n, "–") for n in numbers]})
    return {"numbers": numbers, "rows": rows}


def _learning_table(study: Study, table: pd.DataFrame) -> dict[str, Any]:
    """Return what the schedules learned and how fast, as it stands on the page."""
    unit_s, unit = study.time_unit
    marks = study.score.marks
    score = max((mark for mark in marks if table[f"reached_{mark:g}"].max() > 0.5), default=marks[0])
    columns = ["workers", "runs", "learned", "collapsed", "final score", "mean score", unit, "steps/s"]
    columns += [f"reached {score:g}", "after (median)"]
    rows = []
    for row in table.to_dict("records"):
        learned = f"{row['learned']}: {_interval(row, 'learned_share', percent)}"
        cells = [row["schedule"], str(row["runs"]), learned, str(row["collapsed"])]
        cells += [_interval(row, "final_score", number), _interval(row, "mean_score", number)]
        cells += [_interval(row, "clock_s", lambda s: number(s / unit_s)), _interval(row, "steps_per_s", number)]
        rows.append([*cells, percent(row[f"reached_{score:g}"]), duration(row[f"time_to_{score:g}_s_median"])])
    note = "Interquartile means over all runs; in brackets 95 % intervals, from 8 runs on. "
    note += f"Scores are {study.score.name} per episode."
    return _with_settings(study, table, {"title": "Learning and speed", "columns": columns, "rows": rows, "note": note})


def _master_table(study: Study, table: pd.DataFrame) -> dict[str, Any]:
    """Return how the master fared, as it stands on the page."""
    columns = [
        "workers",
        "load at the start",
        "load at the end",
        "busy at the start",
        "mean staleness",
        "longest queue",
    ]
    columns.append("workers it was to bear")
    limits = {variant: limit_of(study.of_variant(variant)) for variant in study.done_variants}
    rows = []
    for row in table.to_dict("records"):
        shares = [percent(row[name]) for name in ("load_start", "load_end", "utilisation_start")]
        counts = [number(row["staleness_mean"]), number(round(row["queue_peak"]))]
        limit = limits[row["variant"]]
        rows.append([row["schedule"], *shares, *counts, limit.short if limit else "unknown"])
    note = (
        "Start and end are the first and the last tenth of a run. What the master was to bear follows from the costs "
    )
    note += "and an untrained agent's episodes, before any run; it is not known for runs by a real clock."
    return _with_settings(study, table, {"title": "The master", "columns": columns, "rows": rows, "note": note})


def _with_settings(study: Study, table: pd.DataFrame, shown: dict[str, Any]) -> dict[str, Any]:
    """Return the shown table with a first column of settings, if the study has several."""
    if len(study.variants) < 2:
        return shown
    rows = [[variant, *row] for variant, row in zip(table["variant"], shown["rows"], strict=True)]
    return {**shown, "columns": ["setting", *shown["columns"]], "rows": rows}


def _interval(row: Mapping[Any, Any], name: str, show: Callable[[float], str]) -> str:
    """Return an estimate with its interval, which breaks only before its bracket, so that tables fit."""
    words = with_interval(Estimate(row[name], row[f"{name}_low"], row[f"{name}_high"], row["runs"]), show)
    value, bracket, interval = words.partition(" [")
    return f"{value}{bracket}{interval.replace(' ', NARROW)}"


def _method(study: Study) -> list[tuple[str, str]]:
    """Return the terms that the page uses."""
    virtual = "Virtual time: the real learner plays and learns; what each step costs is taken from a profile of costs."
    real = "The wall clock of the machine that ran it."
    return [
        ("Final score", f"Mean over the episodes that started between {percent(metrics.WINDOW[0])} and "
         f"{percent(metrics.WINDOW[1])} of the run, in {study.score.name} per episode; all of them have finished."),
        ("Interval", "95 %, over runs and never over episodes: widened percentile bootstrap of the interquartile mean "
         f"from {FEWEST} runs on, none below; of shares Wilson's. Differences and ratios are paired by seed."),
        ("Collapse", f"A final score below {number(study.score.learned_above)} and, at some time, more than "
         f"{metrics.BACKLOG:g} gradients waiting for each worker: the master fell behind and nothing was learned."),
        ("N0, N*", "C / S, from where on the queue of workers that don't wait only grows; (C + S) / S, from where on "
         "workers that wait keep the master busy. C is a worker's time for an episode and S the master's for a "
         "gradient, of an untrained agent and by the costs, so that both are known before a run; the median of seeds."),
        ("Load", "Seconds of work that arrive at the master per second; above 1 its queue grows."),
        ("Staleness", "Updates applied between a gradient's pull of parameters and its own turn."),
        ("Time to a score", "When the mean of 1 % of the run first reaches it; runs that never do are counted too."),
        ("Learned", f"A final score of at least {study.score.threshold}. Scores are of all runs; those of the runs "
         "that learned stand beside them."),
        ("Verdict", "Supported or refuted only if the interval excludes the contrary, after Holm's correction for all "
         "that the same runs were asked; undecided if it does not; not tested here if this study's runs or its machine "
         "can't tell. A difference of less than a tenth is not held to be relevant."),
        ("End alike", "Two one-sided tests exclude a difference of a tenth or more; else runs can't be told apart."),
        ("Clock", virtual if (study.runs["runtime"] == "simulate").all() else real),
    ]  # fmt: skip


def commits(study: Study) -> str:
    """Return the code versions that made the runs."""
    commits = [str(commit) for commit in study.done["commit"].dropna().unique()]
    dirty = bool((study.done["dirty"] == True).any())  # noqa: E712  None is not False
    if not commits:
        return ""
    shown = [re.sub(r"[^\w.-]", "", commit)[:10] for commit in commits]  # whatever stands in a cell's metadata
    return f"commit {listed(shown)}" + (" with local changes" if dirty else "")
