"""Owns N105 mention-as-consent."""

from __future__ import annotations

from collections.abc import Iterator

from engine.domain.conditions import (
    Call,
    Compare,
    Connect,
    Constant,
    Expr,
    Not,
    Quantified,
    children,
)
from engine.domain.diagnostics import Diagnostic, Severity
from engine.policy.codes import finding
from engine.policy.model import Model
from engine.policy.rules import Rule
from engine.policy.rules.answers import CONDITION
from engine.policy.rules.examples import base
from engine.policy.written import Written, WrittenRule, written


def check(model: Model) -> Iterator[Diagnostic]:
    known = written(model)
    if known is None:
        return
    for rule in known.rules:
        key = _waived_by(rule) if rule.effect == "require" else None
        tool = _final(known, rule) if key is not None else None
        if key is not None and tool is not None:
            yield finding(
                "N105",
                rule.part.place(key),
                f"no human is asked about `{tool}` because a text mentions the value: `{rule.id}` is waived by "
                "`mention` or links() alone",
                '"do not send it to bob@x" mentions bob@x: ask, or take the value as a task field',
            )


def _final(known: Written, rule: WrittenRule) -> str | None:
    """The first tool of the rule that cannot be undone or sends something out."""
    for name in sorted(rule.tools):
        tool = known.tools.get(name)
        if tool is not None and (tool.egress or (tool.kind != "read" and not tool.reversible)):
            return name
    return None


def _waived_by(rule: WrittenRule) -> str | None:
    """The key whose condition keeps the rule out as soon as a text mentions the value, and not otherwise."""
    if rule.unless is not None and _decides(rule.unless.expr, True):
        return "unless"
    if rule.when is not None and _decides(rule.when.expr, False):
        return "when"
    return None


def _decides(expr: Expr, wanted: bool) -> bool:
    return _answer(expr, mentioned=True) is wanted and _answer(expr, mentioned=False) is not wanted


def _answer(expr: Expr, *, mentioned: bool) -> bool | None:
    """The condition if mentions are so (or not) and no value has any other origin; None where other facts decide."""
    if _is_weak(expr):
        return mentioned
    match expr:
        case Constant(value=value):
            return bool(value)
        case Not(operand=operand):
            inner = _answer(operand, mentioned=mentioned)
            return None if inner is None else not inner
        case Connect(op=op, operands=operands):
            answers = [_answer(each, mentioned=mentioned) for each in operands]
            decisive = op == "||"
            if decisive in answers:
                return decisive
            return None if None in answers else not decisive
        case Quantified(body=body):
            return _answer(body, mentioned=mentioned)
        case Compare() if _asks_origin(expr) is not None:
            return False
        case _:
            return None


def _is_weak(expr: Expr) -> bool:
    """`'mention' in origin(x)`, or a comparison with what links() finds."""
    if isinstance(expr, Compare):
        return _asks_origin(expr) == "mention" or (_asks_origin(expr) is None and _has_links(expr))
    return False


def _asks_origin(expr: Compare) -> str | None:
    if isinstance(expr.right, Call) and expr.right.function == "origin" and isinstance(expr.left, Constant):
        return str(expr.left.value)
    return None


def _has_links(expr: Expr) -> bool:
    return (isinstance(expr, Call) and expr.function == "links") or any(
        _has_links(each) for each in children(expr)
    )


_RULE = """\
  - id: known-addresses
    effect: require
    tools: [borrow_book]
    unless: "'{origin}' in origin(args.send_to)"
    approval: {{by: {{roles: [reader], same_principal: true}}, expires: 10m}}
  - id: suspended-readers
"""
_PARAM = ("note: {type: text, max_len: 300, required: false}", "send_to: {type: email}")

RULE = Rule(
    id="N105",
    name="mention-as-consent",
    severity=Severity.WARNING,
    summary="An irreversible or egress call needs no human because a text mentions the value.",
    why=(
        "`mention` and links() are literal searches. They say that a value occurs in a text, not that "
        "anybody wants it used: the sentence may forbid it."
    ),
    bad=base(("  - id: suspended-readers\n", _RULE.format(origin="mention")), _PARAM),
    good=base(("  - id: suspended-readers\n", _RULE.format(origin="user")), _PARAM),
    answers=CONDITION,
    check=check,
)
