"""Linting files and folders: what is covered, comments that silence, levels, levels that end."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from datetime import date
from pathlib import Path

import pytest

from engine.domain.diagnostics import Severity
from engine.domain.errors import PolicyInvalid, SourceError
from engine.policy.codes import CODES
from engine.policy.documents.project import load_project, read_project
from engine.policy.linter import LintReport, lint
from engine.policy.schemas import SCHEMAS, file_name, schema, schema_text
from engine.policy.source import parse
from engine.policy.suppressions import read_suppressions
from tests.policy.examples import ROOT

TODAY = date(2026, 6, 1)
REPO = ROOT.parent.parent


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("fund", "mini", "ops", "org", "retail"):
        shutil.copytree(ROOT / name, tmp_path / "policies" / name)
    monkeypatch.chdir(tmp_path)
    return tmp_path / "policies"


def edit(file: Path, old: str, new: str) -> None:
    text = file.read_text(encoding="utf-8")
    assert old in text
    file.write_text(text.replace(old, new, 1), encoding="utf-8")


def codes(report: LintReport) -> list[str]:
    return [found.code for found in report.diagnostics]


def raised_by_the_loader(report: LintReport) -> list[str]:
    """Findings of the loader and compiler; what the rules of the catalogue think of an example is theirs."""
    return [code for code in codes(report) if code[0] in "YCRL"]


def test_a_folder_is_checked_whole_and_each_file_once(folder: Path) -> None:
    edit(folder / "org/org-baseline.overlay.yaml", "effect: require", "effect: requir")
    report = lint(["policies"], today=TODAY)
    assert raised_by_the_loader(report) == ["Y204"]
    (found,) = [each for each in report.diagnostics if each.code == "Y204"]
    assert found.location.file == "policies/org/org-baseline.overlay.yaml"
    assert (report.files, report.rules, report.conditions) == (16, 24, 46)


@pytest.mark.parametrize(
    ("file", "old", "new", "code"),
    [
        ("mini/notes.tools.yaml", "kind: read", "kind: raed", "Y204"),
        ("mini/notes.tools.yaml", "!result.exists", "!result.exist", "C103"),
        ("org/org-baseline.overlay.yaml", "run.read_untrusted && ", "run.read_untrusted &&& ", "C101"),
        ("mini/notes.test.yaml", "policy: notes.policy.yaml", "policy: note.policy.yaml", "R210"),
        ("mini/notes.test.yaml", "outcome: confirmed", "outcome: accepted", "Y204"),
    ],
)
def test_a_file_of_another_kind_is_checked_alone(
    folder: Path, file: str, old: str, new: str, code: str
) -> None:
    assert not raised_by_the_loader(lint([folder / file], today=TODAY))
    edit(folder / file, old, new)
    assert raised_by_the_loader(lint([folder / file], today=TODAY)) == [code]


def test_a_case_that_expects_nothing_is_an_error(folder: Path) -> None:
    file = folder / "new.test.yaml"
    file.write_text(
        "agentctl: test/v1\npolicy: mini/notes.policy.yaml\ncases:\n"
        "  - {id: a, given: {principal: {id: u, roles: [user]}}, turns: [{propose: [{call: find_note}]}]}\n"
    )
    assert codes(lint([file])) == ["Y202"]


def test_a_path_that_cannot_be_read_is_an_error() -> None:
    with pytest.raises(SourceError, match="there is no file"):
        lint(["nowhere.yaml"])


@pytest.mark.parametrize(
    ("old", "new"),
    [("agentctl:", '"agentctl":'), ("agentctl:", "agentctl :"), ("agentctl: ", "agentctl:\n  ")],
)
def test_a_policy_is_checked_however_its_first_key_is_written(folder: Path, old: str, new: str) -> None:
    file = folder / "mini/notes.policy.yaml"
    edit(file, old, new)
    edit(file, "find_note]", "find_nots]")
    assert "R201" in codes(lint([file], today=TODAY))
    assert lint(["policies"], today=TODAY).rules == 25


def test_a_file_that_is_no_text_is_a_finding_and_the_others_are_checked(folder: Path) -> None:
    (folder / "latin.yaml").write_bytes("# caf\u00e9".encode("latin-1"))
    (folder / "mark.yaml").write_bytes(b"\xef\xbb\xbfagentctl: tools/v1")
    edit(folder / "mini/notes.policy.yaml", "find_note]", "find_nots]")
    found = [each for each in lint(["policies"], today=TODAY).diagnostics if each.code in ("Y101", "R201")]
    assert [(each.code, each.location.file) for each in found] == [
        ("Y101", "policies/latin.yaml"),
        ("Y101", "policies/mark.yaml"),
        ("R201", "policies/mini/notes.policy.yaml"),
    ]


def test_a_pipe_in_a_folder_is_not_waited_for(folder: Path) -> None:
    os.mkfifo(folder / "pipe.yaml")
    assert lint(["policies"], today=TODAY).files == 16


def test_cases_are_those_of_the_policy_that_names_them(folder: Path) -> None:
    shutil.copy(folder / "mini/notes.policy.yaml", folder / "mini/other.policy.yaml")
    assert "Y205" not in codes(lint([folder / "mini/other.policy.yaml"], today=TODAY))
    edit(folder / "mini/other.policy.yaml", "id: notes", "id: other")
    (found,) = [
        each
        for each in lint([folder / "mini/other.policy.yaml"], today=TODAY).diagnostics
        if each.code == "Y205"
    ]
    assert (Path(found.location.file).name, found.location.line) == ("notes.test.yaml", 2)
    assert "other.policy.yaml` names them" in found.message


@pytest.mark.parametrize(
    ("kind", "says"), [("script/v1", "--model scripted/FILE"), ("project/v1", "`agentctl.yaml`")]
)
def test_a_document_in_the_wrong_place_is_told_where_it_belongs(folder: Path, kind: str, says: str) -> None:
    (folder / "mini/notes.tools.yaml").write_text(f"agentctl: {kind}\n")
    (found,) = [
        each
        for each in lint([folder / "mini/notes.policy.yaml"], today=TODAY).diagnostics
        if each.code == "Y105"
    ]
    assert found.message == f"this is a {kind} document"
    assert says in found.help


def test_findings_at_one_place_have_one_order(folder: Path) -> None:
    """A set of findings is in the order of its hashes, which differs from process to process."""
    file = folder / "empty.policy.yaml"
    file.write_text("agentctl: policy/v1\n")
    said = [each.message for each in lint([file], today=TODAY).diagnostics if each.code == "Y202"]
    assert said == sorted(said)
    assert len(said) == 9
    assert codes(lint([file], today=TODAY)) == ["T101", *["Y202"] * 9]


def test_an_empty_folder_reports_no_file(tmp_path: Path) -> None:
    assert lint([tmp_path]).files == 0


# --- suppressions -----------------------------------------------------------------------------------------

GOOD = '# agentctl: ignore[C108] because="checked by hand" until=2026-12-31'


def test_a_comment_silences_findings_of_its_line(folder: Path) -> None:
    file = folder / "retail/policies/retail-order.policy.yaml"
    edit(file, "args.template == 'order_question'", "args.order == 'o1'")
    assert raised_by_the_loader(lint([file], today=TODAY)) == ["C108"]
    edit(file, '    when: "args.order', f'    {GOOD}\n    when: "args.order')
    report = lint([file], today=TODAY)
    assert raised_by_the_loader(report) == []
    assert [found.code for found in report.silenced] == ["C108"]
    assert raised_by_the_loader(lint([file], today=TODAY, audit=True)) == ["C108"]
    assert raised_by_the_loader(lint([file], today=date(2027, 1, 1))) == ["L002", "C108"]


def test_a_comment_that_silences_nothing_is_a_finding(folder: Path) -> None:
    file = folder / "mini/notes.policy.yaml"
    edit(file, "owner: me", f"owner: me {GOOD}")
    assert raised_by_the_loader(lint([file], today=TODAY)) == ["L001"]


@pytest.mark.parametrize(
    "comment",
    [
        "# agentctl: ignore[W213]",
        '# agentctl: ignore[W213] because="x"',
        "# agentctl: ignore[W213] until=2026-12-31",
        '# agentctl: ignore[W213] because=" " until=2026-12-31',
        '# agentctl: ignore[W213] because="x" until=soon',
        '# agentctl: ignore because="x" until=2026-12-31',
        '# agentctl: ignore[W999] because="x" until=2026-12-31',
        '# agentctl: ignore[P205] because="x" until=2026-12-31',
        '# agentctl: ignore[W213] because="x" until=2026-05-31',
    ],
)
def test_a_comment_needs_a_known_code_a_reason_and_a_day_that_has_not_passed(comment: str) -> None:
    found, faults = read_suppressions(parse("f.yaml", f"a: 1 {comment}\n"), TODAY)
    assert not found
    assert {fault.code for fault in faults} == {"L002"}


def test_a_comment_may_use_names_and_is_not_looked_for_in_text() -> None:
    named = '# agentctl: ignore[stale-prone-write, C108] because="x" until=2026-12-31'
    found, faults = read_suppressions(parse("f.yaml", f"a: '{GOOD}'\n{named}\n\n# more\nb: 1\n"), TODAY)
    assert not faults
    assert [(item.codes, item.line) for item in found] == [({"W213", "C108"}, 5)]


# --- the project file -------------------------------------------------------------------------------------

PROJECT = """\
local: {id: ann, roles: [analyst], attrs: {desk: funds}}
task_defaults: {fund-research: {portfolio_id: p1}}
handlers: [examples]
db: runs.db
lint:
  unguarded-optional: {level: "off", owner: ann, until: 2026-12-31, because: "moving"}
secrets: {forge: {env: FORGE_TOKEN}}
prices: {openai/gpt-5: {input: "1.25", output: "10.00"}}
limits: {retail-order: {small_order_minor: 8000}}
"""


def test_the_project_file_is_found_above_the_folder(tmp_path: Path) -> None:
    (tmp_path / "agentctl.yaml").write_text(PROJECT)
    (tmp_path / "a/b").mkdir(parents=True)
    project = load_project(tmp_path / "a/b")
    assert project.root == tmp_path.resolve()
    assert project.local is not None
    assert (project.local.id, project.db, project.handlers) == ("ann", "runs.db", ("examples",))
    assert project.levels["C108"].until == date(2026, 12, 31)
    assert project.limits == {"retail-order": {"small_order_minor": 8000}}


def test_without_a_project_file_there_are_defaults(tmp_path: Path) -> None:
    assert load_project(tmp_path).local is None


def test_a_fault_in_the_project_file_has_a_place(tmp_path: Path) -> None:
    file = tmp_path / "agentctl.yaml"
    file.write_text("lint: {W999: {level: off, owner: a}}\nsecrets: {x: {}}\nhandler: []\n")
    with pytest.raises(PolicyInvalid) as caught:
        read_project(file)
    found = [(each.code, each.location.line) for each in caught.value.diagnostics]
    assert found == [("Y202", 1), ("Y205", 1), ("Y205", 2), ("Y201", 3)]
    assert [(each.code, each.location.line) for each in lint([file]).diagnostics] == found


def test_a_level_lowers_a_finding_until_its_day(folder: Path, tmp_path: Path) -> None:
    file = folder / "retail/policies/retail-order.policy.yaml"
    edit(file, "args.template == 'order_question'", "args.order == 'o1'")
    (tmp_path / "agentctl.yaml").write_text(PROJECT)
    levels = load_project(tmp_path).levels
    assert raised_by_the_loader(lint([file], levels=levels, today=TODAY)) == []
    assert raised_by_the_loader(lint([file], levels=levels, today=date(2027, 1, 1))) == ["C108"]


# --- schemas and the catalogue ----------------------------------------------------------------------------


@pytest.mark.parametrize("name", SCHEMAS)
def test_the_committed_schema_is_that_of_the_models(name: str) -> None:
    """`engine.policy.schemas.write_schemas(Path("docs/schemas"))` writes them again."""
    assert (REPO / "docs/schemas" / file_name(name)).read_text(encoding="utf-8") == schema_text(name)
    assert "anyOf" not in schema_text(name)
    assert "oneOf" not in schema_text(name)


def test_an_editor_is_not_offered_a_key_that_no_rule_of_an_overlay_may_have() -> None:
    rule = schema("overlay")["$defs"]["OverlayRulePart"]
    assert {"approval", "fresh", "roles"} <= set(rule["properties"])
    assert not {"needs", "unattended"} & set(rule["properties"])
    assert set(schema("policy")["$defs"]["RulePart"]["properties"]) >= {"needs", "unattended"}


def test_names_of_findings_are_unique() -> None:
    assert len({code.name for code in CODES.values()}) == len(CODES)


def test_linting_loads_neither_the_template_engine_nor_events_nor_a_model_library() -> None:
    code = (
        "import sys; from engine.policy.linter import lint; lint(['tests/policies']);"
        "heavy = {'jinja2', 'litellm', 'anthropic', 'sqlalchemy', 'engine.domain.events'} & set(sys.modules);"
        "sys.exit(', '.join(heavy) or 0)"
    )
    ran = subprocess.run([sys.executable, "-c", code], cwd=REPO, capture_output=True, text=True, timeout=60)
    assert ran.returncode == 0, ran.stderr


def test_severities_are_counted(folder: Path) -> None:
    edit(folder / "mini/notes.policy.yaml", "turns: 20", "turns: x")
    assert lint([folder / "mini"], today=TODAY).count(Severity.ERROR) == 1
