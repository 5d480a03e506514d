"""Owns what is known of a policy while it is compiled: documents with places, checked pieces, findings.

Rules of the linter read this. It is complete also for a file with faults, as far as its parts could be read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from engine.domain.canonical import Json
from engine.domain.conditions import Condition
from engine.domain.diagnostics import Diagnostic, Location, suggest
from engine.domain.policy import Policy
from engine.policy.conditions import Environment
from engine.policy.documents.base import Faults, Part
from engine.policy.documents.overlay import OverlayDocument
from engine.policy.documents.policy import PolicyDocument
from engine.policy.documents.test import TestDocument
from engine.policy.documents.tools import SourcePart, ToolPart, ToolsDocument
from engine.policy.files import Files
from engine.policy.source import Document


@dataclass(frozen=True, slots=True)
class PlacedCondition:
    """A condition that compiled, with the part and key it stands under and the environment it was read in."""

    part: Part
    key: str
    condition: Condition
    environment: Environment

    @property
    def place(self) -> Location:
        return self.part.place(self.key)


@dataclass(slots=True)
class Prompt:
    name: str
    text: str


@dataclass(slots=True)
class Model:
    """Filled by the stages of the compiler, in their order."""

    files: Files
    file: str
    """The policy, by the name that was given."""
    extra_overlays: tuple[str, ...] = ()
    limits: Mapping[str, Json] = field(default_factory=dict)
    """Values that the deployment gives to limits."""
    with_tests: bool = False
    faults: Faults = field(default_factory=Faults)

    documents: dict[str, Document] = field(default_factory=dict)
    """Every YAML file that was read, by name."""
    tool_files: list[str] = field(default_factory=list)
    overlay_files: list[str] = field(default_factory=list)
    test_files: list[str] = field(default_factory=list)
    unread: bool = False
    """A file that is referred to could not be read, so unknown names prove nothing."""
    prompt: Prompt | None = None
    templates: dict[tuple[str, str], Prompt] = field(default_factory=dict)
    """(output, format) -> the template of the policy."""

    policy_part: PolicyDocument | None = None
    tools_parts: dict[str, ToolsDocument] = field(default_factory=dict)
    """File -> what could be read of it."""
    overlay_parts: dict[str, OverlayDocument] = field(default_factory=dict)
    test_parts: dict[str, TestDocument] = field(default_factory=dict)

    environment: Environment = field(default_factory=Environment)
    conditions: dict[tuple[int, str], PlacedCondition] = field(default_factory=dict)
    conditions_seen: int = 0
    policy: Policy | None = None
    """Built also where there are findings, from what could be read; `Compiled.policy` is None then."""
    shared: dict[str, object] = field(default_factory=dict)
    """What several rules of the linter ask of this model, worked out once."""

    def add(self, code: str, place: Location, message: str, help_: str) -> None:
        self.faults.add(code, place, message, help_)

    def unknown(
        self, code: str, place: Location, what: str, name: str, known: Mapping[str, object] | set[str]
    ) -> None:
        """Reports a name that nothing declares."""
        have = ", ".join(sorted(known)) or "none is declared"
        self.add(code, place, f"there is no {what} `{name}`", suggest(name, known, f"known: {have}"))

    def condition(self, part: Part, key: str) -> Condition | None:
        """The condition at a key of a part; None if there is none or it has faults."""
        placed = self.conditions.get((id(part), key))
        return placed.condition if placed else None

    @property
    def tools(self) -> dict[str, ToolPart]:
        """Every tool by name; of two with one name the first."""
        found: dict[str, ToolPart] = {}
        for document in self.tools_parts.values():
            for name, tool in document.tools.items():
                found.setdefault(name, tool)
        return found

    @property
    def tool_names(self) -> set[str]:
        """Names of all tools that are written, also of those that could not be read."""
        found: set[str] = set()
        for document in self.tools_parts.values():
            table = document.node.entries.get("tools")
            found.update(document.tools)
            if table is not None:
                found.update(getattr(table.value, "entries", ()), getattr(table.value, "lost", ()))
        return found

    @property
    def sources(self) -> dict[str, SourcePart]:
        return {
            name: part for document in self.tools_parts.values() for name, part in document.sources.items()
        }

    @property
    def effects(self) -> set[str]:
        return {effect for tool in self.tools.values() for effect in tool.effects or ()}

    @property
    def evidence_kinds(self) -> set[str]:
        return {tool.evidence.kind for tool in self.tools.values() if tool.evidence is not None}

    @property
    def roles(self) -> set[str]:
        return set(self.policy_part.principals.roles) if self.policy_part else set()

    @property
    def labels(self) -> tuple[str, ...]:
        found = list(self.policy_part.labels if self.policy_part else ())
        for overlay in self.overlay_parts.values():
            found.extend(overlay.labels)
        return tuple(dict.fromkeys(found))

    def diagnostics(self) -> list[Diagnostic]:
        """Everything found so far, sorted by place."""
        found = [fault for document in self.documents.values() for fault in document.faults]
        return sorted({*found, *self.faults}, key=Diagnostic.sort_key)
