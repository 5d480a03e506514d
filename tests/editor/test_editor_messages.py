"""What an editor with yaml-language-server says of our files: nothing, or one message on the right line."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.policy.schemas import write_schemas
from tests.editor.language_server import LanguageServer, installed

ROOT = Path(__file__).parent.parent.parent
pytestmark = pytest.mark.slow

TOOLS = "tool_specs/retail.tools.yaml"
POLICY = "policies/retail-order.policy.yaml"
OVERLAY = "policies/overlays/org-baseline.overlay.yaml"
SHIPPED = sorted(
    file.relative_to(ROOT).as_posix()
    for folder, ending in (
        ("policies", "*.yaml"),
        ("tool_specs", "*.yaml"),
        ("tests/policies", "*.test.yaml"),
    )
    for file in (ROOT / folder).rglob(ending)
)
FAULTS = {
    "write without idempotency": (
        TOOLS, "    idempotency: {key: [run.id, template, order]}\n", "", "  send_email:",
        'Missing property "idempotency".',
    ),
    "cache on a write": (
        TOOLS, "    effects: [mail.send]\n", "    effects: [mail.send]\n    cache: {ttl: 1m, key: [to]}\n",
        "    cache: {ttl: 1m, key: [to]}", "Property cache is not allowed.",
    ),
    "misspelled key": (
        POLICY, 'unattended: {because: "Lapses', 'unatended: {because: "Lapses', "    unatended:",
        "Property unatended is not allowed.",
    ),
    "ask without approval": (
        POLICY, "    approval:\n      by: {roles: [shopper], same_principal: true}\n"
        "      shows: [args.to, args.template, args.order, args.message]\n      expires: 10m\n", "",
        "  - id: confirm-by-mail", 'Missing property "approval".',
    ),
    "allow in an overlay": (
        OVERLAY, "    effect: deny", "    effect: allow", "    effect: allow",
        'Value is not accepted. Valid values: "require", "deny".',
    ),
    "condition read as a tag": (
        POLICY, 'when: "principal.suspended"', "when: !principal.suspended", "    when: !principal.suspended",
        "Unresolved tag: !principal.suspended",
    ),
    "money without quotes": (
        POLICY, 'cost_usd: "0.60"', "cost_usd: 0.60", "  cost_usd: 0.60", 'Incorrect type. Expected "string".',
    ),
    "compaction of user input": (
        POLICY, "covers: [assistant_text]", "covers: [user_input]", "  compact:",
        'Value is not accepted. Valid values: "assistant_text", "read_results".',
    ),
}  # fmt: skip
"""Fault -> (file, what is replaced, by what, start of the line that is marked, the message)."""


@pytest.fixture(scope="module")
def server() -> Iterator[LanguageServer]:
    if not installed():
        pytest.skip("yaml-language-server is not here, and npm cannot fetch it")
    with LanguageServer() as running:
        yield running


@pytest.fixture(scope="module")
def schemas(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("schemas")
    write_schemas(folder)
    return folder


def opened(file: str, schemas: Path) -> str:
    """The text with a first line that names the schemas of this code; its lines keep their numbers."""
    lines = (ROOT / file).read_text(encoding="utf-8").splitlines(keepends=True)
    if lines[0].startswith("# yaml-language-server:"):
        del lines[0]
    kind = next(line for line in lines if line.startswith("agentctl: ")).split()[1].replace("/", ".")
    return f"# yaml-language-server: $schema={(schemas / kind).as_uri()}.json\n" + "".join(lines)


@pytest.mark.parametrize("file", SHIPPED)
def test_shipped_files_have_no_message(server: LanguageServer, schemas: Path, file: str) -> None:
    assert server.messages(ROOT / file, opened(file, schemas)) == []


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_gets_its_message_at_its_line(server: LanguageServer, schemas: Path, name: str) -> None:
    file, good, bad, marked, message = FAULTS[name]
    text = opened(file, schemas)
    assert text.count(good) >= 1, name
    text = text.replace(good, bad, 1)
    found = server.messages(ROOT / file, text)
    (line,) = [number for number, each in enumerate(text.splitlines(), start=1) if each.startswith(marked)]
    assert {each.line for each in found} == {line}
    assert message in [each.text for each in found]
