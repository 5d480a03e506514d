"""Owns the third-party provider simulators: started for a test, told one conversation, asked what they saw."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import httpx
import pytest
import yaml

NODE = Path(__file__).parent.parent / "node_modules"
"""Where aimock is installed; git ignores it."""
AIMOCK = "@copilotkit/aimock@1"


@dataclass(frozen=True)
class Say:
    """One answer of a conversation: text, calls `(tool, arguments)`, or an HTTP status."""

    text: str = ""
    calls: Sequence[tuple[str, dict[str, Any]]] = field(default=())
    status: int = 200


class Simulator(Protocol):
    name: str
    url: str

    def requests(self) -> int:
        """How many requests for a completion it has got."""
        ...


@contextmanager
def fakellm(folder: Path, says: Sequence[Say]) -> Iterator[Simulator]:
    """`fakellm` from PyPI, one rule a turn."""
    rules = [
        {"name": f"turn-{number}", "when": {"turn": number}, "respond": _fakellm(say)}
        for number, say in enumerate(says, start=1)
    ]
    file = folder / "fakellm.yaml"
    file.write_text(yaml.safe_dump({"rules": rules}))
    port = _free_port()
    command = [sys.executable, "-m", "uvicorn", "fakellm.server:app", "--port", str(port)]
    with _running([*command, "--log-level", "warning"], port, {"FAKELLM_CONFIG": str(file)}):
        yield _Fakellm(f"http://127.0.0.1:{port}")


@contextmanager
def aimock(folder: Path, says: Sequence[Say]) -> Iterator[Simulator]:
    """`@copilotkit/aimock` from npm; installed on first use."""
    file = folder / "fixtures.json"
    fixtures = [
        {"match": {"sequenceIndex": number}, "response": _aimock(say)} for number, say in enumerate(says)
    ]
    file.write_text(json.dumps({"fixtures": fixtures}))
    port = _free_port()
    command = ["node", str(_installed()), "--port", str(port), "--fixtures", str(file), "--strict"]
    with _running([*command, "--log-level", "silent"], port, {}):
        yield _Aimock(f"http://127.0.0.1:{port}")


SIMULATORS = {"fakellm": fakellm, "aimock": aimock}


@dataclass
class _Fakellm:
    url: str
    name: str = "fakellm"

    def requests(self) -> int:
        seen = httpx.get(f"{self.url}/_fakellm/stats").json()
        return int(seen["total_requests"])


@dataclass
class _Aimock:
    url: str
    name: str = "aimock"

    def requests(self) -> int:
        seen = httpx.get(f"{self.url}/__aimock/journal").json()
        entries = seen if isinstance(seen, list) else seen.get("entries", seen.get("requests", []))
        return len(entries)


def _fakellm(say: Say) -> dict[str, Any]:
    if say.status != 200:
        return {"status": say.status, "error": "as told"}
    answer: dict[str, Any] = {"content": say.text} if say.text else {}
    if say.calls:
        answer["tool_calls"] = [{"name": name, "arguments": args} for name, args in say.calls]
    return answer


def _aimock(say: Say) -> dict[str, Any]:
    if say.status != 200:
        return {"error": {"message": "as told", "type": "told"}, "status": say.status}
    answer: dict[str, Any] = {"content": say.text} if say.text else {}
    if say.calls:
        answer["toolCalls"] = [{"name": name, "arguments": args} for name, args in say.calls]
    return answer


def _installed() -> Path:
    """The program, installed once. Skips the test where there is no node or no registry."""
    program = NODE / ".bin" / "llmock"
    if program.exists():
        return program
    if shutil.which("npm") is None:
        pytest.skip("needs node and npm")
    command = ["npm", "install", "--no-save", "--no-audit", "--no-fund", "--prefix", str(NODE.parent), AIMOCK]
    made = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    if not program.exists():
        pytest.skip(f"npm cannot install {AIMOCK}: {made.stderr.strip()[-200:]}")
    return program


def _free_port() -> int:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        port: int = held.getsockname()[1]
        return port


@contextmanager
def _running(command: list[str], port: int, environment: dict[str, str]) -> Iterator[None]:
    process = subprocess.Popen(
        command,
        env=os.environ | environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    try:
        _await(process, port)
        yield
    finally:
        process.terminate()
        process.wait(10)
        assert process.stderr is not None
        process.stderr.close()


def _await(process: subprocess.Popen[bytes], port: int) -> None:
    until = time.monotonic() + 30
    while time.monotonic() < until:
        if process.poll() is not None:
            assert process.stderr is not None
            pytest.fail(f"the simulator ended: {process.stderr.read().decode()[-500:]}")
        with socket.socket() as probe:
            probe.settimeout(0.2)
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    pytest.fail("the simulator does not listen")
