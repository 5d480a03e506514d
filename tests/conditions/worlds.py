"""Owns the policies and facts that the tests of conditions speak about."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from engine.domain.conditions import Condition
from engine.domain.facts import Facts, PastCall, ToolHistory, Truth, Value
from engine.domain.types import ArgClass, Field, Trust, TypeName, ValueType
from engine.policy.conditions import RULE_ROOTS, Environment, Fault, ParamShape, ToolShape, compile_condition

T = TypeName
NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


def plain(name: str, **bounds: Any) -> ValueType:
    return replace(ValueType(TypeName(name)), **bounds)


def enum(*values: str) -> ValueType:
    return ValueType(T.ENUM, values=values)


def many(of: ValueType) -> ValueType:
    return ValueType(T.LIST, of=of)


def rec(**fields: ValueType) -> ValueType:
    return ValueType(T.RECORD, fields={name: Field(type_) for name, type_ in fields.items()})


PLACE_ORDER = ToolShape(
    params={
        "cart_id": ParamShape(plain("id"), bound=True),
        "cart_version": ParamShape(plain("int"), bound=True),
        "total_minor": ParamShape(plain("int"), bound=True),
        "shipping": ParamShape(enum("standard", "express")),
        "coupon": ParamShape(plain("id"), required=False),
        "gift_note": ParamShape(plain("text"), required=False, arg_class=ArgClass.PAYLOAD),
    },
    result={"order_id": Field(plain("id"))},
)
SEND_EMAIL = ToolShape(
    params={
        "to": ParamShape(plain("email"), arg_class=ArgClass.ADDRESS),
        "cc": ParamShape(many(plain("email")), required=False, arg_class=ArgClass.ADDRESS),
        "template": ParamShape(enum("order_confirmation", "order_question")),
        "order": ParamShape(ValueType(T.REF, kind="order"), required=False, arg_class=ArgClass.REFERENCE),
        "message": ParamShape(plain("text"), arg_class=ArgClass.PAYLOAD),
    },
)
EVERYTHING = ToolShape(
    params={
        "flag": ParamShape(plain("bool")),
        "n": ParamShape(plain("int")),
        "small": ParamShape(plain("int", min=1, max=9)),
        "amount": ParamShape(plain("decimal")),
        "name": ParamShape(plain("id", max_len=64), arg_class=ArgClass.REFERENCE),
        "code": ParamShape(plain("id", max_len=3)),
        "path": ParamShape(plain("path")),
        "mail": ParamShape(plain("email"), arg_class=ArgClass.ADDRESS),
        "link": ParamShape(plain("url"), arg_class=ArgClass.ADDRESS),
        "at": ParamShape(plain("timestamp")),
        "wait": ParamShape(plain("duration")),
        "tags": ParamShape(many(plain("id"))),
        "sizes": ParamShape(many(plain("int"))),
        "rows": ParamShape(many(rec(sku=plain("id"), quantity=plain("int")))),
        "box": ParamShape(
            ValueType(T.RECORD, fields={"w": Field(plain("int")), "h": Field(plain("int"), required=False)})
        ),
        "argv": ParamShape(plain("argv")),
        "body": ParamShape(plain("text"), arg_class=ArgClass.PAYLOAD),
        "maybe": ParamShape(plain("int"), required=False),
    },
)
TOOLS = {
    "place_order": PLACE_ORDER,
    "send_email": SEND_EMAIL,
    "everything": EVERYTHING,
    "reserve_inventory": ToolShape(params={"cart_version": ParamShape(plain("int"), bound=True)}),
    "search_document": ToolShape(
        params={
            "collection": ParamShape(enum("prospectus", "internal_memo")),
            "query": ParamShape(plain("text")),
        }
    ),
    "read_document": ToolShape(
        params={
            "collection": ParamShape(enum("prospectus", "annual_report")),
            "query": ParamShape(plain("id")),
        }
    ),
    "run_check": ToolShape(
        params={"check": ParamShape(enum("unit", "lint"))},
        result={
            "verdict": Field(enum("pass", "fail")),
            "log": Field(plain("text")),
            "said": Field(plain("id"), trust=Trust.UNTRUSTED),
        },
    ),
    "run_command": ToolShape(params={"argv": ParamShape(plain("argv"))}),
    "pay": ToolShape(params={"amount": ParamShape(plain("decimal")), "cents": ParamShape(plain("int"))}),
    "read_page": ToolShape(result={"title_id": Field(plain("id"))}, trust=Trust.UNTRUSTED),
}
POLICY = Environment(
    attrs={"desk": enum("funds", "wealth"), "suspended": plain("bool"), "home": plain("path")},
    roles=("shopper", "store_manager"),
    task={
        "channel": Field(enum("web", "kiosk")),
        "freeze": Field(plain("bool")),
        "as_of": Field(plain("timestamp")),
        "note": Field(plain("id"), required=False),
        "kind": Field(enum("fix", "incident")),
    },
    state={
        "cart": {
            "id": Field(plain("id")),
            "version": Field(plain("int")),
            "total_minor": Field(plain("int")),
            "currency": Field(enum("EUR", "USD")),
            "items": Field(many(rec(sku=plain("id"), quantity=plain("int")))),
            "remark": Field(plain("text")),
        },
    },
    sources=("stock", "orders"),
    capabilities={
        "documents": {"collection": enum("prospectus", "annual_report")},
        "host": {"level": plain("int")},
    },
    limits={"order_cap_minor": plain("int"), "rate": plain("decimal"), "patience": plain("duration")},
    budgets={"turns": plain("int")},
    labels=("confidential", "pii"),
    outputs=("report",),
    tools=TOOLS,
    evidence_kinds=("order",),
)


def at_rule(*tools: str) -> Environment:
    return POLICY.at(RULE_ROOTS, named=tools)


EVERY = at_rule("everything")


def full_facts() -> Facts:
    """Facts in which everything is known."""
    return Facts(
        principal={"id": "u1", "roles": ["shopper"], "desk": "funds", "suspended": False, "home": "src/u1"},
        task={
            "channel": "web",
            "freeze": False,
            "as_of": NOW - timedelta(days=1),
            "note": "n",
            "kind": "fix",
        },
        state={"cart": _cart()},
        source={name: {"state": "available", "age": timedelta(seconds=20)} for name in ("stock", "orders")},
        grants={"documents": [{"collection": "prospectus"}], "host": [{"level": 1}, {"level": 3}]},
        run=_run(),
        limits={"order_cap_minor": 200_000, "rate": Decimal("1.50"), "patience": timedelta(minutes=5)},
        now=NOW,
        tool={"name": "everything", "kind": "write", "reversible": False, "source": "orders", "egress": True},
        call={"id": "c1"},
        args=_args(),
        history=_history(),
        origin=lambda value: frozenset({"user"}) if value in ("widget-7", 4200) else frozenset({"untrusted"}),
        arg_classes={"address": ["mail", "link"], "reference": ["name"], "payload": ["body"]},
    )


def _cart() -> dict[str, Value]:
    items = [{"sku": "a", "quantity": 1}, {"sku": "b", "quantity": 3}]
    cart: dict[str, Value] = {
        "id": "c1",
        "version": 3,
        "total_minor": 4200,
        "currency": "EUR",
        "items": items,
    }
    return {**cart, "remark": "please hurry", "age": timedelta(seconds=5)}


def _run() -> dict[str, Value]:
    run: dict[str, Value] = {
        "id": "r1",
        "turn": 4,
        "calls": 9,
        "cost_minor": 12,
        "budget_left": {"turns": 26},
    }
    return {**run, "labels": ["pii"], "read_untrusted": True}


def _args() -> dict[str, Value]:
    return {
        "flag": True,
        "n": 4200,
        "small": 3,
        "amount": Decimal("12.50"),
        "name": "widget-7",
        "code": "xy",
        "path": "src/main.py",
        "mail": "ann@example.org",
        "link": "https://shop.example.org/a",
        "at": NOW - timedelta(minutes=3),
        "wait": timedelta(seconds=30),
        "tags": ["red", "blue"],
        "sizes": [1, 5, 12],
        "rows": [{"sku": "a", "quantity": 2}, {"sku": "z", "quantity": 0}],
        "box": {"w": 4, "h": 2},
        "argv": ["systemctl", "status"],
        "body": "see https://evil.example/x",
        "maybe": 7,
        "cart_version": 3,
    }


def _history() -> dict[str, ToolHistory]:
    def past(minutes: int, args: dict[str, Value], **result: Value) -> PastCall:
        return PastCall(args, result, NOW - timedelta(minutes=minutes))

    checks = [past(9, {"check": "unit"}, verdict="fail"), past(2, {"check": "unit"}, verdict="pass")]
    payments = [past(4, {"amount": "1.50", "cents": 150}), past(3, {"amount": "0.25", "cents": 25})]
    return {
        "run_check": ToolHistory(confirmed=checks, counts={"confirmed": 2}),
        "pay": ToolHistory(confirmed=payments, counts={"confirmed": 2, "failed": 1}),
        "reserve_inventory": ToolHistory(confirmed=[past(1, {"cart_version": 3})], counts={"confirmed": 1}),
    }


def condition(text: str, env: Environment = EVERY) -> Condition:
    found, faults = compile_condition(text, env)
    assert found is not None, faults
    return found


def answer(text: str, facts: Facts | None = None, env: Environment = EVERY) -> Truth:
    return condition(text, env).test(facts if facts is not None else full_facts())


def faults_of(text: str, env: Environment = EVERY) -> list[Fault]:
    return compile_condition(text, env)[1]
