"""Registered secrets: found in every listed form, masked with a visible mark, and never too short."""

from __future__ import annotations

import html
import json
from base64 import b64encode, urlsafe_b64encode
from itertools import pairwise
from pathlib import Path
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.adapters.secrets import MIN_LENGTH, RegisteredSecrets, registered
from engine.domain.errors import SourceError, UsageError
from engine.runtime.hearing import Hearing

CANARY = 'CANARY-93/ü"x'
SECRETS = RegisteredSecrets({"crm": CANARY, "other": "0123456789abcdef"})


def forms(value: str, before: str, after: str) -> list[str]:
    whole = (before + value + after).encode()
    return [
        before + value + after,
        json.dumps({before: value + after}),
        json.dumps({before: value + after}, ensure_ascii=False),
        json.dumps(json.dumps(before + value), ensure_ascii=False),
        quote(value, safe=""),
        quote(value),
        quote_plus(value),
        quote(value, safe="").lower().replace("canary", "CANARY"),
        b64encode(whole).decode(),
        urlsafe_b64encode(whole).decode(),
        b64encode(whole).decode().rstrip("="),
    ]


@given(st.text(max_size=8), st.text(max_size=8))
def test_a_secret_is_found_and_masked_in_every_listed_form(before: str, after: str) -> None:
    """NousResearch/hermes-agent#72925: keys of a vendor that no pattern knew stayed in the traces."""
    for text in forms(CANARY, before, after):
        assert SECRETS.find(text) == "crm", text
        masked = SECRETS.mask(text)
        assert "[secret crm]" in masked
        assert SECRETS.find(masked) is None


PASSWORD = "a!b*c(d)'e/f+g=h&<i>\"j k é~"


@pytest.mark.parametrize(
    "spelled",
    [
        quote(PASSWORD, safe="!'()*~-_."),  # encodeURIComponent
        quote(PASSWORD, safe=";,/?:@&=+$-_.!~*'()#"),  # encodeURI
        quote(PASSWORD, safe="*-._ ").replace("~", "%7E").replace(" ", "+"),  # a form
        quote(PASSWORD, safe="").replace("~", "%7E"),
        json.dumps(PASSWORD).replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e"),  # Go
        "".join(
            sign if (sign.isalnum() and sign.isascii()) or sign in "/=()*! ~" else f"\\u{ord(sign):04X}"
            for sign in PASSWORD
        ),  # .NET
        json.dumps(PASSWORD).replace("\\u00e9", "\\u00E9"),
        json.dumps(PASSWORD).replace("/", "\\/"),  # PHP
        html.escape(PASSWORD),
        html.escape(PASSWORD, quote=False),
        html.escape(PASSWORD).replace("&quot;", "&#34;").replace("&#x27;", "&#39;"),
    ],
)  # fmt: skip
def test_a_password_of_many_signs_is_found_as_other_writers_escape_it(spelled: str) -> None:
    secrets = RegisteredSecrets({"pw": PASSWORD})
    assert secrets.find(f"x {spelled} y") == "pw"
    assert PASSWORD[3:9] not in secrets.mask(f"x {spelled} y")


def test_a_key_of_letters_and_digits_is_looked_for_in_few_forms() -> None:
    """Each event is searched for each form."""
    assert len(RegisteredSecrets({"key": "sk-Ab12_Cd34-Ef56"})._forms) <= 7


@given(
    st.sampled_from(forms(CANARY, "a", "b")),
    st.lists(st.integers(0, 80), max_size=8),
    st.text("ab/", max_size=4),
)
def test_text_in_pieces_shows_no_part_of_a_secret(said: str, cuts: list[int], after: str) -> None:
    text = f"x {said} y{said}{after}"
    places = sorted({0, len(text), *(cut for cut in cuts if cut < len(text))})
    shown: list[str] = []
    hearing = Hearing(shown.append, SECRETS)
    for first, last in pairwise(places):
        hearing(text[first:last])
    before = "".join(shown)
    hearing.end()
    assert "".join(shown) == SECRETS.mask(text)
    assert SECRETS.mask(text).startswith(before)


def test_of_two_secrets_that_begin_alike_the_longer_is_waited_for() -> None:
    secrets = RegisteredSecrets({"short": "abcdefgh", "long": "abcdefghijkl"})
    for text in ("abcdefghijkl", "abcdefgh", "abcdefghij", "ababcdefghabcdefghijkl."):
        shown: list[str] = []
        hearing = Hearing(shown.append, secrets)
        for letter in text:
            hearing(letter)
        hearing.end()
        assert "".join(shown) == secrets.mask(text)


def test_text_is_not_held_up_where_no_secret_can_begin() -> None:
    shown: list[str] = []
    hearing = Hearing(shown.append, SECRETS)
    for piece in ("Good ", "morning", ", C", "AN", " do."):
        hearing(piece)
    assert shown == ["Good ", "morning", ", ", "CAN do."]


def test_ordinary_text_is_left_alone() -> None:
    text = "an order of 12 apples, CANARY-94"
    assert SECRETS.find(text) is None
    assert SECRETS.mask(text) is text


@given(
    st.text(min_size=MIN_LENGTH, max_size=40).filter(lambda text: text.isprintable()), st.text(max_size=20)
)
def test_whatever_the_secret_nothing_of_it_is_left(value: str, around: str) -> None:
    secrets = RegisteredSecrets({"any": value})
    assert value not in secrets.mask(f"{around}{value}{around}{value}")


def test_a_short_value_is_refused_because_it_would_be_found_everywhere() -> None:
    with pytest.raises(UsageError, match="`pin` has 4 characters"):
        RegisteredSecrets({"pin": "1234"})


def test_values_come_from_variables_and_files_and_model_keys_register_themselves(tmp_path: Path) -> None:
    (tmp_path / "key.txt").write_text("from-a-file-1\n")
    found = registered(
        {
            "crm": ("CRM_TOKEN", None),
            "erp": (None, "key.txt"),
            "gone": ("NOT_SET", None),
            "no": (None, "no.txt"),
        },
        tmp_path,
        {"CRM_TOKEN": "from-the-env-1", "ANTHROPIC_API_KEY": "sk-ant-0123456789", "HOME": "/home/somebody"},
    )
    assert found is not None
    assert set(found.values) == {"crm", "erp", "ANTHROPIC_API_KEY"}
    assert found.mask("a from-a-file-1 b sk-ant-0123456789") == "a [secret erp] b [secret ANTHROPIC_API_KEY]"


def test_nothing_registered_is_nothing_to_look_for(tmp_path: Path) -> None:
    assert registered({"gone": ("NOT_SET", None)}, tmp_path, {}) is None


def test_a_file_that_cannot_be_read_is_an_error_without_its_content(tmp_path: Path) -> None:
    (tmp_path / "key").write_bytes(b"\xff\xfe\xff secret")
    with pytest.raises(SourceError, match="secret `erp`") as failed:
        registered({"erp": (None, "key")}, tmp_path, {})
    assert "\\xff" not in failed.value.message
