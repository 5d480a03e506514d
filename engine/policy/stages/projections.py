"""Owns the check of how app state is read again: the tool that `refresh` names, and who needs one."""

from __future__ import annotations

from engine.policy.documents.policy import PolicyDocument, SlicePart
from engine.policy.documents.tools import ToolPart
from engine.policy.model import Model


def refreshes(model: Model, policy: PolicyDocument) -> None:
    tools = model.tools
    for name, part in policy.state.items():
        tool = tools.get(part.refresh or "")
        if part.refresh is not None and tool is not None:
            _tool(model, name, part, part.refresh, tool)
    for projection in policy.projections:
        slice_ = policy.state.get(projection.from_.removeprefix("state."))
        if projection.if_stale == "refresh" and slice_ is not None and slice_.refresh is None:
            model.add("Y205", projection.place("if_stale"), "`if_stale: refresh` needs a tool that reads the slice",
                      f"add `refresh: TOOL` to state `{projection.from_.removeprefix('state.')}`")  # fmt: skip


def _tool(model: Model, name: str, part: SlicePart, tool_name: str, tool: ToolPart) -> None:
    place = part.place("refresh")
    if tool.kind != "read" or tool.exposed != "host":
        model.add("Y205", place, f"`{tool_name}` cannot refresh state: it is no read of the Host",
                  "name a tool with `kind: read` and `exposed: host`")  # fmt: skip
        return
    free = [param for param, spec in tool.params.items() if spec.bind is None and spec.required]
    if free:
        model.add(
            "Y205",
            place,
            f"`{tool_name}` cannot refresh state: `{free[0]}` is not bound",
            "bind every parameter",
        )
    missing = [field for field in part.fields if field not in (tool.result or {})]
    if missing:
        model.add("Y205", place, f"the result of `{tool_name}` does not declare `{missing[0]}` of state `{name}`",
                  "declare every field of the slice in its `result`")  # fmt: skip
