"""Bad input: one message with its remedy, the documented exit code, no traceback, nothing half-written."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import ROOT, Ask

NOTES = "policies/notes.policy.yaml"
NO_WRITER = ("no role `writer`", "`--as ID --role ROLE`", "`notes`: reader")
DEMO = ("--model", "scripted/scripts/notes.script.yaml")
HERE = {**os.environ, "PYTHONPATH": str(ROOT)}


def checked(said: object, code: int, *words: str) -> None:
    assert said.code == code, said  # type: ignore[attr-defined]  # a Said
    error, help_ = said.err.splitlines()[-2:]  # type: ignore[attr-defined]  # the same
    assert error.startswith("error: ")
    assert help_.startswith("  = help: ")
    assert len(help_) > len("  = help: ")
    for word in words:
        assert word in said.err, said.err  # type: ignore[attr-defined]  # the same


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (("run", "nowhere.yaml", "q"), 2, ("nowhere.yaml",)),
        (("run", NOTES), 2, ("missing argument `QUESTION`",)),
        (("run", NOTES, "q", "--modle", "x"), 2, ("there is no option `--modle`", "`--model`")),
        (("run", NOTES, "q", "--model", "scripted/none.yaml"), 2, ("none.yaml",)),
        (("run", NOTES, "  "), 2, ("the question is empty",)),
        (("run", NOTES, "q", *DEMO, "--task", "depth"), 2, ("`--task depth` is no assignment",)),
        (("run", NOTES, "q", *DEMO, "--task", "depth=full"), 2, ("depth",)),
        (
            ("run", NOTES, "q", *DEMO, "--role", "writer"),
            2,
            NO_WRITER,
        ),
        (("run", NOTES, "q", *DEMO, "--role", "raeder"), 2, ("no role `raeder`", "did you mean `reader`?")),
        (
            ("run", NOTES, "q", *DEMO, "--as", "bob"),
            4,
            ("`bob` may not start", "`--as ID --role ROLE`: reader"),
        ),
        (
            ("contract", NOTES, "--role", "writer"),
            2,
            NO_WRITER,
        ),
        (("run", NOTES, "q", *DEMO, "--grant", "documents:a=b"), 2, ("no capability `documents`",)),
        (("run", NOTES, "q", *DEMO, "--overlay", "none.yaml"), 2, ("none.yaml",)),
        (("run", NOTES, "q", *DEMO, "--db", "no/such/folder/a.db"), 2, ("no/such/folder",)),
        (("rum", NOTES, "q"), 2, ("there is no command `rum`", "did you mean `run`?")),
        (("run", NOTES, "q", *DEMO, "--overlay", NOTES), 2, ("`policies/notes.policy.yaml` is no overlay",)),
        (("run", NOTES, "q", "--model", "scripted"), 2, ("does not say what to play", "scripted/FILE")),
        (
            ("run", NOTES, "q", "--model", "scripts/notes.script.yaml"),
            2,
            ("is a file, not a model", "scripted/scripts/notes.script.yaml"),
        ),
        (("run", NOTES, "q", "--model", "nonsense"), 2, ("no known price", "check the id")),
        (("contract",), 2, ("no policy is named", "write `POLICY`, or `--run RUN`")),
        (("why", "read_note"), 2, ("no policy is named", "`POLICY TOOL`")),
        (("test", "--init"), 2, ("requires an argument", "`agentctl test --help`")),
        (("policy", "load", "nowhere.yaml"), 2, ("there is no file `nowhere.yaml`",)),
        (("policy", "load", "agentctl.yaml"), 2, ("no policy and no overlay, but project/v1",)),
        (("runs", "--db", "none.db"), 2, ("none.db",)),
        (("lint", "nowhere"), 2, ("nowhere",)),
        (("init", "."), 2, ("`.` is not empty",)),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else str(value),
)
def test_each_is_one_error_with_a_remedy(
    notes: Path, agentctl: Ask, words: tuple[str, ...], code: int, says: tuple[str, ...]
) -> None:
    checked(agentctl(*words), code, *says)


def test_an_error_is_an_object_with_json(notes: Path, agentctl: Ask) -> None:
    said = agentctl("run", "nowhere.yaml", "q", "--json")
    assert json.loads(said.out)["exit_code"] == said.code == 2
    assert json.loads(said.out)["help"]


def test_a_broken_policy_prints_its_faults_with_their_places(notes: Path, agentctl: Ask) -> None:
    policy = notes / NOTES
    policy.write_text(
        policy.read_text(encoding="utf-8").replace("effect: allow", "efect: allow"), encoding="utf-8"
    )
    said = agentctl("run", NOTES, "q", *DEMO)
    checked(
        said, 2, "error[Y201 unknown-key]: unknown key `efect`", f"--> {NOTES}:", "did you mean `effect`?"
    )
    assert not (notes / ".agentctl").exists()


def test_a_missing_handler_folder_leaves_no_database_behind(notes: Path, agentctl: Ask) -> None:
    (notes / "tools").rename(notes / "toolz")
    checked(agentctl("run", NOTES, "q", *DEMO), 2, "`handlers` names", "which is no folder", "agentctl.yaml")
    assert not (notes / ".agentctl").exists()


@pytest.mark.parametrize(
    ("file", "text", "options"),
    [
        ("tools/notes.py", "import nothing_here", DEMO),
        ("tools/notes.py", "def search_notes(other): ...", DEMO),
        ("scripts/notes.script.yaml", "agentctl: script/v1\ntuns: []", DEMO),
        ("unused.txt", "", ("--model", "scripted/nowhere.yaml")),
        ("unused.txt", "", ("--model", "nonsense")),
        ("unused.txt", "", (*DEMO, "--task", "depth=full")),
        ("unused.txt", "", (*DEMO, "--as", "bob")),
    ],
)
def test_a_run_that_cannot_start_leaves_no_database_behind(
    notes: Path, agentctl: Ask, file: str, text: str, options: tuple[str, ...]
) -> None:
    (notes / file).write_text(text, encoding="utf-8")
    checked(agentctl("run", NOTES, "q", *options), 4 if "bob" in options else 2)
    assert not (notes / ".agentctl").exists()


def test_what_a_tool_raises_is_one_line_and_its_traceback_is_for_debug(
    notes: Path, agentctl: Ask, caplog: pytest.LogCaptureFixture
) -> None:
    (notes / "tools/notes.py").write_text(
        "def search_notes(words):\n    raise ValueError('b\\x1b[31m\\nad')\n\ndef read_note(note): ...\n",
        encoding="utf-8",
    )
    with caplog.at_level("DEBUG", "agentctl"):
        agentctl("run", NOTES, "q", *DEMO)
    line, trace = [record for record in caplog.records if record.name == "agentctl.tools"]
    assert (line.levelname, trace.levelname) == ("ERROR", "DEBUG")
    said = line.getMessage()
    assert "tool search_notes raised ValueError: b\ufffd[31m ad" in said
    assert said.endswith("notes.py:2)")
    assert "Traceback" in trace.getMessage()


def test_debug_prints_what_a_tool_raised_in_full(notes: Path) -> None:
    (notes / "tools/notes.py").write_text(
        "def search_notes(words):\n    raise ValueError('bad')\n\ndef read_note(note): ...\n",
        encoding="utf-8",
    )
    printed = {}
    for options in ((), ("--debug",)):
        command = [sys.executable, "-m", "cli", *options, "run", NOTES, "q", *DEMO, "--quiet"]
        printed[options] = subprocess.run(
            command, capture_output=True, text=True, env=HERE, check=False
        ).stderr
    assert len(printed[()].splitlines()) == 1
    assert "Traceback" in printed[("--debug",)]


def test_facts_that_are_none_are_told_what_a_fact_is(notes: Path, agentctl: Ask) -> None:
    (notes / "facts.yaml").write_text("")
    said = agentctl("contract", NOTES, "--facts", "facts.yaml")
    assert said.code == 2
    assert "write a fact, as in `principal:" in said.err


def test_a_folder_with_a_blank_is_quoted_in_what_to_type(notes: Path, agentctl: Ask) -> None:
    assert "cd 'my agent'" in agentctl("init", "my agent").out.splitlines()


@pytest.mark.parametrize(
    ("file", "kind"),
    [("scripts/notes.script.yaml", "script/v1"), ("tool_specs/notes.tools.yaml", "tools/v1")],
)
def test_a_file_that_is_no_document_is_told_how_its_kind_starts(
    notes: Path, agentctl: Ask, file: str, kind: str
) -> None:
    (notes / file).write_text("hello\n", encoding="utf-8")
    said = agentctl("run", NOTES, "q", *DEMO)
    assert said.code == 2
    assert f"{file}:1:1" in said.err
    assert f"start it with `agentctl: {kind}`" in said.err


def test_broken_yaml_names_the_line(notes: Path, agentctl: Ask) -> None:
    (notes / NOTES).write_text('agentctl: policy/v1\nid: "notes\n', encoding="utf-8")
    checked(agentctl("run", NOTES, "q", *DEMO), 2, "Y101", f"{NOTES}:")
    assert agentctl("lint", NOTES).code == 1


def test_an_unknown_run_and_an_ambiguous_prefix_are_told_apart(notes: Path, agentctl: Ask) -> None:
    for _ in range(2):
        agentctl("run", NOTES, "When?", *DEMO)
    for command in ("show", "log", "verify", "resume", "cancel", "approvals"):
        checked(agentctl(command, "zzz"), 2, "there is no Run `zzz`")
        checked(agentctl(command, "r"), 2, "`r` fits several Runs")
    checked(agentctl("approve", "r", "three"), 2, "`three` names no call")


def test_who_may_not_start_is_refused(fund: Path, agentctl: Ask) -> None:
    said = agentctl("run", "policies/fund-research.policy.yaml", "q", "--role", "compliance",
                    "--model", "scripted/examples/fund-research.script.yaml")  # fmt: skip
    checked(said, 4, "may not start this Run", "analyst")


def test_a_missing_task_field_is_named(fund: Path, agentctl: Ask) -> None:
    (fund / "agentctl.yaml").write_text(
        "agentctl: project/v1\nlocal: {id: a1, roles: [analyst], attrs: {desk: funds}}\nhandlers: [examples]\n",
        encoding="utf-8",
    )
    said = agentctl("run", "policies/fund-research.policy.yaml", "q", "--task", "portfolio_id=p1",
                    "--model", "scripted/examples/fund-research.script.yaml")  # fmt: skip
    checked(said, 2, "`as_of` is missing", "`depth` is missing")


def test_nobody_is_named(notes: Path, agentctl: Ask) -> None:
    (notes / "agentctl.yaml").write_text("agentctl: project/v1\nhandlers: [tools]\n", encoding="utf-8")
    checked(agentctl("run", NOTES, "When?", *DEMO), 2, "nobody is named", "--as ID")


def test_a_changed_event_is_found_and_named(notes: Path, agentctl: Ask) -> None:
    run = agentctl("run", NOTES, "When?", *DEMO).run
    with sqlite3.connect(notes / ".agentctl/agentctl.db") as database:
        triggers = database.execute("select name from sqlite_master where type = 'trigger'").fetchall()
        for (name,) in triggers:
            database.execute(f'drop trigger "{name}"')
        database.execute("update events set payload = replace(payload, 'When', 'Then') where seq = 2")
    database.close()
    said = agentctl("verify", run)
    assert said.code == 1
    assert "broken at event 2" in said.out
    assert agentctl("verify", run, "--json").json["broken"]["seq"] == 2


def test_a_fault_of_ours_is_one_line_and_a_file(
    notes: Path, agentctl: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    def boom(*_: object, **__: object) -> None:
        raise RuntimeError("unforeseen")

    monkeypatch.setattr("engine.bootstrap.open_store", boom)
    said = agentctl("runs")
    checked(said, 70, "RuntimeError: unforeseen", "please report it")
    (kept,) = (notes / ".agentctl").glob("fault-*.log")
    assert "Traceback" in kept.read_text(encoding="utf-8")


def test_unknown_kinds_and_outcomes_of_a_log_are_corrected(notes: Path, agentctl: Ask) -> None:
    run = agentctl("run", NOTES, "When?", *DEMO).run
    checked(agentctl("log", run, "--kind", "RunStartd"), 2, "did you mean `RunStarted`?")
    checked(agentctl("log", run, "--outcome", "accepted"), 2, "there is no outcome `accepted`")


def test_a_database_that_is_none_is_named(notes: Path, agentctl: Ask) -> None:
    (notes / "text.db").write_text("this is no database, whatever its name says" * 50, encoding="utf-8")
    checked(agentctl("runs", "--db", "text.db"), 2, "text.db")
