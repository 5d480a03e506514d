"""Owns G504 output-without-gate."""

from __future__ import annotations

from collections.abc import Iterator

from engine.domain.diagnostics import Diagnostic, Severity
from engine.policy.codes import finding
from engine.policy.documents.policy import GatePart, PolicyDocument
from engine.policy.model import Model
from engine.policy.rules import Rule
from engine.policy.rules.answers import DECLARED
from engine.policy.rules.examples import base


def check(model: Model) -> Iterator[Diagnostic]:
    policy = model.policy_part
    if policy is None or not _are_whole(policy):
        return
    gated = _gated(model)
    for name, output in policy.outputs.items():
        if name not in gated and output.publish is None and not output.is_lost("publish"):
            yield finding(
                "G504",
                policy.key_place("outputs", name),
                f"nothing requires the output `{name}`, and nothing says who may publish it",
                f"add `output_committed: {name}` to `gates.finish`, or a `publish` rule",
            )


def _are_whole(policy: PolicyDocument) -> bool:
    """False if a gate has a fault, so that what is not gated may have been meant to be."""
    if policy.is_lost("gates") or policy.gates.node.lost:
        return False
    for gate in policy.gates.finish:
        if isinstance(gate, str) or gate.node.lost:
            return False
        names = {gate.output_committed, gate.citations_eligible} - {None}
        if not names <= policy.outputs.keys():
            return False
    return True


def _gated(model: Model) -> set[str]:
    """Outputs that a gate of the policy or of an overlay speaks of."""
    policy = model.policy_part
    gates = list(policy.gates.finish) if policy is not None else []
    for overlay in model.overlay_parts.values():
        gates.extend(overlay.gates.finish if overlay.gates else ())
    found: set[str] = set()
    for gate in gates:
        if isinstance(gate, GatePart):
            found.update(
                name for name in (gate.output_committed, gate.citations_eligible) if name is not None
            )
            condition = model.condition(gate, "when")
            reads = condition.reads if condition is not None else ()
            found.update(path.split(".")[1] for path in reads if path.startswith("outputs."))
    return found


RULE = Rule(
    id="G504",
    name="output-without-gate",
    severity=Severity.NOTE,
    summary="An output that finish does not require and no publish rule constrains.",
    why=(
        "The Run may end without it, and whoever may start may publish it. Both can be meant; a gate or a "
        "publish rule says which."
    ),
    bad=base(("gates:\n  finish:\n    - output_committed: answer\n", "gates: {finish: []}\n")),
    good=base(),
    answers=DECLARED,
    check=check,
)
