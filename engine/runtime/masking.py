"""Owns the masking of facts: a registered secret is replaced by a visible mark before anything is sealed."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from engine.domain.canonical import Json, JsonObject, NotJson, canonical, parse_json
from engine.domain.events import Body, StoredResult, payload_of
from engine.domain.results import Storable, storable
from engine.ports import Secrets

_ESCAPE = re.compile(r'\\u([0-9a-fA-F]{4})|\\(["\\/])')


def masked_body(body: Body, secrets: Secrets | None) -> Body:
    """The same fact, each secret replaced by its mark in every text and key of it."""
    if secrets is None:
        return body
    try:
        payload = payload_of(body)
    except NotJson:
        return body  # sealing refuses it, with the place
    if secrets.find(payload) is None:
        return body
    return type(body).model_validate_json(canonical(masked(parse_json(payload), secrets)))


def masked(value: Json, secrets: Secrets) -> Json:
    """JSON data with each secret replaced by its mark, in texts and in keys."""
    if isinstance(value, str):
        return secrets.mask(value)
    if isinstance(value, list):
        return [masked(item, secrets) for item in value]
    if isinstance(value, Mapping):
        return masked_object(value, secrets)
    return value


def masked_object(value: Mapping[str, Json], secrets: Secrets) -> JsonObject:
    """As `masked`, for an object; two keys that become one are told apart by a number."""
    found: JsonObject = {}
    for key, item in value.items():
        name = secrets.mask(key)
        while name in found:
            name += "'"
        found[name] = masked(item, secrets)
    return found


def masked_result(stored: Storable, secrets: Secrets | None) -> Storable:
    """What is kept of a tool's answer, made anew from the masked value where it held a secret."""
    if secrets is None:
        return stored
    if stored.result.fault is not None:
        fault = secrets.mask(stored.result.fault)
        return replace(stored, result=stored.result.model_copy(update={"fault": fault}))
    text = stored.blob if stored.blob is not None else canonical(stored.result.value)
    if secrets.find(text) is None:
        return stored
    again = storable(masked(parse_json(text), secrets))
    result: StoredResult = again.result.model_copy(update={"sanitised": True})
    return replace(again, result=result)


def named_in(text: str, secrets: Secrets | None) -> str | None:
    """The secret in a call's raw arguments: as written, or once the JSON is read (an escape hides nothing)."""
    if secrets is None:
        return None
    found = secrets.find(text)
    if found is not None or "\\" not in text:
        return found
    try:
        return secrets.find(_spoken(parse_json(text)))
    except NotJson:  # what cannot be read is stored and shown as it is
        return secrets.find(_unescaped(text))


def _unescaped(text: str) -> str:
    """Text that is almost JSON, with its escapes read."""
    return _ESCAPE.sub(lambda found: chr(int(found[1], 16)) if found[1] else found[2], text)


def _spoken(value: Json) -> str:
    """All texts and keys of JSON data, apart from each other."""
    if isinstance(value, str):
        inner = value
        if "\\" in value:
            try:
                inner += "\0" + _spoken(parse_json(value))
            except NotJson:
                inner = value
        return inner
    if isinstance(value, list):
        return "\0".join(_spoken(item) for item in value)
    if isinstance(value, Mapping):
        return "\0".join(f"{key}\0{_spoken(item)}" for key, item in value.items())
    return ""
