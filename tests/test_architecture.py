"""Owns the shape of the house: floors, file sizes, first lines, light start-up, pages that match the code."""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from engine.domain import errors
from engine.domain.events import BODIES

ROOT = Path(__file__).parent.parent
SOURCES = [*sorted((ROOT / "engine").rglob("*.py")), ROOT / "cli.py"]
LINES_AT_MOST = 450

LONGER = {
    "engine/domain/events.py": (800, "the audit format is read as one list"),
    "engine/domain/state.py": (500, "what a log folds to is read as one shape"),
    "engine/domain/policy.py": (520, "the policy model is read as one tree"),
}
"""Files that may be longer, up to which length, and why."""

HEAVY = ("litellm", "anthropic", "openai", "sqlalchemy", "z3")
"""Imports that cost a second or more together; only the adapter that needs one loads it."""

BUILT_ON_START = ("cli", "engine")
"""What the command line and an application import first."""

VAGUE = {"utils", "helpers", "helper", "manager", "common", "misc"}


def name_of(source: Path) -> str:
    return source.relative_to(ROOT).as_posix()


def module_of(source: Path) -> str:
    parts = source.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def python(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60)


# --- floors ---------------------------------------------------------------------------------------------


def test_imports_point_down_only() -> None:
    """Every contract of `[tool.importlinter]` is kept."""
    linter = python(
        "from importlinter.cli import lint_imports_command as run; run(['--no-logo', '--no-cache'])"
    )
    assert linter.returncode == 0, linter.stdout + linter.stderr
    assert " 0 broken" in linter.stdout


def test_every_part_of_the_engine_stands_on_a_floor() -> None:
    """A new package that no contract names would be free to import anything."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
    (floors,) = (contract for contract in settings["contracts"] if contract["type"] == "layers")
    named = {part.strip() for layer in floors["layers"] for part in layer.split("|")}
    parts = {module_of(source) for source in (ROOT / "engine").glob("*.py")}
    parts |= {module_of(source) for source in (ROOT / "engine").glob("*/__init__.py")}
    assert parts - {"engine"} == named


def test_the_command_line_names_no_adapter() -> None:
    """It asks `engine.bootstrap`; import-linter cannot say so of a single module."""
    imported = {
        node.module if isinstance(node, ast.ImportFrom) else alias.name
        for node in ast.walk(ast.parse((ROOT / "cli.py").read_text(encoding="utf-8")))
        if isinstance(node, (ast.Import, ast.ImportFrom))
        for alias in node.names
    }
    assert imported
    assert not [module for module in imported if (module or "").startswith("engine.adapters")]


def test_errors_import_nothing_of_ours_when_they_run() -> None:
    tree = ast.parse((ROOT / "engine/domain/errors.py").read_text(encoding="utf-8"))
    imported = [node.module or "" for node in tree.body if isinstance(node, ast.ImportFrom)]
    assert not [module for module in imported if module.startswith("engine")]


# --- files ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("source", SOURCES, ids=name_of)
def test_first_line_says_what_the_file_owns(source: Path) -> None:
    text = source.read_text(encoding="utf-8")
    assert text.startswith('"""'), f"{name_of(source)}: the first line is no docstring"
    sentence = (ast.get_docstring(ast.parse(text)) or "").split("\n\n")[0]
    assert sentence.rstrip().endswith((".", ":", "?")), f"{name_of(source)}: the first line is no sentence"
    if source.name not in ("__init__.py", "cli.py"):
        assert sentence.startswith("Owns "), f"{name_of(source)}: say what the file owns"


def test_no_file_grows_beyond_reading() -> None:
    long = {name_of(source): len(source.read_text(encoding="utf-8").splitlines()) for source in SOURCES}
    allowed = {name: LONGER.get(name, (LINES_AT_MOST, ""))[0] for name in long}
    assert not {name: lines for name, lines in long.items() if lines > allowed[name]}, "split it by purpose"


def test_the_list_of_longer_files_holds_only_such_files() -> None:
    for name, (lines, why) in LONGER.items():
        assert len((ROOT / name).read_text(encoding="utf-8").splitlines()) > LINES_AT_MOST, name
        assert lines > LINES_AT_MOST
        assert why


def test_no_file_has_a_name_that_says_nothing() -> None:
    assert not [name_of(source) for source in SOURCES if VAGUE & set(source.stem.split("_"))]


# --- start-up -------------------------------------------------------------------------------------------


def heavy_after(code: str) -> str:
    """What of HEAVY is loaded once `code` has run in a new interpreter; its output is dropped."""
    probe = python(
        "import contextlib, io, sys\n"
        "with contextlib.redirect_stdout(io.StringIO()):\n"
        "    try:\n"
        + "".join(f"        {line}\n" for line in code.splitlines())
        + "    except SystemExit as end:\n"
        "        assert end.code in (0, None), end.code\n"
        f"print(sorted(set({HEAVY!r}) & set(sys.modules)))"
    )
    assert probe.returncode == 0, probe.stderr
    return probe.stdout.strip()


@pytest.mark.parametrize("module", BUILT_ON_START)
def test_modules_of_the_start_load_no_heavy_library(module: str) -> None:
    assert heavy_after(f"import {module}") == "[]"


@pytest.mark.parametrize("arguments", [["--version"], ["--help"], ["lint", "policies"]], ids=" ".join)
def test_light_commands_load_no_heavy_library(arguments: list[str]) -> None:
    assert heavy_after(f"from cli import main\nsys.argv = ['agentctl', *{arguments!r}]\nmain()") == "[]"


def test_everything_below_the_adapters_loads_no_heavy_library() -> None:
    floors = ("engine.domain", "engine.policy", "engine.lifecycle", "engine.ports", "engine.runtime")
    modules = [module for module in map(module_of, SOURCES) if module.startswith(floors)]
    assert {module.split(".")[1] for module in modules} == {floor.split(".")[1] for floor in floors}
    assert heavy_after("\n".join(f"import {module}" for module in modules)) == "[]"


def test_the_probe_for_heavy_libraries_sees_one() -> None:
    assert heavy_after("import sqlalchemy") == "['sqlalchemy']"


# --- pages ----------------------------------------------------------------------------------------------

PAGES = [
    *sorted((ROOT / "docs").glob("*.md")),
    ROOT / "CONTRIBUTING.md",
    ROOT / ".github/pull_request_template.md",
]
PATH = re.compile(r"`((?:engine|tests|docs|policies|tool_specs|examples|benchmarks|\.ci)/[\w./*-]*|cli\.py)`")

COMMAND = re.compile(r"`agentctl ([a-z]+(?:-[a-z]+)*)")


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_paths_named_in_a_page_exist(page: Path) -> None:
    named = set(PATH.findall(page.read_text(encoding="utf-8")))
    assert not sorted(path for path in named if not list(ROOT.glob(path.rstrip("/"))))


def test_commands_named_in_a_page_exist() -> None:
    named = {word for page in PAGES for word in COMMAND.findall(page.read_text(encoding="utf-8"))}
    assert {"run", "lint", "log"} <= named
    for command in sorted(named):
        asked = python(
            f"from cli import main; import sys; sys.argv = ['agentctl', {command!r}, '--help']; main()"
        )
        assert asked.returncode == 0, f"`agentctl {command}`: {asked.stdout}{asked.stderr}"


def test_every_event_kind_is_in_the_ownership_table() -> None:
    table = (ROOT / "docs/ownership.md").read_text(encoding="utf-8")
    assert not [kind for kind in BODIES if f"`{kind}`" not in table]


def test_every_exit_code_of_an_error_is_in_the_table_of_exit_codes() -> None:
    table = (ROOT / "docs/exit-codes.md").read_text(encoding="utf-8")
    for name, error in inspect.getmembers(errors, inspect.isclass):
        if issubclass(error, errors.AgentctlError) and error is not errors.AgentctlError:
            assert f"\n| {error.exit_code} |" in table, name
            assert f"`{name}`" in table, name
