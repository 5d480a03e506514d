"""Owns I907 provider-limit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from engine.domain.diagnostics import Diagnostic, Location, Severity
from engine.domain.policy import Policy
from engine.policy.codes import finding
from engine.policy.documents.policy import ModelPart, ModelUsePart, PolicyDocument
from engine.policy.model import Model
from engine.policy.names import PUBLISH
from engine.policy.providers import Provider, provider_for
from engine.policy.rules import Rule
from engine.policy.rules.answers import DECLARED
from engine.policy.rules.examples import base
from engine.policy.rules.grants import granted, rules_are_whole


def check(model: Model) -> Iterator[Diagnostic]:
    part, policy = model.policy_part, model.policy
    if part is None or policy is None or not part.is_written("model"):
        return
    uses = [use for use in _proposing(part.model) if use.is_written("id")]
    yield from _names(model, part, [provider_for(use.id) for use in uses])
    if rules_are_whole(model):
        for use in uses:
            yield from _count(policy, use, granted(model))


def _proposing(part: ModelPart) -> list[ModelUsePart]:
    """Models that are offered tools; the fast one only writes summaries."""
    return [part.primary, *part.fallbacks]


def _names(model: Model, part: PolicyDocument, providers: list[Provider]) -> Iterator[Diagnostic]:
    """Names that would be cut on the wire: the model would see the rest as a digest."""
    if not providers:
        return
    strictest = min(providers, key=lambda each: each.longest)
    named: list[tuple[str, Location]] = [
        (PUBLISH + output, part.key_place("outputs", output)) for output in part.outputs
    ]
    for document in model.tools_parts.values():
        named += [(name, document.key_place("tools", name)) for name in document.tools]
    for name, place in named:
        if len(name) > strictest.longest:
            yield finding(
                "I907",
                place,
                f"`{name}` is {len(name)} characters long, and {strictest.name} takes names of at most "
                f"{strictest.longest}",
                f"shorten it by {len(name) - strictest.longest}",
            )


def _count(policy: Policy, use: ModelUsePart, tools: frozenset[str]) -> Iterator[Diagnostic]:
    """The most that one role can be offered at once."""
    provider = provider_for(use.id)
    if provider.tools is None:
        return
    own = 1 + len(policy.outputs) + bool(policy.capabilities) + bool(policy.budgets.questions_to_user)
    most, role = max(
        ((len(_for(policy, tools, role)) + own, role) for role in sorted(policy.roles)), default=(0, "")
    )
    if most > provider.tools:
        yield finding(
            "I907",
            use.place("id"),
            f"a `{role}` can be offered {most} tools, {own} of them the Host's own, and {provider.name} takes at "
            f"most {provider.tools}",
            "split the policy, put tools behind capabilities of other agents, or name another model",
        )


def _for(policy: Policy, tools: frozenset[str], role: str) -> set[str]:
    return {
        name
        for name in tools
        if any(
            rule.effect.permits and (rule.roles is None or role in rule.roles)
            for rule in policy.rules_of.get(name, ())
        )
    }


_LONG: Final = "answer_" + "for_the_reader_and_for_whoever_lends_the_books_" + "later_on"

RULE = Rule(
    id="I907",
    name="provider-limit",
    severity=Severity.ERROR,
    summary="More tools, or a longer name, than a provider of the policy's models takes.",
    why=(
        "A request with too many tools is refused as a whole, in the middle of a Run. A name that is too long is "
        "cut on its way and ends in a digest, so the model chooses among names that nobody wrote. "
        "The limits are as far as known: a table, not an answer of the provider."
    ),
    bad={name: text.replace("answer", _LONG) for name, text in base().items()},
    good=base(),
    answers=DECLARED,
    check=check,
)
