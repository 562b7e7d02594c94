"""A study on one page of Markdown: question, answer, verdicts with numbers, how to repeat it, and what its notes add.

Everything but the notes is computed. `notes.md`, beside the study's tables, is written by people: what surprised them,
and what the study can't say.
"""

import html
import re
from pathlib import Path

from analysis import figures
from analysis.answer import answer
from analysis.claims import Judgement, judge_all
from analysis.page import commits, facts, rerun_command
from analysis.study import Study

NOTES = "notes.md"


def render(study: Study, folder: Path) -> str:
    """Return the page."""
    notes = folder / NOTES
    question = _plain(study.question)
    parts = [f"# {question}", html.escape(answer(study), quote=False)]
    if len(study.done):
        parts.append(f"![{question}](figures/{figures.main_figure(study).name}.png)")
        parts += _verdicts(study)
    parts += ["## How", _method(study)]
    if notes.exists():
        parts.append(notes.read_text(encoding="utf-8").strip())
    return "\n\n".join(parts) + "\n"


def _verdicts(study: Study) -> list[str]:
    one_setting = len(study.variants) < 2
    judged = [j for j in judge_all(study) if j.rests_on_data and (one_setting or j.claim.over_settings)]
    if not judged:
        return []
    rows = ["| claim | verdict | what it rests on |", "|---|---|---|", *map(_row, judged)]
    note = "Verdicts on the documents' claims; intervals are 95 %, over runs. Other claims need other runs."
    return ["## Claims", "\n".join(rows), note]


def _row(judgement: Judgement) -> str:
    claim = judgement.claim
    needed = f" *What would decide it: {'; '.join(judgement.needed)}.*" if judgement.needed else ""
    findings = " ".join(finding.text for finding in judgement.findings)
    rests_on = html.escape(findings + needed, quote=False).replace("|", r"\|")
    return f"| {claim.number}. {claim.text} ({claim.source}) | **{judgement.verdict}** | {rests_on} |"


def _plain(text: str) -> str:
    """Return Markdown that shows `text` as it is, in one line, whatever a grid's author put into it."""
    return re.sub(r"([\\`*_\[\]#|~$])", r"\\\1", html.escape(" ".join(text.split()), quote=False))


def _method(study: Study) -> str:
    made_by = f"; made by {commits(study)}" if commits(study) else ""
    return f"""{facts(study)}.

```bash
{rerun_command(study)}    # runs it again{made_by}
python -m analysis.report results/{study.name}    # rebuilds this page, index.html, figures/ and tables/
```

[index.html](index.html) has all figures and tables, and what the terms mean. They are drawn from `runs.parquet` and
`curves.parquet`; full records stay out of git, and are made by the first command."""
