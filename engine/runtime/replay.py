"""Owns the replay of a recorded Run: folded again, each decision of the Host made again from the state before it.

What came from outside (answers of models and tools, what people said) is taken from the log. Nothing is sent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal

from engine.domain import events as e
from engine.domain.calls import CallStatus
from engine.domain.canonical import Json, parse_json
from engine.domain.errors import Fault, UsageError
from engine.domain.ids import CallId, RunId
from engine.domain.policy import ModelUse
from engine.domain.state import RunState
from engine.lifecycle import steps
from engine.lifecycle.fold import apply
from engine.ports import EventStore, ModelGateway, ModelRequest, ModelResponse
from engine.runtime.library import PolicyLibrary
from engine.runtime.outlook import View, estimate

CLOSE = timedelta(seconds=5)
"""A deadline is counted from when it was decided, which is a moment before it was recorded."""
_NOT_COMPARED = {"ModelAttemptStarted": ("reserved", "model"), "CompactionStarted": ("reserved", "model")}
"""Prices and token counts of that day, and a model that was named on the command line, are not in the log."""


@dataclass(frozen=True, slots=True)
class Difference:
    """A recorded decision that is decided otherwise now."""

    seq: int
    kind: str
    recorded: Json
    decided: Json
    """None: nothing would be decided there."""
    fields: tuple[str, ...] = ()
    """The fields that differ, if the kind is the same."""


@dataclass(slots=True)
class Replay:
    run: RunId
    events: int = 0
    decisions: int = 0
    """Events that the Host decided, and that were decided again."""
    differences: list[Difference] = field(default_factory=list)


class _Log:
    """What a View follows."""

    generation = 0

    def __init__(self, run: RunId) -> None:
        self.state = RunState(run)


class _Past(ModelGateway):
    """Prices as they were reserved; it proposes nothing."""

    reserved: e.Reservation | None = None

    async def propose(self, request: ModelRequest, on_text: object = None) -> ModelResponse:  # noqa: ARG002
        raise Fault("a replay asks no model", remedy="please report this")

    def price(self, model: ModelUse, input_tokens: int, output_tokens: int) -> Decimal | None:  # noqa: ARG002
        return self.reserved.cost_usd if self.reserved is not None else Decimal(0)


def replay(store: EventStore, library: PolicyLibrary, run: RunId) -> Replay:
    """Decides a Run again. Raises UsageError for an unknown Run, PolicyInvalid if its policy no longer compiles."""
    log = list(store.events(run))
    if not log:
        raise UsageError(f"there is no Run `{run}`", remedy="`agentctl runs` lists them")
    player = _Player(store, library, run, log)
    for index in range(len(log)):
        player.next(index)
    return player.found


class _Player:
    def __init__(self, store: EventStore, library: PolicyLibrary, run: RunId, log: Sequence[e.Event]) -> None:
        self._store = store
        self._library = library
        self._events = log
        self._log = _Log(run)
        self._past = _Past()
        self._view: View | None = None
        self._epoch = 0
        self._started: dict[CallId, int] = {}
        """Call -> the claim under which it was sent last."""
        self._asked = 0
        """The claim under which the model was asked last."""
        self._tried: CallId | None = None
        """The call whose probe is recorded here as no proof."""
        self._expected: list[e.Body] = []
        """What the present step still brings."""
        self.found = Replay(run)

    def next(self, index: int) -> None:
        event = self._events[index]
        self.found.events += 1
        if self._from_outside(event):
            self._unfinished(event)
        else:
            self._decided(index)
        apply(self._log.state, event)
        self._remember(event)

    def _remember(self, event: e.Event) -> None:
        body = event.body
        if isinstance(body, e.ExecutionStarted):
            self._started[body.call] = event.claim_epoch
        elif isinstance(body, e.ModelAttemptStarted | e.CompactionStarted):
            self._asked = event.claim_epoch

    def _from_outside(self, event: e.Event) -> bool:
        """What a model, a tool or a person brought; everything else the Host decided."""
        if not event.claim_epoch:
            return True
        match event.body:
            case e.ModelTurnRecorded() | e.ContextCompacted():
                return True
            case e.ModelAttemptFailed() | e.CompactionFailed():
                return self._asked == event.claim_epoch
            case e.ReceiptRecorded(call=call):
                started = self._log.state.calls[call].status is CallStatus.STARTED
                return started and self._started.get(call) == event.claim_epoch
            case _:
                return False

    # --- decisions ----------------------------------------------------------------------------------------

    def _decided(self, index: int) -> None:
        event = self._events[index]
        self.found.decisions += 1
        if not self._expected:
            self._expected = self._decide(index)
        wanted = self._expected.pop(0) if self._expected else None
        difference = _compare(event, wanted)
        if difference is not None:
            self.found.differences.append(difference)
            if not difference.fields:
                self._expected = []

    def _unfinished(self, event: e.Event) -> None:
        """A step is made durable as a whole: what is missing of it was decided otherwise."""
        if self._expected:
            decided = _form(self._expected[0])
            self.found.differences.append(Difference(event.seq, self._expected[0].kind, None, decided))
            self._expected = []

    def _decide(self, index: int) -> list[e.Body]:
        """The bodies of the step that follows here: by the time of the event, else by that of the one before."""
        event = self._events[index]
        bodies = self._step(index, event.recorded_at)
        if bodies and _compare(event, bodies[0]) is None:
            return bodies
        if index and not isinstance(bodies[-1] if bodies else None, e.ModelAttemptStarted):
            earlier = self._step(index, self._events[index - 1].recorded_at)
            if earlier and _compare(event, earlier[0]) is None:
                return earlier
        return bodies

    def _step(self, index: int, now: datetime) -> list[e.Body]:
        view, body = self._fresh(self._events[index]), self._events[index].body
        self._tried = body.call if isinstance(body, e.ReconcileTried) else None
        self._past.reserved = next(
            (
                each.body.reserved
                for each in self._events[index : index + 4]
                if isinstance(each.body, e.ModelAttemptStarted | e.CompactionStarted)
            ),
            None,
        )
        try:
            return _bodies(view.decider.next_step(self._log.state, now))
        except Exception:  # noqa: BLE001 - a log that was tampered with may be in a state that no Host comes to
            return []

    def _fresh(self, event: e.Event) -> View:
        """The patience with a model is counted per drive, and so are views."""
        if self._view is None or event.claim_epoch != self._epoch:
            self._epoch = event.claim_epoch
            self._view = View(
                self._library, self._past, self._log, self._read, estimate, None, at_work=self._at_work
            )
        self._view.refresh(self._log)
        return self._view

    def _at_work(self, call: CallId) -> bool:
        """As it was recorded: a probe that was no proof."""
        return self._tried == call

    def _read(self, stored: e.StoredResult) -> Json:
        if stored.digest is None:
            return stored.value
        text = self._store.blob(stored.digest)
        if text is None:
            raise Fault(
                f"the result {stored.digest[:12]} is not in the store",
                remedy="the database lost a blob: restore it from a backup",
            )
        return parse_json(text)


def _bodies(step: steps.Step) -> list[e.Body]:
    """What a step records, in order."""
    match step:
        case steps.Record(bodies):
            return list(bodies)
        case steps.AskModel():
            return [*step.bodies, step.start]
        case steps.Execute(starts, before):
            return [*before, *starts]
        case steps.Reconcile(start) | steps.Compensate(start) | steps.Compact(start=start):
            return [start]
        case _:
            return []


# --- comparison -------------------------------------------------------------------------------------------


def _compare(event: e.Event, decided: e.Body | None) -> Difference | None:
    recorded = _form(event.body)
    if decided is None:
        return Difference(event.seq, event.kind, recorded, None)
    other = _form(decided)
    if decided.kind != event.kind:
        return Difference(event.seq, event.kind, recorded, {"event": decided.kind, **other})
    left_out = _NOT_COMPARED.get(event.kind, ())
    names = dict.fromkeys([*recorded, *other])
    differ = tuple(
        name for name in names if name not in left_out and not _same(recorded.get(name), other.get(name))
    )
    return Difference(event.seq, event.kind, recorded, other, differ) if differ else None


def _form(body: e.Body) -> dict[str, Json]:
    found = parse_json(e.payload_of(body))
    assert isinstance(found, dict)
    return found


def _same(one: Json, two: Json) -> bool:
    """Equal, but for moments that lie close together."""
    if isinstance(one, dict) and isinstance(two, dict):
        return one.keys() == two.keys() and all(_same(one[name], two[name]) for name in one)
    if isinstance(one, list) and isinstance(two, list):
        return len(one) == len(two) and all(map(_same, one, two))
    return one == two or _close(one, two)


def _close(one: Json, two: Json) -> bool:
    if not isinstance(one, str) or not isinstance(two, str):
        return False
    try:
        return abs(datetime.fromisoformat(one) - datetime.fromisoformat(two)) <= CLOSE
    except (ValueError, TypeError):
        return False
