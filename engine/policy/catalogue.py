"""Owns the way to the rules of the linter: which have a check, and the module of each; written by hand."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Final

from engine.policy.codes import CODES
from engine.policy.rules import Rule

CHECKED: Final[tuple[str, ...]] = (
    *("C109",),
    *("S302",),
    *("M401", "M402", "M403", "M405", "M406", "M408"),
    *("R211",),
    *("P201", "P202", "P203", "P204", "P206", "P208", "P213"),
    *("K301", "K302", "K303", "K305", "K306"),
    *("W207", "W208", "W209", "W210", "W213", "W214", "W215", "W217", "W219", "W220"),
    *("G504",),
    *("E601", "E602", "E603", "E604"),
    *("B702", "B703", "B705"),
    *("X802", "X803", "X804"),
    *("I901", "I902", "I903", "I905", "I907"),
    *("N101", "N102", "N103", "N105"),
    *("T101",),
)
"""Codes whose rule has a check of its own, a line per group; the loader and the compiler find the others."""


def module_of(code: str) -> str:
    """The module of the rule of a code."""
    return f"engine.policy.rules.{code.lower()}_{CODES[code].name.replace('-', '_')}"


def module_exists(code: str) -> bool:
    """False for a code that nothing raises yet."""
    return find_spec(module_of(code)) is not None


def load_rule(word: str) -> Rule | None:
    """The rule with this code or name, imported alone; None if there is none."""
    code = next((code for code, known in CODES.items() if word in (code, known.name)), None)
    if code is None or not module_exists(code):
        return None
    rule: Rule = import_module(module_of(code)).RULE
    return rule


def load_rules() -> tuple[Rule, ...]:
    """Imports the rules that have a check, and no others."""
    return tuple(import_module(module_of(code)).RULE for code in CHECKED)
