"""Owns what a Run that waits says: for whom, for what, and the command that continues it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from engine.domain.canonical import JsonObject
from engine.domain.state import CallState, RunState
from engine.report.sentences import requirement
from engine.report.words import arguments, one_line, value

REMEDIES: Final = {
    "auth": "set the provider's key in the environment, or choose another model with `--model`",
    "rate_limited": "wait a little",
    "unavailable": "wait a little, or choose another model with `--model`",
    "timeout": "wait a little, or choose another model with `--model`",
    "bad_request": "check the model id, and what `model` in the policy asks of it",
}
"""What a person can do where the model could not be reached."""


@dataclass(frozen=True, slots=True)
class Ways:
    """The commands that continue a Run; `options` are those that the reader's own command had (`--db URL`)."""

    run: str
    options: str = ""

    def command(self, name: str, rest: str = "") -> str:
        return " ".join(part for part in (f"agentctl {name}", self.run, rest, self.options) if part)


def open_approvals(state: RunState) -> list[CallState]:
    """Calls that wait for somebody's yes, in order."""
    held = (state.calls[call] for call in state.open_calls)
    return [call for call in held if call.approval is not None and not call.approval.decided]


def waiting_lines(state: RunState, ways: Ways) -> list[str]:
    """What the Run waits for, and for each thing the exact command."""
    lines = []
    for call in open_approvals(state):
        lines += [*approval_lines(call), f"  {ways.command('approve', str(call.id))}"]
        lines.append(f'  {ways.command("refuse", str(call.id))} --because "…"')
    if state.waiting_for == "input":
        lines += [_question(state), f"  {ways.command('reply', chr(34) + '…' + chr(34))}"]
    if state.waiting_for == "reconciliation":
        named = ", ".join(f"{call} {state.calls[call].tool}" for call in state.unknown_calls)
        lines += [
            f"waits until it is known what became of {named or 'a call'}",
            f"  {ways.command('resume')}",
        ]
    return lines


def _question(state: RunState) -> str:
    asked = state.calls.get(state.asked) if state.asked is not None else None
    if asked is None:
        return "waits for you: the model proposed no call"
    return f"waits for your answer to {asked.id}: {one_line(question_of(asked), 2000)}"


def question_of(call: CallState) -> str:
    return str((call.args or {}).get("question", ""))


def approval_lines(call: CallState) -> list[str]:
    """The stored call as a reviewer must see it, and who may decide it."""
    assert call.approval is not None
    missing = set(call.approval.missing())
    needs = [requirement(need) for need in call.approval.requirements if need.rule in missing]
    lines = [f"waits for approval of {call.id} {one_line(call.tool, 80)}({arguments(call.args or {}, 4000)})"]
    lines += [f"  {origin}" for origin in origin_lines(call.approval.shown)]
    lines += [f"  needs {need}" for need in needs]
    facts = call.approval.shown.get("facts")
    return lines + ([f"  facts: {arguments(facts, 4000)}"] if isinstance(facts, dict) and facts else [])


def origin_lines(shown: JsonObject) -> list[str]:
    """One line for each argument: its value, and where that value occurs in the records."""
    listed = shown.get("arguments")
    found = [item for item in listed if isinstance(item, dict)] if isinstance(listed, list) else []
    width = max((len(str(item.get("name"))) for item in found), default=0)
    return [
        f"{item.get('name')!s:{width}}  {value(item.get('value'), 200)}  {_occurs(item)}" for item in found
    ]


def _occurs(item: JsonObject) -> str:
    origins, places = item.get("origin"), item.get("occurs_in")
    if isinstance(places, list) and places:
        return "occurs in " + one_line("; ".join(map(str, places)), 1000)
    said = [str(each) for each in origins] if isinstance(origins, list) else []
    if said == ["bound"]:
        return "filled in by the Host"
    return "occurs nowhere in the records" if said in ([], ["model"]) else one_line(", ".join(said))


def approvals_json(state: RunState) -> list[JsonObject]:
    return [
        {
            "run": state.run,
            "call": str(call.id),
            "tool": call.tool,
            "arguments": call.args or {},
            "digest": call.approval.digest,
            "shown": call.approval.shown,
            "missing": [
                {"rule": need.rule, "roles": [*need.roles], "expires_at": need.expires_at.isoformat()}
                for need in call.approval.requirements
                if need.rule in call.approval.missing()
            ],
        }
        for call in open_approvals(state)
        if call.approval is not None
    ]
