"""Owns the shape of a condition as written, before any name or type is known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from engine.domain.conditions import Span

MAX_LENGTH = 2000
"""Code points of one condition."""
MAX_DEPTH = 32
"""Levels of nesting of one condition."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One finding in a condition. `span` is in code points of its text; `help` is never empty."""

    code: str
    span: Span
    message: str
    help: str

    @property
    def warning(self) -> bool:
        """True if the condition still means something."""
        return self.code in ("C108", "C110")


class SyntaxFault(Exception):
    """Carries the one fault after which the rest of the text cannot be read."""

    def __init__(self, span: Span, message: str, help_: str) -> None:
        super().__init__(message)
        self.fault = Fault("C101", span, message, help_)


@dataclass(frozen=True, slots=True)
class Name:
    name: str
    span: Span
    depth: int = 1


@dataclass(frozen=True, slots=True)
class Scalar:
    """A number, string or boolean."""

    value: bool | int | str
    span: Span
    depth: int = 1


@dataclass(frozen=True, slots=True)
class Items:
    items: tuple[Syntax, ...]
    span: Span
    depth: int


@dataclass(frozen=True, slots=True)
class Entries:
    entries: tuple[tuple[Scalar, Syntax], ...]
    span: Span
    depth: int


@dataclass(frozen=True, slots=True)
class Member:
    operand: Syntax
    field: str
    field_span: Span
    span: Span
    depth: int


@dataclass(frozen=True, slots=True)
class Invoke:
    """`name(args)`, or `receiver.name(args)`."""

    receiver: Syntax | None
    name: str
    name_span: Span
    args: tuple[Syntax, ...]
    span: Span
    depth: int


@dataclass(frozen=True, slots=True)
class At:
    operand: Syntax
    index: Syntax
    span: Span
    depth: int


@dataclass(frozen=True, slots=True)
class Prefix:
    op: Literal["!", "-"]
    operand: Syntax
    span: Span
    depth: int


@dataclass(frozen=True, slots=True)
class Infix:
    """Arithmetic or a comparison, also the refused `/` and `%`."""

    op: str
    op_span: Span
    left: Syntax
    right: Syntax
    span: Span
    depth: int


@dataclass(frozen=True, slots=True)
class Chain:
    """Two or more operands joined by `&&` or by `||`."""

    op: Literal["&&", "||"]
    operands: tuple[Syntax, ...]
    span: Span
    depth: int


@dataclass(frozen=True, slots=True)
class Choice:
    """The refused `a ? b : c`, kept so that faults inside it are found."""

    parts: tuple[Syntax, Syntax, Syntax]
    op_span: Span
    span: Span
    depth: int


Syntax: TypeAlias = Name | Scalar | Items | Entries | Member | Invoke | At | Prefix | Infix | Chain | Choice
