"""Owns the reading of one proposal's arguments: strict JSON, exact types, nothing guessed and nothing repaired."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from engine.domain.calls import Refusal
from engine.domain.canonical import Json, JsonObject, NotJson, parse_json
from engine.domain.policy import Kind, ToolSpec
from engine.domain.state import RunState
from engine.domain.types import Field
from engine.policy.values import Fault, json_kind, read_fields, references, unknown_field

INVALID: Final = "invalid_arguments"
SECRET: Final = "secret"
MAX_ARGUMENTS: Final = 1_000_000
"""Code points of the raw text of one proposal."""

SecretFinder: TypeAlias = Callable[[str], str | None]
"""Text -> the name of a registered secret that occurs in it."""


@dataclass(frozen=True, slots=True)
class Arguments:
    """What the model supplied, before binding."""

    values: JsonObject
    normalised: tuple[str, ...] = ()
    """How the text was read where it was not plain: `empty`, `unwrapped`."""


def read_arguments(
    raw: str,
    spec: ToolSpec,
    *,
    secrets: SecretFinder | None = None,
    sanitised: bool = False,
    cut_from: int | None = None,
) -> Arguments | Refusal:
    """Reads the raw arguments of a call of `spec`, against its whole enums.

    `""`, blank and null are `{}` where no parameter is required. A string that holds the JSON is unwrapped once,
    for reads only. Anything else that does not fit is a Refusal that names field and kind.
    """
    fields = {param.name: Field(param.type, param.required) for param in spec.model_params}
    bound = frozenset(param.name for param in spec.bound_params)
    return read_object(
        raw,
        fields,
        of=spec.name,
        unwrap=spec.kind is Kind.READ,
        bound=bound,
        secrets=secrets,
        sanitised=sanitised,
        cut_from=cut_from,
    )


def read_object(
    raw: str,
    fields: Mapping[str, Field],
    *,
    of: str,
    unwrap: bool = False,
    bound: frozenset[str] = frozenset(),
    secrets: SecretFinder | None = None,
    sanitised: bool = False,
    cut_from: int | None = None,
    partial: bool = False,
    typed: bool = True,
) -> Arguments | Refusal:
    """As `read_arguments`, for any set of fields; `partial` leaves missing ones to the caller, and without
    `typed` so are the values: only names are checked."""
    secret = _secret(raw, secrets)
    if secret is not None:
        return secret
    fault = _unreadable(raw, sanitised, cut_from)
    if fault is not None:
        return fault
    try:
        value, normalised = _parse(raw, unwrap)
    except NotJson as error:
        return Refusal(
            INVALID, f"the arguments of `{of}` are not JSON: {error.what} at {_ascii(error.where)}"
        )
    secret = _secret_in(value, secrets)
    if secret is not None:
        return secret
    if value is None:
        value, normalised = {}, ("empty",)
    if not isinstance(value, dict):
        return Refusal(INVALID, f"the arguments of `{of}` must be an object, not {json_kind(value)}")
    if not typed:
        return _names_only(value, normalised, fields, of)
    return _check(value, normalised, fields, bound, of, partial)


def _names_only(
    value: JsonObject, normalised: tuple[str, ...], fields: Mapping[str, Field], of: str
) -> Arguments | Refusal:
    for name in value:
        if name not in fields:
            message = f"arguments of `{of}`: {unknown_field(name, name, fields)}"
            return Refusal(INVALID, message, field=_ascii(name))
    return Arguments(value, normalised)


def _unreadable(raw: str, sanitised: bool, cut_from: int | None) -> Refusal | None:
    if cut_from is not None or len(raw) > MAX_ARGUMENTS:
        size = cut_from or len(raw)
        return Refusal(INVALID, f"the arguments have {size} characters, at most {MAX_ARGUMENTS} are read")
    if sanitised:
        return Refusal(INVALID, "the arguments hold a lone surrogate, which is not text")
    return None


def _parse(raw: str, unwrap: bool) -> tuple[Json, tuple[str, ...]]:
    if not raw.strip():
        return None, ()
    value = parse_json(raw)
    if isinstance(value, str) and unwrap:
        return parse_json(value), ("unwrapped",)
    return value, ()


def _check(
    value: JsonObject,
    normalised: tuple[str, ...],
    fields: Mapping[str, Field],
    bound: frozenset[str],
    of: str,
    partial: bool,
) -> Arguments | Refusal:
    for name in value:
        if name in bound:
            return Refusal(INVALID, f"`{name}` of `{of}` is filled in by the Host: leave it out", field=name)
    faults: list[Fault] = []
    values = read_fields(value, fields, "", faults, partial=partial)
    if faults:
        shown = "; ".join(fault.message for fault in faults[:5])
        more = f"; and {len(faults) - 5} more" if len(faults) > 5 else ""
        return Refusal(INVALID, f"arguments of `{of}`: {shown}{more}", field=_ascii(faults[0].field))
    return Arguments(values, normalised)


def _ascii(text: str) -> str:
    return text.encode("unicode_escape").decode("ascii")[:200]


# --- secrets ---------------------------------------------------------------------------------------------


def _secret(text: str, secrets: SecretFinder | None) -> Refusal | None:
    name = secrets(text) if secrets is not None else None
    return None if name is None else Refusal(SECRET, f"the arguments contain the registered secret `{name}`")


def _secret_in(value: Json, secrets: SecretFinder | None) -> Refusal | None:
    """Looks at the decoded strings too: an escape in the raw text hides nothing."""
    if secrets is None:
        return None
    for text in _strings(value):
        found = _secret(text, secrets)
        if found is not None:
            return found
    return None


def _strings(value: Json) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from _strings(item)
    elif isinstance(value, dict):
        for name, item in value.items():
            yield name
            yield from _strings(item)


# --- references ------------------------------------------------------------------------------------------


def unknown_reference(spec: ToolSpec, args: Mapping[str, Json], state: RunState) -> Refusal | None:
    """The first `ref` argument that no earlier result of this Run produced; asked after permission."""
    for param in spec.model_params:
        if param.name not in args:
            continue
        for field, kind, ref in references(args[param.name], param.type, param.name):
            if (kind, ref) not in state.evidence_index:
                message = (
                    f"`{field}` of `{spec.name}` must be the id of a {kind} that an earlier result returned"
                )
                return Refusal("reference", message, field=field)
    return None
