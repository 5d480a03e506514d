"""Real processes: start-up time, signals, pipes that close."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
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


def start(folder: Path, *words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, str(ROOT / "cli.py"), *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize("words", [["--version"], ["lint", "policies"]], ids=" ".join)
def test_light_commands_start_at_once(words: list[str]) -> None:
    """Half a second is the promise on two idle cores; the best of three keeps other work out of the figure."""
    times = []
    for _ in range(3):
        began = time.perf_counter()
        start(ROOT, *words).communicate(timeout=60)
        times.append(time.perf_counter() - began)
    assert min(times) < 1.0


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
