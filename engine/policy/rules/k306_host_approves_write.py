"""Owns K306 host-approves-write."""

from __future__ import annotations

from collections.abc import Iterator

from engine.domain.diagnostics import Diagnostic, Severity
from engine.policy.codes import finding
from engine.policy.model import Model
from engine.policy.rules import Rule
from engine.policy.rules.answers import DECLARED
from engine.policy.rules.examples import base
from engine.policy.written import Written, written


def check(model: Model) -> Iterator[Diagnostic]:
    known = written(model)
    if known is None:
        return
    for name, capability in known.part.capabilities.items():
        branch = next((each for each in capability.approve if each.by == "host"), None)
        tool = _write(known, name)
        if branch is not None and tool is not None:
            yield finding(
                "K306",
                branch.place("by"),
                f"the Host alone approves `{name}`, which leads to the {known.tools[tool].kind} `{tool}`",
                "let people approve it: `by: {roles: [ROLE]}, timeout: 4h`",
            )


def _write(known: Written, capability: str) -> str | None:
    """The first write or hybrid that a rule permits under the capability."""
    for rule in known.rules:
        if rule.permits and capability in rule.part.needs:
            for tool in rule.part.tools:
                if tool in known.tools and known.tools[tool].kind != "read":
                    return tool
    return None


RULE = Rule(
    id="K306",
    name="host-approves-write",
    severity=Severity.ERROR,
    summary="The Host alone approves a capability that leads to a write.",
    why=(
        "A grant by the Host is a rule that nobody looks at. Where it opens a way to change the world, a "
        "person decides."
    ),
    bad=base(
        ("{by: {roles: [librarian]}, timeout: 4h}", "{by: host}\n    revoke: {roles: [librarian]}"),
        ("tools: [hold_book]\n", "tools: [hold_book]\n    needs: [archive]\n"),
    ),
    good=base(("tools: [hold_book]\n", "tools: [hold_book]\n    needs: [archive]\n")),
    answers=DECLARED,
    check=check,
)
