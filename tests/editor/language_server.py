"""A client of yaml-language-server: the messages that an author sees in an editor."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

HERE = Path(__file__).parent
VERSION = "1.25"
SERVER = HERE / "node_modules/yaml-language-server/bin/yaml-language-server"


class Message(NamedTuple):
    line: int
    column: int
    text: str


def installed() -> bool:
    """True once the server is in `node_modules` beside this file; npm fetches it the first time."""
    if SERVER.is_file():
        return True
    npm = shutil.which("npm")
    if npm is None or shutil.which("node") is None:
        return False
    words = [
        npm,
        "install",
        "--prefix",
        str(HERE),
        "--no-save",
        "--no-package-lock",
        "--no-audit",
        "--no-fund",
    ]
    try:
        subprocess.run(
            [*words, f"yaml-language-server@{VERSION}"], capture_output=True, timeout=180, check=True
        )
    except (subprocess.SubprocessError, OSError):
        return False
    return SERVER.is_file()


class LanguageServer:
    """One server process; `messages` opens a text and returns what is published about it."""

    def __enter__(self) -> LanguageServer:
        self._process = subprocess.Popen(
            ["node", str(SERVER), "--stdio"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        self._id = 0
        self._opened = 0
        capabilities = {"workspace": {"configuration": True, "didChangeConfiguration": {}}}
        self._send(
            "initialize", {"processId": None, "rootUri": None, "capabilities": capabilities}, request=True
        )
        while self._receive().get("id") != self._id:
            pass
        self._send("initialized", {})
        self._send("workspace/didChangeConfiguration", {"settings": {"yaml": {"validate": True}}})
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.communicate()

    def messages(self, file: Path, text: str) -> list[Message]:
        """In the order of the file; lines and columns count from 1."""
        self._opened += 1
        uri = file.with_name(f"{self._opened}-{file.name}").as_uri()
        document = {"uri": uri, "languageId": "yaml", "version": 1, "text": text}
        self._send("textDocument/didOpen", {"textDocument": document})
        while True:
            said = self._receive()
            if said.get("method") == "textDocument/publishDiagnostics" and said["params"]["uri"] == uri:
                return sorted(_message(each) for each in said["params"]["diagnostics"])

    def _send(self, method: str, params: Any, *, request: bool = False) -> None:
        body: dict[str, Any] = {"jsonrpc": "2.0", "method": method, "params": params}
        if request:
            self._id += 1
            body["id"] = self._id
        self._write(body)

    def _write(self, body: dict[str, Any]) -> None:
        data = json.dumps(body).encode()
        assert self._process.stdin is not None
        self._process.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(data), data))
        self._process.stdin.flush()

    def _receive(self) -> dict[str, Any]:
        """The next message that is no question of the server; those get an empty answer."""
        while True:
            said = self._read()
            if "id" not in said or "method" not in said:
                return said
            items = said["params"].get("items", ()) if said["method"] == "workspace/configuration" else ()
            settings = [{"validate": True} if item.get("section") == "yaml" else None for item in items]
            self._write({"jsonrpc": "2.0", "id": said["id"], "result": settings or None})

    def _read(self) -> dict[str, Any]:
        stream = self._process.stdout
        assert stream is not None
        length = 0
        while (line := stream.readline().strip()) != b"":
            name, _, value = line.partition(b":")
            if name.lower() == b"content-length":
                length = int(value)
        assert length, "the language server ended"
        found: dict[str, Any] = json.loads(stream.read(length))
        return found


def _message(diagnostic: dict[str, Any]) -> Message:
    start = diagnostic["range"]["start"]
    return Message(start["line"] + 1, start["character"] + 1, diagnostic["message"])
