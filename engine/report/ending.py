"""Owns what is read when a drive is over: publications, the ledger beside them, how the Run stands, what to do next."""

from __future__ import annotations

from collections.abc import Sequence

from engine.domain import events as e
from engine.domain.canonical import JsonObject
from engine.domain.diagnostics import many
from engine.domain.state import RunState
from engine.report.ledger import ledger_lines, tools_by_group
from engine.report.publications import publication_lines, sources_of
from engine.report.waiting import Ways, approvals_json, question_of, waiting_lines
from engine.report.words import PLAIN, Style, one_line


def ending_lines(
    state: RunState, outputs: Sequence[e.OutputPublished], ways: Ways, style: Style = PLAIN
) -> list[str]:
    """The report at the end of `run`, `resume`, `reply`: only a publication is an answer."""
    lines = [""]
    for body in outputs:
        lines += publication_lines(body, state, style)
    if not outputs and state.terminal:
        lines += ["Nothing was published.", ""]
    lines += [style.strong("From the ledger"), *ledger_lines(state), ""]
    lines += [style.strong(standing(state))]
    if not state.terminal:
        lines += waiting_lines(state, ways)
    return [*lines, f"`{ways.command('log')}` shows every event, `{ways.command('show')}` what holds now"]


def standing(state: RunState) -> str:
    """One line: how the Run ended, or that it goes on."""
    turns = many(len(state.turns), "turn")
    if state.ending is None:
        return f"Run {state.run} is {state.status.replace('_', ' ')} after {turns}"
    status, reason, message = state.ending
    why = "" if status == "completed" else f" ({reason}{': ' + one_line(message) if message else ''})"
    return f"Run {state.run} {status} after {turns}{why}"


def ending_json(state: RunState, outputs: Sequence[e.OutputPublished], ways: Ways) -> JsonObject:
    """The last object of `--json`: what `ending_lines` says, for programs."""
    status, reason, message = state.ending or (state.status, state.waiting_for, "")
    asked = state.calls.get(state.asked) if state.asked is not None else None
    return {
        "run": state.run,
        "status": status,
        "reason": reason,
        "message": message,
        "turns": len(state.turns),
        "outputs": {body.output: body.rendered for body in outputs},
        "sources": {body.output: [*sources_of(body, state)] for body in outputs},
        "calls": {name: [dict(call) for call in calls] for name, calls in tools_by_group(state).items()},
        "waiting_for": state.waiting_for,
        "question": question_of(asked) if asked is not None else None,
        "approvals": [*approvals_json(state)],
        "next": []
        if state.terminal
        else [line.strip() for line in waiting_lines(state, ways) if "agentctl " in line],
    }
