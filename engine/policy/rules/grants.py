"""Owns which tools a policy grants, as far as its rules could be read."""

from __future__ import annotations

from engine.domain.diagnostics import did_you_mean
from engine.policy.model import Model
from engine.policy.nodes import Items


def rules_are_whole(model: Model) -> bool:
    """False if a rule or its tools could not be read, so that what no rule grants proves nothing."""
    policy, document = model.policy_part, model.documents.get(model.file)
    if policy is None or document is None or document.root is None or model.unread:
        return False
    entry = document.root.entries.get("permissions")
    written = entry.value.items if entry is not None and isinstance(entry.value, Items) else None
    return (
        written is not None
        and len(written) == len(policy.permissions)
        and not any(rule.is_lost("tools") for rule in policy.permissions)
    )


def granted(model: Model) -> frozenset[str]:
    """Tools that the model can be shown and that an allow or ask names; all it can be shown if that is unclear.

    A misspelled name counts for the tool that was probably meant: the misspelling has its own finding.
    """
    shown = {name for name, tool in model.tools.items() if tool.exposed == "model"}
    if model.policy is None or not rules_are_whole(model):
        return frozenset(shown)
    permits = [rule for rule in model.policy.rules if rule.effect.permits]
    named = {name for rule in permits for name in rule.matches}
    unknown = {entry for rule in permits for entry in rule.tools} - named
    meant = {did_you_mean(entry, shown) for entry in unknown}
    return frozenset(shown & (named | meant))
