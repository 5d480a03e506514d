"""Owns the mapping of tool names to what every provider accepts, and back."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable

_LEGAL = re.compile(r"[a-zA-Z_][a-zA-Z0-9_-]{0,63}\Z")
_MAPPED = re.compile(r"_x[0-9a-f]{12}\Z")
_ILLEGAL = re.compile(r"[^a-zA-Z0-9_-]")


def wire_name(name: str) -> str:
    """The name on the wire: the name itself where every provider takes it, else a readable form with a digest.

    It depends on the name alone, so a tool has the same wire name in every turn. Two names never share one: a
    name that looks mapped is mapped itself.
    """
    if _LEGAL.match(name) and not _MAPPED.search(name):
        return name
    mark = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:12]
    readable = _ILLEGAL.sub("_", name)[:48] or "tool"
    if not (readable[0].isascii() and (readable[0].isalpha() or readable[0] == "_")):
        readable = "t_" + readable[:46]
    return f"{readable}_x{mark}"


class ToolNames:
    """The way back for one contract."""

    def __init__(self, names: Iterable[str]) -> None:
        self._host = {wire_name(name): name for name in names}

    def host_name(self, wire: str) -> str:
        """The tool that a wire name of this contract means; any other name is returned as the model wrote it."""
        return self._host.get(wire, wire)
