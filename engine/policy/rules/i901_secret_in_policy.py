"""Owns I901 secret-in-policy."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from engine.domain.diagnostics import Confidence, Diagnostic, Severity
from engine.policy.codes import finding
from engine.policy.model import Model
from engine.policy.rules import FourAnswers, Rule
from engine.policy.rules.examples import base
from engine.policy.source import Document

_MIXED: Final = r"(?=[^\s\"',}]*\d)(?=[^\s\"',}]*[A-Za-z])"
_SECRET: Final = re.compile(
    r"(?P<key>\b(?:sk|rk|pk)[-_](?:ant-|proj-|live_|test_)?" + _MIXED + r"[A-Za-z0-9_-]{20,}"
    r"|\bgh[pousr]_[A-Za-z0-9]{30,}|\bgithub_pat_\w{40,}|\bglpat-[\w-]{20,}|\bxox[abeprs]-[\w-]{10,}"
    r"|\b(?:AKIA|ASIA)[A-Z0-9]{16}\b|\bAIza[\w-]{35}|\beyJ[\w-]{10,}\.eyJ[\w-]{10,}\.[\w-]+"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----"
    r"|\b[a-z][a-z0-9+]*://[^\s/:@\"']+:(?P<password>[^\s/@\"'{$]{4,})@"
    r"|(?i:\bbearer +)" + _MIXED + r"[A-Za-z0-9_.=+/-]{16,}"
    r"|(?i:\b(?:\w+_)?(?:password|passwd|secret|token|api_?key|credentials?)[\"']?[:=] *)[\"']?"
    + _MIXED
    + r"[^\s\"',{}$]{16,})"
)


_HINT: Final = re.compile(
    r"[srp]k[-_]|gh[pousr]_|github_pat_|glpat-|xox|AKIA|ASIA|AIza|eyJ|PRIVATE KEY|://"
    r"|[Bb][Ee][Aa][Rr]|[Pp][Aa][Ss][Ss][Ww]|[Ss][Ee][Cc][Rr]|[Tt][Oo][Kk][Ee]|[Aa][Pp][Ii]_?[Kk]|[Cc][Rr][Ee][Dd]"
)
"""A line without one of these holds no secret that `_SECRET` knows: looking for them first is far cheaper."""


def check(model: Model) -> Iterator[Diagnostic]:
    for document in model.documents.values():
        yield from _in_text(document)


def _in_text(document: Document) -> Iterator[Diagnostic]:
    """The whole text is searched, comments too: they are stored and shown like the rest."""
    for match in _suspects(document.source.text):
        group = "password" if match["password"] else "key"
        yield finding(
            "I901",
            document.source.location(*match.span(group)),
            "this looks like a secret",
            "take it out of the file and change it; handlers read secrets from the environment or a secret store",
        )


def _suspects(text: str) -> Iterator[re.Match[str]]:
    start = 0
    for line in text.splitlines(keepends=True):
        end = start + len(line)
        if _HINT.search(line):
            yield from _SECRET.finditer(text, start, end)
        start = end


RULE = Rule(
    id="I901",
    name="secret-in-policy",
    severity=Severity.ERROR,
    summary="A literal that looks like a secret.",
    why=(
        "Policies are stored with every Run that they governed, shown to people who approve, and kept in "
        "version control. None of these is a place for a secret, and a secret that stood there is known."
    ),
    bad=base(
        (
            'description: "Read one item of the closed archive."',
            'description: "Read one item of the closed archive, postgres://reader:tidal-7241@vault/items."',
        )
    ),
    good=base(),
    answers=FourAnswers(
        input="The author of the file: its literal text.",
        effect="A finding about the file; no Run is decided by it.",
        paraphrase="No. The forms of keys, tokens and passwords in addresses are searched, not sentences.",
        repair="It takes a value out of the file; the handler reads it elsewhere.",
    ),
    confidence=Confidence.LIKELY,
    suppressible=False,
    check=check,
)
