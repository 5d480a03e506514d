"""Owns the words of a condition: text to tokens with exact spans."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Final, NamedTuple

from engine.domain.conditions import Span
from engine.policy.conditions.syntax import MAX_LENGTH, SyntaxFault


class Kind(StrEnum):
    NUMBER = "number"
    STRING = "string"
    NAME = "name"
    SIGN = "sign"
    END = "end"


class Token(NamedTuple):
    kind: Kind
    value: str
    """The name, the sign, the digits, or what the string says."""
    span: Span


_TOKEN: Final = re.compile(
    r"(?P<space>[ \t\n\f\r]+)"
    r"|(?P<number>\d[\w.]*)"
    r"|(?P<name>[A-Za-z_][A-Za-z0-9_]*)"
    r"|(?P<string>'(?:[^'\\\n\r]|\\.)*'|\"(?:[^\"\\\n\r]|\\.)*\")"
    r"|(?P<sign>&&|\|\||==|!=|<=|>=|[<>!+\-*/%?:.,()\[\]{}])",
    re.ASCII,
)
_ESCAPE: Final = re.compile(r"\\(u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|x[0-9A-Fa-f]{2}|.)", re.DOTALL)
_SIMPLE: Final = {
    "\\": "\\", "'": "'", '"': '"', "`": "`", "?": "?",
    "n": "\n", "r": "\r", "t": "\t", "a": "\a", "b": "\b", "f": "\f", "v": "\v",
}  # fmt: skip
_ADVICE: Final = {
    "=": "write `==` to compare",
    "&": "write `&&`",
    "|": "write `||`",
    "'": "close the string with the same quote",
    '"': "close the string with the same quote",
    "/": "comments belong into the YAML, behind a `#`",
    "`": "quote strings with ' or \"",
}


def tokens(text: str) -> list[Token]:
    """All tokens, the last of kind END. Raises SyntaxFault at the first thing that is not a token."""
    if len(text) > MAX_LENGTH:
        raise SyntaxFault(
            Span(MAX_LENGTH, len(text)),
            f"the condition has {len(text)} characters, at most {MAX_LENGTH} are allowed",
            "split it into several rules",
        )
    found: list[Token] = []
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise _strange(text, at)
        at = match.end()
        if match.lastgroup != "space":
            found.append(_token(Kind(match.lastgroup or ""), match[0], Span(match.start(), at)))
    found.append(Token(Kind.END, "", Span(len(text), len(text))))
    return found


def _token(kind: Kind, raw: str, span: Span) -> Token:
    if kind is Kind.NUMBER and not raw.isdigit():
        raise SyntaxFault(
            span,
            f"`{raw}` is not a whole number",
            "the language has whole numbers, and decimals written `decimal('1.50')`",
        )
    return Token(kind, _unescape(raw[1:-1], span) if kind is Kind.STRING else raw, span)


def _unescape(body: str, span: Span) -> str:
    def one(match: re.Match[str]) -> str:
        code = match[1]
        if len(code) == 1 and code in _SIMPLE:
            return _SIMPLE[code]
        point = int(code[1:], 16) if len(code) > 1 else -1
        if 0 <= point < 0xD800 or 0xE000 <= point <= 0x10FFFF:
            return chr(point)
        at = span.start + 1 + match.start()
        raise SyntaxFault(
            Span(at, at + len(match[0])),
            f"`{match[0]}` is not an escape in a string",
            r"escapes are \\ \' \" \n \r \t and \uXXXX",
        )

    return _ESCAPE.sub(one, body) if "\\" in body else body


def _strange(text: str, at: int) -> SyntaxFault:
    char = text[at]
    if char in "'\"":
        return SyntaxFault(Span(at, len(text)), "the string is not closed", _ADVICE[char])
    return SyntaxFault(
        Span(at, at + 1),
        f"`{char}` has no meaning here",
        _ADVICE.get(char, "a condition compares Host facts with `==`, `in`, `&&`, `||`, `!`"),
    )
