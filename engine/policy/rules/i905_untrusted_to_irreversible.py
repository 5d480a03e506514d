"""Owns I905 untrusted-to-irreversible."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from engine.domain.diagnostics import Diagnostic, Severity
from engine.domain.policy import Effect, Kind, Policy, Source, ToolSpec
from engine.domain.policy import Rule as PolicyRule
from engine.domain.types import Field, Trust
from engine.policy.codes import finding
from engine.policy.model import Model
from engine.policy.rules import Rule
from engine.policy.rules.answers import DECLARED
from engine.policy.rules.examples import base
from engine.policy.rules.grants import granted, rules_are_whole

_ASKED = "run.read_untrusted"


def check(model: Model) -> Iterator[Diagnostic]:
    policy = model.policy
    if policy is None or model.policy_part is None or not rules_are_whole(model):
        return
    tools = [policy.tools[name] for name in sorted(granted(model))]
    brings = next((tool for tool in tools if _untrusted(tool, policy.sources)), None)
    if brings is None:
        return
    for tool in tools:
        if tool.kind is not Kind.READ and not tool.reversible and not _guarded(policy, tool.name):
            permit = next(rule for rule in policy.rules_of[tool.name] if rule.effect.permits)
            written = (part for part in model.policy_part.permissions if part.here == permit.place)
            part = next(written, None)
            yield finding(
                "I905",
                part.place("id") if part is not None else permit.place,
                f"`{tool.name}` cannot be undone, and `{brings.name}` brings untrusted text into the same Run",
                f'add a deny: {{effect: deny, tools: [{tool.name}], when: "{_ASKED}"}}, or split the agent',
            )


def _untrusted(tool: ToolSpec, sources: Mapping[str, Source]) -> bool:
    source = sources.get(tool.source or "")
    by_default = source is not None and source.trust is Trust.UNTRUSTED
    if not tool.result:
        return by_default
    return any(_brings(field, by_default) for field in tool.result.values())


def _brings(field: Field, by_default: bool) -> bool:
    untrusted = by_default if field.trust is None else field.trust is Trust.UNTRUSTED
    inner = field.type.of.fields if field.type.of is not None else field.type.fields
    return any(_brings(each, untrusted) for each in inner.values()) if inner else untrusted


def _guarded(policy: Policy, tool: str) -> bool:
    """True if a deny asks for it, for everybody who is permitted, or if every permit asks for it itself."""
    rules = policy.rules_of.get(tool, ())
    permits = [rule for rule in rules if rule.effect.permits]
    if all(_asks(rule) for rule in permits):
        return True
    roles = frozenset().union(*(rule.roles or () for rule in permits))
    denies = [rule for rule in rules if rule.effect is Effect.DENY and _asks(rule)]
    return any(rule.roles is None or rule.roles >= roles for rule in denies)


def _asks(rule: PolicyRule) -> bool:
    return any(_ASKED in part.reads for part in (rule.when, rule.unless) if part is not None)


_DENY = """\
  - id: untrusted-then-borrow
    effect: deny
    tools: [borrow_book]
    when: "run.read_untrusted"
"""
_UNTRUSTED = ('title: "Closed archive"', 'title: "Closed archive", trust: untrusted')
_SUSPENDED = "  - id: suspended-readers\n"

RULE = Rule(
    id="I905",
    name="untrusted-to-irreversible",
    severity=Severity.ERROR,
    summary="Untrusted text and an irreversible write can meet in one Run.",
    why=(
        "Text from a source that anybody can write may carry orders, and no rule can tell an order from a "
        "sentence about one. What can be said is a fact: that such text has entered the Run. After that, "
        "nothing that cannot be undone."
    ),
    bad=base(_UNTRUSTED),
    good=base(_UNTRUSTED, (_SUSPENDED, _DENY + _SUSPENDED)),
    answers=DECLARED,
    check=check,
)
