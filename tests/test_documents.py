"""Every command of README.md and docs/*.md runs as it stands, in a fresh clone that lies elsewhere.

What takes long has a short variant in a comment right below its block, one line for each beginning of a command:

    <!-- tests run
    python run_sweep.py --grid report => + --dry-run
    make demo => make --dry-run demo
    pip install optuna => nothing, since it asks a package index
    -->

`+` adds options. After `+ --help` the help must know every option that the command has.
"""

import os
import re
import shutil
import site
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import numba
import pytest
from numba.core.caching import _CacheLocator

import a3c_core.system.jit  # noqa: F401 - which says where Numba keeps compiled code
from tests.sweeps import PATIENCE_S, ROOT

DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```bash\n(?P<lines>.*?)^```\n(?:<!-- tests run\n(?P<rules>.*?)^-->)?", re.MULTILINE | re.DOTALL)
ENTRY_POINT = "#!/bin/sh\nexec '{python}' -c 'import sys; from a3c.__main__ import main; sys.exit(main())' \"$@\"\n"


class Command(NamedTuple):
    """A command as it stands in a document, and what a test runs of it: "" for nothing."""

    written: str
    run: str


def commands_of(text: str) -> list[Command]:
    """Return the commands of a document's blocks; refuse short variants of what is not there."""
    found = []
    for block in BLOCK.finditer(text):
        lines = block["lines"].replace("\\\n", "").splitlines()
        written = [re.sub(r"\s+#\s.*", "", line) for line in lines if line.strip()]
        rules = dict(rule.split(" => ") for rule in (block["rules"] or "").splitlines())
        for start in rules:
            assert any(command.startswith(start) for command in written), f"no command begins with {start}"
        found += [Command(command, short(command, rules)) for command in written]
    return found


def short(command: str, rules: dict[str, str]) -> str:
    """Return what to run of a command: as the longest beginning says that fits, or all of it."""
    fitting = max((start for start in rules if command.startswith(start)), key=len, default=None)
    if fitting is None:
        return command
    if rules[fitting].startswith("nothing, "):
        return ""
    added = rules[fitting].removeprefix("+ ")
    return f"{command} {added}" if added != rules[fitting] else added


@pytest.fixture(scope="module")
def clone(tmp_path_factory) -> Path:
    """A copy of what git has or would add, with an environment as `make setup` leaves it."""
    folder = tmp_path_factory.mktemp("elsewhere") / "clone"
    listed = ["git", "-C", str(ROOT), "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    for name in subprocess.run(listed, capture_output=True, text=True, check=True).stdout.split("\0"):
        if name and (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder / ".venv")], check=True)
    packages = next(folder.glob(".venv/lib/python*/site-packages"))
    (packages / "clone.pth").write_text("\n".join([str(folder), *site.getsitepackages()]))
    entry_point = folder / ".venv/bin/a3c"
    entry_point.write_text(ENTRY_POINT.format(python=folder / ".venv/bin/python"))
    entry_point.chmod(0o755)
    (folder / ".venv/.ready").touch()
    copy_compiled(Path(numba.config.CACHE_DIR), folder)
    return folder


def copy_compiled(cache: Path, clone: Path) -> None:
    """Give a clone our compiled code, which Numba keeps by the folder and the time of its source: it takes a minute."""
    for folder in {path.parent.relative_to(ROOT) for path in (ROOT / "a3c_core").rglob("*.py")}:
        ours, theirs = (_CacheLocator.get_suitable_cache_subpath(str(root / folder / "x.py")) for root in (ROOT, clone))
        if (cache / ours).exists():
            shutil.copytree(cache / ours, clone / cache.relative_to(ROOT) / theirs)


def run(line: str, clone: Path, where: Path) -> str:
    """Run a shell's line where the clone's environment is activated; return what it printed."""
    ours = ("PYTHONPATH", "PYTHONDONTWRITEBYTECODE")
    environment = {name: value for name, value in os.environ.items() if name not in ours}
    activated = f"set -e; source '{clone}/.venv/bin/activate'; {line}"
    ended = subprocess.run(
        ["bash", "-c", activated], cwd=where, env=environment, capture_output=True, text=True, timeout=PATIENCE_S
    )
    assert ended.returncode == 0, f"{line}\n{ended.stdout}{ended.stderr}"
    return ended.stdout


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_command_of_a_document_runs(document, clone, tmp_path):
    for command in commands_of(document.read_text(encoding="utf-8")):
        if command.run:
            where = tmp_path if command.run.startswith("a3c ") else clone
            printed = run(command.run, clone, where)
            if command.run.endswith(" --help"):
                assert [option for option in re.findall(r"--[a-z]\S*", command.written) if option not in printed] == []


@pytest.mark.parametrize("name", ["data", "profiles"])  # README's runs in test_setup, that of others in test_extending
def test_the_python_of_a_document_runs(name, clone, tmp_path):
    snippets = re.findall(r"^```python\n(.*?)^```", (ROOT / f"docs/{name}.md").read_text(), re.MULTILINE | re.DOTALL)
    for snippet in snippets:
        (tmp_path / "snippet.py").write_text(snippet)
        assert run(f"python {tmp_path}/snippet.py", clone, clone)


def test_a_short_variant_stands_for_a_command_that_is_there():
    text = "```bash\nmake demo    # a demo\nmake test\npip install x\n```\n<!-- tests run\n{rules}\n-->\n"
    rules = "make demo => make --dry-run demo\nmake test => + --dry-run\npip => nothing, since it asks an index"
    runs = [command.run for command in commands_of(text.format(rules=rules))]
    assert runs == ["make --dry-run demo", "make test --dry-run", ""]
    with pytest.raises(AssertionError, match="no command begins with make it"):
        commands_of(text.format(rules="make it => make demo"))
