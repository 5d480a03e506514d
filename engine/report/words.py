"""Owns the small print of reports: text made safe for a terminal, cut to a line, coloured where wanted."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from engine.domain.canonical import Json, NotJson, parse_json

ARGUMENT: Final = 60
LINE: Final = 160
_UNSAFE: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)
_TICKS: Final = {"confirmed": "✓", "granted": "✓", "committed": "✓", "held": "…", "unknown": "?"}


@dataclass(frozen=True, slots=True)
class Style:
    """ANSI colours on a terminal; nothing at all elsewhere."""

    colour: bool = False

    def strong(self, text: str) -> str:
        return self._in("1", text)

    def dim(self, text: str) -> str:
        return self._in("2", text)

    def good(self, text: str) -> str:
        return self._in("32", text)

    def bad(self, text: str) -> str:
        return self._in("31", text)

    def caution(self, text: str) -> str:
        return self._in("33", text)

    def mark(self, outcome: str) -> str:
        """A tick, a cross or a question mark; the words beside it say the same."""
        tick = _TICKS.get(outcome, "✗")
        paint = {"✓": self.good, "✗": self.bad}.get(tick, self.caution)
        return paint(tick)

    def _in(self, code: str, text: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self.colour and text else text


PLAIN: Final = Style()


def safe(text: str) -> str:
    """Text of a model, a tool or a stranger without what a terminal would obey; line breaks stay."""
    return _UNSAFE.sub(lambda match: match[0].encode("unicode_escape", "surrogatepass").decode("ascii"), text)


def one_line(text: str, width: int = LINE) -> str:
    """`text` on one line, cut with an ellipsis to `width` characters."""
    line = " ".join(safe(text).split())
    return line if len(line) <= width else f"{line[: width - 1].rstrip()}…"


def value(item: Json, width: int = ARGUMENT) -> str:
    return one_line(json.dumps(item, ensure_ascii=False), width)


def arguments(args: Mapping[str, Json], width: int = LINE) -> str:
    """`a: 1, b: "two"`, each value shortened."""
    return one_line(", ".join(f"{name}: {value(item)}" for name, item in args.items()), width)


def raw_arguments(text: str) -> str:
    """Arguments as the model wrote them, read if they are an object."""
    try:
        read = parse_json(text) if text.strip() else {}
    except NotJson:
        read = None
    return arguments(read) if isinstance(read, dict) else one_line(text)


def handles(names: Iterable[str]) -> str:
    """`E2-E9, E12`: runs of numbered handles are joined."""
    spans: list[tuple[int, int]] = []
    for number in sorted(int(name[1:]) for name in names):
        if spans and number == spans[-1][1] + 1:
            spans[-1] = (spans[-1][0], number)
        else:
            spans.append((number, number))
    return ", ".join(f"E{first}" if first == last else f"E{first}-E{last}" for first, last in spans)


def moment(at: datetime | None) -> str:
    return at.strftime("%Y-%m-%d %H:%M:%S") + " UTC" if at is not None else "-"


def span(length: timedelta) -> str:
    """`1h02m03s`."""
    seconds = int(length.total_seconds())
    hours, rest = divmod(seconds, 3600)
    minutes, seconds = divmod(rest, 60)
    if hours:
        return f"{hours}h{minutes:02}m{seconds:02}s"
    return f"{minutes}m{seconds:02}s" if minutes else f"{seconds}s"
