"""The page: a study's answer, claims, figures and tables as one HTML file that needs nothing else."""

import base64
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import jinja2
import pandas as pd

from analysis.claims.catalogue import judge_all
from analysis.claims.claim import Judgement
from analysis.claims.documents import DOCUMENTS
from analysis.claims.finding import RULES
from analysis.data import metrics
from analysis.data.capacity import limit_of
from analysis.data.statistics import FEWEST_TO_RESAMPLE, Estimate
from analysis.data.study import Study
from analysis.figures import catalogue, style
from analysis.figures.figure import SECTIONS, StudyFigure
from analysis.figures.main import main_figure
from analysis.pages.answer import answer
from analysis.pages.extras import NO_EXTRAS, Extras, rebuild_command
from analysis.words import count, duration, listed, number, percent, with_interval

_TEMPLATE = Path(__file__).with_name("page.html")
_MOST_MISSING = 30  # rows of missing cells on the page

OnFigure = Callable[[str], None]


class Drawn(NamedTuple):
    """A figure on the page."""

    name: str
    title: str
    says: str
    panels: list[str]  # each a PNG, in base64


def render(
    study: Study,
    tables: dict[str, pd.DataFrame],
    extras: Extras = NO_EXTRAS,
    on_figure: OnFigure = lambda name: None,
) -> str:
    """Return the page."""
    environment = jinja2.Environment(autoescape=True, trim_blocks=True, undefined=jinja2.StrictUndefined)
    template = environment.from_string(_TEMPLATE.read_text(encoding="utf-8"))
    judged = judge_all(study, more=extras.claims) if len(study.done) else []
    shown = [judgement for judgement in judged if judgement.rests_on_data]
    told = shown if len(shown) < len(judged) - 2 else judged  # a study of something else only lists what it can judge
    return template.render(
        study=study,
        facts=facts(study),
        answer=answer(study),
        missing=_missing(study),
        main=_drawn(study, main_figure(study), on_figure) if len(study.done) else None,
        claims=told,
        undecidable=listed(str(j.number) for j in judged if j not in told) if len(told) < len(judged) else "",
        verdicts=_verdicts(study, told, extras),
        sections=_sections(study, extras, on_figure),
        tables=[make(study, tables["schedules"]) for make in (_learning_table, _master_table)]
        if len(study.done)
        else [],
        files=list(tables),
        rules=RULES,
        documents=DOCUMENTS,
        method=_method(study),
        commands={"rebuild": rebuild_command(study, extras), "rerun": rerun_command(study)},
        commits=commits(study),
    )


def facts(study: Study) -> str:
    """Return the study in one line: its name, how much of it is there, on which clock."""
    seeds = study.runs["seed"].nunique()
    parts = [f"Study {study.name}", f"{len(study.done)} of {count(len(study.runs), 'run')} done"]
    fewest = int(study.runs["planned"].min())
    lengths = f"{study.episodes:,}" if fewest == study.episodes else f"{fewest:,} to {study.episodes:,}"
    parts += [f"{lengths} episodes each", count(seeds, "seed")]
    virtual = (study.runs["runtime"] == "simulate").all()
    parts.append("virtual time" if virtual else f"real time ({listed(sorted(study.runs['runtime'].unique()))})")
    crowded = int((study.done["oversubscribed"] == True).sum())  # noqa: E712  None is not False
    if crowded:
        parts.append(f"{count(crowded, 'run')} with more processes than cores")
    return " · ".join(parts)


def rerun_command(study: Study) -> str:
    """Return what runs the study again: its name holds the settings that the command line changed."""
    grid, _, changes = study.name.partition("+")
    settings = [f"--set {change}" for change in changes.split(",") if change]
    seeds = sorted(set(study.runs["seed"]))
    chosen = str(len(seeds)) if seeds == list(range(len(seeds))) else ",".join(map(str, seeds))
    return " ".join(["python run_sweep.py", f"--grid {grid}", *settings, f"--seeds {chosen}"])


def _drawn(study: Study, entry: StudyFigure, on_figure: OnFigure) -> Drawn:
    on_figure(entry.name)
    part = entry.part(study)
    with style.paper():
        images = [style.image(style.draw(part, [panel])) for panel in entry.panels]
    setting = "" if entry.whole or not study.shown_variant else f" ({study.shown_variant})"
    return Drawn(
        entry.name, entry.title + setting, entry.says(study), [base64.b64encode(image).decode() for image in images]
    )


def _sections(study: Study, extras: Extras, on_figure: OnFigure) -> list[dict[str, Any]]:
    entries = catalogue.catalogue(study, extras.figures)
    sections = []
    for key, title in SECTIONS.items():
        drawn = [_drawn(study, entry, on_figure) for entry in entries if entry.section == key]
        gaps = catalogue.gaps(study) if key == "report" else []
        if drawn or gaps:
            sections.append({"id": key, "title": title, "figures": drawn, "gaps": gaps})
    return sections


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


def _verdicts(study: Study, shown: list[Judgement], extras: Extras) -> dict[str, Any] | None:
    """Return the verdicts by setting, if there are several settings to compare."""
    variants = list(dict.fromkeys(study.done["variant"]))
    numbers = [judgement.number for judgement in shown]
    if len(variants) < 2 or study.compares_settings or not numbers:
        return None
    judged = {variant: judge_all(study, variant, extras.claims) for variant in variants}
    by_variant = {variant: {j.number: j.verdict for j in judgements} for variant, judgements in judged.items()}
    rows = [{"variant": v, "verdicts": [verdicts[n] for n in numbers]} for v, verdicts in by_variant.items()]
    return {"numbers": numbers, "rows": rows}


def _learning_table(study: Study, table: pd.DataFrame) -> dict[str, Any]:
    """Return what the schedules learned and how fast, as it stands on the page."""
    unit_s, unit = study.time_unit
    marks = study.score.marks
    score = max((mark for mark in marks if table[f"reached_{mark:g}"].max() > 0.5), default=marks[0])
    columns = ["workers", "runs", "learned", "collapsed", "score at the end", "mean score", unit, "steps/s"]
    columns += [f"reached {score:g}", "after (median)"]
    rows = []
    for row in table.to_dict("records"):
        learned = f"{row['learned']}: {_interval(row, 'learned_share', percent)}"
        cells = [row["schedule"], str(row["runs"]), learned, str(row["collapsed"])]
        cells += [_interval(row, "final_score", number), _interval(row, "mean_score", number)]
        cells += [_interval(row, "clock_s", lambda s: number(s / unit_s)), _interval(row, "steps_per_s", number)]
        rows.append([*cells, percent(row[f"reached_{score:g}"]), duration(row[f"time_to_{score:g}_s_median"])])
    note = "Interquartile means over the runs that learned, or over all where none did; in brackets 95 % intervals. "
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
    return with_interval(Estimate(row[name], row[f"{name}_low"], row[f"{name}_high"], row["runs"]), show)


def _method(study: Study) -> list[tuple[str, str]]:
    """Return the terms that the page uses."""
    virtual = "Virtual time: the real learner plays and learns; what each step costs is taken from a profile of costs."
    real = "The wall clock of the machine that ran it."
    return [
        ("Score at the end", f"Mean of the last tenth of a run's episodes, in {study.score.name} per episode."),
        ("Interval", "95 %, over runs and never over episodes: widened percentile bootstrap of the interquartile mean "
         f"from {FEWEST_TO_RESAMPLE} runs on, Student's t below; differences and ratios are paired by seed."),
        ("Collapse", f"A score at the end below {number(study.score.learned_above)} and, at some time, more than "
         f"{metrics.BACKLOG:g} gradients waiting for each worker: the master fell behind and nothing was learned."),
        ("N0, N*", "C / S, from where on the queue of workers that don't wait only grows; (C + S) / S, from where on "
         "workers that wait keep the master busy. C is a worker's time for an episode and S the master's for a "
         "gradient, of an untrained agent and by the costs, so that both are known before a run; the median of seeds."),
        ("Load", "Seconds of work that arrive at the master per second; above 1 its queue grows."),
        ("Staleness", "Updates applied between a gradient's pull of parameters and its own turn."),
        ("Time to a score", "When the mean of 1 % of the run first reaches it; runs that never do are counted too."),
        ("Learned", f"A score at the end of at least {number(study.score.learned_above)}. Where only some runs of a "
         "setting did, there is no mean of both kinds: the share that did is given, and the score of those."),
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
    return f"commit {listed(commit[:10] for commit in commits)}" + (" with local changes" if dirty else "")
