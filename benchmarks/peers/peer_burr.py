"""Owns Apache Burr: two actions over a state with the messages, SQLitePersister after each step."""

from __future__ import annotations

from burr.core import ApplicationBuilder, State, action, default, when
from burr.core.persistence import SQLitePersister
from work import TEXT, work

WORK = work()


@action(reads=["messages"], writes=["messages", "call"])
def model(state: State) -> State:
    turn = 1 + sum(1 for each in state["messages"] if each["role"] == "tool")
    if not WORK.asked(turn):
        return state.append(messages={"role": "assistant", "text": "done"}).update(call=None)
    return state.append(messages={"role": "assistant", "text": TEXT, "call": turn}).update(call=turn)


@action(reads=["call"], writes=["messages"])
def look_up(state: State) -> State:
    return state.append(messages={"role": "tool", "text": WORK.tool(state["call"])})


@action(reads=[], writes=[])
def over(state: State) -> State:
    return state


WORK.opening()
persister = SQLitePersister.from_values(WORK.db, connect_kwargs={"check_same_thread": False})
persister.initialize()
application = (
    ApplicationBuilder()
    .with_actions(model, look_up, over)
    .with_transitions(("model", "over", when(call=None)), ("model", "look_up", default), ("look_up", "model"))
    .initialize_from(
        persister,
        resume_at_next_action=True,
        default_state={"messages": [{"role": "user", "text": "count"}], "call": 0},
        default_entrypoint="model",
    )
    .with_state_persister(persister)
    .with_identifiers(app_id="1", partition_key="p")
    .build()
)
application.run(halt_after=["over"])
WORK.done()
