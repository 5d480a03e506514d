"""Owns how dependencies are shown: the chain behind an argument, and the graph of a Run as Mermaid or DOT."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from engine.domain.canonical import Json, JsonObject
from engine.domain.state import CallState, RunState
from engine.report.words import moment, one_line, value
from engine.runtime.lineage import Lineage, Link


def chain_lines(lineage: Lineage, call: CallState, links: Sequence[Link]) -> list[str]:
    """One line for each place, those behind it below it."""
    outcome = call.receipt.outcome.value if call.receipt else call.status.value
    by = f", approved by {call.approved_by}" if call.approved_by else ""
    lines = [f"call {call.id} {one_line(call.tool)}: {outcome}{by}"]
    if not links:
        return [*lines, "  no argument of it has a place in the records"]
    return [*lines, *(f"  {line}" for line in _lines(lineage, links))]


def _lines(lineage: Lineage, links: Iterable[Link]) -> Iterator[str]:
    before = ""
    for link in links:
        if link.arg != before:
            yield f"{link.arg} = {value(link.value, 120)}"
            before = link.arg
        yield f"  {said(link)}{_receipt(lineage, link)}"
        yield from (f"    {line}" for line in _lines(lineage, link.behind))


def said(link: Link) -> str:
    edge = link.edge
    if edge.type == "bound":
        return f"filled in by the Host from {edge.source}"
    if edge.type == "ref":
        return f"refers to {edge.origin} {edge.source}"
    return (
        f"occurs in {edge.origin}: {one_line(edge.source)}"
        if edge.source
        else "occurs nowhere in the records"
    )


def _receipt(lineage: Lineage, link: Link) -> str:
    call = lineage.state.calls.get(link.found_in) if link.found_in is not None else None
    if call is None or call.receipt is None:
        return ""
    source = f", source {call.source}" if call.source else ""
    return f" ({one_line(call.tool)}{source}, {call.receipt.outcome.value} {moment(call.receipt.at)})"


def chain_json(call: CallState, links: Sequence[Link]) -> JsonObject:
    return {
        "schema": "agentctl.trace/v1",
        "call": str(call.id),
        "tool": call.tool,
        "arguments": [_link_json(link) for link in links],
    }


def _link_json(link: Link) -> Json:
    return {
        "arg": link.arg,
        "value": link.value,
        "type": link.edge.type,
        "origin": link.edge.origin,
        "found_in": link.edge.source,
        "behind": [_link_json(each) for each in link.behind],
    }


# --- the graph ----------------------------------------------------------------------------------------------


class _Graph:
    """Nodes by key with their text and shape, and edges with theirs, each once and in order."""

    def __init__(self) -> None:
        self.nodes: dict[str, tuple[str, str]] = {}
        self.edges: dict[tuple[str, str, str, str], None] = {}

    def link(self, start: str, end: str, text: str, kind: str) -> None:
        self.edges[start, end, text, kind] = None


def _graph(lineage: Lineage) -> _Graph:
    graph, state = _Graph(), lineage.state
    for call in state.calls.values():
        edges = lineage.edges(call)
        if call.receipt is None and not edges:
            continue
        outcome = call.receipt.outcome.value if call.receipt else call.status.value
        graph.nodes[_key(str(call.id))] = (f"{call.id} {call.tool}: {outcome}", "call")
        for edge in edges:
            link = Link(call.id, call.tool, edge.arg, None, edge)
            place = _place(link)
            if place is not None:
                graph.nodes.setdefault(_key(place), (_place_text(state, link, place), "place"))
                graph.link(_key(place), _key(str(call.id)), _edge_text(link), edge.type)
    for name, published in state.publications.items():
        graph.nodes[_key(f"output {name}")] = (f"output {name}", "output")
        for handle in published.evidence:
            graph.link(_key(str(state.evidence[handle].call)), _key(f"output {name}"), handle, "cites")
    return graph


def _place(link: Link) -> str | None:
    if link.found_in is not None:
        return str(link.found_in)
    return link.edge.source.split("[")[0] if link.edge.source else None


def _place_text(state: RunState, link: Link, place: str) -> str:
    call = state.calls.get(link.found_in) if link.found_in is not None else None
    return place if call is None else f"{call.id} {call.tool}"


def _edge_text(link: Link) -> str:
    origin = "" if link.edge.type == "bound" else f" {link.edge.origin}"
    return f"{link.arg}:{origin} ({link.edge.type})"


def _key(name: str) -> str:
    """Two names never share a node: `state.a_b` is not `state.a.b`."""
    return "n_" + "".join(map(_plain, name))


def _plain(sign: str) -> str:
    if sign.isascii() and sign.isalnum():
        return sign
    return "_" if sign in ". " else f"__{ord(sign):x}_"  # no name has both in one place


def mermaid(lineage: Lineage) -> str:
    graph = _graph(lineage)
    lines = ["flowchart LR"]
    for key, (text, shape) in graph.nodes.items():
        left, right = {"call": ("[", "]"), "output": ("[[", "]]")}.get(shape, ("([", "])"))
        lines.append(f'  {key}{left}"{_quoted(text)}"{right}')
    for start, end, text, kind in graph.edges:
        arrow = "==>" if kind in ("bound", "ref") else "-.->" if kind == "literal" else "-->"
        lines.append(f'  {start} {arrow}|"{_quoted(text)}"| {end}')
    return "\n".join(lines)


def dot(lineage: Lineage) -> str:
    graph = _graph(lineage)
    shapes = {"call": "box", "output": "note", "place": "ellipse"}
    lines = ["digraph run {", "  rankdir=LR;"]
    lines += [
        f'  {key} [shape={shapes[shape]}, label="{_quoted(text)}"];'
        for key, (text, shape) in graph.nodes.items()
    ]
    for start, end, text, kind in graph.edges:
        style = "dashed" if kind == "literal" else "solid"
        lines.append(f'  {start} -> {end} [style={style}, label="{_quoted(text)}"];')
    return "\n".join([*lines, "}"])


def _quoted(text: str) -> str:
    return one_line(text, 80).replace("\\", "/").replace('"', "'")
