"""Owns W210 probe-not-a-read."""

from __future__ import annotations

from collections.abc import Iterator

from engine.domain.diagnostics import Diagnostic, Severity
from engine.policy.codes import finding
from engine.policy.model import Model
from engine.policy.rules import Rule
from engine.policy.rules.answers import DECLARED
from engine.policy.rules.examples import base


def check(model: Model) -> Iterator[Diagnostic]:
    for name, tool in model.tools.items():
        probe = model.tools.get(tool.reconcile.probe or "") if tool.reconcile is not None else None
        if probe is not None and probe.kind != "read" and tool.reconcile is not None:
            yield finding(
                "W210",
                tool.reconcile.place("probe"),
                f"the probe of `{name}` is `{tool.reconcile.probe}`, a {probe.kind}",
                "use a read: asking what happened must change nothing",
            )


RULE = Rule(
    id="W210",
    name="probe-not-a-read",
    severity=Severity.ERROR,
    summary="The reconcile probe is not a read tool.",
    why="A probe runs after a crash, perhaps more than once, to find out what happened. It must change nothing.",
    bad=base(
        (
            '{probe: find_hold, args: {key: idempotency_key}, confirms: "result.found"}',
            '{probe: release_hold, args: {hold_id: idempotency_key}, confirms: "result.gone"}',
        ),
        (
            "    params: {hold_id: {type: id}}\n",
            "    params: {hold_id: {type: id}}\n    result: {gone: {type: bool}}\n",
        ),
    ),
    good=base(),
    answers=DECLARED,
    check=check,
)
