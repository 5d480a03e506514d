"""Owns R211 unused."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from engine.domain.diagnostics import Diagnostic, Location, Severity
from engine.policy.codes import finding
from engine.policy.documents.policy import PolicyDocument
from engine.policy.model import Model
from engine.policy.nodes import Scalar, walk
from engine.policy.rules import Rule
from engine.policy.rules.answers import NAMES
from engine.policy.rules.examples import base

_MISSPELLED: Final = {
    "R202": "role",
    "C103": "limit",
    "R206": "state slice",
    "N104": "label",
    "R205": "source",
}
"""Faults after which a name may well have been meant where another is written."""


def check(model: Model) -> Iterator[Diagnostic]:
    policy = model.policy_part
    if policy is None or model.unread:
        return
    words = _words(model, policy)
    misspelled = {_MISSPELLED[fault.code] for fault in model.faults if fault.code in _MISSPELLED}
    for what, name, place, uses in _declared(model, policy):
        if what not in misspelled and not any(use in words for use in uses):
            yield finding("R211", place, f"{what} `{name}` is never used", "delete it, or use it")


def _declared(model: Model, policy: PolicyDocument) -> Iterator[tuple[str, str, Location, tuple[str, ...]]]:
    """What is declared, its name and place, and the words that would be a use of it."""
    for at, role in enumerate(policy.principals.roles):
        yield "role", role, policy.principals.place("roles", at), (role,)
    for name in policy.limits:
        yield "limit", name, policy.key_place("limits", name), (f"limits.{name}",)
    for name in policy.state:
        yield "state slice", name, policy.key_place("state", name), (f"state.{name}", f"state: {name}")
    for at, label in enumerate(policy.labels):
        yield "label", label, policy.place("labels", at), (label,)
    for document in model.tools_parts.values():
        for name in document.sources:
            uses = (f"source: {name}", f"source.{name}", f"source:{name}")
            yield "source", name, document.key_place("sources", name), uses


def _words(model: Model, policy: PolicyDocument) -> frozenset[str]:
    """Every name, dotted path of two steps and `key: value` of the files but what only declares a name."""
    declaring = {
        id(node)
        for part, key in ((policy.principals, "roles"), (policy, "labels"))
        if (entry := part.node.entries.get(key)) is not None
        for _, node in walk(entry.value)
    }
    found: set[str] = set()
    for document in model.documents.values():
        if document.root is None or document.name in model.test_files:
            continue
        for _, node in walk(document.root):
            if isinstance(node, Scalar) and id(node) not in declaring:
                found.update(_names(node))
    return frozenset(found)


def _names(node: Scalar) -> Iterator[str]:
    yield node.text
    if node.label is not None:
        yield f"{node.label.text}: {node.text}"
    for match in re.finditer(r"([\w-]+)\.([\w-]+)", node.text):
        yield match[0]
    yield from re.findall(r"'([^']*)'", node.text)


RULE = Rule(
    id="R211",
    name="unused",
    severity=Severity.WARNING,
    summary="Something is declared and never used: a role, a limit, a state slice, a label or a source.",
    why=(
        "A limit that no condition reads limits nothing, and whoever lowers it believes that it does. "
        "A role that no rule names can do nothing."
    ),
    bad=base(
        (
            "  fine_cap_minor: {type: int, value: 2000}\n",
            "  fine_cap_minor: {type: int, value: 2000}\n  loan_cap: {type: int, value: 5}\n",
        )
    ),
    good=base(),
    answers=NAMES,
    check=check,
)
