"""Owns how the answer of `agentctl why` is printed: rules with their places, and the facts that they read."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta

from engine.domain.canonical import Json, JsonObject
from engine.domain.policy import ApproverSpec, HideRule, Policy, Rule
from engine.domain.state import RunState
from engine.lifecycle.why import Answer, Judged, Shown
from engine.policy.decision import Need, NotApplied, where
from engine.policy.gates import GateResult
from engine.report.words import PLAIN, Style, safe, span

_WORDS = {"human": "ask"}


def heading(state: RunState, policies: Sequence[Policy]) -> str:
    """`for u1 (shopper), policy retail-order v7 (e4c91b7a19ed)`."""
    policy = policies[0]
    who = state.principal
    named = f"{safe(who.id)} ({', '.join(who.roles)})" if who is not None else "nobody"
    later = "".join(f", restricted by {each.id} v{each.version}" for each in policies[1:])
    return f"for {named}, policy {policy.id} v{policy.version} ({policy.digest[:12]}){later}"


def why_lines(
    answer: Answer, state: RunState, policies: Sequence[Policy], style: Style = PLAIN
) -> Iterator[str]:
    yield f"{style.strong(answer.tool)} {heading(state, policies)}"
    yield ""
    yield f"shown this turn: {'yes' if answer.shown.yes else 'no'}"
    if not answer.shown.yes:
        yield from _not_shown(answer, policies)
    if answer.args is not None:
        yield ""
        yield f"this call: {json.dumps(answer.args, ensure_ascii=False)}"
        yield from _decision(answer, policies)
    if answer.gates:
        yield ""
        yield f"proposed now, it {_ENDS[answer.ends]}"
        yield from (_gate(gate) for gate in answer.gates)


_ENDS = {"completes": "completes the Run", "held": "is held", "rejected": "is rejected"}


def _not_shown(answer: Answer, policies: Sequence[Policy]) -> Iterator[str]:
    shown = answer.shown
    if shown.permits:
        for each in shown.permits:
            yield f"  {_rule(each.rule)}"
            yield f"      does not apply: {each.clause}{facts(each.reads)}"
        return
    if shown.stop is not None:
        yield f"  {_rule(shown.stop)}{_version(shown.policy, policies)}"
        for clause in _clauses(shown.stop):
            yield f"      {clause}{facts(shown.reads or {})}"
        return
    narrowed = answer.args is None and shown.reason.startswith("every value")
    hint = "; ask about one with `--args`" if narrowed else ""
    yield f"  {safe(shown.reason)}{hint}"


def _rule(rule: Rule | HideRule) -> str:
    effect = "hide" if isinstance(rule, HideRule) else rule.effect.value
    return f"{effect} `{rule.id}`  {where(rule)}"


def _clauses(rule: Rule | HideRule) -> list[str]:
    found = [f"when {rule.when.text}"] if rule.when is not None else []
    if isinstance(rule, Rule) and rule.unless is not None:
        found.append(f"unless {rule.unless.text}")
    return [" and ".join(found)] if found else []


def _version(policy: Policy | None, policies: Sequence[Policy]) -> str:
    return "" if policy is None or policy is policies[0] else f"  [{policy.id} v{policy.version}]"


def facts(reads: Mapping[str, Json]) -> str:
    """`   [task.freeze = false]`; empty where nothing was read."""
    shown = [_fact(path, value) for path, value in reads.items()]
    return f"   [{', '.join(shown)}]" if shown else ""


def _fact(path: str, value: Json) -> str:
    if path.startswith("history.") and isinstance(value, dict):
        return f"{path[8:]}: {_receipts(value)}"
    said = "unknown" if value is None else json.dumps(value, ensure_ascii=False)
    return f"{path} = {safe(said)}"


def _receipts(history: JsonObject) -> str:
    counts, still = history.get("counts"), history.get("open")
    parts = [
        f"{count} {outcome}"
        for outcome, count in (counts if isinstance(counts, dict) else {}).items()
        if count
    ]
    if still:
        parts.append(f"{still} open or of unknown outcome")
    return ", ".join(parts) or "no receipt"


# --- the decision -------------------------------------------------------------------------------------------


def _decision(answer: Answer, policies: Sequence[Policy]) -> Iterator[str]:
    yield f"decision: {_WORDS.get(answer.verdict, answer.verdict)}"
    for judged in answer.judged:
        yield from _judged(judged, policies)
    if answer.refusal:
        yield f"  {safe(answer.refusal)}"


def _judged(judged: Judged, policies: Sequence[Policy]) -> Iterator[str]:
    version = _version(judged.policy, policies)
    if not judged.rules and judged.verdict == "deny":
        yield f"  no rule permits it{version}"
    needs = {need.rule: need for need in judged.needs}
    for rule in judged.rules:
        yield f"  decided by {_rule(rule)}  [{rule.origin}]{version}"
        if rule.id in needs:
            yield f"      approval: {approval(needs[rule.id].approval)}"
        elif rule.unattended is not None:
            yield f"      unattended, at most {rule.unattended.max_per_run} in a Run: {safe(rule.unattended.because)}"
        if rule.because:
            yield f"      because: {safe(rule.because)}"
    yield from _own_needs(judged)
    for each in judged.aside:
        yield from _aside(each)


def _own_needs(judged: Judged) -> Iterator[str]:
    """The approval that an output's publish rule asks for is no rule's."""
    known = {rule.id for rule in judged.rules}
    for need in judged.needs:
        if need.rule not in known:
            yield f"  decided by `{need.rule}`  {need.place}"
            yield f"      approval: {approval(need.approval)}"


def _aside(each: NotApplied) -> Iterator[str]:
    yield f"  not applied: {_rule(each.rule)}"
    yield f"      {each.clause}{facts(each.reads)}"


def approval(need: ApproverSpec) -> str:
    """`store_manager, not the requester, within 15m00s`."""
    parts = [" or ".join(sorted(need.roles))] if need.roles else []
    if need.quorum > 1:
        parts.append(f"{need.quorum} people")
    if need.same_principal:
        parts.append("the requester")
    if need.not_requester:
        parts.append("not the requester")
    if need.signed:
        parts.append("a signed identity")
    return ", ".join([*parts, f"within {_span(need.expires)}"])


def _span(length: timedelta) -> str:
    seconds = int(length.total_seconds())
    for size, unit in ((86400, "d"), (3600, "h"), (60, "m")):
        if seconds and seconds % size == 0:
            return f"{seconds // size}{unit}"
    return span(length)


def _gate(gate: GateResult) -> str:
    place = f" ({gate.place})" if gate.place else ""
    state = "passes" if gate.passed else "fails "
    return f"  {state} {gate.title}{place}" + (f"   {safe(gate.why)}" if gate.why else "")


# --- JSON ---------------------------------------------------------------------------------------------------


def why_json(answer: Answer, state: RunState, policies: Sequence[Policy]) -> JsonObject:
    who = state.principal
    form: JsonObject = {
        "schema": "agentctl.why/v1",
        "tool": answer.tool,
        "policy": policies[0].id,
        "version": policies[0].version,
        "digest": policies[0].digest,
        "principal": who.id if who is not None else None,
        "roles": [*who.roles] if who is not None else [],
        "shown": answer.shown.yes,
        "shown_because": _shown_json(answer.shown),
    }
    if answer.args is not None:
        form |= {"args": answer.args, "decision": _WORDS.get(answer.verdict, answer.verdict)}
        form |= {
            "refusal": answer.refusal or None,
            "policies": [_judged_json(each) for each in answer.judged],
        }
    if answer.gates:
        form |= {"finish": answer.ends, "gates": [_gate_json(gate) for gate in answer.gates]}
    return form


def _shown_json(shown: Shown) -> JsonObject:
    rule = None if shown.stop is None else _rule_json(shown.stop)
    return {
        "reason": shown.reason or None,
        "rule": rule,
        "reads": dict(shown.reads or {}),
        "not_applied": [_aside_json(each) for each in shown.permits],
    }


def _rule_json(rule: Rule | HideRule) -> JsonObject:
    effect = "hide" if isinstance(rule, HideRule) else rule.effect.value
    place = rule.place
    return {"id": rule.id, "effect": effect, "origin": rule.origin, "file": place.file, "line": place.line}


def _aside_json(each: NotApplied) -> JsonObject:
    return {**_rule_json(each.rule), "clause": each.clause, "reads": dict(each.reads)}


def _judged_json(judged: Judged) -> JsonObject:
    return {
        "policy": judged.policy.id,
        "version": judged.policy.version,
        "decision": _WORDS.get(judged.verdict, judged.verdict),
        "decided_by": [_rule_json(rule) for rule in judged.rules],
        "approvals": [_need_json(need) for need in judged.needs],
        "not_applied": [_aside_json(each) for each in judged.aside],
    }


def _need_json(need: Need) -> JsonObject:
    return {
        "rule": need.rule,
        "roles": [*sorted(need.approval.roles)],
        "same_principal": need.approval.same_principal,
        "not_requester": need.approval.not_requester,
        "quorum": need.approval.quorum,
        "signed": need.approval.signed,
    }


def _gate_json(gate: GateResult) -> JsonObject:
    return {"gate": gate.name, "subject": gate.subject, "passed": gate.passed, "why": gate.why or None}
