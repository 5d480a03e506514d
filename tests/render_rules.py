"""Owns the writing of docs/rules from the rules: `python -m tests.render_rules`."""

from __future__ import annotations

from pathlib import Path

from engine.policy.catalogue import load_rule
from engine.policy.codes import CODES
from engine.policy.pages import page
from engine.policy.rules import Rule

FOLDER = Path(__file__).parent.parent / "docs" / "rules"


def all_rules() -> list[Rule]:
    return [rule for code in CODES if (rule := load_rule(code)) is not None]


def index(rules: list[Rule]) -> str:
    """The table of every rule, as docs/rules/README.md."""
    head = (
        "# Rules\n\nWhat `agentctl lint` finds. Each page is printed by `agentctl explain CODE`, or by the "
        "rule's name; all of them are written by `python -m tests.render_rules`.\n\n"
        "| code | name | severity | catches |\n|---|---|---|---|\n"
    )
    rows = (
        f"| [{rule.id}]({rule.id}.md) | {rule.name} | {_severity(rule)} | {rule.summary.replace('|', '¦')} |"
        for rule in rules
    )
    return head + "\n".join(rows) + "\n"


def _severity(rule: Rule) -> str:
    return rule.severity.value + (", likely" if rule.confidence.value == "likely" else "")


def pages() -> dict[str, str]:
    """File name -> text of every page."""
    rules = all_rules()
    return {"README.md": index(rules), **{f"{rule.id}.md": page(rule) for rule in rules}}


def main() -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    wanted = pages()
    for stale in FOLDER.glob("*.md"):
        if stale.name not in wanted:
            stale.unlink()
    for name, text in wanted.items():
        (FOLDER / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
