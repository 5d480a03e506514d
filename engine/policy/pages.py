"""Owns the page of a rule: what `agentctl explain` prints and what stands in docs/rules."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from difflib import SequenceMatcher
from typing import Final

from engine.domain.diagnostics import Confidence
from engine.policy.rules import Rule
from engine.policy.rules.examples import base

_MAX_WHOLE: Final = 15
"""Examples of at most so many lines are shown whole."""


def page(rule: Rule) -> str:
    """The page as Markdown, ending in a line break."""
    parts = [
        f"# {rule.id} {rule.name}",
        f"{standing(rule)}",
        f"## Summary\n\n{rule.summary}",
        f"## Avoid\n\n{_example(rule.bad, rule.good)}",
        f"## Prefer\n\n{_example(rule.good, rule.bad)}",
        f"## Why\n\n{rule.why}",
        *_answers(rule),
        f"## Since\n\n{rule.since}",
    ]
    return "\n\n".join(parts) + "\n"


def standing(rule: Rule) -> str:
    """How bad, how sure, and how it can be silenced, in one line."""
    sure = "likely (a heuristic)" if rule.confidence is Confidence.LIKELY else "certain"
    silence = (
        'Can be ignored in the file: `# agentctl: ignore[CODE] because="…" until=DATE`.'
        if rule.suppressible
        else "Cannot be ignored in the file; only `agentctl.yaml` can lower it, with an owner and an end date."
    )
    deep = " Not part of a plain `lint`." if rule.deep else ""
    return f"{rule.severity.value.capitalize()}, {sure}. {silence.replace('CODE', rule.id)}{deep}"


def _answers(rule: Rule) -> Iterator[str]:
    if rule.answers is not None:
        yield (
            "## The four questions\n\n"
            f"- Who supplied what it reads? {rule.answers.input}\n"
            f"- Which effect does it own? {rule.answers.effect}\n"
            f"- Would a paraphrase change the outcome? {rule.answers.paraphrase}\n"
            f"- Does the repair change facts or wording? {rule.answers.repair}"
        )


# --- examples ---------------------------------------------------------------------------------------------


def _example(files: Mapping[str, str], others: Mapping[str, str]) -> str:
    """The lines of each file that differ from the other example or the usual one, and what they stand under."""
    usual = base()
    blocks = [
        _block(name, text, {others.get(name, ""), usual.get(name, text)} - {text})
        for name, text in files.items()
        if not text == others.get(name) == usual.get(name, text)
    ]
    return "\n\n".join(blocks)


def _block(name: str, text: str, others: Iterable[str]) -> str:
    lines = text.splitlines()
    kept = set(range(len(lines)))
    if len(lines) > _MAX_WHOLE:
        kept = set[int]().union(*(_kept(lines, other.splitlines()) for other in others))
    language = "yaml" if name.endswith((".yaml", ".yml")) else "text"
    return f"`{name}`\n\n```{language}\n" + "\n".join(_shown(lines, kept)) + "\n```"


def _kept(lines: list[str], others: list[str]) -> set[int]:
    """Numbers of the lines to show: those that differ, a neighbour on each side, and what they stand under."""
    kept: set[int] = set()
    for tag, start, end, _, _ in SequenceMatcher(None, lines, others, autojunk=False).get_opcodes():
        if tag != "equal":
            kept.update(range(max(start - 1, 0), min(end + 1, len(lines))))
    return kept | {above for line in kept for above in _above(lines, line)}


def _above(lines: list[str], line: int) -> Iterator[int]:
    """The lines of the mappings and lists around a line."""
    indent = _indent(lines[line])
    for number in range(line - 1, -1, -1):
        if lines[number].strip() and _indent(lines[number]) < indent:
            indent = _indent(lines[number])
            yield number


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def _shown(lines: list[str], kept: set[int]) -> Iterator[str]:
    last = -1
    for number in sorted(kept):
        if number != last + 1:
            yield f"{' ' * _indent(lines[number])}# …"
        yield lines[number]
        last = number
