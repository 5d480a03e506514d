"""Owns working text on its way to people: it comes in pieces, and no piece may show a part of a secret."""

from __future__ import annotations

from collections.abc import Callable

from engine.ports import Secrets


class Hearing:
    """Passes text of one attempt on, masked; what may be the beginning of a secret waits for what follows it."""

    def __init__(self, on_text: Callable[[str], None], secrets: Secrets | None) -> None:
        self._on_text = on_text
        self._secrets = secrets
        self._waiting = ""

    def __call__(self, piece: str) -> None:
        if self._secrets is None:
            self._on_text(piece)
            return
        text = self._waiting + piece
        cut = _cut(text, self._secrets)
        self._waiting = text[cut:]
        if cut:
            self._on_text(self._secrets.mask(text[:cut]))

    def end(self) -> None:
        """The response closed: what waited is no secret. After a failed attempt it is not shown at all."""
        if self._waiting and self._secrets is not None:
            self._on_text(self._secrets.mask(self._waiting))
        self._waiting = ""


def _cut(text: str, secrets: Secrets) -> int:
    """How much of the text can be shown now: no secret begins before that and ends behind it."""
    cut, whole = secrets.may_begin(text), secrets.mask(text)
    while cut and secrets.mask(text[:cut]) + secrets.mask(text[cut:]) != whole:
        cut -= 1
    return cut
