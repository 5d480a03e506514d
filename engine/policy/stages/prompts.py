"""Owns the check that a prompt uses only the variables that the policy declares."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from engine.domain.diagnostics import Location, suggest
from engine.policy.conditions import Environment, compile_value
from engine.policy.documents.policy import PolicyDocument, PromptPart
from engine.policy.environments import PROMPT_ROOTS
from engine.policy.model import Model, Prompt
from engine.policy.places import LineMap

_SIMPLE: Final = re.compile(r"\{\{-?\s*([A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)*)\s*-?\}\}")
TEMPLATE_NAMES: Final = ("output", "fields", "sources", "figures", "flags", "run")
_MARKS: Final = re.compile(r"\{[{%#]")


def prompt_variables(model: Model, policy: PolicyDocument, env: Environment) -> None:
    part = policy.model.prompt
    if part is None:
        return
    at = env.at(PROMPT_ROOTS)
    for index, path in enumerate(part.vars):
        _declared(model, part, index, path, at)
    if model.prompt is not None:
        for path, place in _used(model, model.prompt):
            if not _covered(path, part):
                help_ = suggest(path, part.vars, f"add `{path}` to `vars`")
                model.add("X805", place, f"the prompt uses `{path}`, which `vars` does not declare", help_)


def output_templates(model: Model) -> None:
    """A template of an output must be one; what it may read is `output`, `fields`, `sources`, `figures`, `flags`."""
    if not model.templates:
        return
    from jinja2 import TemplateSyntaxError
    from jinja2.sandbox import SandboxedEnvironment

    for template in model.templates.values():
        try:
            tree = SandboxedEnvironment(autoescape=True).parse(template.text)
        except TemplateSyntaxError as error:
            place = Location(template.name, error.lineno or 1, 1)
            model.add("X805", place, f"the template cannot be read: {error.message}", "mend the template")
            continue
        for name, place in _names(tree, template, frozenset()):
            if name.split(".")[0] not in TEMPLATE_NAMES:
                known = f"a template reads: {', '.join(TEMPLATE_NAMES)}"
                model.add(
                    "X805", place, f"there is no `{name}` in a template", suggest(name, TEMPLATE_NAMES, known)
                )


def _declared(model: Model, part: PromptPart, index: int, path: str, env: Environment) -> None:
    if path == "state" or path.startswith("state."):
        model.add("M407", part.place("vars", index), f"`{path}` would paste app state into the prompt",
                  "declare a projection: {id: NAME, from: state.SLICE, fields: […]}")  # fmt: skip
        return
    _, faults = compile_value(path, env)
    for fault in faults:
        place = part.place_within(fault.span.start, fault.span.end, "vars", index)
        model.add(fault.code, place, fault.message, fault.help)


def _covered(path: str, part: PromptPart) -> bool:
    return any(path == name or path.startswith(f"{name}.") for name in part.vars)


def _used(model: Model, prompt: Prompt) -> Iterator[tuple[str, Location]]:
    """Every variable that the template reads, with its place; without loading the template engine if it is plain."""
    simple = list(_SIMPLE.finditer(prompt.text))
    if len(simple) == len(_MARKS.findall(prompt.text)):
        lines = LineMap(prompt.text)
        for match in simple:
            line, column = lines.at(match.start(1))
            yield match[1], Location(prompt.name, line, column, column + len(match[1]))
        return
    from jinja2 import TemplateSyntaxError
    from jinja2.sandbox import SandboxedEnvironment

    try:
        tree = SandboxedEnvironment(autoescape=False).parse(prompt.text)
    except TemplateSyntaxError as error:
        model.add("X805", Location(prompt.name, error.lineno or 1, 1),
                  f"the prompt is not a template: {error.message}", "mend the template")  # fmt: skip
        return
    yield from _names(tree, prompt, frozenset())


def _names(node: Any, prompt: Prompt, known: frozenset[str]) -> Iterator[tuple[str, Location]]:
    """Dotted reads of names that the template does not set itself."""
    from jinja2 import nodes

    stored = {name.name for name in node.find_all(nodes.Name) if name.ctx != "load"} | known | {"loop"}
    inner: set[int] = set()
    for read in node.find_all((nodes.Getattr, nodes.Name)):
        if id(read) in inner or (isinstance(read, nodes.Name) and read.ctx != "load"):
            continue
        parts, at = [], read
        while isinstance(at, nodes.Getattr):
            parts.append(at.attr)
            inner.add(id(at.node))
            at = at.node
        if isinstance(at, nodes.Name) and at.name not in stored:
            yield ".".join([at.name, *reversed(parts)]), Location(prompt.name, read.lineno, 1)
