"""The house of the analysis: dependencies point one way, lazy ones too, and no file or function is long."""

import ast
import statistics
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FILES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
    for path in sorted((ROOT / "analysis").rglob("*.py"))
}
BELOW = {  # what a folder may import of the others
    "data": set(),
    "figures": {"data"},
    "claims": {"data"},
    "pages": {"data", "figures", "claims"},
}


def imports(path: Path) -> set[str]:
    """Return the modules that a file imports, anywhere in it; its rows of "module:NAME" count as well."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= {name if name in FILES else str(node.module) for name in names}
        elif isinstance(node, ast.Constant) and str(node.value).partition(":")[0] in FILES:
            found.add(str(node.value).partition(":")[0])
    return found


def test_there_is_no_cycle():
    graph = {name: imports(path) & FILES.keys() - {name} for name, path in FILES.items()}
    assert len(list(TopologicalSorter(graph).static_order())) == len(FILES)


@pytest.mark.parametrize("name", FILES)
def test_dependencies_point_one_way(name):
    used = [module.split(".") for module in imports(FILES[name])]
    assert not any(module[0] in ("experiments", "tests", "run_sweep") for module in used)
    folder = name.split(".")[1:2]
    if folder and folder[0] in BELOW:
        others = {module[1] for module in used if module[0] == "analysis" and module[1:2] and module[1] in BELOW}
        assert others <= BELOW[folder[0]] | {folder[0]}


def test_files_and_functions_are_short():
    trees = {name: ast.parse(path.read_text(encoding="utf-8")) for name, path in FILES.items()}
    functions = [node for tree in trees.values() for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    assert statistics.median((node.end_lineno or 0) - node.lineno + 1 for node in functions) <= 8
    assert max(len(path.read_text(encoding="utf-8").splitlines()) for path in FILES.values()) <= 300
