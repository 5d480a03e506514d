"""Owns the templates in scripts: sandboxed Jinja2 between `<<` and `>>`, with native values for whole expressions."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any, TypeAlias

from jinja2 import StrictUndefined, TemplateError, Undefined, meta
from jinja2.sandbox import ImmutableSandboxedEnvironment

_EXPRESSION = re.compile(r"\s*<<((?:(?!<<|>>).)*)>>\s*", re.DOTALL)


class BadTemplate(Exception):
    """A template that cannot be read or rendered; the text says why."""


@dataclass(frozen=True, slots=True)
class Compiled:
    """One string with expressions in it."""

    render: Callable[[Mapping[str, object]], object]
    names: frozenset[str]
    """The variables that it reads."""
    where: str


Template: TypeAlias = "Compiled | str | int | float | bool | list[Template] | dict[str, Template] | None"
"""Data whose strings may be compiled templates."""


def compiled(text: str, where: str) -> Compiled | str:
    """A template, or the text itself where there is nothing to render. Raises BadTemplate."""
    if "<<" not in text and "<%" not in text:
        return text
    try:
        render, names = _compile(text)
    except TemplateError as error:
        raise BadTemplate(str(error)) from error
    return Compiled(render, names, where)


@lru_cache(maxsize=1024)
def _compile(text: str) -> tuple[Callable[[Mapping[str, object]], object], frozenset[str]]:
    """Compiling costs about half a millisecond, and long scripts repeat themselves."""
    environment = _environment()
    names = frozenset(meta.find_undeclared_variables(environment.parse(text)))
    whole = _EXPRESSION.fullmatch(text)
    if whole:
        expression = environment.compile_expression(whole[1].strip(), undefined_to_none=False)
        return (lambda variables: expression(**variables)), names
    return environment.from_string(text).render, names


def names_in(template: Template) -> Iterator[str]:
    """The variables that any string of it reads."""
    if isinstance(template, Compiled):
        yield from template.names
    elif isinstance(template, dict):
        for item in template.values():
            yield from names_in(item)
    elif isinstance(template, list):
        for item in template:
            yield from names_in(item)


def rendered(template: Template, variables: Mapping[str, object]) -> Any:
    """The data with every template rendered. Raises BadTemplate, which names the place in the script."""
    if isinstance(template, Compiled):
        return _value_of(template, variables)
    if isinstance(template, dict):
        return {key: rendered(item, variables) for key, item in template.items()}
    if isinstance(template, list):
        return [rendered(item, variables) for item in template]
    return template


def _value_of(template: Compiled, variables: Mapping[str, object]) -> object:
    try:
        value = template.render(variables)
        if isinstance(value, Undefined):
            value._fail_with_undefined_error()
        return list(value) if isinstance(value, Iterator) else value
    except BadTemplate as error:
        raise BadTemplate(f"{template.where}: {error}") from error
    except Exception as error:  # an expression may raise whatever its filters raise
        raise BadTemplate(f"{template.where}: {error}") from error


@cache
def _environment() -> ImmutableSandboxedEnvironment:
    return ImmutableSandboxedEnvironment(
        block_start_string="<%",
        block_end_string="%>",
        variable_start_string="<<",
        variable_end_string=">>",
        comment_start_string="<#",
        comment_end_string="#>",
        undefined=StrictUndefined,
        keep_trailing_newline=True,
        cache_size=0,
    )
