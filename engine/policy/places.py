"""Owns where each character of a YAML scalar's value stands in the file."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from typing import Final

_BREAK: Final = re.compile(r"\r\n|[\n\r\x85\u2028\u2029]")
_ESCAPED: Final = {"0": "\0", "a": "\a", "b": "\b", "t": "\t", "\t": "\t", "n": "\n", "v": "\v", "f": "\f",
                   "r": "\r", "e": "\x1b", "N": "\x85", "_": "\xa0", "L": "\u2028", "P": "\u2029"}  # fmt: skip
_HEX_DIGITS: Final = {"x": 2, "u": 4, "U": 8}


class LineMap:
    """Index in a text -> line and column, both from 1, columns in code points."""

    def __init__(self, text: str) -> None:
        self._starts = [0, *(match.end() for match in _BREAK.finditer(text))]

    def at(self, index: int) -> tuple[int, int]:
        line = bisect_right(self._starts, index)
        return line, index - self._starts[line - 1] + 1


def positions(text: str, start: int, end: int, style: str | None, value: str) -> list[int]:
    """For each character of `value`, plus its end, the index in `text` that it was written at.

    `style` is that of the YAML event: None or "" plain, "'", '"', "|" or ">". Where the value cannot be
    followed (a style of writing that is not foreseen), every character maps to `start`.
    """
    written = text[start:end]
    if style == "|" or style == ">":
        pairs = _block(written, folded=style == ">")
    elif style == '"':
        pairs = _flow(written[1:-1], 1, escapes='"')
    elif style == "'":
        pairs = _flow(written[1:-1], 1, escapes="'")
    else:
        pairs = _flow(written.rstrip(), 0, escapes="")
    found = list(pairs)
    while len(found) > len(value) and found[-1][0] == "\n":
        found.pop()  # chomping drops trailing line breaks
    if "".join(char for char, _ in found) != value:
        return [start] * (len(value) + 1)
    indexes = [start + offset for _, offset in found]
    return [*indexes, indexes[-1] + 1 if indexes else start + 1]


def _flow(inner: str, shift: int, *, escapes: str) -> Iterator[tuple[str, int]]:
    """Characters of a plain or quoted scalar; line folding, and the escapes of its quotes."""
    at = 0
    while at < len(inner):
        char = inner[at]
        if char in " \t\n\r":
            gap = re.compile(r"[ \t]*(?:(?:\r\n|[\n\r])[ \t]*)+").match(inner, at)
            if gap is None:
                yield char, at + shift
                at += 1
                continue
            breaks = [at + match.start() for match in _BREAK.finditer(gap[0])]
            yield from (
                [(" ", breaks[0] + shift)] if len(breaks) == 1 else [("\n", b + shift) for b in breaks[1:]]
            )
            at = gap.end()
        elif char == "'" and escapes == "'":
            yield "'", at + shift
            at += 2
        elif char == "\\" and escapes == '"':
            taken, escaped = _escape(inner, at)
            if escaped:
                yield escaped, at + shift
            at += taken
        else:
            yield char, at + shift
            at += 1


def _escape(inner: str, at: int) -> tuple[int, str]:
    """Length of the escape at a backslash, and the character that it stands for (empty: a joined line)."""
    code = inner[at + 1 : at + 2]
    if code in ("\n", "\r"):
        joined = re.compile(r"(?:\r\n|[\n\r])[ \t]*").match(inner, at + 1)
        return (joined.end() - at if joined else 2), ""
    if code in _HEX_DIGITS:
        width = _HEX_DIGITS[code]
        return 2 + width, chr(int(inner[at + 2 : at + 2 + width], 16))
    return 2, _ESCAPED.get(code, code)


def _block(written: str, *, folded: bool) -> Iterator[tuple[str, int]]:
    lines = _lines(written)
    indent = next((len(line) - len(line.lstrip(" ")) for _, line in lines if line.strip(" ")), 0)
    held: list[int] = []
    loose = True
    for at, line in lines:
        content = line[indent:]
        if not content:
            held.append(at + len(line))
            continue
        more = content[0] in " \t"
        if folded and not loose and not more and held:
            yield from ([(" ", held[0])] if len(held) == 1 else [("\n", index) for index in held[1:]])
        else:
            yield from (("\n", index) for index in held)
        yield from ((char, at + indent + offset) for offset, char in enumerate(content))
        held = [at + len(line)]
        loose = more
    yield from (("\n", index) for index in held)


def _lines(written: str) -> list[tuple[int, str]]:
    """Offset and text of each line after the header of a block scalar."""
    starts = [match.end() for match in _BREAK.finditer(written)]
    ends = [*(match.start() for match in _BREAK.finditer(written))][1:]
    ends += [len(written)] * (len(starts) - len(ends))
    found = [(start, written[start:end]) for start, end in zip(starts, ends, strict=True)]
    return found[:-1] if found and not found[-1][1] else found
