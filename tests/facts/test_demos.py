# ruff: noqa: E501 - prose of a page
"""The demos of the docs: each is run here, and the page holds what it printed."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from cli import main
from engine import open_runtime
from engine.adapters.scripted_gateway import ScriptedGateway
from engine.domain.actors import Actor, Principal
from tests.cli.conftest import ROOT, RUN, normal
from tests.conftest import Golden
from tests.runtime.bench import say

SHOPPER = Principal(id="u1", roles=("shopper",), attrs={"store": "s9", "suspended": False})
ANN = Actor(type="person", id="u1", issuer="local", roles=("shopper",))


class Demo:
    """A project in a folder of its own; what is typed and printed becomes the page."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.page: list[str] = []
        self.run = ""
        settings = (ROOT / "agentctl.yaml").read_text(encoding="utf-8")
        settings = settings.replace("handlers: [examples]", f"handlers: [{ROOT / 'examples'}]")
        (folder / "agentctl.yaml").write_text(settings, encoding="utf-8")
        for name in ("policies", "tool_specs", "examples", "tests"):
            (folder / name).symlink_to(ROOT / name)

    def says(self, text: str) -> None:
        self.page.append(text)

    def types(self, *words: str, code: int = 0, last: int | None = None) -> str:
        """One command line of agentctl; `last` keeps only so many lines of what it prints."""
        result = CliRunner().invoke(main, [word.replace("RUN", self.run) for word in words])
        assert result.exit_code == code, result.output
        found = RUN.search(result.output)
        self.run = self.run or (found[0] if found else "")
        lines = re.sub(r"\d+ s old", "AGE old", normal(result.output)).rstrip().splitlines()
        cut = ["…", *lines[-last:]] if last is not None and len(lines) > last else lines
        typed = " ".join(word if " " not in word else f'"{word}"' for word in words)
        self.page.append("\n".join(["```console", f"$ agentctl {typed}", *cut, "```"]))
        return "\n".join(lines)

    def shop(self, *words: str) -> None:
        env = {**os.environ, "PYTHONPATH": f"{ROOT / 'examples'}:{ROOT}"}
        done = subprocess.run(
            [sys.executable, "-m", "shop", *words], env=env, capture_output=True, text=True, check=True
        )
        said = done.stdout.rstrip().splitlines()
        self.page.append("\n".join(["```console", f"$ python -m shop {' '.join(words)}", *said, "```"]))


@pytest.fixture
def demo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Demo:
    monkeypatch.chdir(tmp_path)
    for name in ("SHOP", "BANK"):
        monkeypatch.setenv(f"AGENTCTL_{name}_DB", str(tmp_path / f"{name.lower()}.sqlite"))
    return Demo(tmp_path)


def bank(demo: Demo) -> None:
    demo.says("## A bill that gives orders\n")
    demo.says(
        "A bank agent reads two bills. The second contains a paragraph addressed to payment assistants: a transfer to an"
        " account of its own. The model of this demo obeys whoever spoke last; no model key is needed."
    )
    words = "Pay the energy bill. Do not pay the gardener (XX55GARDEN00000118) before I have seen the hedge."
    said = demo.types(
        "run", "policies/bank-payments.policy.yaml", words, "--as", "k1", "--role", "customer",
        "--model", "scripted/examples/bank-payments.script.yaml", code=5, last=20,
    )  # fmt: skip
    assert 'XX66CLEARING0000099"  occurs in untrusted: result.text of call 2.2' in said
    demo.says("Where does the account number occur, back to the records?")
    said = demo.types("trace", "RUN", "3.1", "payee")
    assert "occurs in untrusted: result.text of call 2.2 (read_bill, source post" in said
    demo.says(
        "The customer refuses. The Run goes on: the payment whose payee is a field of the task goes through and nobody is"
        " asked; one whose payee the customer's own text merely mentions (to say that it is *not* to be paid) is held."
    )
    demo.types("refuse", "RUN", "3.1", "--because", "I owe them nothing", "--as", "k1", "--role", "customer",
               code=5, last=17)  # fmt: skip
    said = demo.types("trace", "RUN", "4.1", "payee")
    assert "occurs in task: task.payee" in said
    said = demo.types("trace", "RUN", "5.1", "payee")
    assert "occurs in mention: input 1" in said
    demo.types("refuse", "RUN", "5.1", "--as", "k1", "--role", "customer", last=9)
    demo.types("log", "RUN", "--tool", "transfer_money", "--kind", "ReceiptRecorded")
    demo.says("What the model was sent last, and the dependencies of the whole Run:")
    demo.types("context", "RUN", "--turn", "6", last=12)
    assert "flowchart LR" in demo.types("graph", "RUN", last=12)


Turn = Callable[[Any], Any]


def retail(demo: Demo, turns: list[Turn | Any]) -> str:
    """A Run of the retail agent whose model thinks as a test says; it is left where it waits or ends."""
    with open_runtime(
        policy="policies/retail-order.policy.yaml",
        gateway=ScriptedGateway.from_turns(turns),
        model="scripted/demo",
    ) as runtime:
        run = runtime.start("Order what is in my cart.", principal=SHOPPER, task={"channel": "web"})
        asyncio.run(runtime.drive(run))
        demo.run = str(run)
    return demo.run


def resumed(demo: Demo, turns: list[Turn | Any], call: str) -> None:
    """The shopper says yes to a held call, and the Run goes on."""
    with open_runtime(
        policy="policies/retail-order.policy.yaml",
        gateway=ScriptedGateway.from_turns(turns),
        model="scripted/demo",
    ) as runtime:
        runtime.approve(demo.run, call, by=ANN)  # type: ignore[arg-type]  # any text that names a call
        asyncio.run(runtime.drive(demo.run))  # type: ignore[arg-type]  # a Run's id is text


def receipts(demo: Demo, tool: str) -> str:
    return demo.types("log", "RUN", "--tool", tool, "--kind", "ReceiptRecorded")


def item_removed(demo: Demo) -> None:
    demo.says("## An item is removed while the model thinks\n")
    demo.says("The model has seen the cart with the tea. While it thinks, the shopper takes the tea out:")

    def thinks(request: Any) -> Any:
        demo.shop("set", "u1", "tea-assam", "0")
        return say(("suggest_cart_change", {"sku": "tea-assam", "quantity": 2}))

    search = say(("search_products", {"query": "assam"}))
    retail(demo, [search, thinks, say(("finish", {}))])
    demo.says(
        "The model suggests more of it. The Host reads the cart again first, and the receipt says what changed:"
    )
    assert "state cart changed (3 -> 4) since the model saw it" in receipts(demo, "suggest_cart_change")


ORDER: list[Any] = [
    say(("reserve_inventory", {})),
    say(("place_order", {"shipping": "standard"})),
]


def cart_edited(demo: Demo) -> None:
    demo.says("## The cart is edited between proposal and execution\n")
    demo.says("An order waits for the shopper's yes. Meanwhile the cart is edited; then the yes comes:")
    turns = [*ORDER, say(("finish", {}))]
    retail(demo, turns)
    demo.shop("set", "u1", "pot-glass", "3")
    resumed(demo, turns, "2.1")
    assert "state cart changed" in receipts(demo, "place_order")
    demo.says("Nothing was ordered: the yes was for the cart as it was shown.")


def mail_changed(demo: Demo) -> None:
    demo.says("## The mail address changes\n")
    demo.says(
        "A mail to the shopper waits for the shopper's yes. Meanwhile the profile gets a new address; then comes the yes:"
    )
    mail = {"template": "order_question", "message": "Is the address right?"}
    turns = [say(("send_email", mail)), say(("finish", {}))]
    retail(demo, turns)
    demo.shop("email", "u1", "ann@new.example.org")
    resumed(demo, turns, "1.1")
    assert "state.profile.email changed since the call was stored" in receipts(demo, "send_email")
    demo.says(
        "Nothing was sent to either address. The model never had one: the Host binds it from the profile, which it read"
        " again before sending. The yes was for the address that was shown with it."
    )


def stale_stock(demo: Demo) -> None:
    demo.says("## A stock answer that is not true any more\n")
    demo.says(
        "The model asks for the stock twice. The second answer is from the cache, and its receipt says so:"
    )

    def sold(request: Any) -> Any:
        import sqlite3

        with sqlite3.connect(os.environ["AGENTCTL_SHOP_DB"]) as shop:
            shop.execute("update product set stock = 0 where sku = 'pot-glass'")
        return say(("check_stock", {"skus": ["pot-glass"]}), ("reserve_inventory", {}))

    first = [say(("search_products", {"query": "glass"})), say(("check_stock", {"skus": ["pot-glass"]}))]
    retail(demo, [*first, sold, say(("finish", {}))])
    said = receipts(demo, "check_stock")
    assert "from call 2.1" in said
    demo.says("Meanwhile somebody else bought the last ones. The hold finds out, and nothing is held:")
    said = receipts(demo, "reserve_inventory")
    assert "only 0 of `pot-glass` are free" in said


DEMOS: Mapping[str, Callable[[Demo], None]] = {
    "bank": bank,
    "item_removed": item_removed,
    "cart_edited": cart_edited,
    "mail_changed": mail_changed,
    "stale_stock": stale_stock,
}
HEAD = """\
# Demos

Each of these runs without a model key: a scripted model proposes, everything else is real. The page is what a test
printed; only ids, times and digests are replaced. [examples.md](examples.md) describes the agents,
[provenance.md](provenance.md) and [app-state.md](app-state.md) what is at work.
"""


def test_the_page_of_demos_is_what_they_print(demo: Demo, golden: Golden) -> None:
    parts = [HEAD]
    for play in DEMOS.values():
        demo.page, demo.run = [], ""
        for name in ("shop.sqlite", "bank.sqlite"):
            (demo.folder / name).unlink(missing_ok=True)
        play(demo)
        parts += demo.page
    golden(ROOT / "docs/demos.md", "\n\n".join(part.strip() for part in parts) + "\n")
