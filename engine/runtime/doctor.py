"""Owns what `agentctl doctor` looks at: each part that a Run needs, what is wrong with it and what to do."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal

from engine.domain.canonical import NotJson, parse_json
from engine.domain.errors import AgentctlError, PolicyInvalid, SourceError
from engine.domain.ids import RunId
from engine.domain.messages import Instructions, ToolSchema, UserInput
from engine.domain.policy import ModelUse, Policy
from engine.policy.not_built import not_built
from engine.ports import AttemptFailed, EventStore, ModelGateway, ModelRequest, ModelResponse, ToolExecutor

Verdict = Literal["ok", "failed", "skipped"]
PING: Final = ToolSchema(
    "doctor_ping",
    "Answers with the number that it is given.",
    {
        "type": "object",
        "properties": {"number": {"type": "integer", "description": "The number that the user names."}},
        "required": ["number"],
        "additionalProperties": False,
    },
)
_NUMBER: Final = 7
_REMEDIES: Final = {
    "auth": "set the key of this provider, or choose another model with `--model`",
    "rate_limited": "the key works, but the account is at its limit: wait, or raise it",
    "unavailable": "check the network, a proxy, and the provider's status page",
    "timeout": "check the network, or give the model more time with `timeout` in the policy",
    "bad_request": "check the model id: `agentctl doctor --model PROVIDER/NAME`",
    "cut": "a proxy may cut streams: try again, then without it",
    "invalid_response": "the endpoint may speak another protocol: check its base URL",
}


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at. `remedy` is empty where nothing needs to be done."""

    name: str
    verdict: Verdict
    said: str
    remedy: str = ""


def attempt(name: str, work: Callable[[], str]) -> Check:
    """Runs one check; what it returns is said, what it raises is the fault."""
    try:
        return Check(name, "ok", work())
    except PolicyInvalid as error:
        faults = "; ".join(f"{fault.code}: {fault.message}" for fault in error.diagnostics[:3])
        return Check(name, "failed", f"{error.message}: {faults}" if faults else error.message, error.remedy)
    except AgentctlError as error:
        return Check(name, "failed", error.message, error.remedy)


def installed() -> str:
    """The versions that are here. Raises SourceError for a package that is not."""
    from importlib.metadata import PackageNotFoundError, version

    named = []
    for package in ("agentctl", "litellm", "anthropic", "sqlalchemy"):
        try:
            named.append(f"{package} {version(package)}")
        except PackageNotFoundError as error:
            if package == "agentctl":
                named.append("agentctl from a checkout")
                continue
            raise SourceError(f"`{package}` is not installed", remedy="`pip install agentctl`") from error
    return f"Python {sys.version.split()[0]}, {', '.join(named)}"


def skipped(name: str, why: str) -> Check:
    return Check(name, "skipped", why)


def check_store(store: EventStore, url: str) -> Check:
    """Can it be written and read back?"""

    def work() -> str:
        digest = store.put_blob("agentctl doctor")
        if store.blob(digest) != "agentctl doctor":
            raise AgentctlError("what was written is not read back", remedy="check the database")
        return f"`{url}` can be written"

    return attempt("database", work)


def check_policy(policy: Policy, executor: ToolExecutor) -> Check:
    """Does this engine run it, and is every handler there?"""
    missing = not_built(policy)
    if missing:
        return Check("policy", "failed", "not run yet: " + "; ".join(missing), "remove it from the policy")
    faults = executor.check(list(policy.tools.values()))
    if faults:
        return Check("policy", "failed", "; ".join(faults), "mend `handler` or `handlers` in agentctl.yaml")
    return Check("policy", "ok", f"`{policy.id}` version {policy.version}, {len(policy.tools)} tools")


def check_price(gateway: ModelGateway, use: ModelUse) -> Check:
    """A model without a price is refused by every policy that has a money budget."""
    if gateway.price(use, 1, 1) is not None:
        return Check("price", "ok", f"`{use.id}` has a known price")
    remedy = f"state it in agentctl.yaml: `prices: {{{use.id}: {{input: …, output: …}}}}`"
    return Check("price", "failed", f"`{use.id}` has no known price", remedy)


async def check_call(gateway: ModelGateway, use: ModelUse) -> Check:
    """One tiny request, streamed as `run` does it: does the model answer with a native tool call?"""
    heard: list[str] = []
    try:
        response = await gateway.propose(_request(use), heard.append)
    except AttemptFailed as failure:
        remedy = failure.remedy or _REMEDIES.get(failure.error, "see the message")
        return Check("model", "failed", f"{failure.error}: {failure.message}", remedy)
    return _judged(use, response)


def _request(use: ModelUse) -> ModelRequest:
    asked = (
        Instructions("You test a connection. Call the tool `doctor_ping` once, and say nothing."),
        UserInput(f"The number is {_NUMBER}."),
    )
    small = ModelUse(use.id, use.temperature, use.max_output_tokens or 200, use.timeout)
    return ModelRequest(RunId("doctor"), 1, 1, small, asked, (PING,), "doctor", lambda stored: stored.value)


def _judged(use: ModelUse, response: ModelResponse) -> Check:
    cost = "" if response.cost_usd is None else f", {response.cost_usd} USD"
    usage = f"{response.usage.input_tokens} tokens in, {response.usage.output_tokens} out{cost}"
    if not response.calls:
        said = f"`{use.id}` answered without a tool call (finish `{response.finish}`; {usage})"
        return Check("model", "failed", said, "choose a model that supports native tool calls")
    call = response.calls[0]
    if call.tool != PING.name or _number(call.arguments) != _NUMBER:
        said = f"`{use.id}` called `{call.tool[:60]}` with `{call.arguments[:60]}` ({usage})"
        return Check("model", "failed", said, "the model calls tools, but not as asked: try a stronger one")
    return Check("model", "ok", f"`{use.id}` answered with a tool call ({usage})")


def _number(arguments: str) -> object:
    try:
        value = parse_json(arguments)
    except NotJson:
        return None
    return value.get("number") if isinstance(value, dict) else None
