"""Owns the lines that embed a Run in an application: tools as callables, a gateway of one's own, one approval."""
# ruff: noqa: ARG001, ARG002, A002 - the signatures are those of the tool specs and of the port

from collections.abc import Callable
from decimal import Decimal

from engine import Actor, ModelRequest, ModelResponse, Principal, ProposedCall, open_runtime

notes = {"books": "Books to return: two, by Friday."}


def find_note(words: str) -> dict[str, object]:
    found = [{"id": name, "text": text} for name, text in notes.items() if words in text]
    return {"notes": found, "at": "2026-06-30T00:00:00Z"}


def delete_note(note: str, owner: str) -> dict[str, object]:
    return {"deleted": notes.pop(note, None) is not None}


def get_note(id: str) -> dict[str, object]:
    return {"exists": id in notes}


class MyGateway:
    """Whatever proposes. Here it is a table of turns; `request` has the messages and tools[] for a real one."""

    async def propose(self, request: ModelRequest, on_text: object = None) -> ModelResponse:
        turns = {1: ("find_note", '{"words": "Books"}'), 2: ("delete_note", '{"note": "books"}')}
        call = ProposedCall(*turns.get(request.turn, ("finish", "{}")))
        return ModelResponse(model="mine", calls=(call,))

    def price(self, model: object, input_tokens: int, output_tokens: int) -> Decimal | None:
        return Decimal(0)


tools: dict[str, Callable[..., object]] = {
    "find_note": find_note,
    "delete_note": delete_note,
    "get_note": get_note,
}
ann = Principal(id="ann", roles=("user",))

with open_runtime(
    ":memory:", policy="policies/notes.policy.yaml", tools=tools, gateway=MyGateway()
) as runtime:
    run = runtime.start("Delete the note on books.", principal=ann)
    print(runtime.drive_sync(run).state.status, list(notes))
    runtime.approve(run, "2.1", by=Actor(type="person", id="ann", issuer="local", roles=("user",)))
    print(runtime.drive_sync(run).state.status, list(notes))
    print(", ".join(event.kind for event in runtime.events(run, after=12)))
    print(runtime.outputs(run))
