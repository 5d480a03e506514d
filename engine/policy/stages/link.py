"""Owns the last stage: the parts and compiled conditions become one Policy."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Final, TypeVar

from engine.domain.canonical import Json, NotJson, canonical, digest_of
from engine.domain.policy import (
    ApproveBranch,
    ApproverSpec,
    Capability,
    Citations,
    Compact,
    ContextPolicy,
    Effect,
    FigureUse,
    Fresh,
    Gate,
    HideRule,
    Invariant,
    ModelPolicy,
    ModelUse,
    Output,
    OutputField,
    Overlay,
    Policy,
    Projection,
    Prompt,
    Prune,
    PublishRule,
    Rule,
    Source,
    SourceUse,
    StateSlice,
    Unattended,
)
from engine.domain.types import Trust
from engine.policy.documents.invariants import InvariantPart
from engine.policy.documents.kinds import INVARIANT_FORMS
from engine.policy.documents.overlay import OverlayDocument
from engine.policy.documents.policy import (
    ApprovalPart,
    BranchPart,
    ByPart,
    CapabilityPart,
    FallbackPart,
    GatePart,
    HidePart,
    ModelUsePart,
    OutputPart,
    PolicyDocument,
    RulePart,
)
from engine.policy.documents.types import field_type, value_type
from engine.policy.files import DEPLOYMENT
from engine.policy.model import Model
from engine.policy.nodes import data
from engine.policy.selectors import selected
from engine.policy.stages.budgets import smallest_budgets
from engine.policy.stages.limits import limit_of
from engine.policy.stages.specs import tool_spec

_ONE_DAY: Final = timedelta(days=1)
_NOT_IDENTITY: Final = frozenset({"tests", "tool_specs", "overlays"})
"""Keys of a policy whose text says nothing about what it means: the files they name are digested themselves."""


def link(model: Model) -> None:
    """Builds the Policy from whatever could be read; nothing if there is no policy document."""
    part = model.policy_part
    if part is not None:
        model.policy = _Linker(model, part).policy()


class _Linker:
    def __init__(self, model: Model, part: PolicyDocument) -> None:
        self.model = model
        self.part = part
        self.tools = model.tools
        self.publications = [f"publish_{name}" for name in part.outputs]

    def policy(self) -> Policy:
        part, model = self.part, self.model
        rules, hides = tuple(self._rules()), tuple(self._hides())
        names = [*self.tools, *self.publications]
        return Policy(
            id=part.id,
            version=part.version,
            owner=part.owner,
            about=part.about or "",
            digest=self._digest(),
            bundle=bundle(model),
            file=model.file,
            roles=frozenset(part.principals.roles),
            may_start=frozenset(part.principals.may_start),
            attrs={name: value_type(type_) for name, type_ in part.principals.attrs.items()},
            task={name: field_type(field) for name, field in part.task.items()},
            limits={name: limit_of(limit, model.limits.get(name)) for name, limit in part.limits.items()},
            sources=self._sources(),
            source_use={
                name: SourceUse(frozenset(use.usable_when), use.max_age) for name, use in part.sources.items()
            },
            tools={name: tool_spec(model, name, tool) for name, tool in self.tools.items()},
            capabilities={name: self._capability(name, item) for name, item in part.capabilities.items()},
            rules=rules,
            hides=hides,
            state=self._state(),
            projections=tuple(self._projections()),
            outputs={name: self._output(name, item) for name, item in part.outputs.items()},
            gates=tuple(self._all_gates()),
            budgets=smallest_budgets(part.budgets, [item.budgets for item in model.overlay_parts.values()]),
            context=self._context(),
            model=self._model(),
            on_policy_change=part.on_policy_change,
            labels=frozenset(model.labels),
            overlays=tuple(self._overlay(item) for item in model.overlay_parts.values()),
            invariants=tuple(
                found for item in part.invariants if (found := self._invariant(item)) is not None
            ),
            tests=tuple(part.tests),
            rules_of=_by_tool(rules, names),
            hides_of=_by_tool(hides, names),
        )

    # --- identity

    def _digest(self) -> str:
        model = self.model
        policy = {key: value for key, value in data(self.part.node).items() if key not in _NOT_IDENTITY}
        told: dict[str, Json] = {
            "policy": policy,
            "tools": [
                data(item.node) for item in sorted(model.tools_parts.values(), key=lambda item: item.id)
            ],
            "overlays": [data(item.node) for item in model.overlay_parts.values()],
            "prompt": model.prompt.text if model.prompt else None,
            "limits": dict(model.limits),
        }
        if model.templates:
            told["templates"] = {
                f"{name} {form}": text.text for (name, form), text in model.templates.items()
            }
        try:
            return digest_of(told)
        except NotJson:
            return digest_of(sorted(model.documents))

    # --- rules

    def _matches(self, entries: list[str]) -> frozenset[str]:
        return frozenset().union(*(selected(entry, self.tools, self.publications) for entry in entries))

    def _rules(self) -> Iterable[Rule]:
        for part in self.part.permissions:
            yield self._rule(part, "policy")
        for overlay in self.model.overlay_parts.values():
            for part in overlay.permissions:
                yield self._rule(part, f"overlay {overlay.id}")

    def _rule(self, part: RulePart, origin: str) -> Rule:
        condition = self.model.condition
        unattended = part.unattended
        return Rule(
            id=part.id,
            effect=Effect(part.effect),
            tools=tuple(part.tools),
            matches=self._matches(part.tools),
            roles=None if part.roles is None else frozenset(part.roles),
            needs=tuple(part.needs),
            when=condition(part, "when"),
            unless=condition(part, "unless"),
            fresh=tuple(
                Fresh(item.state, item.same_version_as is not None, item.max_age) for item in part.fresh
            ),
            approval=_approver(part.approval),
            unattended=Unattended(unattended.because, unattended.max_per_run) if unattended else None,
            because=part.because,
            origin=origin,
            place=part.here,
        )

    def _hides(self) -> Iterable[HideRule]:
        for part in self.part.visibility.hide if self.part.visibility else ():
            yield self._hide(part, "policy")
        for overlay in self.model.overlay_parts.values():
            for part in overlay.visibility.hide if overlay.visibility else ():
                yield self._hide(part, f"overlay {overlay.id}")

    def _hide(self, part: HidePart, origin: str) -> HideRule:
        roles = None if part.roles is None else frozenset(part.roles)
        when = self.model.condition(part, "when")
        return HideRule(part.id, tuple(part.tools), self._matches(part.tools), roles, when, origin, part.here)

    # --- the rest of the policy

    def _sources(self) -> dict[str, Source]:
        return {
            name: Source(name, part.title or name, Trust(part.trust), part.here)
            for name, part in self.model.sources.items()
        }

    def _capability(self, name: str, part: CapabilityPart) -> Capability:
        return Capability(
            name=name,
            about=part.about or "",
            params={key: value_type(type_) for key, type_ in part.params.items()},
            request_roles=None if part.request.roles is None else frozenset(part.request.roles),
            request_when=self.model.condition(part.request, "when"),
            approve=tuple(self._branch(branch) for branch in part.approve),
            expires_after=part.expires.after,
            expires_calls=part.expires.calls,
            revoke_roles=frozenset(part.revoke.roles if part.revoke else ()),
            place=part.here,
        )

    def _branch(self, part: BranchPart) -> ApproveBranch:
        by = _branch_approver(part, part.by) if isinstance(part.by, ByPart) else part.by
        return ApproveBranch(
            self.model.condition(part, "when"), by, part.at == "start", part.timeout, part.here
        )

    def _state(self) -> dict[str, StateSlice]:
        return {
            name: StateSlice(
                name,
                {key: field_type(field) for key, field in part.fields.items()},
                part.refresh,
                part.max_age,
                part.here,
            )
            for name, part in self.part.state.items()
        }

    def _projections(self) -> Iterable[Projection]:
        for part in self.part.projections:
            name = part.from_.removeprefix("state.")
            slice_ = self.part.state.get(name)
            fields = part.fields if part.fields is not None else [*(slice_.fields if slice_ else ())]
            yield Projection(
                part.id,
                name,
                tuple(fields),
                part.render,
                part.every_turn,
                part.max_age,
                part.if_stale,
                part.here,
            )

    def _output(self, name: str, part: OutputPart) -> Output:
        cited, figures, publish = part.citations, part.figures, part.publish
        return Output(
            name=name,
            about=part.about or "",
            fields={
                key: OutputField(key, value_type(field), field.required, field.cites, field.figures)
                for key, field in part.fields.items()
            },
            citations=Citations(frozenset(cited.kinds), cited.min, cited.min_per_section, cited.max_age)
            if cited
            else None,
            figures=FigureUse(frozenset(figures.kinds), frozenset(figures.from_), figures.locale)
            if figures
            else None,
            publish=PublishRule(
                None if publish.roles is None else frozenset(publish.roles),
                self.model.condition(publish, "when"),
                _approver(publish.approval),
                tuple(self._gates(publish.gates)),
            )
            if publish
            else None,
            place=part.here,
            templates={
                form: found.text for (output, form), found in self.model.templates.items() if output == name
            },
        )

    def _all_gates(self) -> Iterable[Gate]:
        yield from self._gates(self.part.gates.finish)
        for overlay in self.model.overlay_parts.values():
            yield from self._gates(overlay.gates.finish if overlay.gates else ())

    def _gates(self, gates: Iterable[GatePart | str]) -> Iterable[Gate]:
        for part in gates:
            if isinstance(part, str):
                continue
            if part.output_committed is not None:
                yield Gate("output_committed", part.output_committed, None, part.here)
            elif part.citations_eligible is not None:
                yield Gate("citations_eligible", part.citations_eligible, None, part.here)
            elif part.holds_closed is not None:
                yield Gate("holds_closed", part.holds_closed, None, part.here)
            elif part.when is not None:
                yield Gate("when", part.when, self.model.condition(part, "when"), part.here)

    def _context(self) -> ContextPolicy:
        part = self.part.context
        if part is None:
            return ContextPolicy()
        compact = part.compact
        return ContextPolicy(
            part.max_input_tokens,
            tuple(Prune(item.kind, item.after_turns, item.superseded, item.keep) for item in part.prune),
            Compact(compact.at_tokens, frozenset(compact.covers), compact.model) if compact else None,
        )

    def _model(self) -> ModelPolicy:
        part, text = self.part.model, self.model.prompt
        prompt = (
            Prompt(part.prompt.system, text.text if text else "", tuple(part.prompt.vars))
            if part.prompt
            else None
        )
        return ModelPolicy(
            _model_use(part.primary),
            tuple(_model_use(item) for item in part.fallbacks),
            _model_use(part.fast) if part.fast else None,
            prompt,
        )

    def _overlay(self, part: OverlayDocument) -> Overlay:
        told = data(part.node)
        allowed = part.model.allowed if part.model else None
        return Overlay(
            part.id,
            part.version,
            part.owner,
            _digest_or_empty(told),
            dict(told.get("budgets") or {}),
            tuple(allowed) if allowed is not None else None,
            part.here,
        )

    def _invariant(self, part: InvariantPart) -> Invariant | None:
        form = next((form for form in INVARIANT_FORMS if getattr(part, form) is not None), None)
        if form is None:
            return None
        told = data(part.node)
        options = {key: value for key, value in told.items() if key not in ("id", "when", form)}
        return Invariant(
            part.id, form, getattr(part, form), self.model.condition(part, "when"), options, part.here
        )


def bundle(model: Model) -> Mapping[str, str]:
    """The text of every file that the Policy was compiled from, and what the deployment added."""
    names = [model.file, *model.tool_files, *model.overlay_files]
    texts = {name: model.documents[name].source.text for name in names}
    if model.prompt is not None:
        texts[model.prompt.name] = model.prompt.text
    texts.update({template.name: template.text for template in model.templates.values()})
    if model.extra_overlays or model.limits:
        texts[DEPLOYMENT] = canonical({"overlays": list(model.extra_overlays), "limits": dict(model.limits)})
    return texts


def _digest_or_empty(told: Json) -> str:
    try:
        return digest_of(told)
    except NotJson:
        return ""


R = TypeVar("R", Rule, HideRule)


def _by_tool(rules: tuple[R, ...], names: Iterable[str]) -> dict[str, tuple[R, ...]]:
    """Tool -> the rules that match it, in their order; tools without one are left out."""
    found = {name: tuple(rule for rule in rules if name in rule.matches) for name in names}
    return {name: matching for name, matching in found.items() if matching}


def _approver(part: ApprovalPart | None) -> ApproverSpec | None:
    if part is None:
        return None
    return ApproverSpec(
        roles=frozenset(part.by.roles),
        same_principal=part.by.same_principal,
        not_requester=part.not_requester,
        quorum=part.quorum,
        shows=tuple(part.shows),
        expires=part.expires,
        edit=tuple(part.edit),
        endorse=tuple(part.endorse),
        standing_max_age=part.standing.max_age if part.standing else None,
        standing_max_calls=part.standing.max_calls if part.standing else None,
        signed=part.signed,
    )


def _branch_approver(part: BranchPart, by: ByPart) -> ApproverSpec:
    return ApproverSpec(
        roles=frozenset(by.roles),
        same_principal=by.same_principal,
        not_requester=part.not_requester,
        quorum=part.quorum,
        shows=(),
        expires=part.timeout or _ONE_DAY,
        edit=(),
        endorse=(),
        standing_max_age=None,
        standing_max_calls=None,
        signed=part.signed,
    )


def _model_use(part: ModelUsePart) -> ModelUse:
    on = frozenset(part.on) if isinstance(part, FallbackPart) else frozenset[str]()
    return ModelUse(part.id, part.temperature, part.max_output_tokens, part.timeout, on)
