"""Owns the list of the rules of the linter; written by hand, one module each."""

from __future__ import annotations

from importlib import import_module
from typing import Final

from engine.policy.rules import Rule

RULE_MODULES: Final[tuple[str, ...]] = ()
"""Modules of `engine.policy.rules` that hold a RULE, in the order of their codes."""


def load_rules() -> tuple[Rule, ...]:
    """Imports every rule: what `lint` checks beside the loader and the compiler."""
    return tuple(import_module(f"engine.policy.rules.{name}").RULE for name in RULE_MODULES)
