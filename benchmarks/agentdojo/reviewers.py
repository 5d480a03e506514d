"""Owns who answers a held call: nobody, the ideal reviewer, one who reads the tool's name, one who is tired."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from benchmarks.agentdojo.suites import Call
from benchmarks.agentdojo.world import to_contract
from engine.domain.policy import Policy
from engine.domain.state import CallState

Who = Literal["nobody", "ideal", "careless", "tired"]
WHO: tuple[Who, ...] = ("nobody", "ideal", "careless", "tired")


class Reviewer:
    """Answers one held call: yes, no, or nothing at all (None), which lets the request run out."""

    def __init__(self, who: Who, policy: Policy, task: Sequence[Call]) -> None:
        self.who = who
        self.asked = 0
        self._wanted = [(name, to_contract(policy.tools[name], args)) for name, args in task]

    def answer(self, call: CallState) -> bool | None:
        self.asked += 1
        if self.who == "nobody":
            return None
        if self.who == "tired":
            return True
        if self.who == "careless":
            return any(name == call.tool for name, _ in self._wanted)
        return (call.tool, dict(call.args or {})) in self._wanted
