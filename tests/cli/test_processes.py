"""Real processes: start-up time, signals, pipes that close."""

from __future__ import annotations

import contextlib
import os
import pty
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import ROOT, RUN, Ask

SLOW = """\
  - calls: [{tool: search_notes, args: {words: "lighthouse"}}]
  - calls: [{tool: search_notes, args: {words: "keeper"}}]
  - calls: [{tool: search_notes, args: {words: "garden"}}]
  - calls: [{tool: read_note, args: {note: lighthouse}}]
  - calls:
      - {tool: publish_answer, args: {text: "In 1871 [[<< handle('note', 'lighthouse') >>#p2]]."}}
      - {tool: finish}
"""


POLICY = "policies/notes.policy.yaml"
ASKS = """\
  - calls: [{tool: ask_user, args: {question: "Which lighthouse?"}}]
  - calls: [{tool: search_notes, args: {words: "lighthouse"}}]
  - calls: [{tool: read_note, args: {note: lighthouse}}]
  - calls:
      - {tool: publish_answer, args: {text: "In 1871 [[<< handle('note', 'lighthouse') >>#p2]]."}}
      - {tool: finish}
"""
MEMO = """\
  - calls: [{tool: request_capability, args: {capability: documents, collection: internal_memo}}]
"""


def start(folder: Path, *words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, str(ROOT / "cli.py"), *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_once_and_the_run_is_resumed(
    notes: Path, agentctl: Ask, number: signal.Signals
) -> None:
    (notes / "slow.script.yaml").write_text(f"agentctl: script/v1\nturns:\n{SLOW}", encoding="utf-8")
    tools = notes / "tools/notes.py"
    text = tools.read_text(encoding="utf-8")
    tools.write_text(
        text.replace("    wanted =", "    __import__('time').sleep(0.4)\n    wanted ="), encoding="utf-8"
    )
    process = start(
        notes, "run", "policies/notes.policy.yaml", "When?", "--model", "scripted/slow.script.yaml"
    )
    assert process.stdout is not None
    seen = ""
    for line in process.stdout:
        seen += line
        if "1.1 search_notes confirmed" in line:
            break
    process.send_signal(number)
    out, err = process.communicate(timeout=30)
    found = RUN.search(seen)
    assert found is not None
    assert process.returncode == 130, out + err
    assert f"interrupted; `agentctl resume {found[0]}` continues it" in err
    tools.write_text(text, encoding="utf-8")
    said = agentctl("resume", found[0])
    assert said.code == 0
    assert "built in 1871" not in said.err
    assert agentctl("verify", found[0]).code == 0


def test_a_second_signal_ends_at_once(notes: Path, agentctl: Ask) -> None:
    tools = notes / "tools/notes.py"
    text = tools.read_text(encoding="utf-8")
    tools.write_text(
        text.replace("    wanted =", "    __import__('time').sleep(60)\n    wanted ="), encoding="utf-8"
    )
    process = start(notes, "run", POLICY, "When?", "--model", "scripted/scripts/notes.script.yaml")
    assert process.stdout is not None
    assert process.stderr is not None
    while "1.1 search_notes" not in process.stdout.readline():
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    assert process.stderr.readline().startswith("stopping")
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=3)
    assert process.returncode == 130
    assert "agentctl resume r" in err
    tools.write_text(text, encoding="utf-8")


def test_a_reader_that_goes_away_is_no_fault(notes: Path, agentctl: Ask) -> None:
    run = agentctl(
        "run", "policies/notes.policy.yaml", "When?", "--model", "scripted/scripts/notes.script.yaml"
    ).run
    process = start(notes, "log", run)
    assert process.stdout is not None
    process.stdout.close()
    assert process.stderr is not None
    assert "Traceback" not in process.stderr.read()
    process.stderr.close()
    assert process.wait(timeout=30) in (0, 130)
    assert not list((notes / ".agentctl").glob("fault-*"))


def test_a_run_is_not_driven_where_its_handlers_are_missing(notes: Path, agentctl: Ask) -> None:
    (notes / "asks.script.yaml").write_text(f"agentctl: script/v1\nturns:\n{ASKS}", encoding="utf-8")
    run = agentctl("run", POLICY, "When?", "--model", "scripted/asks.script.yaml").run
    (notes / "tools/notes.py").rename(notes / "tools/other.py")
    process = start(notes, "resume", run)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 2
    assert "tools cannot be run" in err


def at_a_terminal(folder: Path, answers: dict[str, str], *words: str) -> tuple[int, str]:
    """Runs a command on a terminal of its own; types each answer once its prompt is seen."""
    terminal, side = pty.openpty()
    env = {**os.environ, "PYTHONPATH": str(ROOT), "TERM": "xterm", "NO_COLOR": ""}
    command = [sys.executable, str(ROOT / "cli.py"), *words]
    process = subprocess.Popen(
        command, cwd=folder, env=env, stdin=side, stdout=side, stderr=side, close_fds=True
    )
    os.close(side)
    seen = ""
    with contextlib.suppress(OSError):  # a closed terminal is the end
        while chunk := os.read(terminal, 4096):
            seen += chunk.decode("utf-8", "replace")
            for prompt in [prompt for prompt in answers if prompt in seen]:
                os.write(terminal, f"{answers.pop(prompt)}\n".encode())
    os.close(terminal)
    return process.wait(timeout=60), seen


def test_a_question_is_answered_at_the_prompt(notes: Path) -> None:
    (notes / "asks.script.yaml").write_text(f"agentctl: script/v1\nturns:\n{ASKS}", encoding="utf-8")
    answers = {"reply (empty: later)": "The one on the point"}
    code, seen = at_a_terminal(notes, answers, "run", POLICY, "When?", "--model", "scripted/asks.script.yaml")
    assert code == 0, seen
    assert "\x1b[32m✓" in seen
    assert "== answer ==" in seen


def test_an_approval_is_decided_at_the_prompt_only_by_who_may(fund: Path) -> None:
    (fund / "memo.script.yaml").write_text(f"agentctl: script/v1\nturns:\n{MEMO}", encoding="utf-8")
    policy = "policies/fund-research.policy.yaml"
    code, seen = at_a_terminal(fund, {}, "run", policy, "Why?", "--model", "scripted/memo.script.yaml")
    assert (code, "approve?" in seen) == (5, False), seen
    found = RUN.search(seen)
    assert found is not None
    answers = {"approve?": "y", "reply (empty: later)": ""}
    path = fund / "agentctl.yaml"
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("id: a1", "id: c1").replace("[analyst]", "[compliance]"), encoding="utf-8")
    code, seen = at_a_terminal(fund, answers, "resume", found[0])
    assert code == 5, seen
    assert "granted by c1" in seen
