"""Owns names and types: the tree as written to the typed tree, with every fault that can be found."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, Literal, TypeVar, cast

from engine.domain.conditions import (
    Arithmetic,
    Compare,
    Comparison,
    Compute,
    Connect,
    Constant,
    Expr,
    Index,
    ListOf,
    Local,
    Negate,
    Not,
    Quantified,
    Span,
)
from engine.domain.types import TypeName, ValueType
from engine.policy.conditions import calls, facts, operands
from engine.policy.conditions.arguments import is_of_call
from engine.policy.conditions.environment import BOOL, INT, STRING, Environment, list_of
from engine.policy.conditions.functions import MACROS, SUBSTRING_TESTS, substring_help, unknown_function_help
from engine.policy.conditions.parser import RESERVED
from engine.policy.conditions.presence import proved
from engine.policy.conditions.syntax import (
    At,
    Chain,
    Choice,
    Entries,
    Fault,
    Infix,
    Invoke,
    Items,
    Member,
    Name,
    Prefix,
    Scalar,
    Syntax,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

T = TypeVar("T")

PROSE_HELP: Final = (
    "free text is opaque: only size(), has() and links() are defined on it. Ask for a Host fact: a receipt "
    "(done, count), app state, or an argument that itself determines the effect"
)
_NO_DIVISION: Final = "multiply the other side: write `a > 2 * b` for `a / 2 > b`"
_NO_CHOICE: Final = "write `(test && a) || (!test && b)`, or two rules"


class Checker:
    """One condition. `check` returns None where a fault was already found, so that one cause has one fault."""

    def __init__(self, text: str, env: Environment, present: frozenset[str]) -> None:
        self.text = text
        self.env = env
        self.faults: list[Fault] = []
        self.present = present
        self.optional: set[str] = set()
        """Keys of the optional paths met so far."""
        self.scope: dict[str, Local] = {}
        self.of_call: set[int] = set()
        """Slots of the variables that hold arguments of the call."""
        self._slots = 0

    def condition(self, node: Syntax) -> Expr | None:
        """A whole condition, which must be true or false."""
        expr = self.check(node)
        if expr is None or self.is_bool(expr, "a condition"):
            return expr
        return None

    def check(self, node: Syntax) -> Expr | None:
        match node:
            case Name() | Member():
                return facts.guarded(self, facts.path(self, node), node)
            case Scalar():
                return _constant(node)
            case Items():
                return self._items(node)
            case At():
                return self._at(node)
            case Prefix():
                return self._prefix(node)
            case Infix():
                return self._infix(node)
            case Chain():
                return self._chain(node)
            case Invoke():
                return self._invoke(node)
            case Entries():
                return self.fault(
                    "C104", node.span, "a map has no meaning here", "maps are arguments of `done`"
                )
            case Choice():
                for part in node.parts:
                    self.check(part)
                return self.fault("C101", node.op_span, "`?:` is not part of the language", _NO_CHOICE)

    # --- faults

    def fault(self, code: str, span: Span, message: str, help_: str) -> T | None:
        """Raises a fault; returns None, so that a check can end with it."""
        self.faults.append(Fault(code, span, message, help_))
        return None

    def shown(self, span: Span) -> str:
        return self.text[span.start : span.end]

    def prose(self, expr: Expr | None, what: str, span: Span) -> bool:
        """True, with S301 raised, if the operand is free text or a list of it."""
        if expr is None or not (expr.type.opaque or (expr.type.of is not None and expr.type.of.opaque)):
            return False
        message = f"`{what}` looks into `{self.shown(expr.span)}`, which is free text"
        self.fault("S301", span, message, PROSE_HELP)
        return True

    def is_bool(self, expr: Expr, who: str) -> bool:
        if expr.type.name is TypeName.BOOL:
            return True
        shown = self.shown(expr.span)
        if not self.prose(expr, who, expr.span):
            message = f"{who} needs true or false, `{shown}` is {_typed(expr.type)}"
            self.fault("C104", expr.span, message, "compare it with `==`, `<`, `in` or ask `has(…)`")
        return False

    # --- operands

    def _items(self, node: Items) -> Expr | None:
        checked = [self.check(item) for item in node.items]
        if any(item is None for item in checked):
            return None
        items = cast("list[Expr]", checked)
        lead = next((item for item in items if not isinstance(item, Constant)), items[0] if items else None)
        if lead is None:
            return ListOf((), list_of(STRING), node.span)
        fitted: list[Expr] = []
        for item in items:
            pair = (item, lead) if item is lead else self.pair(item, lead, "a list", item.span)
            if pair is None:
                return None
            fitted.append(pair[0])
        return ListOf(tuple(fitted), list_of(lead.type), node.span)

    def _at(self, node: At) -> Expr | None:
        operand, index = self.check(node.operand), self.check(node.index)
        if operand is None or self.prose(operand if operand.type.opaque else None, "[]", node.span):
            return None
        if operand.type.name not in operands.LISTS:
            message = f"`{self.shown(operand.span)}` is {_typed(operand.type)}, not a list"
            return self.fault("C104", node.span, message, "only lists have elements `[i]`")
        if index is None:
            return None
        if index.type.name is not TypeName.INT:
            message = f"an element has a number, `{self.shown(index.span)}` is {_typed(index.type)}"
            return self.fault("C104", index.span, message, "elements count from 0: `x[0]`")
        return Index(operand, index, operands.element(operand.type), node.span)

    # --- operators

    def _prefix(self, node: Prefix) -> Expr | None:
        operand = self.check(node.operand)
        if operand is None:
            return None
        if node.op == "!":
            return Not(operand, BOOL, node.span) if self.is_bool(operand, "`!`") else None
        if operand.type.name in (TypeName.INT, TypeName.DECIMAL):
            return Negate(operand, ValueType(operand.type.name), node.span)
        if not self.prose(operand, "-", node.span):
            message = f"`-` needs a number, `{self.shown(operand.span)}` is {_typed(operand.type)}"
            self.fault("C104", node.span, message, "numbers are int and decimal")
        return None

    def _chain(self, node: Chain) -> Expr | None:
        before, checked = self.present, list[Expr]()
        for part in node.operands:
            expr = self.check(part)
            if expr is not None and self.is_bool(expr, f"`{node.op}`"):
                checked.append(expr)
                self.present |= proved(expr, node.op == "&&")
        self.present = before
        complete = len(checked) == len(node.operands)
        return Connect(node.op, tuple(checked), BOOL, node.span) if complete else None

    def _infix(self, node: Infix) -> Expr | None:
        left, right = self.check(node.left), self.check(node.right)
        if node.op in ("/", "%"):
            message = f"`{node.op}` is not part of the language"
            return self.fault("C101", node.op_span, message, _NO_DIVISION)
        if self.prose(left, node.op, node.span) or self.prose(right, node.op, node.span):
            return None
        if left is None or right is None:
            return None
        if node.op in ("+", "-", "*"):
            return self._compute(node, left, right)
        if node.op == "in":
            return self._membership(node, left, right)
        return self._compare(node, left, right)

    def _compute(self, node: Infix, left: Expr, right: Expr) -> Expr | None:
        type_ = operands.computed(node.op, left.type, right.type)
        if type_ is not None:
            return Compute(cast("Arithmetic", node.op), left, right, type_, node.span)
        return self.mismatch(node.op, left, right, node.span)

    def _compare(self, node: Infix, left: Expr, right: Expr) -> Expr | None:
        op = cast("Comparison", node.op)
        pair = self.pair(left, right, node.op, node.span)
        if pair is None:
            return None
        if op not in ("==", "!=") and left.type.name not in operands.ORDERED:
            message = f"`{op}` needs an order, {_typed(left.type)} has none"
            return self.fault("C104", node.span, message, "use `==`, `!=` or `in`")
        return Compare(op, *pair, BOOL, node.span)

    def _membership(self, node: Infix, left: Expr, right: Expr) -> Expr | None:
        if right.type.name in operands.NAMES:
            shown = self.shown(right.span)
            message = f"`in` looks for a part of `{shown}`"
            return self.fault("C107", node.span, message, substring_help(right.type, shown))
        if right.type.name not in operands.LISTS:
            message = f"`in` needs a list, `{self.shown(right.span)}` is {_typed(right.type)}"
            return self.fault("C104", node.span, message, "write `value in [a, b]`")
        if isinstance(right, ListOf):
            return self._among(node, left, right)
        member = Index(right, Constant(0, INT, right.span), operands.element(right.type), right.span)
        pair = self.pair(left, member, "in", node.span)
        return Compare("in", pair[0], right, BOOL, node.span) if pair else None

    def _among(self, node: Infix, left: Expr, right: ListOf) -> Expr | None:
        pairs = [self.pair(left, item, "in", item.span) for item in right.items]
        if None in pairs:
            return None
        items = tuple(pair[1] for pair in pairs if pair)
        type_ = list_of(left.type) if items else right.type
        first = pairs[0][0] if pairs and pairs[0] else left
        return Compare("in", first, ListOf(items, type_, right.span), BOOL, node.span)

    # --- fitting two operands

    def pair(self, left: Expr, right: Expr, op: str, span: Span) -> tuple[Expr, Expr] | None:
        """Both operands of one type, literals converted; None with a fault raised if they do not fit."""
        if not self._types_fit(left, right):
            return self.mismatch(op, left, right, span)
        equality = op not in ("<", "<=", ">", ">=")
        if equality and isinstance(right, Constant) and not isinstance(left, Constant):
            fitted = self.fit(right, left)
            return (left, fitted) if fitted else None
        if equality and isinstance(left, Constant) and not isinstance(right, Constant):
            fitted = self.fit(left, right)
            return (fitted, right) if fitted else None
        if operands.disjoint(left.type, right.type):
            message = f"`{self.shown(left.span)}` and `{self.shown(right.span)}` have no value in common"
            known = ", ".join(left.type.values), ", ".join(right.type.values)
            return self.fault("C106", span, message, f"values: {known[0]}; {known[1]}")
        return left, right

    def _types_fit(self, left: Expr, right: Expr) -> bool:
        names = {left.type.name, right.type.name}
        literal = isinstance(left, Constant) or isinstance(right, Constant)
        return operands.comparable(left.type, right.type) or (literal and names <= operands.NAMES)

    def fit(self, literal: Constant, other: Expr) -> Constant | None:
        fitted = operands.fitted(literal, other, self.shown(other.span))
        if isinstance(fitted, operands.Misfit):
            return self.fault("C106", literal.span, *fitted)
        return fitted

    def mismatch(self, op: str, left: Expr, right: Expr, span: Span) -> T | None:
        message = f"`{op}` does not fit {_described(left)} and {_described(right)}"
        return self.fault(
            "C104", span, message, operands.misfit_help(left.type, right.type, self.shown(left.span))
        )

    # --- functions and methods

    def _invoke(self, node: Invoke) -> Expr | None:
        if node.receiver is None:
            check: Callable[[Checker, Invoke], Expr | None] | None = calls.CHECKS.get(node.name)
            return check(self, node) if check else self._unknown(node, node.args[0] if node.args else None)
        if node.name in MACROS:
            return self._quantified(node, node.receiver, cast('Literal["exists", "all"]', node.name))
        return self._unknown(node, node.receiver)

    def _unknown(self, node: Invoke, subject: Syntax | None) -> Expr | None:
        receiver = self.check(node.receiver) if node.receiver is not None else None
        like_a_macro = node.receiver is not None and len(node.args) > 1 and isinstance(node.args[0], Name)
        if not like_a_macro:
            checked = [self.check(arg) for arg in node.args]
            receiver = receiver or (checked[0] if checked and node.receiver is None else None)
        method = node.receiver is not None
        looks_inside = node.name in SUBSTRING_TESTS or (method and node.name not in ("size", "len", "length"))
        if receiver is not None and receiver.type.opaque and looks_inside:
            self.prose(receiver, f".{node.name}()" if method else f"{node.name}()", node.span)
            return None
        shown = self.shown(subject.span) if subject is not None else None
        if node.name in SUBSTRING_TESTS:
            if receiver is not None:
                message = f"`{node.name}` tests a part of a value"
                self.fault("C107", node.span, message, substring_help(receiver.type, shown or ""))
            return None
        what = "method" if method else "function"
        help_ = unknown_function_help(node.name, shown if method or node.name in MACROS else None)
        return self.fault("C105", node.name_span, f"there is no {what} `{node.name}`", help_)

    def _quantified(self, node: Invoke, receiver: Syntax, kind: Literal["exists", "all"]) -> Expr | None:
        operand = self.check(receiver)
        if len(node.args) != 2 or not isinstance(node.args[0], Name):
            help_ = f"write `{self.shown(receiver.span)}.{kind}(x, x == …)`"
            return self.fault("C104", node.span, f"`.{kind}` takes a variable and a condition", help_)
        if operand is not None and operand.type.name not in operands.LISTS:
            if not self.prose(operand, f".{kind}()", node.span):
                message = f"`{self.shown(operand.span)}` is {_typed(operand.type)}, not a list"
                self.fault("C104", node.span, message, f"only lists have `.{kind}`")
            operand = None
        if operand is None or not self._is_free(node.args[0]):
            return None
        variable = Local(node.args[0].name, self._slots, operands.element(operand.type), node.args[0].span)
        self._slots += 1
        if is_of_call(self, operand):
            self.of_call.add(variable.slot)
        with self._bound(variable):
            body = self.check(node.args[1])
        if body is None or not self.is_bool(body, f"`.{kind}`"):
            return None
        return Quantified(kind, operand, variable, body, BOOL, node.span)

    def _is_free(self, variable: Name) -> bool:
        if variable.name not in RESERVED and variable.name not in facts.NAMES:
            return True
        self.fault("C104", variable.span, f"`{variable.name}` is taken", "choose another name, such as `x`")
        return False

    @contextmanager
    def _bound(self, variable: Local) -> Iterator[None]:
        before = self.scope
        self.scope = {**before, variable.name: variable}
        yield
        self.scope = before


def _constant(node: Scalar) -> Constant:
    type_ = BOOL if isinstance(node.value, bool) else INT if isinstance(node.value, int) else STRING
    return Constant(node.value, type_, node.span)


def _typed(type_: ValueType) -> str:
    """A type with its article, for messages."""
    shown = str(type_)
    return f"{'an' if shown[0] in 'aei' else 'a'} {shown}"


def _described(expr: Expr) -> str:
    written = isinstance(expr, Constant) and isinstance(expr.value, str)
    return "a string" if written else _typed(expr.type)
