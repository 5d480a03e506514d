"""Owns the JSON forms that every command shares: an event, an error, one line per object."""

from __future__ import annotations

import json
from collections.abc import Mapping

from engine.domain.canonical import JsonObject
from engine.domain.diagnostics import Diagnostic
from engine.domain.events import Event, timestamp
from engine.report.findings import finding_json


def dumps(item: Mapping[str, object]) -> str:
    """One line of JSON that can always be written: lone surrogates stay escaped."""
    text = json.dumps(item, ensure_ascii=False)
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return json.dumps(item)
    return text


def event_json(event: Event) -> JsonObject:
    """The envelope, then the payload as stored. No event kind has a field with a name of the envelope."""
    payload: JsonObject = json.loads(event.payload)
    return {
        "event": event.kind,
        "seq": event.seq,
        "at": timestamp(event.recorded_at),
        "actor": event.actor.model_dump(mode="json", exclude_defaults=True),
        **payload,
    }


def error_json(
    message: str, remedy: str, exit_code: int, diagnostics: tuple[Diagnostic, ...] = ()
) -> JsonObject:
    form: JsonObject = {
        "schema": "agentctl.error/v1",
        "error": message,
        "help": remedy,
        "exit_code": exit_code,
    }
    if diagnostics:
        form["findings"] = [finding_json(found) for found in diagnostics]
    return form
