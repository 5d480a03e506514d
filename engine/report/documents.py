"""Owns a publication as a document: Markdown and HTML with its sources, by the policy's own template or a built-in one.

A template is text of the policy's author, rendered in a sandbox. It can read what was published and nothing else;
in HTML everything that a model or a tool wrote is escaped.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, Literal

from jinja2 import StrictUndefined
from jinja2.sandbox import ImmutableSandboxedEnvironment
from markupsafe import Markup, escape

from engine.domain import events as e
from engine.domain.canonical import Json, JsonObject
from engine.domain.errors import PolicyInvalid
from engine.domain.state import RunState
from engine.policy.marks import plain
from engine.report.publications import sources_of
from engine.report.words import one_line

Form = Literal["markdown", "html"]
_MARK: Final = re.compile("⟦([^⟦⟧]*)⟧")
_HEADING: Final = re.compile(r"(#{1,6})[ \t]+(.*)")

MARKDOWN: Final = """\
{% for name, value in fields.items() -%}
{% if value is string and ("\\n" in value or value | length > 120) -%}
{{ value }}
{% else -%}
**{{ name }}**: {{ value | shown }}
{% endif %}
{% endfor -%}
{% if sources %}
## Sources

{% for source in sources -%}
{{ source.number }}. {{ source | described }}
{% endfor -%}
{% endif -%}
{% if flags %}
## Since the publication

{% for flag in flags -%}
- {{ flag }}
{% endfor -%}
{% endif -%}
"""

HTML: Final = """\
<!doctype html>
<html><head><meta charset="utf-8"><title>{{ output }}</title>
<style>body{font:16px/1.5 sans-serif;max-width:45em;margin:2em auto}
.figure{border-bottom:1px dotted}.flag{color:#a00}</style></head><body>
<article>
{% for name, value in fields.items() -%}
<section data-field="{{ name }}">{{ value | prose }}</section>
{% endfor -%}
</article>
{% if sources -%}
<h2>Sources</h2>
<ol>{% for source in sources %}<li id="source-{{ source.number }}">{{ source | described }}</li>{% endfor %}</ol>
{% endif -%}
{% for flag in flags %}<p class="flag">{{ flag }}</p>{% endfor %}
</body></html>
"""
_BUILT_IN: Final[Mapping[Form, str]] = {"markdown": MARKDOWN, "html": HTML}


def document(body: e.OutputPublished, state: RunState, form: Form, template: str | None = None) -> str:
    """The publication as text of that form. Raises PolicyInvalid for a template that does not render."""
    environment = ImmutableSandboxedEnvironment(
        autoescape=form == "html", undefined=StrictUndefined, keep_trailing_newline=True
    )
    environment.filters.update(shown=_shown, described=_described, prose=prose)
    publication = state.publications.get(body.output)
    known: dict[str, Any] = {
        "output": body.output,
        "fields": dict(body.rendered),
        "sources": sources_of(body, state),
        "figures": [figure.model_dump(mode="json") for figure in body.figures],
        "flags": [one_line(flag) for flag in publication.flags] if publication is not None else [],
        "run": str(state.run),
    }
    try:
        return environment.from_string(template or _BUILT_IN[form]).render(known)
    except Exception as error:  # whatever a template does wrong is its author's to mend
        raise PolicyInvalid(
            f"the {form} template of `{body.output}` does not render: {error}",
            remedy="mend the template: it can read `output`, `fields`, `sources`, `figures`, `flags` and `run`",
        ) from error


def _shown(value: Json) -> str:
    if isinstance(value, list):
        return "; ".join(_shown(item) for item in value)
    if isinstance(value, dict):
        return ", ".join(f"{name}: {_shown(item)}" for name, item in value.items())
    return "-" if value is None else str(value)


def _described(source: JsonObject) -> str:
    part = f"#{source['span']}" if source["span"] else ""
    as_of = f", as of {_said(source['as_of'])}" if source["as_of"] else ""
    return f"{source['kind']} {_said(source['id'])}{part}{as_of} ({source['tool']} {source['call']})"


def _said(value: Json) -> str:
    """What a tool called it: on one line, and nothing of the Host's in it."""
    return plain(one_line(str(value), 100))


def prose(value: Json) -> Markup:
    """Text with headings, lists and paragraphs as HTML; everything in it is escaped, marks of the Host are linked."""
    if isinstance(value, list):
        return Markup("").join(prose(item) for item in value)
    blocks = re.split(r"\n\s*\n", value if isinstance(value, str) else _shown(value))
    return Markup("\n").join(_block(block) for block in blocks if block.strip())


def _block(text: str) -> Markup:
    heading = _HEADING.fullmatch(text.strip())
    if heading:
        return Markup(f"<h{len(heading[1])}>{{}}</h{len(heading[1])}>").format(_inline(heading[2]))
    lines = text.strip().splitlines()
    if all(line.lstrip().startswith(("- ", "* ")) for line in lines):
        items = Markup("").join(Markup("<li>{}</li>").format(_inline(line.lstrip()[2:])) for line in lines)
        return Markup("<ul>{}</ul>").format(items)
    return Markup("<p>{}</p>").format(Markup("<br>").join(_inline(line) for line in lines))


def _inline(text: str) -> Markup:
    parts: list[Markup] = []
    last = 0
    for match in _MARK.finditer(text):
        parts.append(escape(text[last : match.start()]))
        parts.append(_mark(match[1]))
        last = match.end()
    return Markup("").join([*parts, escape(text[last:])])


def _mark(inner: str) -> Markup:
    if inner.isdigit():
        return Markup('<a href="#source-{0}">[{0}]</a>').format(inner)
    value, _, rest = inner.partition(" · ")
    return Markup('<span class="figure" title="{}">{}</span>').format(rest, value)
