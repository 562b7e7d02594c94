"""Dependencies point one way: lazy imports and rows of registries count, too."""

import ast
import re
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
# Folders and root modules from top to bottom. A module may import its own folder and what stands on lines below it.
LAYERS = """
run_sweep
experiments.validate experiments.replicate experiments.scale
experiments.agreement
experiments.sweep
experiments.tracking
experiments.study_folder
experiments.grid
experiments.processes experiments.wall_times
experiments.provenance
experiments
analysis.all_pages
analysis.report analysis.notebooks analysis.topologies analysis.timeline analysis.search
analysis.pages
analysis.claims analysis.figures
analysis.references
analysis.data
analysis.words
analysis
a3c.__main__
a3c.warm
a3c.play a3c.advise
a3c.calibrate
a3c.exchange_costs a3c.worker_costs
a3c.benchmark
a3c
a3c_core
a3c_core.train
a3c_core.command_line
a3c_core.real
a3c_core.virtual
a3c_core.saved_settings
a3c_core.build
a3c_core.config
a3c_core.topologies
a3c_core.runtime
a3c_core.episode_log
a3c_core.worker
a3c_core.learners
a3c_core.engines
a3c_core.records
a3c_core.algorithms
a3c_core.optimizers
a3c_core.models
a3c_core.registration
a3c_core.games
a3c_core.registry a3c_core.trusted_modules a3c_core.schedules a3c_core.progress
a3c_core.streams a3c_core.yaml_text
a3c_core.errors a3c_core.histogram a3c_core.section
a3c_core.system
"""
HEIGHTS = {unit: -line for line, units in enumerate(LAYERS.split("\n")) for unit in units.split()}


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
    package = name.partition(".")[0]
    assert not {module[0] for module in used} & NOT_FOR.get(name, NOT_FOR[package])


def unit_of(module: str) -> str:
    """Return the folder or root module of a package that a module belongs to."""
    package, _, rest = module.partition(".")
    return f"{package}.{rest.partition('.')[0]}" if rest else package


def edges() -> set[tuple[str, str]]:
    """Return (unit, unit that it imports) for all imports between different folders and root modules."""
    used = {(unit_of(name), unit_of(module)) for name, path in FILES.items() for module in imports(path) & FILES.keys()}
    return {(importer, imported) for importer, imported in used if importer != imported}


def test_every_folder_has_its_layer():
    assert {unit_of(name) for name in FILES} == HEIGHTS.keys()


def pointing_up(used: set[tuple[str, str]]) -> set[tuple[str, str]]:
    """Return those of some imports between units that do not point down."""
    return {(importer, imported) for importer, imported in used if HEIGHTS[importer] <= HEIGHTS[imported]}


def test_an_import_that_points_up_or_sideways_would_be_found():
    up, sideways = ("a3c_core.system", "a3c_core.train"), ("analysis.claims", "analysis.figures")
    assert pointing_up({up, sideways, ("a3c_core.train", "a3c_core.system")}) == {up, sideways}


def test_imports_point_down_between_folders():
    assert pointing_up(edges()) == set()


def test_the_map_names_every_folder_and_every_module_of_the_core():
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    folders = {path.parent.relative_to(ROOT).as_posix() for path in SOURCES if path.parent != ROOT}
    assert [folder for folder in sorted(folders) if f"{folder.partition('/')[2] or folder}/" not in text] == []
    core = [path.name for path in (ROOT / "a3c_core").glob("*.py") if path.name != "__init__.py"]
    assert [name for name in sorted(core) if not re.search(rf"(?<![\w.]){re.escape(name)}(?!\w)", text)] == []
