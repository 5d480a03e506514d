"""Arguments are read strictly: nothing is coerced, nothing repaired, nothing guessed."""

from __future__ import annotations

import json

import jsonschema_rs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.domain.calls import Refusal
from engine.domain.policy import Kind
from engine.domain.types import Field, TypeName, ValueType
from engine.policy.arguments import Arguments, read_arguments
from engine.policy.schema import parameters_of
from engine.policy.values import fits

from .build import BOOL, ID, INT, TEXT, enum, param, tool

NOTHING = tool("now")
WRITE = tool("note", Kind.WRITE, [param("t", TEXT)])
ITEM = ValueType(
    TypeName.RECORD,
    fields={"sku": Field(ID), "n": Field(ValueType(TypeName.INT, min=1, max=9), required=False)},
)
MANY = tool(
    "many",
    params=[
        param("b", BOOL, required=False),
        param("i", ValueType(TypeName.INT, max=10), required=False),
        param("big", INT, required=False),
        param("e", enum("x", "y"), required=False),
        param("items", ValueType(TypeName.LIST, of=ITEM, max_items=2), required=False),
        param("d", ValueType(TypeName.DECIMAL), required=False),
        param("p", ValueType(TypeName.PATH), required=False),
        param("m", ValueType(TypeName.EMAIL), required=False),
        param("u", ValueType(TypeName.URL), required=False),
        param("at", ValueType(TypeName.TIMESTAMP), required=False),
        param("w", ValueType(TypeName.DURATION), required=False),
        param("k", ValueType(TypeName.ID, pattern="[a-z]+", max_len=5), required=False),
        param("cmd", ValueType(TypeName.ARGV, max_items=3), required=False),
        param("note", TEXT, required=False),
        param("owner", ID, "principal.id"),
    ],
)


def value(**args):
    return read_arguments(json.dumps(args), MANY)


@pytest.mark.parametrize("raw", ["", "   ", "null", "\n"])
def test_no_arguments_are_an_empty_object_where_nothing_is_required(raw):
    """camel-ai/camel#4338, microsoft/autogen#5667: empty or null arguments ended the run."""
    assert read_arguments(raw, NOTHING) == Arguments({}, ("empty",))
    assert "`t` is missing" in read_arguments(raw, WRITE).message


@pytest.mark.parametrize(
    "raw", ["[]", "3", "{'a':1}", '{"t":"a"} trailing', '{"t":"a"}{"t":"b"}', '{"t":"a","t":"b"}', "{"]
)
def test_what_is_not_one_json_object_is_refused_and_not_repaired(raw):
    found = read_arguments(raw, WRITE)
    assert isinstance(found, Refusal)
    assert found.code == "invalid_arguments"


def test_a_json_string_is_unwrapped_once_and_for_reads_only():
    """livekit/agents#5409: arguments encoded twice."""
    raw = json.dumps(json.dumps({"e": "x"}))
    assert read_arguments(raw, MANY) == Arguments({"e": "x"}, ("unwrapped",))
    assert isinstance(read_arguments(json.dumps(raw), MANY), Refusal)
    assert isinstance(read_arguments(json.dumps('{"t": "a"}'), WRITE), Refusal)


def test_an_inner_string_of_json_is_not_decoded():
    assert value(items="[1,2]").field == "items"
    assert value(note='{"k":1}').values == {"note": '{"k":1}'}


@pytest.mark.parametrize("wrong", ["false", "False", 0, "no", None, "", 1, "true "])
def test_nothing_but_true_and_false_is_a_boolean(wrong):
    """tradesdontlie/tradingview-mcp#527: the string "false" deleted everything."""
    assert value(b=wrong).field == "b"


def test_integers_are_exact():
    """earendil-works/pi#8943, NousResearch/hermes-agent#55314: large ids were rounded."""
    assert read_arguments('{"big": 2512292042121000001}', MANY).values["big"] == 2512292042121000001
    for raw in (
        '{"big": "9007199254740993"}',
        '{"big": 1.0}',
        '{"big": true}',
        '{"big": 1e3}',
        '{"big": %s}' % ("9" * 5000),
    ):
        assert isinstance(read_arguments(raw, MANY), Refusal)


@pytest.mark.parametrize("raw", ['{"i": NaN}', '{"i": Infinity}', '{"i": 1e400}'])
def test_numbers_that_json_does_not_have_are_refused(raw):
    """langflow-ai/langflow#11905: NaN went through the schema and stopped the database."""
    assert isinstance(read_arguments(raw, MANY), Refusal)


@pytest.mark.parametrize(("raw", "place"), [('{"note":"x\\ud800"}', "$.note"), ('{"\\ud800":1}', "ud800")])
def test_a_lone_surrogate_is_refused_with_its_place(raw, place):
    """NousResearch/hermes-agent#102757, flop-labs/technocore-chat#218: it made the session unreadable."""
    found = read_arguments(raw, MANY)
    assert place in found.message
    found.message.encode()


def test_an_unknown_argument_names_the_accepted_ones():
    """browseros-ai/BrowserOS#2431, erikdarlingdata/PerformanceMonitor#3870: it was dropped in silence."""
    spec = tool(
        "list_events", params=[param("hours_back", INT, required=False), param("limit", INT, required=False)]
    )
    found = read_arguments('{"hours": 1}', spec)
    assert (
        "`hours` is not accepted (accepted: hours_back, limit); did you mean `hours_back`?" in found.message
    )


def test_what_the_host_binds_cannot_be_sent():
    found = value(owner="somebody")
    assert found.field == "owner"
    assert "filled in by the Host" in found.message


def test_a_nested_fault_names_its_path():
    assert value(items=[{"sku": "a"}, {"sku": "b", "n": 0}]).field == "items[1].n"
    assert "`items[0].sku` is missing" in value(items=[{}]).message
    assert "at most 2" in value(items=[{"sku": "a"}] * 3).message


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("d", ["1.50", "-3"], [1.5, "1e5", "NaN", "1,5", ""]),
        ("p", ["src/a.py"], ["/etc/passwd", "../x", "a/../../x", "", "a\x00b", "a\\b"]),
        ("m", ["ann@example.org"], ["ann", "a@b@c", "a b@example.org", ""]),
        ("u", ["https://example.org/a?b=c"], ["example.org", "www.example.org", "http://", "https://a b"]),
        ("at", ["2026-01-31T00:00:00Z"], ["2026-01-31", "2026-01-31T00:00:00", "yesterday"]),
        ("w", ["10m", "1h30m"], ["10", "m", "ten minutes", 600]),
        ("k", ["abc"], ["abc\n", "ABC", "abcdef", "", "a1"]),
        ("e", ["x"], ["X", "z", None]),
        ("cmd", [["git", "status"]], ["git status", [], ["git", 1], ["a"] * 4]),
    ],
)
def test_formats_are_checked_as_whole_values(name, good, bad):
    for each in good:
        assert value(**{name: each}).values == {name: each}
    for each in bad:
        assert value(**{name: each}).field.startswith(name), each


def test_paths_are_normalised():
    assert value(p="./src//a/./b.py").values == {"p": "src/a/b.py"}
    assert value(p="e\u0301.txt").values == {"p": "\u00e9.txt"}


def test_a_secret_is_named_and_not_repeated():
    def secrets(text):
        return "api_key" if "s3cr3t" in text else None

    for raw in ('{"note": "my s3cr3t"}', '{"note": "\\u00733cr3t"}', "s3cr3t"):
        found = read_arguments(raw, MANY, secrets=secrets)
        assert found.code == "secret"
        assert "api_key" in found.message
        assert "s3cr3t" not in found.message


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-20, 20)
    | st.text(max_size=6)
    | st.sampled_from(["x", "a@b.c", "10m", "1.50"]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["sku", "n", "z"]), inner, max_size=3)
    ),
    max_leaves=6,
)


@settings(max_examples=300, deadline=None)
@given(st.dictionaries(st.sampled_from(["b", "i", "e", "items", "k", "cmd", "note", "zz"]), JSON, max_size=3))
def test_whatever_is_accepted_fits_the_schema_that_the_model_was_given(args):
    found = read_arguments(json.dumps(args), MANY)
    if isinstance(found, Arguments):
        assert jsonschema_rs.is_valid(parameters_of(MANY), found.values)
    else:
        assert found.field or "lone surrogate" in found.message


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=40))
def test_any_text_gives_arguments_or_one_refusal(raw):
    for spec in (NOTHING, WRITE, MANY):
        assert isinstance(read_arguments(raw, spec), Arguments | Refusal)


def test_a_float_is_no_integer_anywhere():
    assert not fits(1.0, INT)
    assert not fits(True, INT)
    assert fits(10**30, INT)
