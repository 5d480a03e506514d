"""Working text as it comes: on a terminal, or where `--deltas` asks for it; in JSON only then."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.adapters.provider_server import chunk, provider, stream
from tests.cli.conftest import ROOT, Ask, script

NOTES = "policies/notes.policy.yaml"
ASKED = "When was it built?"
SAYS = '  - text: "I look it up:\\nsoon."\n    calls: [{tool: search_notes, args: {words: "lighthouse"}}]\n'
STREAMED = stream(
    chunk({"role": "assistant", "content": "Which "}),
    chunk({"content": "note\n"}),
    chunk({"content": "do you mean?"}),
    chunk({}, "stop"),
)


def test_json_has_no_deltas_unless_they_are_asked_for(notes: Path, agentctl: Ask) -> None:
    model = script(notes, SAYS)
    plain = agentctl("run", NOTES, ASKED, "--model", model, "--json")
    assert not [line for line in plain.lines if "delta" in line]
    asked = agentctl("run", NOTES, ASKED, "--model", model, "--json", "--deltas")
    deltas = [line for line in asked.lines if "delta" in line]
    assert deltas == [{"delta": "I look it up:\nsoon.", "turn": 1, "attempt": 1}]
    kinds = [line.get("event", "delta") for line in asked.lines[:-1]]
    at = kinds.index("delta")
    assert (kinds[at - 1], kinds[at + 1]) == ("ModelAttemptStarted", "ModelTurnRecorded")


def test_asked_for_in_text_it_is_shown_once_and_before_the_proposals(notes: Path, agentctl: Ask) -> None:
    said = agentctl("run", NOTES, ASKED, "--model", script(notes, SAYS), "--deltas")
    shown = "turn 1  working text:\n  I look it up:\n  soon.\n  > "
    assert shown in said.out
    assert said.out.count("soon.") == 1
    assert (
        "working text: I look it up: soon.\n"
        in agentctl("run", NOTES, ASKED, "--model", script(notes, SAYS)).out
    )


def test_quiet_stays_quiet(notes: Path, agentctl: Ask) -> None:
    said = agentctl("run", NOTES, ASKED, "--model", script(notes, SAYS), "--deltas", "--quiet")
    assert "I look it up" not in said.out


def test_what_a_terminal_would_obey_is_written_out(notes: Path, agentctl: Ask) -> None:
    said = agentctl("run", NOTES, ASKED, "--model", script(notes, '  - text: "a\\e[2Jb"\n'), "--deltas")
    assert "a\\x1b[2Jb" in said.out


@pytest.mark.filterwarnings("default")
def test_a_stream_arrives_piece_by_piece_and_only_then_is_streamed(
    notes: Path, agentctl: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    with provider(STREAMED) as at:
        monkeypatch.setenv("OPENAI_API_KEY", "sk-loopback-0123456789")
        monkeypatch.setenv("OPENAI_API_BASE", f"{at.url}/v1")
        said = agentctl("run", NOTES, ASKED, "--model", "openai/gpt-4o-2024-08-06", "--json", "--deltas")
        assert at.requests[0]["stream"] is True
    assert said.code == 5, said
    deltas = [line["delta"] for line in said.lines if "delta" in line]
    assert deltas == ["Which ", "note\n", "do you mean?"]
    (turn,) = [line for line in said.lines if line.get("event") == "ModelTurnRecorded"]
    assert turn["text"] == "".join(deltas)


@pytest.mark.filterwarnings("default")
def test_a_key_in_the_pieces_of_a_stream_is_masked_as_one(
    notes: Path, agentctl: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = "sk-loopback-0123456789"
    pieces = ["my key is ", *key, " it", " is"]
    answer = stream(*(chunk({"content": piece}) for piece in pieces), chunk({}, "stop"))
    with provider(answer) as at:
        monkeypatch.setenv("OPENAI_API_KEY", key)
        monkeypatch.setenv("OPENAI_API_BASE", f"{at.url}/v1")
        said = agentctl("run", NOTES, ASKED, "--model", "openai/gpt-4o-2024-08-06", "--json", "--deltas")
    deltas = [line["delta"] for line in said.lines if "delta" in line]
    assert "".join(deltas) == "my key is [secret OPENAI_API_KEY] it is"
    assert key not in said.out


@pytest.mark.filterwarnings("default")
def test_an_attempt_that_is_cut_ends_its_line_and_the_next_begins_anew(
    notes: Path, agentctl: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    half = stream(chunk({"content": "Which "}), done=False, cut=True)
    with provider(half, STREAMED) as at:
        monkeypatch.setenv("OPENAI_API_KEY", "sk-loopback-0123456789")
        monkeypatch.setenv("OPENAI_API_BASE", f"{at.url}/v1")
        said = agentctl("run", NOTES, ASKED, "--model", "openai/gpt-4o-2024-08-06", "--deltas")
    assert said.code == 5, said
    first, second = said.out.split("turn 1  working text:\n")[1:]
    assert first.startswith("  Which \n  ✗ ")
    assert second.startswith("  Which note\n  do you mean?\n")


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="a system without terminals of this kind")
def test_a_terminal_shows_it_without_being_asked(notes: Path) -> None:
    ours, theirs = os.openpty()
    command = [sys.executable, str(ROOT / "cli.py"), "run", NOTES, ASKED, "--model", script(notes, SAYS)]
    environment = {**os.environ, "NO_COLOR": "1", "PYTHONPATH": str(ROOT)}
    running = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs, cwd=notes, env=environment
    )
    os.close(theirs)
    shown = b""
    try:
        while piece := os.read(ours, 4096):
            shown += piece
    except OSError:  # how Linux says that nobody writes any more
        pass
    finally:
        os.close(ours)
    running.wait(timeout=30)
    assert "turn 1  working text:\n  I look it up:\n  soon.\n  > " in shown.decode().replace("\r\n", "\n")


def test_deltas_are_no_facts(notes: Path, agentctl: Ask) -> None:
    said = agentctl("run", NOTES, ASKED, "--model", script(notes, SAYS), "--json", "--deltas")
    run = said.lines[-1]["run"]
    kept = [json.dumps(line) for line in agentctl("log", run, "--json").lines]
    assert not [line for line in kept if '"delta"' in line]
