"""Owns which keys go with which tool kind, rule effect, gate and invariant, and the rule that names each misfit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from engine.domain.diagnostics import suggest
from engine.policy.documents.base import Exact, Part, judge, report
from engine.policy.documents.invariants import InvariantPart
from engine.policy.documents.overlay import OverlayDocument
from engine.policy.documents.policy import (
    IMPLICIT_GATES,
    ApprovalPart,
    BranchPart,
    ByPart,
    CapabilityPart,
    FreshPart,
    GatePart,
    PolicyDocument,
    RulePart,
)
from engine.policy.documents.test import TestDocument
from engine.policy.documents.tools import ReconcilePart, ToolPart, ToolsDocument
from engine.policy.documents.types import check_type

_ONLY_READS: Final = Exact("W206", "only reads may be cached", "delete `cache`")
REFUSED_BY_KIND: Final[Mapping[str, Mapping[str, Exact | None]]] = {
    "read": dict.fromkeys(
        ("effects", "idempotency", "reconcile", "reversible", "compensate", "holds", "serialize_by"), None
    ),
    "write": {"cache": _ONLY_READS},
    "hybrid": {"cache": _ONLY_READS},
}
"""Tool kind -> keys that it may not have; None: Y203 names the fault."""

_CHANGES: Final[Mapping[str, Exact]] = {
    "idempotency": Exact(
        "W201",
        "the {kind} `{name}` has no idempotency key",
        "add `idempotency: {key: [call.id]}` or a stronger key",
    ),
    "reconcile": Exact(
        "W202",
        "the {kind} `{name}` cannot be reconciled",
        'add `reconcile: {probe: TOOL, args: {key: idempotency_key}, confirms: "result.found"}` or `{manual: "…"}`',
    ),
    "effects": Exact("W203", "the {kind} `{name}` names no effects", "add `effects: [noun.verb]`"),
}
NEEDED_BY_KIND: Final[Mapping[str, Mapping[str, Exact]]] = {
    "read": {},
    "write": _CHANGES,
    "hybrid": {
        **_CHANGES,
        "reversible": Exact(
            "W204", "the hybrid `{name}` does not say whether it is reversible", "state `reversible:`"
        ),
    },
}
_COMPENSATE: Final = Exact(
    "W205",
    "`{name}` is reversible and nothing undoes it",
    "add `compensate: {tool: TOOL, args: {…}, on: [run_failed, run_cancelled]}`",
)

_ROLES: Final = Exact("P207", "rule `{name}` does not say for which roles", "add `roles: [ROLE]`")
_APPROVAL: Final = Exact(
    "Y202", "rule `{name}` needs the key `approval`", "add `approval: {by: {roles: [ROLE]}, expires: 30m}`"
)
REFUSED_BY_EFFECT: Final[Mapping[str, tuple[str, ...]]] = {
    "allow": ("approval",),
    "ask": ("unattended",),
    "require": ("needs", "unattended"),
    "deny": ("needs", "fresh", "approval", "unattended"),
}
NEEDED_BY_EFFECT: Final[Mapping[str, Mapping[str, Exact]]] = {
    "allow": {"roles": _ROLES},
    "ask": {"roles": _ROLES, "approval": _APPROVAL},
    "require": {"approval": _APPROVAL},
    "deny": {},
}

GATES: Final = ("output_committed", "citations_eligible", "holds_closed", "when")
INVARIANT_FORMS: Final[Mapping[str, tuple[str, ...]]] = {
    "never_effect": ("when",),
    "never_call": ("when", "unless"),
    "never_unattended": ("when",),
    "at_most": ("effect",),
    "before": ("requires",),
    "closes_effect": ("on",),
    "reachable": (),
}
"""Form -> the keys that go with it."""
NEEDED_BY_FORM: Final[Mapping[str, str]] = {"at_most": "effect", "before": "requires", "closes_effect": "on"}


def check_tools(document: ToolsDocument) -> None:
    for name, tool in document.tools.items():
        _tool(name, tool)


def _tool(name: str, tool: ToolPart) -> None:
    for key, refusal in REFUSED_BY_KIND[tool.kind].items():
        if not tool.is_written(key):
            continue
        if refusal is not None:
            report(
                refusal.code,
                tool.key_place(key),
                f"{refusal.message}; `{name}` is a {tool.kind}",
                refusal.help,
            )
        else:
            help_ = f"delete it, or say `kind: write` if `{name}` changes anything"
            report("Y203", tool.key_place(key), f"`{key}` does not belong to a {tool.kind}", help_)
    for key, need in NEEDED_BY_KIND[tool.kind].items():
        if not _given(tool, key):
            _report_need(need, tool, name=name, kind=tool.kind)
    if tool.kind != "read":
        _reversal(name, tool)
    if tool.idempotency is not None and not tool.idempotency.key and not tool.idempotency.is_lost("key"):
        _report_need(_CHANGES["idempotency"], tool.idempotency, name=name, kind=tool.kind)
    if tool.reconcile is not None:
        _reconcile(name, tool.kind, tool.reconcile)
    for part in (*tool.params.values(), *(tool.result or {}).values()):
        check_type(part)


def _given(part: Part, key: str) -> bool:
    value = getattr(part, key)
    return part.is_lost(key) or (value is not None and value != [])


def _report_need(need: Exact, part: Part, **words: str) -> None:
    report(need.code, part.here, need.message.format(**words), need.help)


def _reversal(name: str, tool: ToolPart) -> None:
    if tool.reversible and not _given(tool, "compensate"):
        _report_need(_COMPENSATE, tool, name=name)
    stated = tool.is_written("reversible") or tool.kind == "write"
    if not tool.reversible and stated and tool.is_written("compensate") and not tool.is_lost("reversible"):
        report("Y203", tool.key_place("compensate"), f"`compensate` belongs to a reversible tool, `{name}` is not",
               "say `reversible: true`, or delete `compensate`")  # fmt: skip


def _reconcile(name: str, kind: str, part: ReconcilePart) -> None:
    probe, manual = _given(part, "probe"), _given(part, "manual")
    if probe == manual:
        _report_need(_CHANGES["reconcile"], part, name=name, kind=kind)
    elif probe and not (_given(part, "confirms") or _given(part, "refutes")):
        report("Y202", part.here, "reconcile needs the key `confirms`", 'add `confirms: "result.found"`')
    elif manual:
        for key in ("args", "confirms", "refutes"):
            if part.is_written(key):
                report(
                    "Y203", part.key_place(key), f"`{key}` belongs to a probe", "delete it, or name a `probe`"
                )


def check_policy(document: PolicyDocument) -> None:
    for rule in document.permissions:
        check_rule(rule)
    for capability in document.capabilities.values():
        _capability(capability)
    for output in document.outputs.values():
        if output.publish is not None:
            _gates(output.publish.gates, output.publish, "gates")
            _approval(output.publish.approval)
    _gates(document.gates.finish, document.gates, "finish")
    for prune in document.context.prune if document.context else ():
        if not prune.superseded and prune.after_turns is None:
            report(
                "Y202",
                prune.here,
                "prune needs the key `after_turns` or `superseded: true`",
                "add one of them",
            )
    for invariant in document.invariants:
        _invariant(invariant)
    _types(document)


def check_overlay(document: OverlayDocument) -> None:
    for rule in document.permissions:
        check_rule(rule)
    if document.gates is not None:
        _gates(document.gates.finish, document.gates, "finish")


def check_test(document: TestDocument) -> None:
    for case in document.cases:
        if not any(_expects(turn.expect) for turn in case.turns) and not case.is_lost("turns"):
            report(
                "Y202", case.here, f"case `{case.id}` expects nothing", "add an `expect:` to one of its turns"
            )


def _expects(part: Part | None) -> bool:
    return part is not None and bool(part.node.entries or part.node.lost)


def check_rule(rule: RulePart) -> None:
    for key in REFUSED_BY_EFFECT[rule.effect]:
        if rule.is_written(key):
            report("Y203", rule.key_place(key), f"`{key}` does not belong to a rule with the effect {rule.effect}",
                   f"delete it, or change the effect; {_OWNERS[key]}")  # fmt: skip
    for key, need in NEEDED_BY_EFFECT[rule.effect].items():
        if not _given(rule, key):
            _report_need(need, rule, name=rule.id)
    if not rule.tools and not rule.is_lost("tools") and rule.is_written("tools"):
        report("Y205", rule.key_place("tools"), f"rule `{rule.id}` names no tool", "name the tools")
    for fresh in rule.fresh:
        _fresh(fresh)
    _approval(rule.approval)


_OWNERS: Final = {
    "approval": "`approval` belongs to ask and require",
    "unattended": "`unattended` belongs to allow",
    "needs": "`needs` belongs to allow and ask",
    "fresh": "`fresh` belongs to allow, ask and require",
}


def _fresh(part: FreshPart) -> None:
    if part.max_age is None and part.same_version_as is None and not part.node.lost:
        report("Y202", part.here, "fresh needs the key `max_age` or `same_version_as`",
               "add `max_age: 30s` or `same_version_as: proposal`")  # fmt: skip


def _approval(part: ApprovalPart | None) -> None:
    if part is not None and part.standing is not None and not part.standing.node.lost:
        standing = part.standing
        if standing.max_age is None and standing.max_calls is None:
            report(
                "Y202", standing.here, "standing needs the key `max_age` or `max_calls`", "add one of them"
            )


def _capability(part: CapabilityPart) -> None:
    expires = part.expires
    if (
        part.is_written("expires")
        and expires.after is None
        and expires.calls is None
        and not expires.node.lost
    ):
        need = CapabilityPart.exact_missing["expires"]
        report(need.code, part.key_place("expires"), need.message, need.help)
    for branch in part.approve:
        _branch(branch)
    for type_ in part.params.values():
        check_type(type_)


def _branch(part: BranchPart) -> None:
    if isinstance(part.by, ByPart):
        if not _given(part, "timeout"):
            report(
                "Y202", part.here, "a branch that people decide needs the key `timeout`", "add `timeout: 4h`"
            )
        return
    for key in ("not_requester", "quorum", "signed", "timeout"):
        if part.is_written(key):
            report("Y203", part.key_place(key), f"`{key}` belongs to a branch that people decide",
                   "delete it, or name roles in `by`")  # fmt: skip
    if (part.by == "starter") != (part.at == "start"):
        report(
            "Y203",
            part.place("by"),
            "`by: starter` and `at: start` go together",
            "write {at: start, by: starter}",
        )


def _gates(gates: list[GatePart | str] | list[str | GatePart], owner: Part, key: str) -> None:
    for at, gate in enumerate(gates):
        if isinstance(gate, str):
            _gate_word(gate, owner, key, at)
            continue
        given = [name for name in GATES if gate.is_written(name)]
        if len(given) != 1 and not (gate.node.lost and not given):
            report("Y205", gate.here, "a gate has exactly one key", f"one of: {', '.join(GATES)}")


def _gate_word(word: str, owner: Part, key: str, at: int) -> None:
    place = owner.place(key, at)
    semantic = judge(word)
    if word in IMPLICIT_GATES:
        report("G503", place, f"`{word}` is repeated: this gate always applies", "delete it")
    elif semantic is not None:
        report("S303", place, semantic.message, semantic.help)
    else:
        report("Y205", place, f"`{word}` is not a gate", suggest(word, (*GATES, *IMPLICIT_GATES), _GATE_HELP))


_GATE_HELP: Final = (
    "write `output_committed: OUTPUT`, `citations_eligible: OUTPUT`, `holds_closed: EFFECT` or `when: …`"
)


def _invariant(part: InvariantPart) -> None:
    forms = [form for form in INVARIANT_FORMS if part.is_written(form)]
    if len(forms) != 1:
        if not part.node.lost:
            report("Y205", part.here, f"invariant `{part.id}` needs exactly one form",
                   f"one of: {', '.join(INVARIANT_FORMS)}")  # fmt: skip
        return
    allowed = INVARIANT_FORMS[forms[0]]
    for key in ("when", "unless", "effect", "requires", "on"):
        if part.is_written(key) and key not in allowed:
            report("Y203", part.key_place(key), f"`{key}` does not belong to `{forms[0]}`", "delete it")
    needed = NEEDED_BY_FORM.get(forms[0])
    if needed and not _given(part, needed):
        report("Y202", part.here, f"`{forms[0]}` needs the key `{needed}`", f"add `{needed}:`")


def _types(document: PolicyDocument) -> None:
    for attr in document.principals.attrs.values():
        check_type(attr)
    for field in document.task.values():
        check_type(field)
    for slice_ in document.state.values():
        for field in slice_.fields.values():
            check_type(field)
    for output in document.outputs.values():
        for item in output.fields.values():
            check_type(item)
