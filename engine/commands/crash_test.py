"""Owns `agentctl crash-test`: kills a tool's process at every boundary around its effect, and says what holds up."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from engine.domain.diagnostics import many

if TYPE_CHECKING:
    from engine.domain.policy import Policy, ToolSpec
    from engine.policy.documents.project import Project
    from engine.runtime.crash_kit import Verdict

FAULTS = 1
LONGEST = 600
"""Seconds for one process."""
SHORTEST = 0.002


@click.command("crash-test")
@click.argument("policy", metavar="POLICY")
@click.argument("tool", metavar="TOOL")
@click.option("--args", "args", metavar="JSON", default="{}", help="The arguments that a model would give.")
@click.option(
    "--task", "tasks", metavar="K=V", multiple=True, help="A field of the task, for bound arguments."
)
@click.option(
    "--state", "states", metavar="SLICE=JSON", multiple=True, help="App state, for bound arguments."
)
@click.option(
    "--count",
    "counter",
    metavar="python:MODULE:FUNCTION",
    help="Your counter of effects: it returns how many there are.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def crash_test_command(
    policy: str,
    tool: str,
    args: str,
    tasks: tuple[str, ...],
    states: tuple[str, ...],
    counter: str | None,
    as_json: bool,
) -> int:
    """Kill the process of TOOL around its effect (SIGKILL), drive on, and compare what the Host then believes.

    The tool really runs, once per trial: point it at something that may be written to. The Run is alone in a
    scratch database. Without --count only the tool's probe is held against what is known of each point.
    Exits 1 if the probe or the key does not hold up.
    """
    from engine.bootstrap import load_policy
    from engine.commands.project import this_project
    from engine.report.forms import dumps
    from engine.runtime.crash_kit import judge, only

    project = this_project()
    compiled = only(load_policy(policy, project), tool)
    spec = compiled.tools[tool]
    order = {
        "policy": policy,
        "tool": tool,
        **_given(compiled, args, tasks, states, project),
        "counter": counter or "",
    }
    verdicts = [judge(spec, trial) for trial in _trials(order)]
    if as_json:
        click.echo(
            dumps({"schema": "agentctl.crash-test/v1", "tool": tool, "trials": [*map(_form, verdicts)]})
        )
    else:
        click.echo("\n".join(_lines(spec, verdicts, counted=counter is not None)))
    return FAULTS if any(verdict.fault for verdict in verdicts) else 0


def _given(
    policy: Policy, args: str, tasks: tuple[str, ...], states: tuple[str, ...], project: Project
) -> dict[str, Any]:
    from engine.commands.given import pairs, task_of

    return {
        "args": _object(args, "--args"),
        "task": task_of(policy, tasks, project.task_defaults),
        "state": {name: _object(text, "--state") for name, text in pairs(states, "--state").items()},
    }


def _object(text: str, option: str) -> dict[str, Any]:
    from engine.domain.canonical import NotJson, parse_json
    from engine.domain.errors import UsageError

    try:
        found = parse_json(text)
    except NotJson as error:
        raise UsageError(
            f"`{option}` is no JSON: {error}", remedy='write an object, such as {"id": "a"}'
        ) from None
    if not isinstance(found, dict):
        raise UsageError(f"`{option}` is no object", remedy='write an object, such as {"id": "a"}')
    return found


# --- trials -----------------------------------------------------------------------------------------------


def _trials(order: dict[str, Any]) -> list[Any]:
    """One baseline, then one killed process for each point."""
    from engine.domain.ids import new_run_id
    from engine.runtime.crash_kit import CALL, POINTS, Counts, trial_of

    with tempfile.TemporaryDirectory(prefix="agentctl-crash-") as folder:
        usual, before = _baseline(order, Path(folder))
        found = []
        for index, point in enumerate(POINTS):
            ask = _asker({**order, "db": str(Path(folder) / f"{index}.db"), "run": new_run_id()})
            alive = ask(work="drive", point=index, seconds=max(usual, SHORTEST)) is not None
            answered = alive or _state(folder, index).calls[CALL].receipt is not None
            counted = ask(work="go on") or {}
            at_kill, after = counted.get("found"), counted.get("after")
            counts = (
                None if before is None or at_kill is None or after is None else Counts(before, at_kill, after)
            )
            found.append(trial_of(point, _state(folder, index), counts, answered=answered))
            before = after
    return found


def _baseline(order: dict[str, Any], folder: Path) -> tuple[float, int | None]:
    """The tool's usual time, and the number of effects after it ran. Raises UsageError if it does not even work."""
    from engine.domain.errors import UsageError
    from engine.domain.ids import new_run_id
    from engine.runtime.crash_kit import CALL

    ask = _asker({**order, "db": str(folder / "baseline.db"), "run": new_run_id()})
    answer = ask(work="drive")
    state = _read(str(folder / "baseline.db"))
    call = state.calls.get(CALL)
    receipt = call.receipt if call is not None else None
    if receipt is None or receipt.outcome.value != "confirmed":
        why = (
            receipt.detail
            if receipt is not None
            else call.refusal.message
            if call and call.refusal
            else "no call"
        )
        raise UsageError(
            f"`{order['tool']}` does not work by itself: {why}", remedy="mend `--args` or the tool"
        )
    return (float(answer["seconds"]), answer["after"]) if answer else (0.0, None)


def _asker(order: dict[str, Any]) -> Callable[..., dict[str, Any] | None]:
    """Runs a child with this order; None where it was killed. Raises UsageError with what it said, if it failed."""

    def ask(**more: Any) -> dict[str, Any] | None:
        from engine.domain.errors import UsageError

        words = [sys.executable, "-m", "engine.commands.crash_child", json.dumps({**order, **more})]
        done = subprocess.run(
            words, capture_output=True, text=True, timeout=LONGEST, check=False, env=_environment()
        )
        if done.returncode < 0:
            return None
        if done.returncode:
            said = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
            raise UsageError(f"the process of a trial failed: {said}", remedy="mend the tool, or `--count`")
        found: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
        return found

    return ask


def _environment() -> dict[str, str]:
    """Ours, with this very agentctl in front of whatever else is installed."""
    import engine

    home = str(Path(engine.__file__).parent.parent)
    known = os.environ.get("PYTHONPATH")
    return {**os.environ, "PYTHONPATH": os.pathsep.join([home, known] if known else [home])}


def _state(folder: str, index: int) -> Any:
    return _read(str(Path(folder) / f"{index}.db"))


def _read(db: str) -> Any:
    from engine.commands.reading import opened, read_run

    with opened(db) as store:
        return read_run(store, store.runs()[0].run).state


# --- what is said -----------------------------------------------------------------------------------------


def _form(verdict: Verdict) -> dict[str, Any]:
    trial = verdict.trial
    return {
        "point": trial.point.name,
        "outcome": trial.outcome,
        "settled_by": trial.settled_by,
        "sent": trial.sent,
        "effects": trial.effects,
        "fault": verdict.fault or None,
        "note": verdict.note or None,
    }


def _lines(spec: ToolSpec, verdicts: list[Verdict], *, counted: bool) -> list[str]:
    lines = []
    for verdict in verdicts:
        trial = verdict.trial
        effects = f", effects {trial.effects}" if trial.effects is not None else ""
        mark = "FAULT" if verdict.fault else "note " if verdict.note else "ok   "
        lines.append(f"{mark}  {trial.point.name}: {trial.outcome}, sent {many(trial.sent, 'time')}{effects}")
        lines += [f"       {said}" for said in (verdict.fault, verdict.note) if said]
    faults = sum(bool(verdict.fault) for verdict in verdicts)
    lines.append("")
    lines.append(
        f"{many(len(verdicts), 'process', 'processes')} killed around `{spec.name}`: {many(faults, 'fault')}"
    )
    if spec.reconcile is not None and spec.reconcile.probe is None:
        lines.append("  it declares no probe: every lost answer waits for an operator")
    if not counted:
        lines.append(
            "  effects were not counted: `--count python:MODULE:FUNCTION` also shows an effect done twice"
        )
    return lines
