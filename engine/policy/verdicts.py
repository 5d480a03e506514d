"""Owns what admission can say of a proposal: rejected, fenced, held for people, run, or the Host's own to do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, TypeAlias

from engine.domain.calls import Refusal
from engine.domain.canonical import JsonObject
from engine.domain.events import RefusalRecord, Requirement
from engine.domain.policy import Rule, ToolSpec
from engine.policy.decision import Decision


@dataclass(frozen=True, slots=True)
class Reject:
    """Nothing ran and nothing will; `args` None where they could not be read."""

    refusal: RefusalRecord
    args: JsonObject | None = None
    alerts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Fence:
    """The permission epoch moved since the turn's contract."""

    moved_by: str


@dataclass(frozen=True, slots=True)
class Hold:
    """People must decide first."""

    spec: ToolSpec | None
    """None for a publication or a capability."""
    args: JsonObject
    """After binding."""
    normalised: tuple[str, ...]
    digest: str
    """What an approval binds to."""
    requirements: tuple[Requirement, ...]
    shown: JsonObject
    shown_digest: str
    matched: tuple[Rule, ...]
    """Rules whose `fresh` is checked at execution."""
    grants: tuple[str, ...] = ()
    idempotency_key: str | None = None
    alerts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Run:
    """May be dispatched now, as far as policy goes."""

    spec: ToolSpec
    args: JsonObject
    """After binding."""
    normalised: tuple[str, ...]
    digest: str
    matched: tuple[Rule, ...]
    approved_by: str | None = None
    """`rule <id> of policy <digest>, owner <owner>` for an unattended write or hybrid."""
    grants: tuple[str, ...] = ()
    """Ids of the grants that this call uses up."""
    idempotency_key: str | None = None
    alerts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Builtin:
    """A proposal to the Host itself, readable and permitted: finish, a question, a publication, a capability."""

    tool: str
    args: JsonObject
    normalised: tuple[str, ...] = ()
    needs: Hold | None = None
    """A publication that people must approve, once its checks pass."""


Admission: TypeAlias = Reject | Fence | Hold | Run | Builtin

NOT_OFFERED: Final = "not_offered"


def not_offered(tool: str, offered: frozenset[str]) -> RefusalRecord:
    """The same answer for a hidden tool and for a name that never existed."""
    shown = tool.encode("unicode_escape").decode("ascii")
    shown = shown if len(shown) <= 64 else f"{shown[:61]}..."
    listed = ", ".join(sorted(offered))
    return RefusalRecord(
        code=NOT_OFFERED, message=f"`{shown}` is not in the contract of this turn; its tools are: {listed}"
    )


def recorded(refusal: Refusal, rule: str | None = None) -> RefusalRecord:
    return RefusalRecord(code=refusal.code, message=refusal.message, rule=rule, field=refusal.field)


def reject(code: str, message: str, *, args: JsonObject | None = None, rule: str | None = None) -> Reject:
    return Reject(RefusalRecord(code=code, message=message, rule=rule), args)


def denied(decision: Decision) -> RefusalRecord:
    """The refusal of a decision that is deny: the deciding rule, or that no rule permits it."""
    rule = decision.rules[0] if decision.rules else None
    because = f": {rule.because}" if rule is not None and rule.because else ""
    return RefusalRecord(
        code="no_rule" if rule is None else "denied",
        message=f"{decision.reason}{because}",
        rule=None if rule is None else rule.id,
    )
