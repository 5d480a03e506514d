"""Owns the recording of whole Runs as golden logs: `python -m tests.lifecycle.recorded NAME` writes a new one.

A golden log is never written again once a version was released with it: it shows that what was stored then still
folds, event by event, to what it meant. A new event shape gets a recording of its own.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

from engine.domain import events as e
from engine.domain.errors import Refused
from engine.domain.ids import RunId
from engine.domain.state import RunState
from engine.lifecycle.fold import apply
from engine.ports import AttemptFailed
from engine.runtime import signals
from tests.runtime.bench import LEAD, ME, POLICY, Bench, Crash, final, say

GOLDEN = Path(__file__).parent.parent / "golden"

STOCK = ("get_stock", {"sku": 1})
LETTER = ("send_letter", {"to": "a"})
ROOM = ("book_room", {"room": 1})
OPS = ("request_capability", {"capability": "ops"})
DOCS = ("request_capability", {"capability": "docs"})


def tell(bench: Bench, *bodies: e.Body) -> None:
    signals.append(bench.store, bench.clock, bench.run, LEAD, lambda _: list(bodies))


def completed(run: str) -> Bench:
    bench = Bench(
        say(STOCK, ("get_stock", {"sku": "x"})),
        say(DOCS, ("ask_user", {"question": "Well?"})),
        say(("search_docs", {"q": "a"}), ("ask_user", {"question": "Which?"})),
        say(("publish_note", {"body": "No source."})),
        say(("publish_note", {"body": "It is {{fig:E1/left}} [[E1]]."}), ("finish", {})),
        run=run,
    )
    bench.drive()
    bench.reply("the first")
    bench.drive()
    return bench


def decided(run: str) -> Bench:
    bench = Bench(say(LETTER, OPS, ROOM), say(LETTER, OPS), say(LETTER), final(), run=run)
    bench.drive()
    try:
        bench.approve(1, 1, by=ME)
    except Refused:
        bench.approve(1, 1)
    bench.approve(1, 2)
    bench.drive()
    bench.refuse(2, 1, because="not now")
    bench.drive()
    bench.clock.advance(hours=2)
    bench.drive()
    bench.drive()
    bench.clock.advance(minutes=2)
    bench.drive()
    return bench


def reconciled(run: str) -> Bench:
    bench = Bench(say(ROOM), say(("reserve", {"sku": 2})), say(STOCK), final(), run=run)

    async def cannot_tell(key: str) -> object:
        raise ConnectionError

    usual = bench.shop.find_booking
    bench.shop.special["find_booking"] = cannot_tell

    def point(where: str) -> None:
        if where == "after effect":
            raise Crash(where)

    try:
        bench.drive(point)
    except Crash:
        bench.drive()
    bench.shop.special["find_booking"] = usual
    bench.clock.advance(minutes=20)
    bench.drive()
    return bench


def told(run: str) -> Bench:
    """An application and operators say things while the Run waits."""
    bench = Bench(say(DOCS), say(text="?"), final(), run=run)
    bench.drive()
    bench.source("papers", "degraded")
    tell(
        bench,
        e.GrantRevoked(grant="G1", because="over"),
        e.StateUpdated(slice="cart", value={"total": 1}, version=1, by="app"),
        e.OperatorAlerted(code="look", message="at this"),
    )
    bench.load(POLICY.replace("version: 1", "version: 2"))
    bench.reply("go on")
    bench.drive()
    return bench


def failed(run: str) -> Bench:
    def refused(request: Any) -> Any:
        if request.attempt == 1:
            raise AttemptFailed("unavailable", "down")
        raise AttemptFailed("bad_request", "no such model")

    bench = Bench(say(STOCK), refused, run=run)
    bench.drive()
    return bench


def cancelled(run: str) -> Bench:
    bench = Bench(say(("reserve", {"sku": 2}), LETTER, OPS), run=run)
    bench.drive()
    bench.cancel("changed my mind")
    bench.drive()
    return bench


def expired(run: str) -> Bench:
    bench = Bench(*[say(("nothing", {}))] * 9, run=run)
    bench.drive()
    return bench


SCENES = (completed, decided, reconciled, told, failed, cancelled, expired)


def row(event: e.Event) -> dict[str, Any]:
    return {
        "run": event.run,
        "seq": event.seq,
        "kind": event.kind,
        "recorded_at": e.timestamp(event.recorded_at),
        "actor": e.actor_text(event.actor),
        "claim_epoch": event.claim_epoch,
        "payload": event.payload,
        "previous": event.previous,
        "hash": event.hash,
    }


def read(path: Path) -> Iterator[e.Event]:
    """The events of a golden log as the present version reads them."""
    for line in path.read_text(encoding="utf-8").splitlines():
        stored = json.loads(line)
        yield e.Event(
            RunId(stored["run"]), stored["seq"], datetime.fromisoformat(stored["recorded_at"]),
            e.read_actor(stored["actor"]), stored["claim_epoch"], e.read_body(stored["kind"], stored["payload"]),
            stored["payload"], stored["previous"], stored["hash"],
        )  # fmt: skip


def timeline(events: Iterable[e.Event]) -> str:
    """What each event did, as a person would tell it."""
    states: dict[RunId, RunState] = {}
    lines = []
    for event in events:
        state = states.setdefault(event.run, RunState(event.run))
        if event.seq == 1:
            lines.append(f"# {event.run}")
        before = (state.epoch, set(state.open_calls), dict(state.outcomes))
        apply(state, event)
        said = [f"{event.seq:3} {event.kind:22} {state.status}"]
        if state.epoch != before[0]:
            said.append(f"epoch {state.epoch}, {state.moved_by}")
        closed = before[1] - set(state.open_calls)
        said += [f"{call} {state.calls[call].tool}: {_end(state, call)}" for call in sorted(closed)]
        lines.append("; ".join(said))
    return "\n".join(lines) + "\n"


def _end(state: RunState, call: Any) -> str:
    found = state.calls[call]
    return found.receipt.outcome.value if found.receipt else found.status.value


def main(name: str) -> None:
    path = GOLDEN / f"{name}.jsonl"
    if path.exists():
        raise SystemExit(f"{path} is recorded: choose another name, a recording is never written again")
    events = [event for scene in SCENES for event in scene(f"rgolden{scene.__name__}").log]
    path.write_text("".join(json.dumps(row(event), ensure_ascii=False) + "\n" for event in events), "utf-8")
    path.with_suffix(".txt").write_text(timeline(events), "utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
