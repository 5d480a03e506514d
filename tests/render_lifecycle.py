"""Owns docs/lifecycle.md: diagram and transition table of a Run, written from the machine itself.

`python -m tests.render_lifecycle` writes the page anew; a test holds that it is what the machine says.
"""

from __future__ import annotations

import inspect
from pathlib import Path

from statemachine import State

from engine.domain import events as e
from engine.domain.events import Body
from engine.lifecycle.machine import TERMINAL, RunFacts, RunMachine, lifecycle_event

PAGE = Path(__file__).parent.parent / "docs" / "lifecycle.md"

HEAD = """\
<!-- Written by `python -m tests.render_lifecycle` from engine/lifecycle/machine.py; do not edit. -->
# The life of a Run

A Run is in one of these states. What moves it is a recorded event; the machine judges each such event before it
is appended, and a log is folded through the same table. Nothing the model writes is a transition: `finish` is a
proposal, and only the Host records that a Run is over.
"""

MEANING = {
    "created": "Recorded with its task and its first input; nothing was proposed yet.",
    "proposing": "A model is asked for the next turn. A failed attempt leaves the Run here.",
    "executing": "A closed response is worked through, call by call.",
    "awaiting_approval": "People must decide a held call, capability or publication.",
    "awaiting_input": "The user must say something: a question is open, or the model proposed no call.",
    "awaiting_reconciliation": "An effect of unknown outcome must become known first.",
    "settling": "The Run ends: open calls are closed by name, effects undone in reverse order.",
    "completed": "A `finish` passed its gates.",
    "failed": "The Runtime cannot go on; the event says why.",
    "cancelled": "A person asked for the end.",
    "expired": "A budget is used up, or the policy drains; an operator continues by a fork.",
}

TAIL = """\
Stopping a process (Ctrl-C, SIGTERM, a crash) is no transition: the Run stays as its log says and is driven again
by the same call that started it. Every event not listed here leaves the state as it is.
"""


FACTS: tuple[Body, ...] = (
    e.ModelAttemptStarted(turn=1, attempt=1, model="m", contract="c", epoch=0),
    e.ModelTurnRecorded(turn=1, attempt=1, model="m", contract="c", epoch=0),
    e.RunParked(waiting_for="approval"),
    e.RunParked(waiting_for="input"),
    e.RunParked(waiting_for="reconciliation"),
    e.RunResumed(),
    e.SettlingStarted(ending="completed", reason="finish"),
    e.RunCompleted(reason="finish"),
    e.RunFailed(reason="model"),
    e.RunCancelled(reason="cancel"),
    e.RunExpired(reason="budget"),
)
"""One recorded event for each event of the machine."""


def facts() -> dict[str, str]:
    """Event of the machine -> how it is recorded."""
    found = {}
    for body in FACTS:
        waiting = f"({body.waiting_for})" if isinstance(body, e.RunParked) else ""
        found[str(lifecycle_event(body))] = f"{body.kind}{waiting}"
    return found


def rows() -> list[tuple[str, str, str, str]]:
    """(from, event, to, guards) of each transition, in the order of the states."""
    found = []
    for state in RunMachine.states:
        for transition in state.transitions:
            guards = ", ".join(
                f"{'' if spec.expected_value else 'not '}`{spec.func}`" for spec in transition.cond
            )
            found += [(state.id, event.id, transition.target.id, guards) for event in transition.events]
    return found


def diagram() -> str:
    lines = ["stateDiagram-v2", "    [*] --> created"]
    seen: dict[tuple[str, str], list[str]] = {}
    for start, event, end, _ in rows():
        seen.setdefault((start, end), []).append(event)
    lines += [f"    {start} --> {end}: {', '.join(events)}" for (start, end), events in seen.items()]
    lines += [f"    {state} --> [*]" for state in sorted(TERMINAL)]
    return "\n".join(lines)


def table() -> str:
    lines = ["| from | event | to | guards |", "|---|---|---|---|"]
    recorded = facts()
    lines += [f"| {start} | `{recorded[event]}` | {end} | {guards} |" for start, event, end, guards in rows()]
    return "\n".join(lines)


def _first_line(name: str) -> str:
    return (inspect.getdoc(getattr(RunFacts, name)) or "").splitlines()[0]


def guards() -> str:
    names = {name.strip("`") for row in rows() for name in row[3].replace("not ", "").split(", ") if name}
    lines = ["| guard | holds when |", "|---|---|"]
    lines += [f"| `{name}` | {_first_line(name)} |" for name in sorted(names)]
    return "\n".join(lines)


def states() -> str:
    lines = ["| state | what is so |", "|---|---|"]
    all_states: list[State] = list(RunMachine.states)
    lines += [f"| {state.id} | {MEANING[state.id]} |" for state in all_states]
    return "\n".join(lines)


def page() -> str:
    return "\n".join(
        (
            HEAD, states(), "", "```mermaid", diagram(), "```", "", "## Transitions", "", table(), "",
            "## Guards", "", "A guard carries the name of the gate that a `finish` must pass.", "", guards(), "", TAIL,
        )
    )  # fmt: skip


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
