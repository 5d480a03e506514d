"""Owns how a value type is written: `{type: enum, values: [web, kiosk]}`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Final, Literal, TypeAlias

from pydantic import BaseModel, Discriminator, Tag
from pydantic import Field as Key

from engine.domain.types import ArgClass, Field, Trust, TypeName, ValueType
from engine.policy.documents.base import Part, report
from engine.policy.documents.values import Count, CountFromZero, Id, Ident, Text

TypeWord: TypeAlias = Literal[
    "bool", "int", "decimal", "enum", "id", "ref", "path", "email", "url", "timestamp", "duration",
    "list", "record", "argv", "text", "rich_text",
]  # fmt: skip

_SIZED: Final = frozenset({"id", "ref", "path", "email", "url", "text", "rich_text"})
FACETS: Final[Mapping[str, frozenset[str]]] = {
    "values": frozenset({"enum"}),
    "of": frozenset({"list", "ref"}),
    "fields": frozenset({"record"}),
    "min": frozenset({"int"}),
    "max": frozenset({"int"}),
    "max_len": _SIZED,
    "max_items": frozenset({"list", "argv"}),
    "pattern": frozenset({"id"}),
}
"""Key -> the types that may have it."""
NEEDED_FACETS: Final[Mapping[str, str]] = {"enum": "values", "list": "of", "ref": "of", "record": "fields"}
MAX_ID_LENGTH: Final = 256


def text_or_part(value: Any) -> str:
    """Which branch of a union of text and mapping a value belongs to."""
    return "part" if isinstance(value, dict | BaseModel) else "text"


class TypePart(Part):
    called: ClassVar[str] = "a type"

    type: TypeWord
    values: list[Text] | None = Key(default=None, min_length=1, max_length=500)
    of: (
        Annotated[
            Annotated[Ident, Tag("text")] | Annotated[TypePart, Tag("part")], Discriminator(text_or_part)
        ]
        | None
    ) = None
    fields: dict[Ident, FieldPart] | None = None
    min: int | None = None
    max: int | None = None
    max_len: CountFromZero | None = None
    max_items: Count | None = None
    pattern: Text | None = None


class FieldPart(TypePart):
    """A field of a record, a result, a task or a state slice."""

    called: ClassVar[str] = "a field"

    required: bool = True
    trust: Literal["trusted", "untrusted"] | None = None
    labels: list[Id] = Key(default_factory=list)


class ParamPart(TypePart):
    called: ClassVar[str] = "a parameter"

    bind: Text | None = None
    required: bool = True
    description: Annotated[str, Key(min_length=1, max_length=1024)] | None = None
    arg_class: Literal["reference", "address", "secret", "payload"] | None = Key(default=None, alias="class")


class OutputFieldPart(TypePart):
    called: ClassVar[str] = "an output field"

    required: bool = True
    cites: bool = False
    figures: bool = False


def check_type(part: TypePart) -> bool:
    """Reports facets that do not fit the type; False if no ValueType can be made of it."""
    usable = _facets_fit(part)
    needed = NEEDED_FACETS.get(part.type)
    if needed and getattr(part, needed) is None:
        if not part.is_lost(needed):
            report(
                "Y202",
                part.place("type"),
                f"type `{part.type}` needs the key `{needed}`",
                _NEED_HELP[part.type],
            )
        return False
    if part.type == "list" and isinstance(part.of, str):
        report("Y205", part.place("of"), "`of` of a list must be a type", f"write of: {{type: {part.of}}}")
        return False
    if part.type == "ref" and not isinstance(part.of, str):
        report("Y205", part.place("of"), "`of` of a ref must be an evidence kind", "write of: KIND")
        return False
    _values_fit(part)
    inner: list[TypePart] = [*(part.fields or {}).values()]
    if isinstance(part.of, TypePart):
        inner.append(part.of)
    return all([usable, *(check_type(item) for item in inner)])


_NEED_HELP: Final[Mapping[str, str]] = {
    "enum": "list them: values: [a, b]",
    "list": "say of what: of: {type: id}",
    "ref": "name the evidence kind: of: KIND",
    "record": "name its fields: fields: {name: {type: id}}",
}


def _facets_fit(part: TypePart) -> bool:
    for facet, types in FACETS.items():
        if not part.is_written(facet) or part.type in types:
            continue
        if facet == "pattern" and part.type in ("text", "rich_text"):
            report("S303", part.key_place(facet), "a pattern on free text would judge wording",
                   "remove it; a value that must have a form is an `id`")  # fmt: skip
            continue
        only = ", ".join(sorted(types))
        report("Y203", part.key_place(facet), f"`{facet}` does not belong to type `{part.type}`",
               f"`{facet}` belongs to: {only}")  # fmt: skip
    return True


def _values_fit(part: TypePart) -> None:
    seen: set[str] = set()
    for at, value in enumerate(part.values or ()):
        if value in seen:
            report("Y205", part.place("values", at), f"`{value}` is listed twice", "list each value once")
        seen.add(value)
    if part.min is not None and part.max is not None and part.min > part.max:
        report("Y205", part.place("max"), f"`max` {part.max} is below `min` {part.min}", "swap or mend them")
    if part.type == "id" and (part.max_len or 0) > MAX_ID_LENGTH:
        report("Y205", part.place("max_len"), f"an id has at most {MAX_ID_LENGTH} characters",
               "lower it, or use type `text`")  # fmt: skip
    if part.pattern is not None and part.type == "id":
        try:
            re.compile(part.pattern)
        except re.error as error:
            report(
                "Y205", part.place("pattern"), f"`{part.pattern}` is no pattern: {error}", "mend the pattern"
            )


# --- to the types of the ground floor ----------------------------------------------------------------------


def value_type(part: TypePart) -> ValueType:
    """The declared type; an incomplete one, whose fault has been reported, becomes opaque text."""
    name = TypeName(part.type)
    if name is TypeName.LIST and not isinstance(part.of, TypePart):
        return ValueType(TypeName.LIST, of=ValueType(TypeName.TEXT))
    if name is TypeName.ENUM and not part.values:
        return ValueType(TypeName.TEXT)
    return ValueType(
        name,
        values=tuple(part.values or ()),
        of=value_type(part.of) if isinstance(part.of, TypePart) else None,
        fields={key: field_type(item) for key, item in (part.fields or {}).items()},
        kind=part.of if isinstance(part.of, str) else None,
        min=part.min,
        max=part.max,
        max_len=part.max_len,
        max_items=part.max_items,
        pattern=part.pattern,
    )


def field_type(part: FieldPart) -> Field:
    trust = Trust(part.trust) if part.trust else None
    return Field(value_type(part), part.required, trust, frozenset(part.labels))


_CLASSES: Final[Mapping[TypeName, ArgClass]] = {
    TypeName.ID: ArgClass.REFERENCE,
    TypeName.REF: ArgClass.REFERENCE,
    TypeName.PATH: ArgClass.REFERENCE,
    TypeName.EMAIL: ArgClass.ADDRESS,
    TypeName.URL: ArgClass.ADDRESS,
    TypeName.TEXT: ArgClass.PAYLOAD,
    TypeName.RICH_TEXT: ArgClass.PAYLOAD,
}


def arg_class(part: ParamPart, type_: ValueType) -> ArgClass | None:
    """The class of an argument: as written, else by its type; a list has the class of its elements."""
    if part.arg_class:
        return ArgClass(part.arg_class)
    inner = type_.of if type_.name is TypeName.LIST and type_.of is not None else type_
    return _CLASSES.get(inner.name)
