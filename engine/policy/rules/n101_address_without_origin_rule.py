"""Owns N101 address-without-origin-rule."""

from __future__ import annotations

from collections.abc import Iterator

from engine.domain.diagnostics import Diagnostic, Severity
from engine.domain.types import ArgClass
from engine.policy.codes import finding
from engine.policy.documents.tools import ToolPart
from engine.policy.documents.types import FieldPart, TypePart
from engine.policy.model import Model
from engine.policy.rules import Rule
from engine.policy.rules.answers import DECLARED
from engine.policy.rules.examples import base
from engine.policy.rules.grants import granted
from engine.policy.written import Written, written


def check(model: Model) -> Iterator[Diagnostic]:
    known = written(model)
    permitted = granted(model) if known is not None else frozenset()
    brings = next((name for name in sorted(permitted) if _untrusted(model, model.tools[name])), None)
    if known is None or brings is None:
        return
    for name in sorted(permitted):
        tool = known.tools[name]
        if (tool.kind != "read" or tool.egress) and known.read_whole(name) and not _is_approved(known, name):
            yield from _unguarded(known, name, brings)


def _unguarded(known: Written, name: str, brings: str) -> Iterator[Diagnostic]:
    shape = known.model.environment.tools[name]
    for param, part in known.tools[name].params.items():
        address = shape.params[param].arg_class is ArgClass.ADDRESS and part.bind is None
        if address and not any(rule.asks_origin(param, "address") for rule in known.rules_of(name)):
            yield finding(
                "N101",
                part.here,
                f"no rule says where `{param}` of `{name}` may come from, and `{brings}` brings untrusted text",
                f"add a rule: `unless: \"'user' in origin(args.{param}) || 'state' in origin(args.{param})\"`, "
                "or ask a person",
            )


def _is_approved(known: Written, tool: str) -> bool:
    """True if a person sees every call of the tool."""
    rules = known.rules_of(tool)
    if all(rule.effect == "ask" for rule in rules if rule.permits):
        return True
    return any(
        rule.effect == "require" and rule.part.roles is None and rule.when is None and rule.unless is None
        for rule in rules
    )


def _untrusted(model: Model, tool: ToolPart) -> bool:
    source = model.sources.get(tool.source or "")
    by_default = source is not None and source.trust == "untrusted"
    if not tool.result:
        return by_default
    return any(_brings(field, by_default) for field in tool.result.values())


def _brings(part: TypePart, by_default: bool) -> bool:
    trust = part.trust if isinstance(part, FieldPart) else None
    untrusted = by_default if trust is None else trust == "untrusted"
    inner: list[TypePart] = [*(part.fields or {}).values()]
    if isinstance(part.of, TypePart):
        inner.append(part.of)
    return any(_brings(each, untrusted) for each in inner) if inner else untrusted


RULE = Rule(
    id="N101",
    name="address-without-origin-rule",
    severity=Severity.WARNING,
    summary="A write or egress tool takes an address that no rule constrains by origin or approval.",
    why=(
        "Where untrusted text can be read, the address that the model fills in may be the one that the text "
        "asks for. Where a value literally occurs is a fact that a rule can ask for."
    ),
    bad=base(
        (
            '    description: "Put a book aside until tomorrow."\n',
            '    description: "Put a book aside and tell somebody."\n',
        ),
        (
            "    params: {book: {type: ref, of: book}}\n",
            "    params: {book: {type: ref, of: book}, tell: {type: email}}\n",
        ),
        (
            'shelf: {title: "Catalogue and scanned pages"}',
            'shelf: {title: "Catalogue and scanned pages", trust: untrusted}',
        ),
        (
            'when: "principal.suspended"',
            'when: "principal.suspended || (run.read_untrusted && !tool.reversible)"',
        ),
    ),
    good=base(
        (
            '    description: "Put a book aside until tomorrow."\n',
            '    description: "Put a book aside and tell somebody."\n',
        ),
        (
            "    params: {book: {type: ref, of: book}}\n",
            "    params: {book: {type: ref, of: book}, tell: {type: email}}\n",
        ),
        (
            'shelf: {title: "Catalogue and scanned pages"}',
            'shelf: {title: "Catalogue and scanned pages", trust: untrusted}',
        ),
        (
            'when: "principal.suspended"',
            'when: "principal.suspended || (run.read_untrusted && !tool.reversible)"',
        ),
        (
            "tools: [hold_book]\n",
            "tools: [hold_book]\n    when: \"'user' in origin(args.tell) || 'state' in origin(args.tell)\"\n",
        ),
    ),
    answers=DECLARED,
    check=check,
)
