"""Owns the promises of the lock files: every pin has hashes, no host is named, nothing is left out."""

from __future__ import annotations

import re
import tomllib
from importlib.metadata import distribution
from itertools import pairwise
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parent.parent
LOCKS = ("requirements.lock", "requirements-dev.lock", "requirements-bench.lock")
BAD_LITELLM = (Version("1.82.7"), Version("1.82.8"))
"""Releases that carried a credential stealer (BerriAI/litellm#24512)."""

PIN = re.compile(r"^(?P<requirement>[A-Za-z0-9][^#\\]*?)\s*\\?$")
HASH = re.compile(r"^    --hash=sha256:[0-9a-f]{64}( \\)?$")


def pins(lock: str) -> dict[str, list[tuple[Requirement, int]]]:
    """Each pinned name with its requirements (one per marker) and how many hashes each has."""
    found: dict[str, list[tuple[Requirement, int]]] = {}
    latest: list[tuple[Requirement, int]] = []
    for line in (ROOT / lock).read_text(encoding="utf-8").splitlines():
        if HASH.match(line):
            requirement, hashes = latest[-1]
            latest[-1] = (requirement, hashes + 1)
        elif match := PIN.match(line):
            requirement = Requirement(match["requirement"])
            latest = found.setdefault(canonicalize_name(requirement.name), [])
            latest.append((requirement, 0))
        else:
            assert line.lstrip().startswith("#"), f"{lock} holds a line that is no pin: {line}"
    return found


def project() -> dict[str, list[str]]:
    """The dependencies of pyproject.toml by lock file."""
    table = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    run: list[str] = table["dependencies"]
    extras: dict[str, list[str]] = table["optional-dependencies"]
    return {
        "requirements.lock": run,
        "requirements-dev.lock": run + extras["dev"],
        "requirements-bench.lock": run + extras["dev"] + extras["bench"] + suites(),
    }


def suites() -> list[str]:
    """What the suites that others wrote need, beside the extra."""
    files = [
        ROOT / "benchmarks" / name
        for name in ("bfcl/requirements.txt", "tau2/requirements.txt", "tau2/suite.txt")
    ]
    lines = [line for file in files for line in file.read_text(encoding="utf-8").splitlines()]
    return [line for line in lines if line and not line.startswith("#")]


@pytest.mark.parametrize("lock", LOCKS)
def test_every_pin_is_exact_and_has_hashes(lock: str) -> None:
    locked = pins(lock)
    assert len(locked) > 50
    for requirements in locked.values():
        for requirement, hashes in requirements:
            assert [spec.operator for spec in requirement.specifier] == ["=="], requirement
            assert requirement.url is None, requirement
            assert hashes > 0, f"{requirement} has no hash"


@pytest.mark.parametrize("lock", LOCKS)
def test_no_registry_host_is_named(lock: str) -> None:
    text = (ROOT / lock).read_text(encoding="utf-8")
    assert "://" not in text
    options = [line for line in text.splitlines() if line.startswith("-")]
    assert options == [], "an index, a link or an editable belongs into nobody's lock file"


@pytest.mark.parametrize("lock", LOCKS)
def test_every_dependency_of_the_project_is_locked_within_its_range(lock: str) -> None:
    locked = pins(lock)
    for text in project()[lock]:
        wanted = Requirement(text)
        for requirement, _ in locked[canonicalize_name(wanted.name)]:
            assert wanted.specifier.contains(pinned(requirement)), f"{requirement} is not {wanted}"


@pytest.mark.parametrize("lock", LOCKS)
def test_poisoned_litellm_releases_are_not_locked(lock: str) -> None:
    versions = [pinned(requirement) for requirement, _ in pins(lock)["litellm"]]
    assert versions
    assert not set(versions) & set(BAD_LITELLM)


@pytest.mark.parametrize("bad", BAD_LITELLM, ids=str)
def test_poisoned_litellm_releases_are_outside_the_declared_range(bad: Version) -> None:
    (litellm,) = (Requirement(text) for text in project()["requirements.lock"] if text.startswith("litellm"))
    assert not litellm.specifier.contains(bad)


def test_no_locked_package_runs_code_at_interpreter_start() -> None:
    """A top-level `.pth` file is executed by every Python that starts in the environment."""
    here = [
        requirement.name
        for requirements in pins("requirements.lock").values()
        for requirement, _ in requirements
        if requirement.marker is None or requirement.marker.evaluate()
    ]
    assert "litellm" in here
    for name in here:
        files = distribution(name).files or ()
        assert not [file for file in files if len(file.parts) == 1 and file.suffix == ".pth"], name


@pytest.mark.parametrize(("smaller", "larger"), list(pairwise(LOCKS)))
def test_each_lock_adds_to_the_one_before_and_changes_nothing_in_it(smaller: str, larger: str) -> None:
    adding = pins(larger)
    for name, requirements in pins(smaller).items():
        assert {pinned(requirement) for requirement, _ in requirements} == {
            pinned(requirement) for requirement, _ in adding[name]
        }


def pinned(requirement: Requirement) -> Version:
    (spec,) = requirement.specifier
    return Version(spec.version)
