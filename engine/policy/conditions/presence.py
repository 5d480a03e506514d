"""Owns which optional facts a condition proves to be there by `has()`."""

from __future__ import annotations

from engine.domain.conditions import Connect, Expr, Has, Index, Local, Not, Read, Select

NOTHING: frozenset[str] = frozenset()


def key_of(expr: Expr) -> str | None:
    """A name for a path, equal for equal paths; None for what is not a path."""
    match expr:
        case Read():
            return str(expr)
        case Local(name=name, slot=slot):
            return f"{name}#{slot}"
        case Select(operand=operand, field=field):
            inner = key_of(operand)
            return f"{inner}.{field}" if inner else None
        case Index(operand=operand):
            return key_of(operand)
        case _:
            return None


def proved(expr: Expr, answer: bool) -> frozenset[str]:
    """Keys of the paths that are there whenever `expr` has this answer."""
    match expr:
        case Has(operand=operand) if answer:
            key = key_of(operand)
            return frozenset({key}) if key else NOTHING
        case Not(operand=operand):
            return proved(operand, not answer)
        case Connect(op=op, operands=operands):
            each = [proved(operand, answer) for operand in operands]
            every_operand_holds = (op == "&&") is answer
            return frozenset.union(*each) if every_operand_holds else frozenset.intersection(*each)
        case _:
            return NOTHING
