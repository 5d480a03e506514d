"""The public names as an application uses them: checked by mypy under strict, never run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import assert_type

from engine import (
    Actor,
    AgentctlError,
    Approval,
    AttemptFailed,
    Failed,
    ModelGateway,
    ModelRequest,
    ModelResponse,
    NotExecuted,
    Principal,
    ProposedCall,
    Runtime,
    ToolExecutor,
    ToolRequest,
    open_runtime,
)
from engine.domain.canonical import JsonObject
from engine.domain.events import Event
from engine.domain.ids import RunId
from engine.domain.policy import ModelUse, ToolSpec
from engine.domain.state import RunState
from engine.runtime.driver import Driven


def search(words: str) -> dict[str, object]:
    if not words:
        raise Failed("no words")
    if words == "later":
        raise NotExecuted("closed for today")
    return {"hits": []}


class OwnGateway:
    async def propose(
        self, request: ModelRequest, on_text: Callable[[str], None] | None = None
    ) -> ModelResponse:
        if request.attempt > 3:
            raise AttemptFailed("unavailable", "nobody answers", retry_after=2.0)
        return ModelResponse(model=request.model.id, calls=(ProposedCall("finish", "{}"),))

    def price(self, model: ModelUse, input_tokens: int, output_tokens: int) -> Decimal | None:
        return None


class OwnTools:
    async def execute(self, request: ToolRequest) -> object:
        return {"call": str(request.call), **request.args}

    def check(self, specs: Sequence[ToolSpec]) -> list[str]:
        return [spec.name for spec in specs if spec.source is None]


gateway: ModelGateway = OwnGateway()
executor: ToolExecutor = OwnTools()
tools: Mapping[str, Callable[..., object]] = {"search": search}


def embeds_a_run() -> None:
    with open_runtime("runs.db", policy="notes.policy.yaml", tools=tools, gateway=gateway) as runtime:
        assert_type(runtime, Runtime)
        run = runtime.start(
            "What is open?", principal=Principal(id="ada", roles=("reader",)), task={"depth": 2}
        )
        assert_type(run, RunId)
        driven = runtime.drive_sync(run, observers=[watch])
        assert_type(driven, Driven)
        assert_type(driven.state, RunState)
        assert_type(runtime.outputs(run), dict[str, JsonObject])
        assert_type(runtime.state(run), RunState)


def watch(event: Event, state: RunState) -> None:
    print(event.seq, event.kind, state.status)


def decides(runtime: Runtime, run: RunId) -> None:
    by = Actor(type="person", id="grace", roles=("approver",))
    try:
        runtime.approve(run, "3.1", by=by, decision=Approval(because="checked"))
        runtime.refuse(run, "3.2", by=by, because="not today")
        runtime.reply(run, "the blue one", by=by)
        runtime.cancel(run, by=by)
    except AgentctlError as error:
        assert_type(error.exit_code, int)
        print(error.message, error.remedy)


async def drives(runtime: Runtime, run: RunId) -> None:
    assert_type(await runtime.drive(run), Driven)
    async for event in runtime.follow(run):
        assert_type(event, Event)


open_runtime(":memory:", tools=executor)
open_runtime(12)  # type: ignore[arg-type]  # a database is a path or a URL
Principal(id="ada", role="reader")  # type: ignore[call-arg]  # roles are several, and must be given
