"""agentctl as a library: open a Runtime, start a Run, drive it, read what was published.

Names are loaded when they are first used, so that importing `engine` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from engine.bootstrap import open_runtime
    from engine.domain.actors import Actor, Principal
    from engine.domain.calls import Failed, NotExecuted
    from engine.domain.errors import AgentctlError
    from engine.ports import (
        AttemptFailed,
        ModelGateway,
        ModelRequest,
        ModelResponse,
        ProposedCall,
        ToolExecutor,
        ToolRequest,
    )
    from engine.runtime.approvals import Approval
    from engine.runtime.runtime import Runtime

_HOMES = {
    "Actor": "engine.domain.actors",
    "AgentctlError": "engine.domain.errors",
    "Approval": "engine.runtime.approvals",
    "AttemptFailed": "engine.ports",
    "Failed": "engine.domain.calls",
    "ModelGateway": "engine.ports",
    "ModelRequest": "engine.ports",
    "ModelResponse": "engine.ports",
    "NotExecuted": "engine.domain.calls",
    "Principal": "engine.domain.actors",
    "ProposedCall": "engine.ports",
    "Runtime": "engine.runtime.runtime",
    "ToolExecutor": "engine.ports",
    "ToolRequest": "engine.ports",
    "open_runtime": "engine.bootstrap",
}

__all__ = [
    "Actor",
    "AgentctlError",
    "Approval",
    "AttemptFailed",
    "Failed",
    "ModelGateway",
    "ModelRequest",
    "ModelResponse",
    "NotExecuted",
    "Principal",
    "ProposedCall",
    "Runtime",
    "ToolExecutor",
    "ToolRequest",
    "open_runtime",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'engine' has no attribute {name!r}")
    return getattr(import_module(home), name)
