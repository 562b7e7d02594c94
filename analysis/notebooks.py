"""What the notebooks call, and the command that runs them: `python -m analysis.notebooks`."""

import os
import sys
import tempfile
from pathlib import Path

from a3c_core.command_line.arguments import Parser
from a3c_core.errors import on_a_screen
from analysis.claims.catalogue import judge_all
from analysis.data.load import load_study
from analysis.data.study import Study, StudyError
from analysis.figures import catalogue, drawing, style

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOKS = sorted(Path(__file__).parent.glob("*.ipynb"))
STUDY_VARIABLE = "A3C_STUDY"
_DPI = 72  # outputs are committed: small
_PATIENCE_S = 300  # for one cell
EXAMPLES = """\
examples:
  python -m analysis.notebooks                          # run all on results/report and keep their outputs
  python -m analysis.notebooks --study results/quick    # on another study
  python -m analysis.notebooks --check                  # only see whether they run
"""


def open_study() -> Study:
    """Return the study to show: results/report, or the folder that the environment variable A3C_STUDY names."""
    return load_study(os.environ.get(STUDY_VARIABLE) or ROOT / "results" / "report")


def show(study: Study, name: str) -> None:
    """Show a figure of the study's page and the sentence that reads it."""
    from IPython.display import Image, Markdown, display

    try:
        entry = catalogue.by_name(study, name)
    except KeyError as missing:
        display(Markdown(f"*{missing.args[0]}*"))
        return
    with style.paper():
        picture = drawing.image(drawing.draw(entry.part(study), entry.panels, _DPI))
    display(Image(picture, alt=entry.title), Markdown(entry.says(study)))


def show_claim(study: Study, number: int) -> None:
    """Show the verdict on a claim and what it rests on."""
    from IPython.display import Markdown, display

    judgement = judge_all(study)[number - 1]
    lines = [f"**Claim {number}: {judgement.claim.text} {judgement.verdict.capitalize()}.**"]
    lines += [f"- {finding.text} ({finding.verdict})" for finding in judgement.findings]
    lines += [f"\nWhat would decide it: {'; '.join(judgement.needed)}."] if judgement.needed else []
    display(Markdown("\n".join(lines)))


def execute(notebook: Path, study: Path, write: bool = True) -> None:
    """Run a notebook from top to bottom on a study; keep its outputs in it if `write`."""
    import nbformat
    from nbclient import NotebookClient

    content = nbformat.read(notebook, as_version=4)
    os.environ[STUDY_VARIABLE] = str(study.resolve())
    where = {"metadata": {"path": str(ROOT)}}
    client = NotebookClient(content, timeout=_PATIENCE_S, record_timing=False, resources=where)
    with tempfile.TemporaryDirectory() as folder:
        kernel = client.create_kernel_manager()
        if os.name == "posix":  # sockets in a folder, not ports that others could reach
            kernel.transport, kernel.ip = "ipc", str(Path(folder) / "kernel")
        client.execute()
    content.metadata = {"kernelspec": content.metadata["kernelspec"], "language_info": {"name": "python"}}
    if write:
        nbformat.write(content, notebook)


def main(arguments: list[str] | None = None) -> int:
    """Run the notebooks; return the exit code."""
    made = Parser("analysis.notebooks", "Run the notebooks of analysis/ from top to bottom.", EXAMPLES)
    made.add_argument("--study", type=Path, default=Path("results/report"), help="default: results/report")
    made.add_argument("--check", action="store_true", help="do not keep the outputs")
    options = made.parse_args(arguments)
    try:
        load_study(options.study)  # say what is wrong with it before a kernel starts
        for notebook in NOTEBOOKS:
            print(f"{notebook.name} on {options.study}", flush=True)
            execute(notebook, options.study, write=not options.check)
    except (StudyError, OSError) as error:
        print(f"error: {on_a_screen(str(error))}", file=sys.stderr)
        return 2
    except ModuleNotFoundError as error:
        print(f"error: {error.name} is missing; run `make setup` first", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
