"""Behaviour of tools that are Python functions."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from engine.adapters.function_tools import FunctionTools, ToolContext
from engine.domain.calls import Failed, NotExecuted
from engine.domain.policy import McpHandler, PythonHandler
from tests.adapters.build import NOW, RUN, dispatch, spec


async def test_arguments_are_passed_by_name_to_plain_and_async_functions() -> None:
    async def later(item: str) -> str:
        await asyncio.sleep(0)
        return f"later {item}"

    tools = FunctionTools({"now": lambda item: f"now {item}", "later": later})
    assert await tools.execute(dispatch(spec("now", params={"item": True}), item="x")) == "now x"
    assert await tools.execute(dispatch(spec("later", params={"item": True}), item="x")) == "later x"


async def test_a_context_parameter_gets_the_host_identity_of_the_call() -> None:
    seen: list[ToolContext] = []
    await FunctionTools({"get_stock": lambda context: seen.append(context)}).execute(dispatch(spec()))
    assert seen == [ToolContext(RUN, (3, 1), "key-1", NOW, 2)]  # type: ignore[arg-type]  # a CallId is a tuple


async def test_a_declared_parameter_named_context_is_the_models() -> None:
    tools = FunctionTools({"get_stock": lambda context: context})
    assert await tools.execute(dispatch(spec(params={"context": True}), context="mine")) == "mine"


@pytest.mark.parametrize("error", [Failed("no"), NotExecuted("no"), ValueError("no")])
async def test_what_a_handler_raises_comes_out_as_it_is(error: Exception) -> None:
    def handler() -> None:
        raise error

    with pytest.raises(type(error), match="no"):
        await FunctionTools({"get_stock": handler}).execute(dispatch(spec()))


@pytest.mark.parametrize(
    "error", [SystemExit(3), StopIteration(), asyncio.CancelledError(), KeyboardInterrupt()]
)
async def test_a_handler_cannot_end_the_process_or_cancel_the_driver(error: BaseException) -> None:
    def handler() -> None:
        raise error

    with pytest.raises(RuntimeError, match="the handler raised"):
        await FunctionTools({"get_stock": handler}).execute(dispatch(spec()))


async def test_an_async_handler_cannot_end_the_process_or_cancel_the_driver() -> None:
    async def leaves() -> None:
        raise SystemExit(3)

    async def cancels() -> None:
        raise asyncio.CancelledError

    tools = FunctionTools({"leaves": leaves, "cancels": cancels})
    for name in ("leaves", "cancels"):
        with pytest.raises(RuntimeError, match="the handler"):
            await tools.execute(dispatch(spec(name)))


async def test_a_handler_that_hangs_times_out_and_its_thread_is_abandoned() -> None:
    release = threading.Event()
    tools = FunctionTools({"hangs": release.wait, "works": lambda: "done"})
    started = time.perf_counter()
    with pytest.raises(TimeoutError):
        await tools.execute(dispatch(spec("hangs", timeout=0.05)))
    assert time.perf_counter() - started < 1
    assert await tools.execute(dispatch(spec("works"))) == "done"
    release.set()


async def test_an_async_handler_that_hangs_is_cancelled() -> None:
    ended: list[str] = []

    async def hangs() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            ended.append("cancelled")

    with pytest.raises(TimeoutError):
        await FunctionTools({"get_stock": hangs}).execute(dispatch(spec(timeout=0.05)))
    assert ended == ["cancelled"]


def test_a_hanging_thread_does_not_keep_the_process_alive() -> None:
    code = (
        "import asyncio, time\n"
        "from engine.adapters.function_tools import FunctionTools\n"
        "from tests.adapters.build import dispatch, spec\n"
        "async def main():\n"
        "    try:\n"
        "        await FunctionTools({'get_stock': lambda: time.sleep(60)}).execute(dispatch(spec(timeout=0.05)))\n"
        "    except TimeoutError:\n"
        "        print('timed out')\n"
        "asyncio.run(main())\n"
    )
    started = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=30
    )
    assert (done.stdout.strip(), done.stderr) == ("timed out", "")
    assert time.perf_counter() - started < 20


async def test_neighbours_run_side_by_side_and_threads_are_reused() -> None:
    barrier = threading.Barrier(8, timeout=5)
    names: set[str | int] = set()

    def handler() -> int:
        names.add(threading.get_ident())
        return barrier.wait()

    tools = FunctionTools({"get_stock": handler})
    for _ in range(3):
        answers = await asyncio.gather(*(tools.execute(dispatch(spec())) for _ in range(8)))
        assert sorted(answers) == list(range(8))  # type: ignore[type-var]  # they are ints
        await asyncio.sleep(0.05)
    assert len(names) <= 16


async def test_a_call_costs_well_under_a_millisecond() -> None:
    tools = FunctionTools({"get_stock": lambda: None})
    asked = dispatch(spec())
    await tools.execute(asked)
    started = time.perf_counter()
    for _ in range(300):
        await tools.execute(asked)
    assert (time.perf_counter() - started) / 300 < 0.001


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "stock_tools.py").write_text(
        "import shop_prices\n"
        "def get_stock(item, limit=3): return [item, limit, shop_prices.PRICE]\n"
        "def get_price(item, limit): return 1\n"
        "NOT_A_FUNCTION = 3\n"
    )
    (tmp_path / "shop_prices.py").write_text("PRICE = 5\n")
    (tmp_path / "broken_tools.py").write_text("import json\nraise RuntimeError('boom')\n")
    (tmp_path / "unreadable_tools.py").write_text("x = 1\ndef (\n")
    (tmp_path / "folder_of_data").mkdir()
    (tmp_path / "needy_tools.py").write_text("import no_such_library_at_all\n")
    return tmp_path


async def test_handlers_are_found_in_the_import_paths_which_leave_no_trace(project: Path) -> None:
    before = list(sys.path)
    tools = FunctionTools(import_paths=[project])
    asked = dispatch(spec(params={"item": True, "limit": False}), item="x")
    assert await tools.execute(asked) == ["x", 3, 5]
    assert sys.path == before


async def test_two_projects_may_both_have_a_module_of_the_same_name(project: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "stock_tools.py").write_text("def get_stock(): return 'other'\n")
    first, second = FunctionTools(import_paths=[project]), FunctionTools(import_paths=[other])
    one = dispatch(spec(params={"item": True}), item="x")
    assert await first.execute(one) == ["x", 3, 5]
    assert await second.execute(dispatch(spec())) == "other"
    assert await first.execute(one) == ["x", 3, 5]


@pytest.mark.parametrize(
    ("handler", "params", "said"),
    [
        (PythonHandler("none_tools", "get_stock"), {}, "no module `none_tools` in"),
        (PythonHandler("stock_tools", "get_stok"), {}, "did you mean `get_stock`?"),
        (PythonHandler("stock_tools", "NOT_A_FUNCTION"), {}, "is no function"),
        (PythonHandler("broken_tools", "x"), {}, "RuntimeError: boom"),
        (PythonHandler("unreadable_tools", "x"), {}, "SyntaxError: invalid syntax"),
        (PythonHandler("unreadable_tools", "x"), {}, "unreadable_tools.py:2)"),
        (PythonHandler("folder_of_data", "x"), {}, "only a folder has that name"),
        (PythonHandler("needy_tools", "x"), {}, "imports `no_such_library_at_all`, which is not installed"),
        (
            PythonHandler("stock_tools", "get_stock"),
            {"item": True, "size": True},
            "takes no parameter `size`",
        ),
        (
            PythonHandler("stock_tools", "get_price"),
            {"item": True, "limit": False},
            "needs a default for `limit`",
        ),
        (
            PythonHandler("stock_tools", "get_price"),
            {"item": True},
            "needs `limit`, which the spec does not declare",
        ),
        (McpHandler("forge", "get_issue", None), {}, "`mcp:forge:get_issue` is an MCP tool"),
    ],
)
async def test_what_cannot_run_is_named_before_a_run_and_is_not_executed_in_one(
    project: Path, handler: Any, params: dict[str, bool], said: str
) -> None:
    tools = FunctionTools(import_paths=[project])
    broken = spec("shop_item", handler, params)
    faults = tools.check([broken])
    assert len(faults) == 1
    assert faults[0].startswith("tool `shop_item`: ")
    assert said in faults[0]
    if "default" not in said:
        with pytest.raises(NotExecuted):
            await tools.execute(dispatch(broken, **dict.fromkeys(params, "x")))


def test_check_is_silent_when_every_handler_fits(project: Path) -> None:
    tools = FunctionTools({"by_name": lambda **args: args}, [project])
    specs = [
        spec(params={"item": True, "limit": False}),
        spec("by_name", McpHandler("a", "b", None), {"x": True}),
    ]
    assert tools.check(specs) == []
