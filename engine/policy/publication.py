"""Owns the checks of a publication proposal: fields, citations, figures. Nothing here judges prose.

A publication that passes is rendered by the Host; one that does not keeps its valid fields for the next attempt.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from engine.domain.canonical import Json, JsonObject, digest_of
from engine.domain.events import Citation, EvidenceFigure, RenderedFigure
from engine.domain.facts import Facts
from engine.domain.policy import Citations, FigureUse, Output, Policy
from engine.domain.state import EvidenceState, RunState
from engine.domain.types import Field, TypeName, ValueType
from engine.policy import marks
from engine.policy.gates import out_of_scope
from engine.policy.marks import Mark, Slot
from engine.policy.values import Fault, read_fields, references


class Reason(NamedTuple):
    """One fault of a publication: a field, a citation or a slot that does not hold."""

    code: str
    """draft, published, field, missing, citation, min, min_per_section, figure."""
    field: str
    object: str
    """The mark, slot or section as written; empty for a whole field."""
    message: str


@dataclass(frozen=True, slots=True)
class Publish:
    fields: JsonObject
    """As the model wrote them."""
    rendered: JsonObject
    """What people read."""
    citations: tuple[Citation, ...]
    figures: tuple[RenderedFigure, ...]
    digest: str
    """SHA-256 over output, fields and rendered."""


@dataclass(frozen=True, slots=True)
class Refuse:
    reasons: tuple[Reason, ...]
    valid: JsonObject
    """Fields with which nothing is wrong: to be kept as a draft."""

    @property
    def message(self) -> str:
        return "; ".join(reason.message for reason in self.reasons)


def check_publication(
    policy: Policy, output: Output, sent: JsonObject, state: RunState, facts: Facts
) -> Publish | Refuse:
    """Checks one proposal of `publish_<output>`; a field that was left out comes from the draft it names."""
    if output.name in state.publications:
        message = f"`{output.name}` is published; a correction is a new Run that cites it"
        return Refuse((Reason("published", "", output.name, message),), {})
    fields, draft_fault = with_draft(output, sent, state)
    check = _Check(policy, output, state, facts)
    if draft_fault is not None:
        check.reasons.append(draft_fault)
    fields = check.types(fields)
    if output.citations is not None or any(each.cites for each in output.fields.values()):
        check.citations(fields, output.citations or _NO_RULE)
    check.figures(fields, output.figures)
    check.misplaced(fields)
    if check.reasons:
        wrong = {reason.field.split(".")[0].split("[")[0] for reason in check.reasons}
        valid = {name: value for name, value in fields.items() if name not in wrong}
        return Refuse(tuple(check.reasons), valid)
    return check.publish(fields)


_NO_RULE: Final = Citations(kinds=frozenset(), min=None, min_per_section=None, max_age=None)


def with_draft(output: Output, sent: JsonObject, state: RunState) -> tuple[JsonObject, Reason | None]:
    """The fields of a proposal with those of the draft that it names; the fault if it names none."""
    fields = {name: value for name, value in sent.items() if name != "draft"}
    if "draft" not in sent:
        return fields, None
    handle = sent["draft"]
    draft = state.drafts.get(handle) if isinstance(handle, str) else None
    if draft is None or draft.output != output.name:
        known = (
            ", ".join(each.handle for each in state.drafts.values() if each.output == output.name) or "none"
        )
        return fields, Reason(
            "draft", "draft", "", f"`draft` names no draft of {output.name} (there are: {known})"
        )
    return {**draft.fields, **fields}, None


@dataclass(slots=True)
class _Check:
    policy: Policy
    output: Output
    state: RunState
    facts: Facts
    reasons: list[Reason] = field(default_factory=list)
    cited: list[Citation] = field(default_factory=list)
    rendered: list[RenderedFigure] = field(default_factory=list)

    def types(self, fields: JsonObject) -> JsonObject:
        declared = {name: Field(each.type, each.required) for name, each in self.output.fields.items()}
        faults: list[Fault] = []
        read = read_fields(fields, declared, "", faults)
        missing = [name for name, each in declared.items() if each.required and name not in fields]
        for fault in faults:
            code = "missing" if fault.field in missing else "field"
            self.reasons.append(Reason(code, fault.field, "", fault.message))
        bad = {fault.field.split(".")[0].split("[")[0] for fault in faults}
        return {name: value for name, value in read.items() if name not in bad}

    # --- citations ---------------------------------------------------------------------------------------

    def citations(self, fields: JsonObject, rule: Citations) -> None:
        for name, value in fields.items():
            declared = self.output.fields[name]
            if declared.cites:
                for text in marks.leaves(value):
                    for mark in marks.marks_in(text):
                        self._cite(name, mark, rule)
            if declared.cites and isinstance(value, str) and rule.min_per_section is not None:
                self._sections(name, value, rule.min_per_section)
            self._references(name, value, declared.type, rule)
        if rule.min is not None and len(self.cited) < rule.min:
            message = f"min: {len(self.cited)} citations, at least {rule.min} are needed"
            self.reasons.append(Reason("min", "", "", message))

    def _sections(self, name: str, text: str, needed: int) -> None:
        for section in marks.sections(text):
            count = len(marks.marks_in(section.text))
            if count < needed:
                title = f"section `{section.title}`" if section.title else "the text before the first heading"
                message = f"min_per_section: {title} of `{name}` has {count} citations, {needed} needed"
                self.reasons.append(Reason("min_per_section", name, section.title, message))

    def _references(self, name: str, value: Json, type_: ValueType, rule: Citations) -> None:
        """Typed citations: references in the field; each element of a list of records is a section."""
        found = list(references(value, type_, name))
        for where, kind, ref in found:
            self._cite(where, self._mark_of(kind, ref), rule)
        if rule.min_per_section is None or type_.name is not TypeName.LIST or not isinstance(value, list):
            return
        if type_.of is None or type_.of.name is not TypeName.RECORD or not _has_refs(type_.of):
            return
        for index in range(len(value)):
            count = sum(1 for where, _, _ in found if where.startswith(f"{name}[{index}]."))
            if count < rule.min_per_section:
                here = f"{name}[{index}]"
                message = f"min_per_section: `{here}` has {count} citations, {rule.min_per_section} needed"
                self.reasons.append(Reason("min_per_section", here, "", message))

    def _mark_of(self, kind: str, ref: str) -> Mark:
        """A typed reference is a handle (`E3`, `E3#p2`) or the id of an evidence of its kind."""
        mark = marks.read_mark(ref)
        if mark.handle is not None:
            return mark
        return Mark(ref, self.state.evidence_index.get((kind, ref)), None)

    def _cite(self, name: str, mark: Mark, rule: Citations) -> None:
        evidence = self.state.evidence.get(mark.handle or "")
        why = self._not_citable(evidence, mark, rule)
        if why or evidence is None:
            self.reasons.append(
                Reason("citation", name, mark.text, f"citation `{mark.text}` in `{name}` {why}")
            )
        else:
            self.cited.append(Citation(mark=mark.text, evidence=evidence.handle, span=mark.span, field=name))

    def _not_citable(self, evidence: EvidenceState | None, mark: Mark, rule: Citations) -> str:
        if evidence is None:
            return "names no evidence of this Run"
        if rule.kinds and evidence.item.kind not in rule.kinds:
            return f"is a {evidence.item.kind}; citable are: {', '.join(sorted(rule.kinds))}"
        if mark.span is not None and mark.span not in evidence.item.spans:
            return f"names no span of {evidence.handle}"
        scope = out_of_scope(self.policy, evidence, self.facts)
        if scope:
            return f"is out of scope ({scope}){self._instead(evidence)}"
        age = self.facts.now - evidence.read_at
        if rule.max_age is not None and age > rule.max_age:
            return f"was read {int(age.total_seconds())}s ago, {int(rule.max_age.total_seconds())}s allowed"
        return ""

    def _instead(self, evidence: EvidenceState) -> str:
        newest = self.state.evidence_index.get((evidence.item.kind, evidence.item.id))
        return f"; its newest reading is {newest}" if newest and newest != evidence.handle else ""

    # --- figures -----------------------------------------------------------------------------------------

    def figures(self, fields: JsonObject, use: FigureUse | None) -> None:
        for name, text in self._texts(fields):
            declared = self.output.fields[name]
            for slot in marks.slots_in(text):
                if not declared.figures or use is None:
                    why = "is in a field that takes no figures"
                else:
                    why = self._figure(name, slot, use)
                if why:
                    shown = f"{{{{fig:{slot.text}}}}}"
                    self.reasons.append(Reason("figure", name, shown, f"figure `{shown}` in `{name}` {why}"))

    def _figure(self, name: str, slot: Slot, use: FigureUse) -> str:
        """Renders one slot; returns why it cannot be, or an empty string."""
        if slot.handle is None:
            return "is not written as {{fig:E1/key/name}} or {{fig:E1/name}}"
        evidence = self.state.evidence.get(slot.handle)
        if evidence is None:
            return "names no evidence of this Run"
        if use.from_kinds and evidence.item.kind not in use.from_kinds:
            return (
                f"is from a {evidence.item.kind}; figures are taken from: {', '.join(sorted(use.from_kinds))}"
            )
        scope = out_of_scope(self.policy, evidence, self.facts)
        if scope:
            return f"is out of scope ({scope}){self._instead(evidence)}"
        figure = _find(evidence, slot)
        if figure is None:
            return f"names no figure of {slot.handle}{_known(evidence, slot)}"
        if use.kinds and figure.type not in use.kinds:
            return f"is a {figure.type}; allowed are: {', '.join(sorted(use.kinds))}"
        text = marks.figure_text(figure, use.locale)
        if text is None:
            return f"has no {'date' if figure.type == 'date' else 'number'} to render"
        as_of = evidence.item.as_of
        self.rendered.append(
            RenderedFigure(
                slot=slot.text,
                evidence=evidence.handle,
                text=marks.traced(text, as_of, evidence.handle),
                value=figure.value,
                unit=figure.unit,
                as_of=as_of,
                field=name,
            )
        )
        return ""

    def misplaced(self, fields: JsonObject) -> None:
        """A handle between brackets in a field that does not cite would reach people unresolved."""
        for name, text in self._texts(fields):
            if self.output.fields[name].cites:
                continue
            for mark in marks.marks_in(text):
                if mark.handle is not None:
                    message = f"citation `{mark.text}` is in `{name}`, which takes no citations"
                    self.reasons.append(Reason("citation", name, mark.text, message))

    def _texts(self, fields: JsonObject) -> Iterator[tuple[str, str]]:
        for name, value in fields.items():
            for text in marks.leaves(value):
                yield name, text

    # --- rendering ---------------------------------------------------------------------------------------

    def publish(self, fields: JsonObject) -> Publish:
        numbers: dict[str, int] = {}
        for citation in self.cited:
            numbers.setdefault(citation.mark, len(numbers) + 1)
        figures = {figure.slot: figure.text for figure in self.rendered}
        rendered = {name: self._render(name, value, numbers, figures) for name, value in fields.items()}
        sealed = digest_of({"output": self.output.name, "fields": fields, "rendered": rendered})
        return Publish(fields, rendered, tuple(self.cited), tuple(self.rendered), sealed)

    def _render(self, name: str, value: Json, numbers: dict[str, int], figures: dict[str, str]) -> Json:
        cites = self.output.fields[name].cites
        if isinstance(value, str):
            return marks.render(
                value,
                lambda mark: marks.numbered(numbers[mark.text]) if cites else marks.plain(f"[[{mark.text}]]"),
                lambda slot: figures[slot.text],
            )
        if isinstance(value, list):
            return [self._render(name, item, numbers, figures) for item in value]
        if isinstance(value, dict):
            return {key: self._render(name, item, numbers, figures) for key, item in value.items()}
        return value


def in_order(output: Output, fields: Mapping[str, Json]) -> JsonObject:
    """Published fields as the policy declares them, one after the other: the log keeps them by name."""
    declared = {name: field.type for name, field in output.fields.items()}
    return _arranged(fields, declared)


def _arranged(fields: Mapping[str, Json], types: Mapping[str, ValueType]) -> JsonObject:
    named = [*(name for name in types if name in fields), *(name for name in fields if name not in types)]
    return {name: _within(fields[name], types.get(name)) for name in named}


def _within(value: Json, type_: ValueType | None) -> Json:
    if isinstance(value, dict) and type_ is not None:
        return _arranged(value, {name: field.type for name, field in type_.fields.items()})
    if isinstance(value, list) and type_ is not None:
        return [_within(item, type_.of) for item in value]
    return value


def _has_refs(type_: ValueType) -> bool:
    if type_.name is TypeName.REF:
        return True
    if type_.of is not None and _has_refs(type_.of):
        return True
    return any(_has_refs(each.type) for each in type_.fields.values())


def _find(evidence: EvidenceState, slot: Slot) -> EvidenceFigure | None:
    return next(
        (each for each in evidence.item.figures if each.name == slot.name and each.key == slot.key), None
    )


def _known(evidence: EvidenceState, slot: Slot) -> str:
    """What could have been meant: the names of its figures, or the keys of the one named."""
    keys = [each.key for each in evidence.item.figures if each.name == slot.name and each.key is not None]
    if keys:
        return f"; keys of {slot.name}: {', '.join(keys[:10])}"
    names = list(dict.fromkeys(each.name for each in evidence.item.figures))
    return f"; its figures: {', '.join(names)}" if names else ", which has none"
