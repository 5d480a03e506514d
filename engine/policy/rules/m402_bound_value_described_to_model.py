"""Owns M402 bound-value-described-to-model."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from engine.domain.diagnostics import Confidence, Diagnostic, Severity
from engine.policy.codes import finding
from engine.policy.model import Model
from engine.policy.rules import Rule
from engine.policy.rules.answers import WORDING
from engine.policy.rules.examples import base

_ORDERS: Final = (
    r"pass|give|provide|supply|include|specify|enter|fill in|set|send|add|requires?|needs?|takes?|with"
)
_NEGATED: Final = re.compile(r"\b(?:not|never|don't|without|no)\b", re.IGNORECASE)


def check(model: Model) -> Iterator[Diagnostic]:
    for name, tool in model.tools.items():
        text = tool.description
        for param, part in tool.params.items() if text is not None and tool.exposed == "model" else ():
            if part.bind is not None and (asked := _asks_for(param, text or "")):
                yield finding(
                    "M402",
                    tool.place_within(asked.start("name"), asked.end("name"), "description"),
                    f"the description of `{name}` asks the model for `{param}`, which the Host fills in",
                    "drop it from the description: the model does not see the parameter",
                )


def _asks_for(param: str, text: str) -> re.Match[str] | None:
    """Where a sentence orders the model to give the parameter, by its name.

    A name that is also a word counts only in quotes: "Order what is in the cart" asks for no `cart`.
    """
    quoted = rf"[`'\"]{re.escape(param)}[`'\"]"
    name = rf"{quoted}|\b{re.escape(param)}\b" if "_" in param else quoted
    for found in re.finditer(
        rf"\b(?:{_ORDERS})\b(?P<between>[^.;:!?]*?)(?P<name>{name})", text, re.IGNORECASE
    ):
        sentence = text[max(text.rfind(mark, 0, found.start()) for mark in ".;!?") + 1 : found.end()]
        if not _NEGATED.search(sentence):
            return found
    return None


RULE = Rule(
    id="M402",
    name="bound-value-described-to-model",
    severity=Severity.WARNING,
    summary="A description tells the model to supply a value that the Host fills in.",
    why=(
        "The parameter is not in what the model sees. A description that asks for it makes the model send it, "
        "and the call is rejected for an argument that it was told to give."
    ),
    bad=base(
        ("account: {type: id, bind: state.account.id}", "account_id: {type: id, bind: state.account.id}"),
        ("key: [account, book]", "key: [account_id, book]"),
        (
            '"Borrow a book for the reader of this Run."',
            '"Borrow a book. Pass the account_id of the reader."',
        ),
    ),
    good=base(
        ("account: {type: id, bind: state.account.id}", "account_id: {type: id, bind: state.account.id}"),
        ("key: [account, book]", "key: [account_id, book]"),
        (
            '"Borrow a book for the reader of this Run."',
            '"Borrow a book. The account comes from the desk, not from you."',
        ),
    ),
    answers=WORDING,
    confidence=Confidence.LIKELY,
    check=check,
)
