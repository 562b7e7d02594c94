"""Dependencies point one way: lazy imports and rows of registries count, too."""

import ast
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("a3c", "a3c_core", "experiments", "analysis")
SOURCES = [*(path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))), ROOT / "run_sweep.py"]
FILES = {".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path for path in SOURCES}
NOT_FOR = {  # what a package may not import
    "a3c_core": {"a3c", "experiments", "analysis", "mlflow", "run_sweep", "tests"},
    "a3c": {"experiments", "analysis", "mlflow", "run_sweep", "tests"},
    "a3c.__main__": {"tests"},  # names every command
    "analysis": {"experiments", "run_sweep", "tests"},
    "experiments": {"run_sweep", "tests"},
    "run_sweep": {"tests"},
}
OF_ANALYSIS = {  # what a folder may import of the others
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
        elif isinstance(node, ast.Constant) and ":" in str(node.value):
            found |= {str(node.value).partition(":")[0]} & FILES.keys()
    return found


def test_there_is_no_cycle():
    graph = {name: imports(path) & FILES.keys() - {name} for name, path in FILES.items()}
    assert len(list(TopologicalSorter(graph).static_order())) == len(FILES)


def test_a_cycle_would_be_found():
    with pytest.raises(CycleError):
        list(TopologicalSorter({"a": {"b"}, "b": {"a"}}).static_order())


@pytest.mark.parametrize("name", FILES)
def test_dependencies_point_one_way(name):
    used = [module.split(".") for module in imports(FILES[name])]
    package, *folders = name.split(".")
    assert not {module[0] for module in used} & NOT_FOR.get(name, NOT_FOR[package])
    if package == "analysis" and folders and folders[0] in OF_ANALYSIS:
        others = {module[1] for module in used if module[0] == package and module[1:2] and module[1] in OF_ANALYSIS}
        assert others <= OF_ANALYSIS[folders[0]] | {folders[0]}


def test_the_map_names_every_folder_and_every_module_of_the_core():
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    folders = {path.parent.relative_to(ROOT).as_posix() for path in SOURCES if path.parent != ROOT}
    assert [folder for folder in sorted(folders) if f"{folder.partition('/')[2] or folder}/" not in text] == []
    core = [path.name for path in (ROOT / "a3c_core").glob("*.py") if path.name != "__init__.py"]
    assert [name for name in sorted(core) if f"`{name}`" not in text] == []
