"""A study on one page of Markdown: question, answer, verdicts with numbers, how to repeat it, and what its notes add.

`conclusion.md` and `notes.md`, beside the study's tables, are written by people: two or three sentences that answer the
question, with numbers filled in from tables (`slots`), and what surprised them or can't be said. All else is computed.
"""

import html
import re
from pathlib import Path

from analysis.claims.catalogue import judge_all
from analysis.claims.claim import Judgement
from analysis.claims.documents import CODE, DOCUMENTS, cited
from analysis.claims.finding import RULES
from analysis.data.study import Study, StudyError
from analysis.pages import slots
from analysis.pages.answer import answer, answer_table, as_markdown
from analysis.pages.extras import NO_EXTRAS, Extras, rebuild_command
from analysis.pages.gallery import MAIN_FILE
from analysis.pages.page import commits, facts, rerun_command
from analysis.words import listed

NOTES = "notes.md"
CONCLUSION = "conclusion.md"


def conclusion(folder: Path) -> str:
    """Return what people concluded from the study, with numbers from its tables; "" if they wrote nothing."""
    path = folder / CONCLUSION
    return slots.fill(path.read_text(encoding="utf-8").strip(), folder.parent, folder.name) if path.exists() else ""


def render(study: Study, folder: Path, extras: Extras = NO_EXTRAS) -> str:
    """Return the page."""
    notes = folder / NOTES
    question = _plain(study.question)
    concluded = conclusion(folder)
    parts = [f"# {question}", *([concluded] if concluded else []), html.escape(answer(study), quote=False)]
    if study.prediction:
        parts.append(f"**Prediction, written before the runs.** {_plain(study.prediction)}")
    if len(study.done):
        parts.append(f"![{question}]({MAIN_FILE})")
        parts.append(html.escape(as_markdown(answer_table(study)), quote=False))
        parts += _verdicts(study, extras)
    parts += ["## How", _method(study, extras)]
    if notes.exists():
        parts.append(_text_of(notes))
    return "\n\n".join(parts) + "\n"


def _text_of(notes: Path) -> str:
    try:
        return notes.read_text(encoding="utf-8").strip()
    except ValueError as error:
        raise StudyError(f"{notes} is no text in UTF-8 ({error}): save it as such, or remove it") from error


def _verdicts(study: Study, extras: Extras) -> list[str]:
    one_setting = len(study.variants) < 2
    judgements = judge_all(study, more=extras.claims)
    judged = [j for j in judgements if j.is_judged and (one_setting or j.claim.over_settings)]
    if not judged:
        return []
    rows = ["| claim | verdict | what it rests on |", "|---|---|---|", *map(_row, judged)]
    return ["## Claims", "\n".join(rows), _reading(judged)]


def _reading(judged: list[Judgement]) -> str:
    """Say how verdicts come about, and whose claims these are."""
    other = [str(judgement.number) for judgement in judged if judgement.claim.rule == "any"]
    rules = f"The whole: {RULES['all']}" + (f" (claim {listed(other)}: {RULES['any']})" if other else "")
    words = "Intervals are 95 %, over runs; verdicts hold after Holm's correction. Other claims need other runs."
    sources = " ".join(f"The {d.name}: *{d.title}*, {d.authors}." for d in DOCUMENTS)
    papers = cited(judgement.claim.source for judgement in judged)
    beside = "".join(f" The {d.name}: *{d.title}*, {d.authors} ([{d.where}](https://{d.where}))." for d in papers)
    return f"{rules}. {words}\n\n{sources} Their code: [{CODE}](https://{CODE}).{beside}"


def _row(judgement: Judgement) -> str:
    claim = judgement.claim
    needed = f" *What would decide it: {'; '.join(judgement.needed)}.*" if judgement.needed else ""
    several = len(judgement.findings) > 1
    findings = " ".join(f"{f.text} *({f.verdict})*" if several else f.text for f in judgement.findings)
    said = f"{claim.source}: “{claim.quote}”" if claim.quote else claim.source
    cells = [f"{judgement.number}. {claim.text} ({said})", f"**{judgement.verdict}**", findings + needed]
    shown = [html.escape(cell, quote=False).replace("|", r"\|") for cell in cells]
    return f"| {' | '.join(shown)} |"


def _plain(text: str) -> str:
    """Return Markdown that shows `text` as it is, in one line, whatever a grid's author put into it."""
    return re.sub(r"([\\`*_\[\]#|~$])", r"\\\1", html.escape(" ".join(text.split()), quote=False))


def _method(study: Study, extras: Extras) -> str:
    made_by = f"; made by {commits(study)}" if commits(study) else ""
    known = _plain(facts(study)).replace(r"\_", "_")  # within words it says nothing
    return f"""{known}.

```bash
{rerun_command(study)}    # runs it again{made_by}
{rebuild_command(study, extras)}    # rebuilds this page, its picture, tables/ and index.html
```

The page `index.html` has all figures and tables, and explains the terms. It is not in git: the second command writes
it, and `make pages` writes the pages of all studies. Figures and tables are made from `runs.parquet` and
`curves.parquet`. Full records are not in git either: the first command makes them."""
