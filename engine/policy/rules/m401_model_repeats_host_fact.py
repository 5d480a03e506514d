"""Owns M401 model-repeats-host-fact."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from engine.domain.diagnostics import Confidence, Diagnostic, Severity
from engine.policy.codes import finding
from engine.policy.documents.policy import PolicyDocument
from engine.policy.documents.types import TypePart
from engine.policy.model import Model
from engine.policy.nodes import data
from engine.policy.rules import Rule
from engine.policy.rules.answers import WORDING
from engine.policy.rules.examples import base
from engine.policy.written import written

_COMMON: Final = frozenset(
    {"age", "body", "content", "date", "depth", "description", "id", "items", "kind", "language", "limit",
     "name", "number", "path", "query", "status", "summary", "text", "title", "type", "value", "version"}
)  # fmt: skip
"""Words that two things may share without being one."""


def check(model: Model) -> Iterator[Diagnostic]:
    policy = model.policy_part
    facts = dict(_facts(policy)) if policy is not None else {}
    for tool, part in model.tools.items():
        for name, param in part.params.items() if part.exposed == "model" else ():
            path, fact = facts.get(name, ("", None))
            if fact is None or param.bind is not None or param.is_lost("bind") or not _same(param, fact):
                continue
            if not _is_meant(model, tool, name):
                yield finding(
                    "M401",
                    param.here,
                    f"the Host already holds `{name}` as {path}",
                    f"bind it: {{type: {param.type}, bind: {path}}}",
                )


def _is_meant(model: Model, tool: str, param: str) -> bool:
    """True if a rule asks where the value comes from: then the model is meant to supply it."""
    known = written(model)
    shape = model.environment.tools.get(tool)
    if known is None or shape is None:
        return False
    return any(rule.asks_origin(param, shape.params[param].arg_class) for rule in known.rules_of(tool))


def _facts(policy: PolicyDocument) -> Iterator[tuple[str, tuple[str, TypePart]]]:
    """Name -> the fact that has it; of several the one of the task, then of the principal, then of the state."""
    for slice_name, slice_ in policy.state.items():
        for name, field in slice_.fields.items():
            yield from _named(name, f"state.{slice_name}.{name}", field)
            yield from _named(f"{slice_name}_{name}", f"state.{slice_name}.{name}", field)
    for name, attr in policy.principals.attrs.items():
        yield from _named(name, f"principal.{name}", attr)
    for name, field in policy.task.items():
        yield from _named(name, f"task.{name}", field)


def _named(name: str, path: str, type_: TypePart) -> Iterator[tuple[str, tuple[str, TypePart]]]:
    if name not in _COMMON:
        yield name, (path, type_)


def _same(param: TypePart, fact: TypePart) -> bool:
    return param.type == fact.type and _bounds(param) == _bounds(fact)


def _bounds(part: TypePart) -> object:
    """What an enum, a list or a record is made of."""
    return [
        data(part.node.entries[key].value) for key in ("values", "of", "fields") if key in part.node.entries
    ]


RULE = Rule(
    id="M401",
    name="model-repeats-host-fact",
    severity=Severity.WARNING,
    summary="The model must supply a value that the Host already holds.",
    why=(
        "A value that the model copies can be copied wrongly, or from an injected text. A bound parameter is "
        "filled in by the Host and is absent from what the model sees."
    ),
    bad=base(
        ("account: {type: id, bind: state.account.id}", "account_id: {type: id}"),
        ("key: [account, book]", "key: [run.id, book]"),
    ),
    good=base(),
    answers=WORDING,
    confidence=Confidence.LIKELY,
    check=check,
)
