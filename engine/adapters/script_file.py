"""Owns the reading of `script/v1`: what a scripted model says, turn by turn, with the places it was written at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, get_args

from engine.adapters.script_templates import BadTemplate, Template, compiled
from engine.domain.diagnostics import Location, suggest
from engine.domain.errors import SourceError
from engine.policy.files import DiskFiles
from engine.policy.nodes import Items, Node, Scalar, Table
from engine.policy.source import parse
from engine.ports import AttemptError

VERSION: Final = "script/v1"
Finish = Literal["stop", "tool_calls", "length", "filter", "refusal"]
_TURN_KEYS: Final = ("text", "calls", "finish", "fail")
_CALL_KEYS: Final = ("tool", "args", "arguments", "id")
_FAIL_KEYS: Final = ("error", "message", "retry_after")
_FAIL_HELP: Final = "give an `error`, such as `error: rate_limited`"


@dataclass(frozen=True, slots=True)
class ScriptedCall:
    tool: Template
    args: Template | None
    """A mapping, or a template that renders to one."""
    arguments: Template | None
    """Raw text instead of `args`, for what no mapping can say."""
    id: Template | None


@dataclass(frozen=True, slots=True)
class ScriptedFailure:
    error: AttemptError
    message: str
    retry_after: float | None


@dataclass(frozen=True, slots=True)
class ScriptedTurn:
    text: Template | None
    calls: tuple[ScriptedCall, ...]
    finish: Finish | None
    failures: tuple[ScriptedFailure, ...]
    """What the first attempts of this turn end with."""
    place: Location


def read_script(file: str) -> tuple[ScriptedTurn, ...]:
    """Reads a script from disk. Raises SourceError that names file, line and field."""
    return parse_script(file, DiskFiles().read(file))


def parse_script(name: str, text: str) -> tuple[ScriptedTurn, ...]:
    """Reads the text of a script; `name` is what errors call it. Raises SourceError."""
    document = parse(name, text, VERSION)
    for fault in document.faults:
        raise SourceError(f"{fault.location}: {fault.message}", remedy=fault.help)
    root = document.root
    assert root is not None
    _known(root, ("agentctl", "turns"), "the script")
    version = root.entries.get("agentctl")
    if version is None or not (isinstance(version.value, Scalar) and version.value.value == VERSION):
        raise _fault(
            version.value if version else root,
            f"`agentctl` is not `{VERSION}`",
            f"write `agentctl: {VERSION}`",
        )
    turns = root.entries.get("turns")
    if turns is None or not isinstance(turns.value, Items):
        raise _fault(
            turns.value if turns else root, "`turns` is not a list", "write `turns:` and a list of turns"
        )
    return _gathered(turns.value)


def turns_from(data: Sequence[Mapping[str, Any]]) -> tuple[ScriptedTurn, ...]:
    """The same from plain data, for tests. Raises SourceError."""
    source = Table(parse("turns", "").source, 0, 0)
    node = source.invent("turns", list(data)).entries["turns"].value  # type: ignore[arg-type]  # checked as it is read
    assert isinstance(node, Items)
    return _gathered(node)


def _gathered(items: Items) -> tuple[ScriptedTurn, ...]:
    """Failures belong to the turn after them: they are its first attempts."""
    turns: list[ScriptedTurn] = []
    failures: list[ScriptedFailure] = []
    for index, item in enumerate(items.items):
        table = _table(item, f"turns[{index}]")
        _known(table, _TURN_KEYS, f"turns[{index}]")
        if "fail" in table.entries:
            failures.append(_failure(table, f"turns[{index}]"))
        else:
            turns.append(_turn(table, f"turns[{index}]", tuple(failures)))
            failures = []
    if failures:
        turns.append(ScriptedTurn(None, (), None, tuple(failures), items.location))
    return tuple(turns)


def _turn(table: Table, where: str, failures: tuple[ScriptedFailure, ...]) -> ScriptedTurn:
    calls: tuple[ScriptedCall, ...] = ()
    if "calls" in table.entries:
        listed = table.entries["calls"].value
        if not isinstance(listed, Items):
            raise _fault(listed, f"`{where}.calls` is not a list", "put `- tool: …` under it")
        calls = tuple(_call(node, f"{where}.calls[{index}]") for index, node in enumerate(listed.items))
    finish = _word(table, "finish", where, get_args(Finish))
    return ScriptedTurn(_text(table, "text", where), calls, finish, failures, table.location)  # type: ignore[arg-type]  # _word checked it


def _call(node: Node, where: str) -> ScriptedCall:
    table = _table(node, where)
    _known(table, _CALL_KEYS, where)
    tool = _text(table, "tool", where)
    if tool is None:
        raise _fault(table, f"`{where}` names no tool", "add `tool: <name>`")
    if "args" in table.entries and "arguments" in table.entries:
        raise _fault(table, f"`{where}` has both `args` and `arguments`", "keep one: `arguments` is raw text")
    args = table.entries.get("args")
    if args is not None and not isinstance(args.value, Table) and not _is_template(args.value):
        raise _fault(args.value, f"`{where}.args` is not a mapping", "write `name: value` lines under it")
    return ScriptedCall(
        tool,
        _compiled(args.value, f"{where}.args") if args else None,
        _text(table, "arguments", where),
        _text(table, "id", where),
    )


def _failure(table: Table, where: str) -> ScriptedFailure:
    if len(table.entries) > 1:
        raise _fault(
            table, f"`{where}` fails and says something", "make it two turns: the failure comes first"
        )
    fail = _table(table.entries["fail"].value, f"{where}.fail")
    _known(fail, _FAIL_KEYS, f"{where}.fail")
    error = _word(fail, "error", f"{where}.fail", get_args(AttemptError))
    if error is None:
        raise _fault(fail, f"`{where}.fail` has no `error`", _FAIL_HELP)
    message = fail.entries.get("message")
    after = fail.entries.get("retry_after")
    seconds = after.value.value if after and isinstance(after.value, Scalar) else None
    if after and (isinstance(seconds, bool) or not isinstance(seconds, int | float)):
        raise _fault(
            after.value, f"`{where}.fail.retry_after` is not a number", "write seconds, such as `2.5`"
        )
    text = message.value.text if message and isinstance(message.value, Scalar) else f"scripted: {error}"
    return ScriptedFailure(error, text, None if seconds is None else float(seconds))  # type: ignore[arg-type]  # checked above


def _text(table: Table, key: str, where: str) -> Template | None:
    entry = table.entries.get(key)
    if entry is None:
        return None
    node = entry.value
    if not (isinstance(node, Scalar) and isinstance(node.value, str)):
        raise _fault(node, f"`{where}.{key}` is not text", "put it in double quotes")
    return _compiled(node, f"{where}.{key}")


def _word(table: Table, key: str, where: str, allowed: Sequence[str]) -> str | None:
    entry = table.entries.get(key)
    if entry is None:
        return None
    node = entry.value
    if isinstance(node, Scalar) and node.value in allowed:
        return str(node.value)
    said = node.text if isinstance(node, Scalar) else "…"
    help_ = suggest(said, allowed, f"one of {', '.join(allowed)}")
    raise _fault(node, f"`{where}.{key}` is `{said}`, which is none of its values", help_)


def _table(node: Node, where: str) -> Table:
    if isinstance(node, Table):
        return node
    raise _fault(node, f"`{where}` is not a mapping", "write `key: value` lines")


def _known(table: Table, keys: Sequence[str], where: str) -> None:
    for key, entry in table.entries.items():
        if key not in keys:
            help_ = suggest(key, keys, f"known here: {', '.join(keys)}")
            raise _fault(entry.key, f"`{key}` is no key of `{where}`", help_)


def _is_template(node: Node) -> bool:
    return isinstance(node, Scalar) and isinstance(node.value, str) and "<<" in node.value


def _compiled(node: Node, where: str) -> Template:
    """A template of the whole value: strings inside are rendered, other scalars stay what they are."""
    if isinstance(node, Table):
        return {key: _compiled(entry.value, f"{where}.{key}") for key, entry in node.entries.items()}
    if isinstance(node, Items):
        return [_compiled(item, f"{where}[{index}]") for index, item in enumerate(node.items)]
    if not isinstance(node.value, str):
        return node.value
    try:
        return compiled(node.value, f"{node.location} `{where}`")
    except BadTemplate as error:
        raise _fault(node, f"`{where}` is no template: {error}", "expressions stand in `<< … >>`") from error


def _fault(node: Node, message: str, remedy: str) -> SourceError:
    return SourceError(f"{node.location}: {message}", remedy=remedy)
