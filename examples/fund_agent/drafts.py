"""Owns the drafts folder: one file per draft, named after the idempotency key of the call that saved it."""

from __future__ import annotations

import hashlib
import os
import tempfile
from datetime import datetime
from pathlib import Path
from typing import Protocol

from engine.domain.calls import Failed, NotExecuted
from fund_agent.folder import stamp

DRAFTS_VARIABLE = "AGENTCTL_FUND_DRAFTS"
DEFAULT_DRAFTS = Path(".agentctl") / "fund-drafts"


class CallContext(Protocol):
    """What the Host says about the call that a tool carries out."""

    @property
    def idempotency_key(self) -> str: ...
    @property
    def run(self) -> str: ...
    @property
    def call(self) -> str: ...
    @property
    def now(self) -> datetime: ...


def save(title: str, body: str, context: CallContext) -> str:
    """Writes the draft whole or not at all and returns its id; the same key a second time changes nothing."""
    path = _path(context.idempotency_key)
    if path.exists():
        return path.stem
    header = [f"title: {' '.join(title.split())}", f"run: {context.run}", f"call: {context.call}"]
    text = "\n".join(["---", *header, f"saved_at: {stamp(context.now)}", "---", "", body, ""])
    try:
        _write_whole(path, text)
    except OSError as error:
        raise NotExecuted(f"the draft cannot be saved in `{path.parent}`: {error.strerror}") from None
    return path.stem


def exists(key: str) -> bool:
    """Whether the call with this idempotency key has saved its draft."""
    return _path(key).exists()


def delete(key: str) -> bool:
    """Removes the draft that the call with this key saved; false where there is none (any more)."""
    path = _path(key)
    if not path.exists():
        return False
    try:
        path.unlink()
    except OSError as error:
        raise Failed(f"the draft `{path.stem}` cannot be deleted: {error.strerror}") from None
    return True


def _path(key: str) -> Path:
    folder = Path(os.environ.get(DRAFTS_VARIABLE, "").strip() or DEFAULT_DRAFTS).expanduser()
    return folder / f"draft-{hashlib.sha256(key.encode()).hexdigest()[:16]}.md"


def _write_whole(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, scratch = tempfile.mkstemp(dir=path.parent, prefix=".", suffix=".part")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        Path(scratch).replace(path)
    except BaseException:
        Path(scratch).unlink(missing_ok=True)
        raise
