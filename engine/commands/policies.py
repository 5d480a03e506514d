"""Owns which policy is meant on the command line: the path of a file, or the id of one under `policies`."""

from __future__ import annotations

import re
from pathlib import Path

from engine.domain.diagnostics import suggest
from engine.domain.errors import UsageError

FOLDER = "policies"
_ID = re.compile(r"^id:\s*[\"']?([A-Za-z_][A-Za-z0-9_.-]*)", re.MULTILINE)


def policy_file(named: str) -> str:
    """The file of a policy. Raises UsageError where none fits."""
    from engine.policy.case_files import policy_files

    if Path(named).is_file():
        return named
    known: dict[str, str] = {}
    for file in policy_files(FOLDER):
        match = _ID.search(Path(file).read_text(encoding="utf-8", errors="replace"))
        if match is not None:
            known.setdefault(match[1], file)
    if named in known:
        return known[named]
    have = ", ".join(sorted(known)) or f"there is none under `{FOLDER}`"
    raise UsageError(f"there is no policy `{named}`", remedy=suggest(named, known, f"policies: {have}"))
