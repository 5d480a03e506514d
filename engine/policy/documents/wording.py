"""Owns how a fault of shape is said: pydantic's error types in the words of the language."""

from __future__ import annotations

from typing import Any, Final

from engine.domain.diagnostics import suggest
from engine.policy.nodes import Items, Node, Scalar

_WANTED: Final = {
    "string_type": "text",
    "string_sub_type": "text",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "int_parsing": "a whole number",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "list_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "model_attributes_type": "a mapping",
    "union_tag_invalid": "text or a mapping",
    "float_type": "a number",
}
_BOUNDS: Final = {
    "greater_than_equal": "at least {ge}",
    "greater_than": "more than {gt}",
    "less_than_equal": "at most {le}",
    "less_than": "less than {lt}",
    "string_too_long": "at most {max_length} characters long",
    "string_too_short": "at least {min_length} characters long",
    "too_short": "at least {min_length} entries long",
    "too_long": "at most {max_length} entries long",
}


_FORMS: Final = {
    r"^[A-Za-z_][A-Za-z0-9_]{0,63}$": "letters, digits and `_`, no digit first, at most 64 characters",
    r"^[A-Za-z_][A-Za-z0-9_.-]{0,63}$": "letters, digits, `_`, `.`, `-`, a letter or `_` first, at most 64 characters",
    r"^(result|receipt)(\.[A-Za-z_][A-Za-z0-9_]*(\[\])?)+$": "write result.FIELD, result.LIST[].FIELD or receipt.at",
    r"^[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)+$": "write a noun and a verb in lower case, as in order.place",
    r"^state\.[A-Za-z_][A-Za-z0-9_]*$": "write state.SLICE",
    r"^args\.[A-Za-z_][A-Za-z0-9_]*$": "write args.PARAMETER",
    r"^python:[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*:[A-Za-z_][A-Za-z0-9_]*$": (
        "write python:MODULE:FUNCTION, as in python:notes:search_notes"
    ),
}
"""Pattern -> how a value that fits it is written."""


def shown(node: Node) -> str:
    if isinstance(node, Scalar):
        return f"`{node.text}`" if node.text or node.style else "nothing"
    return "a list" if isinstance(node, Items) else "a mapping"


def wording(key: str, value: Any, node: Node, fault: Any) -> tuple[str, str]:
    """Code and message of one fault."""
    kind, context = fault["type"], fault.get("ctx") or {}
    if kind in ("literal_error", "enum"):
        if isinstance(node, Scalar) and isinstance(value, str):
            return "Y204", f"`{value}` is not a choice for `{key}`"
        return "Y205", f"`{key}` must be one of {context.get('expected', '')}, not {shown(node)}"
    if value is None and isinstance(node, Scalar):
        return "Y205", f"`{key}` has no value"
    if kind in _WANTED:
        return "Y205", f"`{key}` must be {_WANTED[kind]}, not {shown(node)}"
    if kind in _BOUNDS:
        return "Y205", f"`{key}` must be {_BOUNDS[kind].format(**context)}, not {shown(node)}"
    if kind == "string_pattern_mismatch":
        what = "a name" if isinstance(node, Scalar) and node.text == key else f"a value for `{key}`"
        return "Y205", f"{shown(node)} is not {what}"
    return "Y205", str(fault["msg"]).format(key=key, shown=shown(node))


def advice(value: Any, node: Node, fault: Any, like: str = "") -> str:
    """The help of one fault; never empty. `like` shows a mapping where one is wanted."""
    kind, context = fault["type"], fault.get("ctx") or {}
    if kind in ("literal_error", "enum"):
        choices = [
            choice.strip(" '") for choice in context.get("expected", "").replace(" or ", ", ").split(",")
        ]
        return suggest(str(value), choices, f"choose one of: {', '.join(choices)}")
    if "help" in context:
        return str(context["help"]).format(text=node.text if isinstance(node, Scalar) else "")
    if kind == "string_type" and value is not None and not isinstance(value, str):
        return f'write it in quotes: "{str(value).lower() if isinstance(value, bool) else value}"'
    if kind == "string_type":
        return "write one text"
    if kind == "list_type" and isinstance(value, str):
        return f"write a list: [{value}]"
    if kind in ("int_type", "int_from_float") and isinstance(value, str) and value.replace("_", "").isdigit():
        return f"write it without quotes and underscores: {value.replace('_', '')}"
    if kind == "string_pattern_mismatch":
        pattern = str(context.get("pattern", "its pattern"))
        return _FORMS.get(pattern, f"it must match {pattern}")
    if kind in _BOUNDS:
        return "use a value inside the bound"
    if like and kind == "dict_type":
        return f"write a mapping: {{NAME: {like}}}"
    if like and kind in ("model_type", "model_attributes_type"):
        return f"write a mapping: {like}"
    return f"write {_WANTED.get(kind, 'a value that fits')}"
