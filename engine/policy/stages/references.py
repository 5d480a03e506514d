"""Owns the third stage: every name must stand for something that is declared."""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase
from os.path import realpath

from engine.domain.errors import SourceError
from engine.policy.documents.base import Part
from engine.policy.documents.policy import (
    ApprovalPart,
    ByPart,
    CapabilityPart,
    GatePart,
    HidePart,
    OutputPart,
    PolicyDocument,
    RulePart,
)
from engine.policy.documents.test import TestDocument
from engine.policy.documents.tools import ToolPart
from engine.policy.documents.types import FieldPart, TypePart
from engine.policy.files import beside
from engine.policy.model import Model
from engine.policy.names import HOST_TOOLS
from engine.policy.nodes import data
from engine.policy.selectors import is_selector, selected
from engine.policy.source import parse
from engine.policy.stages.duplicates import duplicates


def references(model: Model) -> None:
    duplicates(model)
    for document in model.tools_parts.values():
        for name, tool in document.tools.items():
            _tool(model, name, tool)
    for name, part in model.test_parts.items():
        _tested(model, name, part)
    policy = model.policy_part
    if policy is not None:
        _Names(model, policy).check()


def _tested(model: Model, name: str, part: TestDocument) -> None:
    """A test file says which policy its cases are for; a policy that names it must be that one, or a copy of it."""
    if not part.is_written("policy"):
        return
    policy = beside(name, part.policy)
    if not model.files.exists(policy):
        model.add("R210", part.place("policy"), f"there is no file `{part.policy}`",
                  f"looked for `{policy}`: create it, or mend the path")  # fmt: skip
    elif model.policy_part is not None and model.policy_part.id != _id_in(model, policy):
        model.add("Y205", part.place("policy"), f"the cases are for `{policy}`, and `{model.file}` names them",
                  "mend `policy` here, or the list `tests` there")  # fmt: skip


def _id_in(model: Model, policy: str) -> str | None:
    """What another policy calls itself."""
    if realpath(policy) == realpath(model.file):
        return model.policy_part.id if model.policy_part is not None else None
    try:
        root = parse(policy, model.files.read(policy)).root
    except SourceError:
        return None
    return data(root).get("id") if root is not None else None


# --- tools ------------------------------------------------------------------------------------------------


def _tool(model: Model, name: str, tool: ToolPart) -> None:
    if name in HOST_TOOLS or name.startswith("publish_"):
        model.add("R204", tool.here, f"`{name}` is a tool of the Host", "rename the tool")
    if tool.source is not None and tool.source not in model.sources and not model.unread:
        model.unknown("R205", tool.place("source"), "source", tool.source, model.sources)
    if tool.reconcile is not None and tool.reconcile.probe is not None:
        known_tool(model, tool.reconcile, "probe", tool.reconcile.probe)
    if tool.compensate is not None:
        known_tool(model, tool.compensate, "tool", tool.compensate.tool)
    if tool.holds is not None and tool.holds.consumed_by is not None:
        known_effect(model, tool.holds, tool.holds.consumed_by, "consumed_by")
    for at, effect in enumerate(tool.cache.invalidated_by or () if tool.cache else ()):
        known_effect(model, tool.cache, effect, "invalidated_by", at)  # type: ignore[arg-type]  # set, or no loop
    _own_names(model, name, tool)
    for part in (*tool.params.values(), *(tool.result or {}).values()):
        evidence_kinds(model, part)
    if model.policy_part is not None:
        _labels(model, tool)


def _own_names(model: Model, name: str, tool: ToolPart) -> None:
    params, results = set(tool.params), set(tool.result or ())
    for at, param in enumerate(tool.serialize_by or ()):
        if param not in params:
            model.unknown("C103", tool.place("serialize_by", at), f"parameter of `{name}`", param, params)
    for at, field in enumerate(tool.sensitive):
        if field not in params | results:
            model.unknown(
                "C103",
                tool.place("sensitive", at),
                f"parameter or result field of `{name}`",
                field,
                params | results,
            )


def _labels(model: Model, tool: ToolPart) -> None:
    known = set(model.labels)
    labelled: list[ToolPart | FieldPart] = [tool, *(tool.result or {}).values()]
    for part in labelled:
        for at, label in enumerate(part.labels):
            if label not in known:
                model.unknown("N104", part.place("labels", at), "label", label, known)


def known_tool(model: Model, part: Part, key: str, name: str, at: int | None = None) -> None:
    if name not in model.tool_names and not model.unread:
        steps = (key,) if at is None else (key, at)
        model.unknown("R201", part.place(*steps), "tool", name, model.tool_names)


def known_effect(model: Model, part: Part, effect: str, *steps: str | int) -> None:
    if not model.unread and not any(fnmatchcase(known, effect) for known in model.effects):
        model.unknown("R207", part.place(*steps), "effect", effect, model.effects)


def evidence_kinds(model: Model, part: TypePart) -> None:
    if (
        part.type == "ref"
        and isinstance(part.of, str)
        and part.of not in model.evidence_kinds
        and not model.unread
    ):
        model.unknown("R208", part.place("of"), "evidence kind", part.of, model.evidence_kinds)
    inner: list[TypePart] = [*(part.fields or {}).values()]
    if isinstance(part.of, TypePart):
        inner.append(part.of)
    for item in inner:
        evidence_kinds(model, item)


# --- the policy and its overlays --------------------------------------------------------------------------


class _Names:
    def __init__(self, model: Model, policy: PolicyDocument) -> None:
        self.model = model
        self.policy = policy
        self.publications = [f"publish_{name}" for name in policy.outputs]

    def check(self) -> None:
        policy, model = self.policy, self.model
        self._roles(policy.principals, policy.principals.may_start, "may_start")
        for name in policy.sources:
            if name not in model.sources and not model.unread:
                model.unknown("R205", policy.key_place("sources", name), "source", name, model.sources)
        for rule in policy.permissions:
            self._rule(rule)
        for hide in policy.visibility.hide if policy.visibility else ():
            self._hide(hide)
        for capability in policy.capabilities.values():
            self._capability(capability)
        for output in policy.outputs.values():
            self._output(output)
        self._gates(policy.gates.finish)
        for name in policy.budgets.calls.per_tool:
            self._budget(policy.budgets.calls, name)
        self._state()
        self._invariants()
        for overlay in model.overlay_parts.values():
            for rule in overlay.permissions:
                self._entries(rule, rule.tools, overlay=True)
                self._fresh(rule)
            for hide in overlay.visibility.hide if overlay.visibility else ():
                self._entries(hide, hide.tools, overlay=True)
            self._gates(overlay.gates.finish if overlay.gates else ())

    def _roles(self, part: Part, roles: Iterable[str], *steps: str) -> None:
        for at, role in enumerate(roles):
            if role not in self.model.roles and self.policy.principals.is_written("roles"):
                self.model.unknown("R202", part.place(*steps, at), "role", role, self.model.roles)

    def _rule(self, rule: RulePart) -> None:
        self._roles(rule, rule.roles or (), "roles")
        self._entries(rule, rule.tools, overlay=False, grants=rule.effect in ("allow", "ask"))
        for at, name in enumerate(rule.needs):
            if name not in self.policy.capabilities and not self.policy.is_lost("capabilities"):
                self.model.unknown(
                    "R203", rule.place("needs", at), "capability", name, self.policy.capabilities
                )
        self._fresh(rule)
        self._approval(rule.approval)

    def _fresh(self, rule: RulePart) -> None:
        for fresh in rule.fresh:
            if fresh.state not in self.policy.state and not self.policy.is_lost("state"):
                self.model.unknown(
                    "R206", fresh.place("state"), "state slice", fresh.state, self.policy.state
                )

    def _approval(self, approval: ApprovalPart | None) -> None:
        if approval is not None:
            self._roles(approval.by, approval.by.roles, "roles")

    def _hide(self, hide: HidePart) -> None:
        self._roles(hide, hide.roles or (), "roles")
        self._entries(hide, hide.tools, overlay=False)

    def _entries(self, part: Part, entries: list[str], *, overlay: bool, grants: bool = False) -> None:
        model = self.model
        for at, entry in enumerate(entries):
            place = part.place("tools", at)
            if is_selector(entry):
                if grants:
                    tools = {name: tool for name, tool in model.tools.items() if tool.exposed == "model"}
                    names = ", ".join(sorted(selected(entry, tools, self.publications)))
                    model.add("P205", place, f"`{entry}` selects many tools, and allow and ask name them one by one",
                              f"name them: {names or 'none matches'}")  # fmt: skip
                elif not selected(entry, model.tools, self.publications) and not overlay and not model.unread:
                    self._dead_selector(entry, part, at)
            elif entry not in model.tool_names and entry not in self.publications and not model.unread:
                if entry in HOST_TOOLS:
                    model.add("R201", place, f"`{entry}` is a tool of the Host, which no rule can grant or deny",
                              "delete it from the rule")  # fmt: skip
                elif not overlay:
                    model.unknown("R201", place, "tool", entry, model.tool_names | {*self.publications})

    def _dead_selector(self, entry: str, part: Part, at: int) -> None:
        place, model = part.place("tools", at), self.model
        word, _, rest = entry.partition(":")
        if word == "source" and rest not in model.sources:
            model.unknown("R205", place, "source", rest, model.sources)
        elif word == "effect":
            model.unknown("R207", place, "effect", rest, model.effects)
        else:
            model.add("R201", place, f"`{entry}` selects no tool of this policy",
                      "selectors: kind:read, kind:write, kind:hybrid, effect:GLOB, source:NAME, egress, *")  # fmt: skip

    def _capability(self, part: CapabilityPart) -> None:
        self._roles(part.request, part.request.roles or (), "roles")
        if part.revoke is not None:
            self._roles(part.revoke, part.revoke.roles, "roles")
        for branch in part.approve:
            if isinstance(branch.by, ByPart):
                self._roles(branch.by, branch.by.roles, "roles")
        for param in part.params.values():
            evidence_kinds(self.model, param)

    def _output(self, part: OutputPart) -> None:
        kinds = self.model.evidence_kinds
        if part.publish is not None:
            self._roles(part.publish, part.publish.roles or (), "roles")
            self._approval(part.publish.approval)
            self._gates(part.publish.gates)
        for field in part.fields.values():
            evidence_kinds(self.model, field)
        for at, kind in enumerate(part.citations.kinds if part.citations else ()):
            if kind not in kinds and not self.model.unread:
                place = part.citations.place("kinds", at) if part.citations else part.here
                self.model.unknown("E601", place, "evidence kind", kind, kinds)
        for at, kind in enumerate(part.figures.from_ if part.figures else ()):
            if kind not in kinds and not self.model.unread:
                place = part.figures.place("from", at) if part.figures else part.here
                self.model.unknown("R208", place, "evidence kind", kind, kinds)

    def _gates(self, gates: Iterable[GatePart | str]) -> None:
        outputs = self.policy.outputs
        for gate in gates:
            if isinstance(gate, str):
                continue
            for key in ("output_committed", "citations_eligible"):
                name = getattr(gate, key)
                if name is not None and name not in outputs and not self.policy.is_lost("outputs"):
                    self.model.unknown("R209", gate.place(key), "output", name, outputs)
            if gate.holds_closed is not None:
                known_effect(self.model, gate, gate.holds_closed, "holds_closed")

    def _budget(self, calls: Part, name: str) -> None:
        known = self.model.tool_names | {*self.publications}
        if name not in known and not self.model.unread:
            self.model.unknown("B703", calls.key_place("per_tool", name), "tool", name, known)

    def _state(self) -> None:
        for part in self.policy.state.values():
            if part.refresh is not None:
                known_tool(self.model, part, "refresh", part.refresh)
        for projection in self.policy.projections:
            name = projection.from_.removeprefix("state.")
            slice_ = self.policy.state.get(name)
            if slice_ is None:
                self.model.unknown("R206", projection.place("from"), "state slice", name, self.policy.state)
                continue
            for at, field in enumerate(projection.fields or ()):
                if field not in slice_.fields and not slice_.is_lost("fields"):
                    self.model.unknown(
                        "R206",
                        projection.place("fields", at),
                        f"field of state `{name}`",
                        field,
                        slice_.fields,
                    )

    def _invariants(self) -> None:
        for part in self.policy.invariants:
            if part.never_call is not None:
                known_tool(self.model, part, "never_call", part.never_call)
            for key in ("never_unattended", "effect", "before", "requires", "closes_effect"):
                effect = getattr(part, key)
                if effect is not None:
                    known_effect(self.model, part, effect, key)
            for key in ("approved_by_other", "capability_approved_by"):
                role = getattr(part.unless, key) if part.unless else None
                if role is not None and role not in self.model.roles and part.unless is not None:
                    self.model.unknown("R202", part.unless.place(key), "role", role, self.model.roles)
