"""Owns the execution of tools that are Python callables."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from engine.adapters.handler_modules import HandlerModules, HandlerNotFound
from engine.adapters.worker_threads import WorkerThreads
from engine.domain.calls import NotExecuted
from engine.domain.ids import CallId, RunId
from engine.domain.policy import McpHandler, PythonHandler, ToolSpec
from engine.ports import ToolRequest

CONTEXT = "context"
"""A handler with a parameter of this name is given a ToolContext, unless its spec declares such a parameter."""


@dataclass(frozen=True, slots=True)
class ToolContext:
    """What a handler may know about its call beside the arguments."""

    run: RunId
    call: CallId
    idempotency_key: str | None
    """The key that the spec declares; send it along where the other side deduplicates."""
    now: datetime
    """The Host's time of the call, UTC."""
    attempt: int


@dataclass(frozen=True, slots=True)
class _Function:
    call: Callable[..., object]
    signature: inspect.Signature
    wants_context: bool
    is_async: bool


class FunctionTools:
    """Runs tools as Python functions: those registered here by tool name, else `python:module:function`.

    Plain functions run in daemon threads, so one that hangs never blocks the Run or the end of the process: after
    the spec's timeout its thread is left to itself and TimeoutError is raised; what it answers then goes to the
    request's `left`. Async functions run in the event loop and are cancelled. `import_paths` are directories that
    are searched before `sys.path`, only while a handler's module is imported.
    """

    def __init__(
        self,
        handlers: Mapping[str, Callable[..., object]] | None = None,
        import_paths: Iterable[str | Path] = (),
    ) -> None:
        self._registered = dict(handlers or {})
        self._modules = HandlerModules(import_paths)
        self._threads = WorkerThreads("agentctl-tool")
        self._functions: dict[tuple[str, str], _Function] = {}

    async def execute(self, request: ToolRequest) -> object:
        """The function's answer, as it is. Raises what the function raises; NotExecuted where it cannot be called;
        TimeoutError after the spec's timeout."""
        function = self._function(request.spec)
        args: dict[str, object] = dict(request.args)
        if function.wants_context and CONTEXT not in request.spec.params:
            args[CONTEXT] = _context_of(request)
        try:
            function.signature.bind(**args)
        except TypeError as error:
            raise NotExecuted(
                f"handler `{request.spec.handler}` does not fit the arguments: {error}"
            ) from error
        return await self._run(function, args, request)

    def check(self, specs: Sequence[ToolSpec]) -> list[str]:
        """One line per handler that cannot be run: missing module or function, parameters that do not fit, MCP."""
        return [fault for spec in specs for fault in self._faults(spec)]

    async def _run(self, function: _Function, args: Mapping[str, object], request: ToolRequest) -> object:
        async with asyncio.timeout(request.spec.timeout.total_seconds()):
            if function.is_async:
                return await _guarded(function.call, args)
            answer = await self._threads.run(lambda: function.call(**args), request.left)
            return await answer if inspect.isawaitable(answer) else answer

    def _function(self, spec: ToolSpec) -> _Function:
        key = (spec.name, str(spec.handler))
        found = self._functions.get(key)
        if found is None:
            try:
                found = self._functions[key] = _described(self._resolve(spec))
            except (HandlerNotFound, ValueError, TypeError) as error:
                raise NotExecuted(f"the handler of `{spec.name}` cannot be called: {error}") from error
        return found

    def _resolve(self, spec: ToolSpec) -> Callable[..., object]:
        registered = self._registered.get(spec.name)
        if registered is not None:
            return registered
        if isinstance(spec.handler, PythonHandler):
            return self._modules.function(spec.handler)
        raise HandlerNotFound(_mcp_line(spec.handler))

    def _faults(self, spec: ToolSpec) -> list[str]:
        try:
            function = _described(self._resolve(spec))
        except HandlerNotFound as error:
            return [f"tool `{spec.name}`: {error}"]
        except (ValueError, TypeError):
            return []  # a callable that hides its signature is found out when it is called
        return [f"tool `{spec.name}`: {fault}" for fault in _misfits(spec, function)]


def _mcp_line(handler: McpHandler) -> str:
    return f"handler `{handler}` is an MCP tool, which this version does not run yet; use a `python:` handler"


def _context_of(request: ToolRequest) -> ToolContext:
    return ToolContext(request.run, request.call, request.idempotency_key, request.now, request.attempt)


def _described(call: Callable[..., object]) -> _Function:
    signature = inspect.signature(call)
    inner = call if inspect.isroutine(call) else getattr(call, "func", type(call).__call__)
    is_async = inspect.iscoroutinefunction(call) or inspect.iscoroutinefunction(inner)
    return _Function(call, signature, CONTEXT in signature.parameters, is_async)


async def _guarded(call: Callable[..., object], args: Mapping[str, object]) -> object:
    """Awaits an async handler; one that raises SystemExit or a cancellation of its own ends its call only."""
    task = asyncio.current_task()
    try:
        return await call(**args)  # type: ignore[misc]  # is_async says that it returns an awaitable
    except SystemExit as error:
        raise RuntimeError("the handler called sys.exit") from error
    except asyncio.CancelledError as error:
        if task is not None and task.cancelling():
            raise
        raise RuntimeError("the handler raised CancelledError") from error


def _misfits(spec: ToolSpec, function: _Function) -> list[str]:
    """Where the signature cannot take what the spec says will be passed."""
    takes = function.signature.parameters
    kinds = {name: parameter.kind for name, parameter in takes.items()}
    open_ended = inspect.Parameter.VAR_KEYWORD in kinds.values()
    faults = []
    for name, param in spec.params.items():
        if name not in takes or kinds[name] in (
            inspect.Parameter.VAR_POSITIONAL,
            inspect.Parameter.VAR_KEYWORD,
        ):
            faults += [] if open_ended else [f"`{spec.handler}` takes no parameter `{name}`"]
        elif kinds[name] is inspect.Parameter.POSITIONAL_ONLY:
            faults.append(f"`{spec.handler}` takes `{name}` by position only; arguments are passed by name")
        elif not param.required and param.bind is None and takes[name].default is inspect.Parameter.empty:
            faults.append(f"`{spec.handler}` needs a default for `{name}`, which is optional in the spec")
    for name, parameter in takes.items():
        with_default = parameter.default is not inspect.Parameter.empty
        variadic = parameter.kind in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
        if name not in spec.params and name != CONTEXT and not with_default and not variadic:
            faults.append(f"`{spec.handler}` needs `{name}`, which the spec does not declare")
    return faults
