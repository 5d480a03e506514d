"""Owns what a wheel must hold: the engine with its typing marker, the command, the licence; and nothing else."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    folder = tmp_path_factory.mktemp("wheel")
    build = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--quiet",
        "--no-deps",
        "--wheel-dir",
        str(folder),
        str(ROOT),
    ]
    built = subprocess.run(build, capture_output=True, text=True, timeout=300)
    assert built.returncode == 0, built.stderr
    (path,) = folder.glob("agentctl-*.whl")
    return zipfile.ZipFile(path)


@pytest.mark.slow
def test_wheel_holds_the_engine_its_typing_marker_and_the_command(wheel: zipfile.ZipFile) -> None:
    names = set(wheel.namelist())
    sources = {path.relative_to(ROOT).as_posix() for path in (ROOT / "engine").rglob("*.py")}
    assert sources | {"engine/py.typed", "cli.py"} <= names
    assert any(name.endswith(".dist-info/licenses/LICENSE") for name in names)


@pytest.mark.slow
def test_wheel_holds_nothing_else(wheel: zipfile.ZipFile) -> None:
    tops = {name.split("/")[0] for name in wheel.namelist()}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"engine", "cli.py"}


@pytest.mark.slow
def test_wheel_installs_the_agentctl_command(wheel: zipfile.ZipFile) -> None:
    (points,) = (name for name in wheel.namelist() if name.endswith("entry_points.txt"))
    assert "agentctl = cli:main" in wheel.read(points).decode()
