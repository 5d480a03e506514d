"""Owns the typed form of a condition: its tree, what it reads, how to test it.

The trees are made by `policy.conditions`, which has checked every name and type; whoever analyses them (constant
conditions, solver, contract) may rely on that.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

from engine.domain.facts import Facts, Truth, Value
from engine.domain.types import ValueType


class Span(NamedTuple):
    """A stretch of the condition's text, in code points from 0; `end` is one past the last."""

    start: int
    end: int


Comparison: TypeAlias = Literal["==", "!=", "<", "<=", ">", ">=", "in"]
Arithmetic: TypeAlias = Literal["+", "-", "*"]
Function: TypeAlias = Literal[
    "size", "under", "domain", "host", "scheme", "age", "links", "origin", "args_of"
]
HistoryFunction: TypeAlias = Literal["done", "count", "last_age", "sum"]


@dataclass(frozen=True, slots=True)
class Constant:
    """A literal, already converted to the type of what it is compared with."""

    value: Value
    type: ValueType
    span: Span


@dataclass(frozen=True, slots=True)
class ListOf:
    items: tuple[Expr, ...]
    type: ValueType
    span: Span


@dataclass(frozen=True, slots=True)
class Read:
    """A fact: root first, as in `("state", "cart", "items")`."""

    path: tuple[str, ...]
    type: ValueType
    span: Span

    def __str__(self) -> str:
        return ".".join(self.path)


@dataclass(frozen=True, slots=True)
class Local:
    """The variable of an enclosing Quantified; `slot` tells apart variables of one name."""

    name: str
    slot: int
    type: ValueType
    span: Span


@dataclass(frozen=True, slots=True)
class Select:
    """A field of a record that is not itself a fact path, such as `x.sku`."""

    operand: Expr
    field: str
    type: ValueType
    span: Span


@dataclass(frozen=True, slots=True)
class Index:
    operand: Expr
    index: Expr
    type: ValueType
    span: Span


@dataclass(frozen=True, slots=True)
class Not:
    operand: Expr
    type: ValueType
    span: Span


@dataclass(frozen=True, slots=True)
class Negate:
    operand: Expr
    type: ValueType
    span: Span


@dataclass(frozen=True, slots=True)
class Compare:
    op: Comparison
    left: Expr
    right: Expr
    type: ValueType
    span: Span


@dataclass(frozen=True, slots=True)
class Compute:
    op: Arithmetic
    left: Expr
    right: Expr
    type: ValueType
    span: Span


@dataclass(frozen=True, slots=True)
class Connect:
    """`&&` or `||` over two or more operands."""

    op: Literal["&&", "||"]
    operands: tuple[Expr, ...]
    type: ValueType
    span: Span


@dataclass(frozen=True, slots=True)
class Has:
    operand: Read | Select
    type: ValueType
    span: Span


@dataclass(frozen=True, slots=True)
class Quantified:
    """`operand.exists(variable, body)` or `operand.all(variable, body)`."""

    kind: Literal["exists", "all"]
    operand: Expr
    variable: Local
    body: Expr
    type: ValueType
    span: Span


@dataclass(frozen=True, slots=True)
class Call:
    function: Function
    args: tuple[Expr, ...]
    type: ValueType
    span: Span


class Match(NamedTuple):
    """One entry of a filter of `done`: the named parameter or result field equals `value`."""

    name: str
    field_type: ValueType
    value: Expr


@dataclass(frozen=True, slots=True)
class History:
    """A question about this Run's receipts of one tool."""

    function: HistoryFunction
    tool: str
    args: tuple[Match, ...]
    result: tuple[Match, ...]
    outcome: str | None
    """`count`: the outcome that is counted."""
    param: str | None
    """`sum`: the parameter that is added up."""
    type: ValueType
    span: Span


Expr: TypeAlias = (
    Constant
    | ListOf
    | Read
    | Local
    | Select
    | Index
    | Not
    | Negate
    | Compare
    | Compute
    | Connect
    | Has
    | Quantified
    | Call
    | History
)


def children(expr: Expr) -> tuple[Expr, ...]:
    """The direct operands of a node, in the order of the text."""
    match expr:
        case Constant() | Read() | Local():
            return ()
        case ListOf(items=items):
            return items
        case Select(operand=operand) | Not(operand=operand) | Negate(operand=operand) | Has(operand=operand):
            return (operand,)
        case Index(operand=operand, index=index):
            return (operand, index)
        case Compare(left=left, right=right) | Compute(left=left, right=right):
            return (left, right)
        case Connect(operands=operands):
            return operands
        case Quantified(operand=operand, body=body):
            return (operand, body)
        case Call(args=args):
            return args
        case History(args=args, result=result):
            return tuple(match.value for match in (*args, *result))


@dataclass(frozen=True, slots=True)
class Condition:
    """A checked condition. Two conditions are equal if their text and their tree are."""

    text: str
    expr: Expr
    reads: frozenset[str]
    """Dotted fact paths that the answer depends on: `state.cart.items`, `grant.documents.collection`, `now`,
    `args.collection`, `history.reserve_inventory`, `origin`, `args_of.address`."""
    args_read: frozenset[str]
    """Names of the call's arguments among `reads`; what `args_of` reads is not among them."""
    present: frozenset[str]
    """Fact paths that are there whenever the condition is true, because it says `has()`."""
    test: Callable[[Facts], Truth]
    """Never raises, whatever the facts hold."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Condition) and (self.text, self.expr) == (other.text, other.expr)

    def __hash__(self) -> int:
        return hash(self.text)


@dataclass(frozen=True, slots=True)
class ValuePath:
    """A checked path to one value, such as `state.cart.id` in `bind:`; any type, prose too, since it only moves."""

    text: str
    expr: Expr
    type: ValueType
    reads: frozenset[str]
    read: Callable[[Facts], Value]
    """The value as recorded; an Unknown if it is not there."""
