"""pyproject.toml, the locks and environment.yml must agree, and locks must name versions and hashes only."""

import re
import tomllib
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parent.parent
PIN = re.compile(
    r"(?P<name>[A-Za-z0-9_.-]+)==(?P<version>[A-Za-z0-9.+!]+)(?: ; (?P<marker>[^#]+?))?(?: --hash=sha256:[0-9a-f]{64})+"
)


def locked(file: str = "requirements.lock") -> dict[str, set[str]]:
    """Return {package: versions}; a package may have one version per Python."""
    versions: dict[str, set[str]] = {}
    for line in re.sub(r" \\\n +", " ", (ROOT / file).read_text()).splitlines():
        pin = PIN.fullmatch(line)
        assert pin, f"not a pin with hashes and nothing else: {line}"
        versions.setdefault(pin["name"], set()).add(pin["version"])
    return versions


def declared(extra: str = "dev") -> dict[str, str]:
    """Return {package: lowest version} of pyproject.toml, with those of an extra."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    requirements = project["dependencies"] + project["optional-dependencies"][extra]
    return dict(requirement.split(">=") for requirement in requirements)


def as_numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version))


def test_lock_holds_every_dependency_at_an_allowed_version():
    versions = locked()
    for name, lowest in declared().items():
        assert name in versions, f"{name} is not locked"
        assert all(as_numbers(version) >= as_numbers(lowest) for version in versions[name])


@pytest.mark.parametrize("extra", ["ray", "atari", "lab"])
def test_the_lock_of_an_extra_only_adds_to_the_other(extra):
    ours, added = locked(), locked(f"requirements-{extra}.lock")
    assert not ours.keys() & added.keys()
    for name, lowest in declared(extra).items():
        assert all(as_numbers(version) >= as_numbers(lowest) for version in (ours | added)[name])


def test_environment_yml_has_the_same_packages_and_versions():
    environment = yaml.safe_load((ROOT / "environment.yml").read_text())
    *pins, project, real_game = environment["dependencies"][-1]["pip"]
    assert project == "-e ."
    (commit,) = re.findall(r"^PLE_COMMIT \?= ([0-9a-f]{40})$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    # editable: else its pictures are left out
    assert re.fullmatch(rf"-e git\+https://\S+@{commit}#egg=ple", real_game)
    conda = dict(pin.split("==") for pin in pins)
    assert conda.keys() == declared().keys()
    versions = locked()
    assert all(version in versions[name] for name, version in conda.items())
