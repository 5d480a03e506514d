"""Owns where the texts of a policy come from: the disk, or the bundle that a Run keeps."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from engine.domain.errors import SourceError

MAX_BYTES: Final = 2_000_000
_DECLARED: Final = re.compile(r"""^["']?agentctl["']?[ \t]*:[ \t]*["']?([\w-]+/v\d+)""", re.MULTILINE)
DEPLOYMENT: Final = "deployment.json"
"""The bundle entry that keeps what the deployment added: overlays and values of limits."""


class Files(Protocol):
    def read(self, name: str) -> str:
        """The text of a file. Raises SourceError if there is none or it is not readable UTF-8 text."""
        ...

    def exists(self, name: str) -> bool: ...


class NotText(SourceError):
    """A file that is there, but whose bytes are no text that is read."""


def declared(text: str) -> str:
    """What a text says that it is, such as `policy/v1`, before anything is parsed; empty if no line says it."""
    found = _DECLARED.search(text)
    return found[1] if found is not None else ""


def beside(file: str, reference: str) -> str:
    """The name of a file that another file refers to by a relative path."""
    return posixpath.normpath(posixpath.join(posixpath.dirname(file), reference))


def decode(name: str, raw: bytes) -> str:
    """UTF-8 text without a byte order mark. Raises NotText."""
    if len(raw) > MAX_BYTES:
        raise NotText(
            f"`{name}` has {len(raw):,} bytes, at most {MAX_BYTES:,} are read", remedy="split the file"
        )
    if raw.startswith((b"\xff\xfe", b"\xfe\xff", b"\x00")) or raw[1:2] == b"\x00":
        raise NotText(f"`{name}` is UTF-16 or UTF-32 text", remedy="save it as UTF-8")
    if raw.startswith(b"\xef\xbb\xbf"):
        raise NotText(
            f"`{name}` starts with a byte order mark", remedy="save it as UTF-8 without a byte order mark"
        )
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise NotText(f"`{name}` is not UTF-8 text (line {line})", remedy="save it as UTF-8") from error


class DiskFiles:
    """Files by their paths, relative to the working directory."""

    def read(self, name: str) -> str:
        path = Path(name)
        try:
            raw = path.read_bytes()
        except FileNotFoundError as error:
            raise SourceError(f"there is no file `{name}`", remedy="check the path") from error
        except IsADirectoryError as error:
            raise SourceError(f"`{name}` is a folder", remedy="name a file in it") from error
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise SourceError(
                f"`{name}` cannot be read: {reason}".rstrip(), remedy="check its permissions"
            ) from error
        return decode(name, raw)

    def exists(self, name: str) -> bool:
        try:
            return Path(name).is_file()
        except (OSError, ValueError):
            return False


@dataclass(frozen=True, slots=True)
class MemoryFiles:
    """Files by name, as `Policy.bundle` keeps them."""

    texts: Mapping[str, str]

    def read(self, name: str) -> str:
        text = self.texts.get(name)
        if text is None:
            raise SourceError(
                f"the bundle has no file `{name}`",
                remedy=f"it has: {', '.join(sorted(self.texts)) or 'none'}",
            )
        return text

    def exists(self, name: str) -> bool:
        return name in self.texts
