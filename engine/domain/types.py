"""Owns the value types of the policy language (language reference, section 1.2)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class TypeName(StrEnum):
    BOOL = "bool"
    INT = "int"
    DECIMAL = "decimal"
    ENUM = "enum"
    ID = "id"
    REF = "ref"
    PATH = "path"
    EMAIL = "email"
    URL = "url"
    TIMESTAMP = "timestamp"
    DURATION = "duration"
    LIST = "list"
    RECORD = "record"
    ARGV = "argv"
    TEXT = "text"
    RICH_TEXT = "rich_text"


class ArgClass(StrEnum):
    REFERENCE = "reference"
    ADDRESS = "address"
    SECRET = "secret"
    PAYLOAD = "payload"


class Trust(StrEnum):
    TRUSTED = "trusted"
    UNTRUSTED = "untrusted"


@dataclass(frozen=True, slots=True)
class ValueType:
    """One declared type. Only the fields that fit `name` are set; absent bounds are None."""

    name: TypeName
    values: tuple[str, ...] = ()
    """The closed list of an enum, in declared order."""
    of: ValueType | None = None
    """The element type of a list."""
    fields: Mapping[str, Field] = field(default_factory=dict)
    """The fields of a record."""
    kind: str | None = None
    """The evidence kind of a ref."""
    min: int | None = None
    max: int | None = None
    max_len: int | None = None
    max_items: int | None = None
    pattern: str | None = None

    @property
    def opaque(self) -> bool:
        """True for prose: nothing may be asked of it but size, has and links."""
        return self.name in (TypeName.TEXT, TypeName.RICH_TEXT)

    def __str__(self) -> str:
        if self.name is TypeName.LIST and self.of is not None:
            return f"list<{self.of}>"
        if self.name is TypeName.REF and self.kind:
            return f"ref<{self.kind}>"
        return self.name.value


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a record, a result, a task or a state slice."""

    type: ValueType
    required: bool = True
    trust: Trust | None = None
    """None: the trust of the tool's source."""
    labels: frozenset[str] = frozenset()
