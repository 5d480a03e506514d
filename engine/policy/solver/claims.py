"""Owns what the solver is asked: claims about the truth of conditions, and the view in which they are read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from engine.domain.conditions import Expr
from engine.domain.facts import Value
from engine.domain.types import ValueType

TRUE: Final = 1
FALSE: Final = 2
UNSURE: Final = 4
"""The third truth value; a set of truth values is a sum of these three."""
ANY: Final = TRUE | FALSE | UNSURE


@dataclass(frozen=True, slots=True)
class Says:
    """The truth of a condition is one of `truths`."""

    expr: Expr
    truths: int


@dataclass(frozen=True, slots=True)
class HasRole:
    """The principal has one of the roles; with `wanted` false, none of them."""

    roles: frozenset[str]
    wanted: bool = True


@dataclass(frozen=True, slots=True)
class Active:
    """There is an active grant of the capability; with `wanted` false, none."""

    capability: str
    wanted: bool = True


@dataclass(frozen=True, slots=True)
class Every:
    parts: tuple[Claim, ...]


@dataclass(frozen=True, slots=True)
class Some:
    parts: tuple[Claim, ...]


Claim: TypeAlias = Says | HasRole | Active | Every | Some


def every(parts: Iterable[Claim]) -> Claim:
    return Every(tuple(parts))


def some(parts: Iterable[Claim]) -> Claim:
    return Some(tuple(parts))


def opposite(claim: Claim) -> Claim:
    """The claim that holds exactly where this one does not."""
    match claim:
        case Says(expr=expr, truths=truths):
            return Says(expr, ANY & ~truths)
        case HasRole(roles=roles, wanted=wanted):
            return HasRole(roles, not wanted)
        case Active(capability=capability, wanted=wanted):
            return Active(capability, not wanted)
        case Every(parts=parts):
            return some(opposite(part) for part in parts)
        case Some(parts=parts):
            return every(opposite(part) for part in parts)


@dataclass(frozen=True, slots=True)
class Argument:
    """A parameter of the tool in view."""

    type: ValueType
    required: bool
    bound: Expr | None = None
    """The fact that the Host fills it in from; None where the model supplies it."""


@dataclass(frozen=True, slots=True)
class View:
    """In which policy, and for which tool, conditions are read.

    What is not known here is free: any value of its type, or unknown. Claims that are impossible in a view are
    impossible; claims that are not impossible may still be.
    """

    limits: Mapping[str, Value] = field(default_factory=dict)
    tool: Mapping[str, Value] = field(default_factory=dict)
    args: Mapping[str, Argument] = field(default_factory=dict)
    offered: bool = False
    """When the contract is made: the model's arguments are unknown, but for those that are tried out."""
    without: frozenset[str] = frozenset()
    """Capabilities of which there is no grant."""
