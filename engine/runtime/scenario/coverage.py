"""Owns which rules decided something in a played case: read off its log, by the evaluator that decided then."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from itertools import islice, product

from engine.domain import events as e
from engine.domain.canonical import Json
from engine.domain.facts import UNKNOWN, Facts, Value
from engine.domain.ids import CallId, RunId
from engine.domain.policy import Effect, Policy, Rule
from engine.domain.state import RunState
from engine.lifecycle.fold import apply
from engine.lifecycle.vantage import Vantage
from engine.policy.contract import MAX_COMBINATIONS, ToolPlan, plan_of
from engine.policy.decision import decide, holds, output_of
from engine.policy.view import bound_or_unknown, for_call, publication_facts, tool_facts


def deciding_rules(policy: Policy, run: RunId, log: Iterable[e.Event]) -> frozenset[str]:
    """Ids of rules that permitted, asked, required or denied a proposal, or kept a tool from the model."""
    return frozenset(rule.id for rule in _Replay(policy, run).rules(log))


class _Replay:
    def __init__(self, policy: Policy, run: RunId) -> None:
        self.policy = policy
        self.state = RunState(run)
        self.vantage = Vantage([policy], self.state)
        self._plan = plan_of([policy])

    def rules(self, log: Iterable[e.Event]) -> Iterator[Rule]:
        for event in log:
            yield from self._of(event)
            apply(self.state, event)

    def _of(self, event: e.Event) -> Iterator[Rule]:
        at = event.recorded_at
        match event.body:
            case e.ModelAttemptStarted():
                yield from self._hiding(at)
            case e.ExecutionStarted(host=None, tool=tool, args=args) | e.CallHeld(tool=tool, args=args):
                yield from self._decision(tool, args, at)
            case e.ReceiptRecorded(cached_from=CallId(), tool=tool, args=args):
                yield from self._decision(tool, args or {}, at)
            case e.OutputPublished(output=output, fields=fields):
                yield from self._decision(f"publish_{output}", fields, at)
            case e.CallRejected(refusal=refusal) if refusal.rule is not None:
                yield from (rule for rule in self.policy.rules if rule.id == refusal.rule)

    def _decision(self, tool: str, args: Mapping[str, Json], at: datetime) -> Iterator[Rule]:
        seen = self._seen(tool, args, at)
        if seen is not None:
            decision = decide(self.policy, tool, seen)
            yield from (*decision.permits, *decision.rules)

    def _seen(self, tool: str, args: Mapping[str, Json], at: datetime) -> Facts | None:
        (facts,) = self.vantage.facts(at)
        spec = self.policy.tools.get(tool)
        if spec is not None:
            return for_call(facts, tool_facts(spec), args)
        output = output_of(self.policy, tool)
        return None if output is None else for_call(facts, publication_facts(output), args)

    def _hiding(self, at: datetime) -> Iterator[Rule]:
        """Denies that keep a tool, or values of it, out of the contract that the model is asked with."""
        contract = self.vantage.contract(at)
        (facts,) = self.vantage.facts(at)
        shown = {tool.name: tool for tool in contract.tools}
        for spec in self.policy.tools.values():
            plan = self._plan.tool(spec)
            if spec.exposed == "host" or shown.get(spec.name) == plan.whole:
                continue
            denies = [rule for rule in self.policy.rules_of.get(spec.name, ()) if rule.effect is Effect.DENY]
            for args in _choices(plan, facts) if denies else ():
                seen = for_call(facts, plan.facts, args)
                yield from (rule for rule in denies if _denies(rule, seen))


def _choices(plan: ToolPlan, facts: Facts) -> Iterator[dict[str, Value]]:
    """The arguments known so far, alone and with each combination of the finite ones that rules read."""
    args = {**bound_or_unknown(plan.bound, facts), **plan.facts.pending}
    yield args
    values = [param.type.values or (True, False) for param in plan.axes]
    for combination in islice(product(*values), MAX_COMBINATIONS):
        yield {**args, **dict(zip((param.name for param in plan.axes), combination, strict=True))}


def _denies(rule: Rule, facts: Facts) -> bool:
    truth, _ = holds(rule, facts, [])
    return truth is True or truth is UNKNOWN
