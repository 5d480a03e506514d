"""What a newcomer reads is so: blocks are run, paths and tests that are named exist, and nothing is left out.

`pytest tests/test_docs.py --update-golden` writes the output of the blocks anew; then read the diff.
"""

from __future__ import annotations

import json
import re
import runpy
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from cli import MODULES, main
from engine.domain import errors
from engine.domain.events import BODIES
from engine.policy.codes import CODES
from engine.policy.documents.kinds import GATES
from tests.docs.pages import ROOT, Block, Page, Step, read_page, rewrite, written
from tests.docs.session import Session, agrees, merged
from tests.rules.test_rules import LATER

README = ROOT / "README.md"
PAGES = [
    README,
    ROOT / "CONTRIBUTING.md",
    ROOT / "benchmarks/README.md",
    *sorted((ROOT / "docs").glob("*.md")),
]
NAMED_PATH = re.compile(
    r"`((?:engine|tests|docs|policies|tool_specs|examples|benchmarks|\.ci)/[\w./*-]+|cli\.py|[\w-]+\.lock)`"
)
MADE_IN_THE_TOUR = {"policies/mine.policy.yaml"}
NAMED_TEST = re.compile(r"`(test_\w+)`")
LINK = re.compile(r"\]\((?!https?:)([^)#]*)(?:#([^)]*))?\)")
TEST = re.compile(r"^ *(?:async )?def (test_\w+)\(", re.MULTILINE)


@pytest.fixture
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What a fresh clone holds, as far as the pages use it; the working directory."""
    for name in ("policies", "tool_specs", "examples", "tests/policies"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "agentctl.yaml", tmp_path)
    for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def plays(page: Page) -> Iterator[tuple[Block, Step]]:
    """Every command of a page with its block: console steps, and the `agentctl` at the end of an install line."""
    for block, after in zip(page.blocks, [*page.blocks[1:], None], strict=True):
        for step in block.steps:
            yield block, step
        installs = block.language == "sh" and re.search(r"\.venv/bin/(agentctl .*)$", block.lines[0])
        if installs and after is not None and after.language == "text":
            yield after, Step(installs[1], after.lines)


def test_what_the_readme_shows_is_what_is_printed(clone: Path, request: pytest.FixtureRequest) -> None:
    page, session = read_page(README), Session(clone)
    update = request.config.getoption("--update-golden")
    for block, step in plays(page):
        printed = session.play(step)
        if update:
            step.output = merged(step.output, printed)
            block.lines = written(block.steps) if block.steps else step.output
        else:
            assert agrees(step.output, printed), "\n".join(
                [
                    f"$ {step.command}",
                    *printed,
                    "",
                    f"is not what README.md:{block.start} shows:",
                    *step.output,
                ]
            )
    if update:
        rewrite(page)


def test_the_lines_that_embed_a_run_are_run(
    clone: Path, capsys: pytest.CaptureFixture[str], request: pytest.FixtureRequest
) -> None:
    page = read_page(README)
    (code,) = (block for block in page.blocks if block.language == "python")
    shown = page.blocks[page.blocks.index(code) + 1]
    text = (ROOT / "examples/embed.py").read_text(encoding="utf-8")
    runpy.run_path(str(ROOT / "examples/embed.py"))
    lines = text[text.index("from collections") :].rstrip().split("\n")
    printed = capsys.readouterr().out.rstrip().split("\n")
    if request.config.getoption("--update-golden"):
        code.lines, shown.lines = lines, printed
        rewrite(page)
    assert (code.lines, shown.lines) == (lines, printed)


def example_commands() -> list[str]:
    """The Runs that the page of the example agents starts, each on one line."""
    blocks = read_page(ROOT / "docs/examples.md").blocks
    lines = "\n".join("\n".join(block.lines) for block in blocks).replace("\\\n", "").split("\n")
    return [re.sub(" +", " ", line) for line in lines if line.startswith("agentctl run")]


def agent_of(command: str) -> str:
    return command.split("/")[1].split(".")[0]


@pytest.mark.parametrize("command", example_commands(), ids=agent_of)
def test_a_run_of_the_examples_page_ends_well_or_waits_for_somebody(command: str, clone: Path) -> None:
    (*said, code) = Session(clone).play(Step(f"{command} --quiet; echo $?", []))
    assert code in ("0", "5"), "\n".join([command, *said])


def test_the_two_commands_name_lock_files_that_pin_every_package_by_hash() -> None:
    lines = [block.lines[0] for block in read_page(README).blocks if block.language == "sh"]
    locks = [re.search(r"-r (\S+)", line) for line in lines]
    assert [lock[1] for lock in locks if lock] == ["requirements.lock", "requirements-dev.lock"]
    for lock in locks:
        assert lock is not None
        text = (ROOT / lock[1]).read_text(encoding="utf-8")
        pins = re.findall(r"^(\S+)==\S+(.*(?:\n +.*)*)", text, re.MULTILINE)
        assert len(pins) > 40
        assert [name for name, rest in pins if "--hash=sha256:" not in rest] == []
        assert not re.search(r"^(?![#\s])(?!\S+==)", text.strip(), re.MULTILINE)


# --- what a page names is there ---------------------------------------------------------------------------


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_paths_links_and_tests_named_in_a_page_exist(path: Path) -> None:
    prose = read_page(path).prose
    named = set(NAMED_PATH.findall(prose))
    absent = {each for each in named if not list(ROOT.glob(each.rstrip("/")))}
    assert sorted(absent - MADE_IN_THE_TOUR) == []
    for target, anchor in LINK.findall(prose):
        file = (path.parent / target).resolve() if target else path
        assert file.exists(), f"{path.name} links to `{target}`"
        if anchor:
            assert anchor in anchors(file), f"{path.name} links to `{target}#{anchor}`"
    assert sorted(set(NAMED_TEST.findall(prose)) - all_tests()) == []


def anchors(file: Path) -> set[str]:
    headings = re.findall(r"^#+ (.*)$", file.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def all_tests() -> set[str]:
    files = (path for path in (ROOT / "tests").rglob("*.py") if "node_modules" not in path.parts)
    return {name for path in files for name in TEST.findall(path.read_text(encoding="utf-8"))}


def test_every_page_is_in_the_index() -> None:
    index = (ROOT / "docs/README.md").read_text(encoding="utf-8")
    pages = [path.name for path in sorted((ROOT / "docs").glob("*.md")) if path.name != "README.md"]
    assert [name for name in [*pages, "rules/README.md"] if f"]({name})" not in index] == []


# --- documented or red ------------------------------------------------------------------------------------


def test_every_command_and_option_is_in_the_reference() -> None:
    page = (ROOT / "docs/cli.md").read_text(encoding="utf-8")
    readme = README.read_text(encoding="utf-8")
    for name in MODULES:
        command = main.get_command(click.Context(main), name)
        assert command is not None
        assert f"`agentctl {name}`" in readme, f"README.md has no `agentctl {name}`"
        options = [
            word
            for each in command.params
            if isinstance(each, click.Option) and not each.hidden
            for word in each.opts
        ]
        assert [word for word in options if not re.search(rf"{re.escape(word)}\b", page)] == [], name


def test_every_command_of_the_readme_exists() -> None:
    text = README.read_text(encoding="utf-8")
    named = set(re.findall(r"(?:`|^\$ |/)agentctl ([a-z-]+)", text, re.MULTILINE))
    assert {"run", "why", "lint"} <= named
    assert named <= set(MODULES)


def test_every_event_kind_gate_and_error_is_on_a_page() -> None:
    ownership = (ROOT / "docs/ownership.md").read_text(encoding="utf-8")
    assert [kind for kind in BODIES if f"`{kind}`" not in ownership] == []
    pages = "\n".join(path.read_text(encoding="utf-8") for path in PAGES)
    implicit = ("no_unsettled_calls", "no_pending_approvals", "no_unknown_effects", "run_may_end")
    assert [gate for gate in (*implicit, *GATES) if f"`{gate}" not in pages] == []
    exits = (ROOT / "docs/exit-codes.md").read_text(encoding="utf-8")
    readme = README.read_text(encoding="utf-8")
    for error in vars(errors).values():
        if isinstance(error, type) and issubclass(error, errors.AgentctlError):
            code = f"\n| {error.exit_code} |"
            assert code in exits, error.__name__
            assert code in readme, error.__name__


def test_every_benchmark_is_on_its_page() -> None:
    page = (ROOT / "benchmarks/README.md").read_text(encoding="utf-8")
    found = [path.stem for path in sorted((ROOT / "benchmarks").glob("*.py")) if path.stem != "__init__"]
    assert [name for name in found if f"`python -m benchmarks.{name}`" not in page] == []


def test_every_rule_has_a_page() -> None:
    index = (ROOT / "docs/rules/README.md").read_text(encoding="utf-8")
    listed = [code for code in CODES if code not in LATER]
    assert [code for code in listed if f"({code}.md)" not in index] == []
    assert [code for code in listed if not (ROOT / f"docs/rules/{code}.md").is_file()] == []


@pytest.mark.parametrize("document", ["policy", "tools", "overlay", "test", "project"])
def test_every_key_of_a_document_is_on_the_page_of_the_language(document: str) -> None:
    page = (ROOT / "docs/policy-language.md").read_text(encoding="utf-8")
    words = {word for code in re.findall(r"`([^`]+)`", page) for word in re.findall(r"\w+", code)}
    schema = json.loads((ROOT / f"docs/schemas/{document}.v1.json").read_text(encoding="utf-8"))
    assert sorted(keys_of(schema) - words) == []


def keys_of(schema: object) -> set[str]:
    """The names of all properties anywhere in a JSON Schema."""
    if isinstance(schema, list):
        return set().union(*map(keys_of, schema))
    if not isinstance(schema, dict):
        return set()
    properties = schema.get("properties")
    own = set(properties) if isinstance(properties, dict) else set()
    return own.union(*map(keys_of, schema.values()))


def test_words_of_a_command_can_be_split_as_a_shell_would() -> None:
    """What the session here leaves to `shlex` must mean the same in a shell: no expansion but that of `$RUN`."""
    for _, step in plays(read_page(README)):
        if step.command.startswith("agentctl "):
            words = step.command.partition(" | ")[0].removesuffix("; echo $?")
            assert not re.search(r"[`*?~;&<>]|\$(?!RUN\b)", re.sub(r"'[^']*'|\"[^\"$]*\"", "", words)), words
            assert shlex.split(words)[0] == "agentctl"
