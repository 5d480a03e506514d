"""Owns the questions at a terminal: a reply to the model, a decision about a held call."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from engine.domain.actors import Actor
from engine.domain.state import CallState, RunState
from engine.report.waiting import approval_lines, open_approvals, question_of
from engine.report.words import safe

if TYPE_CHECKING:
    from engine.runtime.runtime import Runtime


def answered(runtime: Runtime, state: RunState, by: Actor | None) -> bool:
    """Asks for what the Run waits for. True: something was answered, so drive on."""
    if by is None or state.terminal:
        return False
    decided = [_decided(runtime, state, call, by) for call in open_approvals(state)]
    if any(decided):
        return True
    return state.waiting_for == "input" and _replied(runtime, state, by)


def _replied(runtime: Runtime, state: RunState, by: Actor) -> bool:
    asked = state.calls.get(state.asked) if state.asked is not None else None
    click.echo(safe(question_of(asked)) if asked is not None else "the model proposed no call")
    text: str = click.prompt("reply (empty: later)", default="", show_default=False)
    if not text.strip():
        return False
    runtime.reply(state.run, text, by=by)
    return True


def _decided(runtime: Runtime, state: RunState, call: CallState, by: Actor) -> bool:
    """Asks only who may decide; the answer is bound to the call as it was shown."""
    from engine.runtime.approvals import Approval, eligible_rules

    assert call.approval is not None
    if not eligible_rules(state, call.approval, by, runtime.clock):
        return False
    for line in approval_lines(call):
        click.echo(line)
    word = click.prompt("approve? y = yes, n = no, s = skip", type=click.Choice(["y", "n", "s"]), default="s")
    if word == "y":
        runtime.approve(state.run, call.id, by=by, decision=Approval(digest=call.approval.digest))
    elif word == "n":
        runtime.refuse(state.run, call.id, by=by, because="refused at the prompt")
    return word != "s"
