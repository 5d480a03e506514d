"""Owns the single faults that are put into a valid call."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from benchmarks.bfcl.corpus import Args, Schema
from benchmarks.bfcl.specs import ident

KINDS = ("missing", "wrong type", "bad enum", "unknown argument")
UNKNOWN = "zz_not_declared"
_WRONG: dict[str, Any] = {
    "text": 7,
    "int": "seven",
    "decimal": [7],
    "bool": "yes",
    "enum": 7,
    "list": 7,
    "record": 7,
}


def mutants(function: Schema, args: Args, params: dict[str, Any]) -> Iterator[tuple[str, str, Args]]:
    """(kind, field at fault, arguments as our contract has them); `args` are valid and in that form."""
    parameters = function["parameters"]
    for name in parameters.get("required") or ():
        if ident(name) in args:
            yield "missing", ident(name), {key: value for key, value in args.items() if key != ident(name)}
            break
    for name in args:
        wrong = _WRONG[params[name]["type"]]
        yield "wrong type", name, {**args, name: wrong}
        break
    for name in args:
        if params[name]["type"] == "enum":
            yield "bad enum", name, {**args, name: "no such value"}
            break
    yield "unknown argument", UNKNOWN, {**args, UNKNOWN: 1}
