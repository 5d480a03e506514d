"""Owns the decision over one call: deny, a human, or allow (language reference, section 1.6).

The order of rules never matters and no rule is more specific than another. Unknown satisfies `deny` and
`require`, and permits nothing; an `ask` that cannot be evaluated still wants its people where another rule permits.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import chain, count, product
from typing import Final, NamedTuple

from engine.domain.canonical import Json
from engine.domain.conditions import Condition
from engine.domain.facts import PENDING, UNKNOWN, Facts, Truth
from engine.domain.policy import ApproverSpec, Effect, HideRule, Output, Policy, Rule
from engine.policy.view import PUBLISH, read_facts


class Verdict(StrEnum):
    DENY = "deny"
    HUMAN = "human"
    ALLOW = "allow"


_SEVERITY: Final = {Verdict.ALLOW: 0, Verdict.HUMAN: 1, Verdict.DENY: 2}


class Need(NamedTuple):
    """One approval that a decision asks for."""

    rule: str
    approval: ApproverSpec
    place: str
    because: str | None = None


@dataclass(frozen=True, slots=True)
class Decision:
    """What the rules say of one call under given facts."""

    verdict: Verdict
    rules: tuple[Rule, ...]
    """Those that decide: the denies; the asks and requires; or the allows. Empty where no rule permits."""
    permits: tuple[Rule, ...] = ()
    """Matched allow and ask rules."""
    needs: tuple[Need, ...] = ()
    """The approvals that must each be satisfied."""
    matched: tuple[Rule, ...] = ()
    """Every matched rule that permits or asks for a person: their `fresh` is checked at execution."""
    grants: tuple[tuple[str, int], ...] = ()
    """(capability, index among its active grants) under which the permitting rules hold."""
    alerts: tuple[str, ...] = ()
    """Conditions whose evaluation failed; they counted as unknown."""
    policy: str = ""
    """`version N` where a newer version than the Run's own decided."""

    @property
    def reason(self) -> str:
        """One line that names the deciding rules and where they stand."""
        if not self.rules:
            why = "no rule permits it" if self.verdict is Verdict.DENY else "decided by its publish rule"
        else:
            named = ", ".join(f"{rule.effect.value} `{rule.id}` ({where(rule)})" for rule in self.rules)
            why = f"decided by {named}"
        return f"{why}, in {self.policy}" if self.policy else why

    @property
    def unattended(self) -> Rule | None:
        """The rule under which a call runs without a person, if it is one that says so."""
        capped = [rule for rule in self.permits if rule.unattended is not None]
        free = any(rule.effect is Effect.ALLOW and rule.unattended is None for rule in self.permits)
        return min(capped, key=lambda rule: rule.id) if capped and not free else None


def where(thing: Rule | HideRule) -> str:
    """`file:line` of a rule."""
    return f"{thing.place.file}:{thing.place.line}"


def decide(policy: Policy, tool: str, facts: Facts) -> Decision:
    """Decides under one policy. `facts` have the call in view (`view.for_call`)."""
    denies: list[Rule] = []
    permits: list[Rule] = []
    asks: list[Rule] = []
    grants: list[tuple[str, int]] = []
    alerts: list[str] = []
    for rule in policy.rules_of.get(tool, ()):
        truth, used = holds(rule, facts, alerts)
        if truth is False:
            continue
        effect = rule.effect
        if effect is Effect.DENY or (effect is not Effect.ALLOW and rule.approval is None):
            denies.append(rule)
        elif effect is Effect.REQUIRE:
            asks.append(rule)
        elif truth is True and may_permit(rule, facts):
            permits.append(rule)
            grants.extend(used)
            if effect is Effect.ASK:
                asks.append(rule)
        elif effect is Effect.ASK and truth is not True:
            asks.append(rule)  # it permits nothing, but what may have needed people still does
    if denies:
        return Decision(Verdict.DENY, tuple(denies), tuple(permits), alerts=tuple(alerts))
    extra, published = _publication(policy, tool, facts, alerts)
    if not permits and not published:
        return Decision(Verdict.DENY, (), alerts=tuple(alerts))
    needs = (*(_need(rule) for rule in asks), *extra)
    matched = (*permits, *(rule for rule in asks if rule.effect is Effect.REQUIRE))
    verdict = Verdict.HUMAN if asks or extra else Verdict.ALLOW
    deciding = tuple(asks) if asks else tuple(permits)
    return Decision(
        verdict, deciding, tuple(permits), needs, matched, tuple(dict.fromkeys(grants)), tuple(alerts)
    )


def decide_restricted(policies: Sequence[Policy], tool: str, facts: Sequence[Facts]) -> Decision:
    """The strictest of the Run's own policy (first) and of those that restrict it; `facts` one per policy.

    Approvals add up; a call that needs people in one of them needs people.
    """
    first = decide(policies[0], tool, facts[0])
    for policy, seen in zip(policies[1:], facts[1:], strict=True):
        other = decide(policy, tool, seen)
        first = _stricter(first, replace(other, policy=f"version {policy.version}"))
    return first


def _stricter(own: Decision, other: Decision) -> Decision:
    worse = other if _SEVERITY[other.verdict] > _SEVERITY[own.verdict] else own
    return replace(
        worse,
        permits=own.permits,
        needs=_united(own.needs, other.needs, other.policy) if worse.verdict is Verdict.HUMAN else (),
        matched=_distinct(own.matched, other.matched),
        grants=own.grants,
        alerts=(*own.alerts, *other.alerts),
    )


def _distinct(own: Sequence[Rule], other: Sequence[Rule]) -> tuple[Rule, ...]:
    seen = {(rule.id, rule.fresh) for rule in own}
    return (*own, *(rule for rule in other if (rule.id, rule.fresh) not in seen))


def _united(own: Sequence[Need], other: Sequence[Need], version: str) -> tuple[Need, ...]:
    """Each under a name of its own: who said yes to what is kept by these names."""
    united = list(own)
    for need in other:
        rule = need.rule
        if any(known.rule.partition(" ")[0] == rule and known.approval == need.approval for known in own):
            continue
        names = {known.rule for known in united}
        if rule in names:
            numbered = (f"{rule} ({version}, {number})" for number in count(2))
            rule = next(name for name in chain([f"{rule} ({version})"], numbered) if name not in names)
        united.append(need._replace(rule=rule))
    return tuple(united)


def _need(rule: Rule) -> Need:
    assert rule.approval is not None
    return Need(rule.id, rule.approval, where(rule), rule.because)


def may_permit(rule: Rule, facts: Facts) -> bool:
    """Overlays cannot permit, and beyond its cap an unattended rule permits nothing."""
    if rule.origin != "policy":
        return False
    return rule.unattended is None or facts.unattended.get(rule.id, 0) < rule.unattended.max_per_run


def _publication(policy: Policy, tool: str, facts: Facts, alerts: list[str]) -> tuple[tuple[Need, ...], bool]:
    """What `outputs.<name>.publish` says: (approvals, permitted). Without it, every role that may start."""
    output = output_of(policy, tool)
    if output is None:
        return (), False
    rule = output.publish
    roles = policy.may_start if rule is None or rule.roles is None else rule.roles
    if roles.isdisjoint(facts.principal.get("roles", ())):
        return (), False
    if rule is None:
        return (), True
    if rule.when is not None and _ask(rule.when, facts, alerts) is not True:
        return (), False
    if rule.approval is None:
        return (), True
    return (Need(tool, rule.approval, f"{output.place.file}:{output.place.line}"),), True


def may_publish(policy: Policy, tool: str, facts: Facts) -> bool:
    """True if the output's own publish rule permits, or may once the fields are known."""
    output = output_of(policy, tool)
    rule = output.publish if output is not None else None
    if rule is not None and rule.when is not None and ask(rule.when, facts) is PENDING:
        return True
    return _publication(policy, tool, facts, [])[1]


def output_of(policy: Policy, tool: str) -> Output | None:
    """The output that `publish_<output>` publishes; None for any other name."""
    if not tool.startswith(PUBLISH) or tool in policy.tools:
        return None
    return policy.outputs.get(tool[len(PUBLISH) :])


# --- one rule ----------------------------------------------------------------------------------------------


def holds(rule: Rule, facts: Facts, alerts: list[str]) -> tuple[Truth, tuple[tuple[str, int], ...]]:
    """roles ∧ needs ∧ when ∧ ¬unless, and the grants under which it holds.

    Of several active grants of one capability any one may make it true.
    """
    if rule.roles is not None and rule.roles.isdisjoint(facts.principal.get("roles", ())):
        return False, ()
    for capability in rule.needs:
        if not facts.grants.get(capability):
            return False, ()
    if len(facts.grants) == 0:
        return _clauses(rule, facts, alerts), ()
    several = [name for name in grants_read(rule) if len(facts.grants.get(name, ())) > 1]
    if not several:
        return _clauses(rule, facts, alerts), tuple((name, 0) for name in rule.needs)
    return _any_grant(rule, facts, alerts, several)


def _any_grant(
    rule: Rule, facts: Facts, alerts: list[str], several: Sequence[str]
) -> tuple[Truth, tuple[tuple[str, int], ...]]:
    found: Truth = False
    for choice in product(*(range(len(facts.grants[name])) for name in several)):
        chosen = dict(zip(several, choice, strict=True))
        truth = _clauses(rule, _with_grants(facts, chosen), alerts)
        if truth is True:
            return True, tuple((name, chosen.get(name, 0)) for name in rule.needs)
        if truth is not False:
            found = _either(found, truth, permits=rule.effect.permits)
    return found, ()


def _either(one: Truth, two: Truth, *, permits: bool) -> Truth:
    """Of two grants neither of which makes the rule true: PENDING may still permit, UNKNOWN still restricts."""
    wanted = PENDING if permits else UNKNOWN
    if wanted in (one, two):
        return wanted
    return two if one is False else one


def _with_grants(facts: Facts, chosen: Mapping[str, int]) -> Facts:
    grants = {name: [held[chosen[name]]] if name in chosen else held for name, held in facts.grants.items()}
    return replace(facts, grants=grants)


def grants_read(rule: Rule) -> tuple[str, ...]:
    """Capabilities that the rule needs or whose parameters it reads."""
    names = list(rule.needs)
    for condition in (rule.when, rule.unless):
        if condition is not None:
            names.extend(path.split(".")[1] for path in condition.reads if path.startswith("grant."))
    return tuple(dict.fromkeys(names))


def _clauses(rule: Rule, facts: Facts, alerts: list[str]) -> Truth:
    first: Truth = True
    if rule.when is not None:
        first = _ask(rule.when, facts, alerts)
        if first is False:
            return False
    if rule.unless is None:
        return first
    second = _ask(rule.unless, facts, alerts)
    if second is True:
        return False
    if first is UNKNOWN or second is UNKNOWN:
        return UNKNOWN
    return PENDING if first is PENDING or second is PENDING else True


def _ask(condition: Condition, facts: Facts, alerts: list[str]) -> Truth:
    try:
        truth = condition.test(facts)
    except Exception as error:  # noqa: BLE001 - whatever goes wrong in there must not permit anything
        alerts.append(f"the condition `{condition.text}` failed: {type(error).__name__}")
        return UNKNOWN
    if truth is True or truth is False or truth is PENDING or truth is UNKNOWN:
        return truth
    alerts.append(f"the condition `{condition.text}` gave no truth value")
    return UNKNOWN


def ask(condition: Condition, facts: Facts) -> Truth:
    """Tests one condition; what raises or gives no truth value is UNKNOWN."""
    return _ask(condition, facts, [])


def hidden_by(policy: Policy, tool: str, facts: Facts) -> HideRule | None:
    """The first hide rule that takes the tool away."""
    for hide in policy.hides_of.get(tool, ()):
        if hide.roles is not None and hide.roles.isdisjoint(facts.principal.get("roles", ())):
            continue
        truth = True if hide.when is None else ask(hide.when, facts)
        if truth is True or truth is UNKNOWN:
            return hide
    return None


# --- why -----------------------------------------------------------------------------------------------------


class NotApplied(NamedTuple):
    """A rule that names the tool and did not take part: the clause that kept it out and the facts it read."""

    rule: Rule
    clause: str
    reads: Mapping[str, Json]


def not_applied(policy: Policy, tool: str, facts: Facts) -> list[NotApplied]:
    """For `why`: each rule that names the tool and takes no part in the decision, permits first."""
    rules = sorted(policy.rules_of.get(tool, ()), key=lambda rule: not rule.effect.permits)
    found = []
    for rule in rules:
        clause = next(_kept_out(rule, facts), None)
        if clause is not None:
            found.append(NotApplied(rule, *clause))
    return found


def _kept_out(rule: Rule, facts: Facts) -> Iterator[tuple[str, Mapping[str, Json]]]:
    roles = facts.principal.get("roles", ())
    if rule.roles is not None and rule.roles.isdisjoint(roles):
        yield f"for {', '.join(sorted(rule.roles))}", {"principal.roles": list(roles)}
        return
    for capability in rule.needs:
        if not facts.grants.get(capability):
            yield f"needs {capability}, which is not granted", {}
            return
    truth, _ = holds(rule, facts, [])
    if truth is False or (rule.effect.permits and truth is not True):
        yield _failing_clause(rule, facts)
    elif rule.effect.permits and not may_permit(rule, facts):
        cap = rule.unattended.max_per_run if rule.unattended is not None else 0
        yield f"max_per_run {cap}", {"unattended calls": facts.unattended.get(rule.id, 0)}


def _failing_clause(rule: Rule, facts: Facts) -> tuple[str, Mapping[str, Json]]:
    if rule.when is not None and ask(rule.when, facts) is not True:
        return f"when {rule.when.text}", read_facts(rule.when.reads, facts)
    if rule.unless is not None:
        return f"unless {rule.unless.text}", read_facts(rule.unless.reads, facts)
    return f"when {rule.when.text}" if rule.when else "its conditions", {}
