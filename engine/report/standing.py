"""Owns the view of one Run as its log says it is: `show` in text and JSON, and the list of Runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from engine.domain import events as e
from engine.domain.canonical import JsonObject
from engine.domain.diagnostics import many
from engine.domain.policy import Budgets
from engine.domain.state import RunState
from engine.ports import RunSummary
from engine.report.budget import budget_lines, budgets_json
from engine.report.ending import ending_json, standing
from engine.report.ledger import ledger_lines
from engine.report.waiting import Ways, waiting_lines
from engine.report.words import PLAIN, Style, arguments, moment, one_line


def run_lines(
    state: RunState,
    budgets: Budgets | None,
    outputs: Sequence[e.OutputPublished],
    ways: Ways,
    style: Style = PLAIN,
) -> list[str]:
    """Who, what, how far: `show` on a terminal. `budgets` is None where the policy no longer compiles."""
    lines = [style.strong(standing(state)), *_head(state), ""]
    lines += [style.strong("Budgets"), *(f"  {line}" for line in _budgets(budgets, state)), ""]
    lines += [style.strong("Calls"), *ledger_lines(state)]
    for title, rows in (
        ("Open calls", _open(state)),
        (
            "Effects",
            [f"{call.id} {one_line(call.tool)}({arguments(call.args or {})})" for call in state.effects()],
        ),
        ("Unknown effects", [f"{call} {state.calls[call].tool}" for call in state.unknown_calls]),
        ("Grants", _grants(state)),
        ("Publications", [_publication(body, state) for body in outputs]),
        ("Alerts", [f"{code}: {one_line(message)}" for code, message in state.alerts]),
    ):
        if rows:
            lines += ["", style.strong(title), *(f"  {row}" for row in rows)]
    waits = [] if state.terminal else waiting_lines(state, ways)
    return [*lines, "", *waits] if waits else lines


def _head(state: RunState) -> list[str]:
    who = state.principal
    roles = ", ".join(who.roles) if who else ""
    attrs = f", {arguments(dict(who.attrs))}" if who and who.attrs else ""
    return [
        f"  policy     {state.policy} v{state.policy_version}, digest {state.policy_digest[:16]}",
        f"  principal  {who.id if who else '-'} ({roles}{attrs})",
        f"  task       {arguments(state.task) or '-'}",
        f"  model      {state.model}",
        f"  started    {moment(state.started_at)}, last event {moment(state.updated_at)}",
        f"  log        {many(state.seq, 'event')}, head {state.head[:16]}",
    ]


def _budgets(budgets: Budgets | None, state: RunState) -> list[str]:
    if budgets is None:
        return ["the policy that the Run was started with does not compile in this version"]
    return budget_lines(budgets, state.spent)


def _open(state: RunState) -> list[str]:
    return [
        f"{call.id} {one_line(call.tool)}({arguments(call.args or {})}) {call.status.value}"
        + (f": {call.held.replace('_', ' ')}" if call.held else "")
        for call in map(state.calls.__getitem__, state.open_calls)
    ]


def _grants(state: RunState) -> list[str]:
    return [
        f"{grant.id} {grant.capability}({arguments(grant.params)}) by {grant.by}: {grant.ended or 'active'}"
        + (f", {many(grant.calls_left, 'call')} left" if grant.calls_left is not None else "")
        for grant in state.grants.values()
    ]


def _publication(body: e.OutputPublished, state: RunState) -> str:
    flags = state.publications[body.output].flags if body.output in state.publications else []
    noted = f"; {'; '.join(map(one_line, flags))}" if flags else ""
    counted = f"{many(len(body.citations), 'citation')}, {many(len(body.figures), 'figure')}"
    return f"{body.output} by {body.call}: {counted}, digest {body.digest[:16]}{noted}"


def run_json(
    state: RunState, budgets: Budgets | None, outputs: Sequence[e.OutputPublished], ways: Ways
) -> JsonObject:
    return {
        "schema": "agentctl.run/v1",
        **ending_json(state, outputs, ways),
        "policy": {
            "id": state.policy,
            "version": state.policy_version,
            "digest": state.policy_digest,
        },
        "principal": state.principal.model_dump(mode="json") if state.principal else None,
        "task": state.task,
        "model": state.model,
        "started_at": state.started_at.isoformat() if state.started_at else None,
        "updated_at": state.updated_at.isoformat() if state.updated_at else None,
        "seq": state.seq,
        "head": state.head,
        "epoch": state.epoch,
        "budgets_left": budgets_json(budgets, state.spent) if budgets is not None else None,
        "effects": [{"call": str(call.id), "tool": call.tool} for call in state.effects()],
        "grants": [
            {"id": grant.id, "capability": grant.capability, "params": grant.params, "ended": grant.ended}
            for grant in state.grants.values()
        ],
    }


# --- the list ---------------------------------------------------------------------------------------------


def runs_lines(runs: Iterable[RunSummary], style: Style = PLAIN) -> list[str]:
    rows = [("RUN", "STATUS", "POLICY", "TURNS", "BY", "STARTED", "")]
    rows += [
        (
            run.run,
            run.status,
            run.policy,
            str(run.turns),
            one_line(run.principal, 24),
            moment(run.started_at)[:16],
            _noted(run),
        )
        for run in runs
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(6)]
    lines = [
        "  ".join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[6]]).rstrip()
        for row in rows
    ]
    return [style.strong(lines[0]), *lines[1:]]


def _noted(run: RunSummary) -> str:
    parts = [
        "" if run.status == "completed" else one_line(run.reason, 60),
        many(run.open_approvals, "approval") + " open" if run.open_approvals else "",
        many(run.unknown_effects, "unknown effect") if run.unknown_effects else "",
        many(run.open_holds, "open hold") if run.open_holds else "",
    ]
    return ", ".join(part for part in parts if part)


def summary_json(run: RunSummary) -> JsonObject:
    return {
        "run": run.run,
        "status": run.status,
        "policy": run.policy,
        "policy_digest": run.policy_digest,
        "turns": run.turns,
        "principal": run.principal,
        "model": run.model,
        "started_at": run.started_at.isoformat(),
        "updated_at": run.updated_at.isoformat(),
        "seq": run.seq,
        "open_approvals": run.open_approvals,
        "open_holds": run.open_holds,
        "unknown_effects": run.unknown_effects,
        "reason": run.reason,
    }
