"""Owns the audit that a person can read: one page over one Run, as Markdown or as HTML."""

from __future__ import annotations

import html
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from engine.domain import events as e
from engine.domain.diagnostics import many
from engine.domain.policy import Policy
from engine.domain.state import RunState
from engine.report.effects import Effect, effects_of
from engine.report.ledger import grouped, label
from engine.report.masks import Masks
from engine.report.sentences import receipt, requirement, sentence
from engine.report.words import arguments, moment, one_line, safe

WIDE = 2000


@dataclass(frozen=True, slots=True)
class Section:
    title: str
    rows: tuple[tuple[str, str], ...]
    """(label, text); a row without a label is a line of its own."""


def audit(log: Sequence[e.Event], state: RunState, policy: Policy) -> list[Section]:
    """What was asked for, each effect with its chain of events, what else happened, how it ended."""
    masks = Masks(policy, state)
    effects = effects_of(log)
    return [
        Section(f"Run {state.run}", tuple(_head(log, state))),
        *(_effect(effect, state, masks) for effect in effects),
        Section("Missing links", tuple(_missing(effects))),
        Section("Other calls", tuple(_others(state, effects))),
        Section("Decisions that did not count", tuple(_vain(log))),
        Section("Publications", tuple(_publications(state))),
        Section("End", tuple(_end(log, state))),
    ]


def _head(log: Sequence[e.Event], state: RunState) -> Iterator[tuple[str, str]]:
    who = state.principal
    if who is not None:
        yield "for", f"{who.id} ({', '.join(who.roles)}), issuer {who.issuer}"
    yield "policy", f"{state.policy} v{state.policy_version}, digest {state.policy_digest}"
    yield "model", state.model
    yield "task", arguments(state.task, WIDE) or "none"
    yield "started", moment(state.started_at)
    for text in state.said:
        yield "input", one_line(text, WIDE)
    if state.forked_from:
        yield "forked from", state.forked_from
    yield "log", f"{many(len(log), 'event')}, head {state.seq}:{state.head}"


def _effect(effect: Effect, state: RunState, masks: Masks) -> Section:
    return Section(
        f"Effect {effect.call} {one_line(effect.tool, 80)}: {effect.outcome.replace('_', ' ')}",
        tuple(_links(effect, state, masks)),
    )


def _links(effect: Effect, state: RunState, masks: Masks) -> Iterator[tuple[str, str]]:
    if effect.proposal is not None:
        event, proposal = effect.proposal
        raw = one_line(masks.raw(effect.tool, proposal.arguments), WIDE)
        yield "proposal", f"{_when(event)}, turn {effect.call.turn}: {raw}"
    for event in effect.requests:
        assert isinstance(event.body, e.ApprovalRequested)
        asked = "; ".join(map(requirement, event.body.requirements))
        yield "asked", f"{_when(event)}: {asked}; digest {event.body.digest}"
    for event in effect.decisions:
        yield "decision", f"{_when(event)} by {_who(event)}: {_decision(event, masks, effect.tool)}"
    yield from _sent(effect, masks)
    for event in effect.receipts:
        assert isinstance(event.body, e.ReceiptRecorded)
        by = "" if event.actor.type == "host" else f" by {_who(event)}"
        said = receipt(event.body, state)
        yield "receipt", f"{_when(event)}{by}: {said}, settled by {event.body.settled_by}"
    for what in effect.missing():
        yield "missing", what


def _sent(effect: Effect, masks: Masks) -> Iterator[tuple[str, str]]:
    for event in effect.starts:
        body = event.body
        assert isinstance(body, e.ExecutionStarted)
        args = masks.value(effect.tool, body.args)
        assert isinstance(args, dict)
        if body.host is not None:
            about = f" of {body.host.subject}" if body.host.subject else ""
            yield "confirmation", f"none is needed: the Host's own {body.host.purpose}{about}"
        elif not effect.decisions:
            yield "confirmation", body.approved_by or "none"
        key = f", key {body.idempotency_key}" if body.idempotency_key else ""
        yield "execution", f"{_when(event)}, attempt {body.attempt}: {arguments(args, WIDE)}{key}"


def _decision(event: e.Event, masks: Masks, tool: str) -> str:
    match event.body:
        case e.ApprovalGiven() as given:
            edits = masks.value(tool, given.edits) if given.edits else None
            parts = [
                f"yes for {', '.join(given.satisfies)}",
                f"as edited ({arguments(edits, WIDE)})" if isinstance(edits, dict) else "",
                f"amended digest {given.amendment.digest}" if given.amendment else "",
                one_line(given.because, WIDE),
            ]
            return ", ".join(part for part in parts if part)
        case e.ApprovalRefused() as refused:
            return "no" + (f", {one_line(refused.because, WIDE)}" if refused.because else "")
        case _:
            return "nobody decided in time"


def _missing(effects: Sequence[Effect]) -> Iterator[tuple[str, str]]:
    found = [(str(effect.call), what) for effect in effects for what in effect.missing()]
    yield from found or [("", "none: every effect has its proposal, confirmation, execution and receipt")]


def _others(state: RunState, effects: Sequence[Effect]) -> Iterator[tuple[str, str]]:
    known = {effect.call for effect in effects}
    for group, calls in grouped(state).items():
        rest = [f"{label(call)} {one_line(call.tool, 60)}" for call in calls if call.id not in known]
        if rest:
            yield group.replace("_", " "), ", ".join(rest)


def _vain(log: Sequence[e.Event]) -> Iterator[tuple[str, str]]:
    for event in log:
        if isinstance(event.body, e.DecisionNotEligible):
            said = f"{event.body.decision} {one_line(event.body.call)}: {one_line(event.body.because)}"
            yield f"{_when(event)} {_who(event)}", said


def _publications(state: RunState) -> Iterator[tuple[str, str]]:
    for output, published in state.publications.items():
        cited = f", cites {', '.join(published.citations)}" if published.citations else ""
        yield output, f"{moment(published.at)}, call {published.call}, digest {published.digest}{cited}"


def _end(log: Sequence[e.Event], state: RunState) -> Iterator[tuple[str, str]]:
    last = next((event for event in reversed(log) if isinstance(event.body, e.Ending)), None)
    if last is None:
        yield "status", f"{state.status}, it is not over"
        return
    yield "status", state.status
    yield "ended", f"{_when(last)}: {sentence(last.body, state)}"


def _when(event: e.Event) -> str:
    return f"event {event.seq}, {moment(event.recorded_at)}"


def _who(event: e.Event) -> str:
    actor = event.actor
    issuer = f", issuer {actor.issuer}" if actor.issuer else ""
    return f"{one_line(actor.id or actor.type, 200)} ({', '.join(actor.roles) or 'no role'}{issuer})"


# --- forms ------------------------------------------------------------------------------------------------


def markdown(sections: Sequence[Section]) -> str:
    lines: list[str] = []
    for index, section in enumerate(sections):
        if not section.rows:
            continue
        lines += [f"{'#' if index == 0 else '##'} {_plain(section.title)}", ""]
        lines += [
            f"- **{_plain(name)}**: {_plain(text)}" if name else f"- {_plain(text)}"
            for name, text in section.rows
        ]
        lines.append("")
    return "\n".join(lines)


def _plain(text: str) -> str:
    """Text of a model or a stranger that Markdown shows as it is."""
    escaped = "".join(f"\\{mark}" if mark in "\\`*_[]<>#|!" else mark for mark in safe(text))
    return " ".join(escaped.split())


def page(sections: Sequence[Section]) -> str:
    """A page that needs nothing else: no script, no style from outside."""
    body = "\n".join(_html(index, section) for index, section in enumerate(sections) if section.rows)
    title = html.escape(sections[0].title)
    return (
        f'<!doctype html>\n<html lang="en">\n<head><meta charset="utf-8"><title>{title}</title>\n'
        "<style>body{font:16px/1.5 system-ui;max-width:70em;margin:2em auto;padding:0 1em}"
        "dt{font-weight:600;margin-top:.4em}dd{margin:0 0 0 2em;overflow-wrap:anywhere}</style></head>\n"
        f"<body>\n{body}\n</body>\n</html>"
    )


def _html(index: int, section: Section) -> str:
    level = "h1" if index == 0 else "h2"
    rows = "\n".join(
        (f"<dt>{html.escape(safe(name))}</dt>" if name else "") + f"<dd>{html.escape(safe(text))}</dd>"
        for name, text in section.rows
    )
    return f"<section><{level}>{html.escape(safe(section.title))}</{level}>\n<dl>\n{rows}\n</dl></section>"
