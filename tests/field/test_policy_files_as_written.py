"""Public reports about policies that did not mean what their author read in them."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path

import pytest

from engine.domain.calls import Refusal
from engine.domain.errors import PolicyInvalid, SourceError
from engine.domain.facts import Facts
from engine.policy.compiler import load_policy
from engine.policy.decision import Verdict, decide_restricted
from engine.policy.linter import lint
from engine.policy.source import parse
from engine.policy.view import for_call, tool_facts
from tests.field.policy_files import codes, decided, files, policy


def verdict(by, tool, **args):
    found = decided(by, tool, args)
    return found if isinstance(found, Refusal) else found.verdict


# --- anthropics/claude-code#6699, #22907: a deny on a path never matches because of how it is anchored -----


@pytest.mark.parametrize("path", [".env", "./.env", "app/.env", "app//.env", "./app/.env", ".env/a"])
def test_a_denied_path_is_denied_however_it_is_written(path: str) -> None:
    assert verdict(policy(), "read_file", path=path) is Verdict.DENY


@pytest.mark.parametrize("path", ["/app/.env", "sub/../.env", "../.env", "a/../../.env", "", "x\0.env"])
def test_a_path_that_is_not_below_the_root_is_refused_before_any_rule(path: str) -> None:
    assert isinstance(verdict(policy(), "read_file", path=path), Refusal)


def test_a_name_that_only_begins_alike_is_another_file() -> None:
    assert verdict(policy(), "read_file", path=".env.local") is Verdict.ALLOW


@pytest.mark.parametrize("folder", ["/app", "../secret", "a/../b"])
def test_a_rule_over_a_folder_that_no_path_can_be_in_is_an_error(folder: str) -> None:
    assert codes(("under(args.path, '.env')", f"under(args.path, '{folder}')")) == {"C106"}


# --- anthropics/claude-code#36637, charmbracelet/crush#3425: a prefix lets chained commands through --------


@pytest.mark.parametrize(
    "argv",
    [
        ["git status && rm -r x"],
        ["git", "status && rm -r x"],
        ["git", "status;x"],
        ["git", "status\nrm"],
        ["git", "status-x"],
        ["git", "-c", "alias.status=!sh", "status"],
        ["GIT_SSH=x", "git", "status"],
        ["$(x)", "status"],
        ["git"],
        [],
    ],
)
def test_only_the_exact_words_of_a_command_are_permitted(argv: list[str]) -> None:
    found = verdict(policy(), "run_command", argv=argv)
    assert isinstance(found, Refusal) or found is Verdict.DENY
    assert verdict(policy(), "run_command", argv=["git", "status"]) is Verdict.HUMAN


def test_a_command_line_in_one_string_is_no_argv() -> None:
    assert isinstance(verdict(policy(), "run_command", argv="git status"), Refusal)


@pytest.mark.parametrize(("type_", "code"), [("text, max_len: 200", "S301"), ("id", "C107")])
def test_a_free_command_line_cannot_be_allowed_by_its_prefix(type_: str, code: str) -> None:
    old = "size(args.argv) == 2 && args.argv[0] == 'git' && args.argv[1] == 'status'"
    found = codes(
        ("argv: {type: argv, max_items: 8}", f"line: {{type: {type_}}}"),
        (old, "args.line.startsWith('git status')"),
    )
    assert code in found


# --- anthropic-experimental/sandbox-runtime#434, garamsh/gagent#548: a misspelled key protects nothing ------


@pytest.mark.parametrize(
    ("old", "new", "key"),
    [
        ("gates: {", "deny_tool: [run_command]\ngates: {", "deny_tool"),
        ("permissions:\n", "Permissions:\n", "Permissions"),
        ("gates: {", "hide: [{id: h, tools: [read_file]}]\ngates: {", "hide"),
        ("gates: {", "x-notes: mine\ngates: {", "x-notes"),
        ("{id: no-secrets, effect", "{id: no-secrets, effects", "effects"),
        ("owner: me\n", "owner: me\nextends: other.yaml\n", "extends"),
    ],
)
def test_an_unknown_key_is_an_error_at_its_place_and_nothing_runs(old: str, new: str, key: str) -> None:
    texts = files((old, new))
    with pytest.raises(PolicyInvalid) as caught:
        load_policy("files.policy.yaml", texts)
    (found,) = [each for each in caught.value.diagnostics if each.code == "Y201"]
    assert f"`{key}`" in found.message
    line = texts[found.location.file].splitlines()[found.location.line - 1]
    assert line[found.location.column - 1 :].startswith(key)


# --- woojubb/robota#2023: a corrupt policy behaves like no policy ------------------------------------------


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in files().items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    overlay = "agentctl: overlay/v1\nid: org\nversion: 1\nowner: security\npermissions:\n"
    overlay += '  - {id: no-commands, effect: deny, tools: ["kind:write"]}\n'
    (tmp_path / "org.overlay.yaml").write_text(overlay, encoding="utf-8")
    path = tmp_path / "files.policy.yaml"
    text = path.read_text(encoding="utf-8").replace(
        "owner: me\n", "owner: me\noverlays: [org.overlay.yaml]\n"
    )
    path.write_text(text, encoding="utf-8")
    return tmp_path


def broken(path: Path, how: str) -> None:
    text = path.read_text(encoding="utf-8")
    match how:
        case "cut in half":
            path.write_text(text[: text.rindex("{") + 5], encoding="utf-8")
        case "empty":
            path.write_bytes(b"")
        case "only comments":
            path.write_text("# nothing here\n", encoding="utf-8")
        case "utf-16":
            path.write_bytes(text.encode("utf-16"))
        case "latin-1":
            path.write_bytes(f"{text}# sécurité\n".encode("latin-1"))
        case "byte order mark":
            path.write_bytes(b"\xef\xbb\xbf" + text.encode())
        case "a folder":
            path.unlink()
            path.mkdir()
        case "missing":
            path.unlink()


HOWS = [
    "cut in half",
    "empty",
    "only comments",
    "utf-16",
    "latin-1",
    "byte order mark",
    "a folder",
    "missing",
]


@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("which", ["files.policy.yaml", "org.overlay.yaml", "files.tools.yaml"])
def test_a_file_that_cannot_be_read_stops_everything_that_depends_on_it(
    folder: Path, which: str, how: str
) -> None:
    load_policy(folder / "files.policy.yaml")
    broken(folder / which, how)
    with pytest.raises((PolicyInvalid, SourceError)) as caught:
        load_policy(folder / "files.policy.yaml")
    told = [
        str(caught.value),
        *(str(each.location) + each.message for each in getattr(caught.value, "diagnostics", ())),
    ]
    assert any(which in line for line in told)


# --- cerbos/cerbos#3233: a list was merged where an override was written ------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "a: &b {x: 1}\nc: *b\n",
        "a: &b {x: 1}\nc:\n  <<: *b\n  y: 2\n",
        "a: 1\nc:\n  <<: {x: 1}\n  <<: {y: 2}\n",
        "a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]\n",
        "a: &b 1\n---\nc: *b\n",
    ],
)
def test_reuse_inside_a_file_is_refused(text: str) -> None:
    assert {each.code for each in parse("x.yaml", text).faults} <= {"Y104", "Y103", "Y101"}
    assert parse("x.yaml", text).faults


# --- home-assistant/core#69955: NO (Norway) becomes false ---------------------------------------------------


@pytest.mark.parametrize(
    ("written", "other"),
    [
        ("NO", "false"),
        ("on", "true"),
        ("22:22", "1342"),
        ("12:30:45", "45045"),
        ("0755", "493"),
        ("1_000", "1000"),
    ],
)
def test_a_word_that_readers_of_yaml_disagree_about_must_be_quoted(written: str, other: str) -> None:
    (found,) = parse("x.yaml", f"countries: [SE, {written}]\n").faults
    assert found.code == "Y205"
    assert other in found.message + found.help
    assert f'"{written}"' in found.help
    assert parse("x.yaml", f'countries: [SE, "{written}"]\n').faults == []


def test_a_version_and_a_money_value_keep_their_digits() -> None:
    assert codes(("version: 1\n", "version: 1.10\n")) == {"Y205"}
    assert codes(('cost_usd: "0.50"', "cost_usd: 0.50")) == {"Y205"}


# --- vercel/ai#19978: an answer in an unknown dialect let the tool run ---------------------------------------


@pytest.mark.parametrize("effect", ["alow", "{allow: yes}", "[]", "1", "~", "true", "Allow", '""'])
def test_anything_but_the_four_effects_is_an_error(effect: str) -> None:
    texts = files(("effect: deny", f"effect: {effect}"))
    with pytest.raises(PolicyInvalid):
        load_policy("files.policy.yaml", texts)


# --- apache/casbin#740, anomalyco/opencode#7041, MoonshotAI/kimi-code#1901: which rule wins? -----------------

SIX = """\
  - {id: read, effect: allow, roles: [dev], tools: [read_file]}
  - {id: read-docs, effect: allow, roles: [dev], tools: [read_file], when: "under(args.path, 'docs/')"}
  - {id: read-again, effect: allow, roles: [dev], tools: [read_file, run_command], when: "run.turn >= 0"}
  - id: look-first
    effect: require
    tools: [read_file]
    when: "under(args.path, 'docs/internal')"
    approval: {by: {roles: [dev]}, expires: 1h}
  - {id: never, effect: deny, tools: [read_file], when: "under(args.path, 'docs/internal/pay')"}
  - {id: not-env, effect: deny, tools: [read_file], when: "under(args.path, '.env')"}
"""
WANTED = {
    "src/a.py": Verdict.ALLOW,
    "docs/a.md": Verdict.ALLOW,
    "docs/internal/a.md": Verdict.HUMAN,
    "docs/internal/pay/a.md": Verdict.DENY,
    ".env": Verdict.DENY,
}


def test_no_order_of_the_rules_changes_a_decision() -> None:
    start = "permissions:\n"
    before, _, rest = files()["files.policy.yaml"].partition(start)
    after = rest[rest.index("gates:") :]
    made = load_policy("files.policy.yaml", {**files(), "files.policy.yaml": before + start + SIX + after})
    for order in itertools.permutations(made.rules_of["read_file"]):
        shuffled = replace(made, rules_of={**made.rules_of, "read_file": order})
        assert {path: verdict(shuffled, "read_file", path=path) for path in WANTED} == WANTED


# --- bbvch-ai/aihub-core#1439: a wildcard form that the engine does not support is skipped --------------------


@pytest.mark.parametrize("effect", ["allow", "deny"])
@pytest.mark.parametrize(
    "pattern",
    ['"read_*"', '"read*"', '"*_file"', '"**"', '"read.?"', '"[ab]"', '"kind:raed"', "*", '"effect:x.*"'],
)
def test_a_pattern_that_selects_nothing_or_is_none_is_an_error_in_every_rule(
    pattern: str, effect: str
) -> None:
    rule = f"  - {{id: w, effect: {effect}, roles: [dev], tools: [{pattern}]}}\ngates: {{"
    assert codes(("gates: {", rule)) & {"Y101", "Y104", "Y205", "R201", "R207", "P205"}


def test_a_tool_name_is_never_a_pattern() -> None:
    assert "R201" in codes(("tools: [read_file]}\n  - id: run", "tools: [read_fil]}\n  - id: run"))


# --- can1357/oh-my-pi#8693: running sessions ignore a tightened policy ---------------------------------------


def test_the_newest_policy_restricts_at_once_and_never_widens() -> None:
    old = policy()
    tighter = policy(
        (
            "{id: read, effect: allow, roles: [dev], tools: [read_file]}",
            "{id: none, effect: deny, tools: [read_file]}",
        )
    )
    wider = policy(
        (
            ", when: \"under(args.path, '.env') || under(args.path, 'app/.env')\"",
            ", when: \"under(args.path, 'x')\"",
        )
    )
    facts = for_call(
        Facts(principal={"id": "d1", "roles": ["dev"]}),
        tool_facts(old.tools["read_file"]),
        {"path": "README.md"},
    )
    secret = replace(facts, args={"path": ".env"})
    assert decide_restricted([old], "read_file", [facts]).verdict is Verdict.ALLOW
    assert decide_restricted([old, tighter], "read_file", [facts, facts]).verdict is Verdict.DENY
    assert decide_restricted([old, wider], "read_file", [secret, secret]).verdict is Verdict.DENY


# --- pulumi/pulumi-policy-opa#42: a misnamed rule is a helper and never runs ----------------------------------


def test_rules_under_a_key_that_is_not_read_are_an_error() -> None:
    assert "Y201" in codes(("gates: {", "rule:\n  - {id: x, effect: deny, tools: [read_file]}\ngates: {"))


def test_a_policy_without_rules_does_not_pass_in_silence(folder: Path) -> None:
    path = folder / "files.policy.yaml"
    text = path.read_text(encoding="utf-8")
    start, end = text.index("permissions:"), text.index("gates:")
    path.write_text(f"{text[:start]}permissions: []\n{text[end:]}", encoding="utf-8")
    assert lint([folder]).diagnostics


def test_a_file_that_no_policy_names_is_checked_with_its_folder(folder: Path) -> None:
    stray = folder / "stray.overlay.yaml"
    stray.write_text(
        "agentctl: overlay/v1\nid: stray\nversion: 1\nowner: x\npermisions: []\n", encoding="utf-8"
    )
    report = lint([folder / "files.policy.yaml", folder])
    assert ("Y201", "stray.overlay.yaml") in {
        (each.code, Path(each.location.file).name) for each in report.diagnostics
    }
