"""Owns `agentctl.yaml`, the project file: who is local, defaults, levels of findings, prices, secrets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Final, Literal

from pydantic import Field as Key

from engine.domain.canonical import Json
from engine.domain.diagnostics import Diagnostic, many, suggest
from engine.domain.errors import PolicyInvalid
from engine.policy.codes import CODES, finding
from engine.policy.documents.base import Faults, Part, check
from engine.policy.documents.values import Date, FilePath, Id, Ident, Money, Text
from engine.policy.files import DiskFiles
from engine.policy.source import parse

FILE_NAME: Final = "agentctl.yaml"


class LocalPart(Part):
    """Who `--as` is by default."""

    called: ClassVar[str] = "local"

    id: Text
    roles: list[Id]
    attrs: dict[Ident, Any] = Key(default_factory=dict)


class LevelPart(Part):
    called: ClassVar[str] = "a lint level"

    level: Literal["off", "note", "warning", "error"]
    owner: Text
    until: Date
    because: Text | None = None
    files: list[Text] | None = None
    """Globs; None: everywhere."""


class SecretPart(Part):
    called: ClassVar[str] = "a secret"

    env: Text | None = None
    file: Text | None = None


class PricePart(Part):
    """US dollars for a million tokens."""

    called: ClassVar[str] = "a price"

    input: Money
    output: Money
    cached_input: Money | None = None


class IssuerPart(Part):
    """Who may sign identities."""

    called: ClassVar[str] = "an issuer"
    placeholders: ClassVar[Mapping[str, Json]] = {
        "issuer": "unknown",
        "audience": "unknown",
        "keys": "unknown",
    }

    issuer: Text
    audience: Text
    keys: FilePath
    """A PEM public key or a JSON Web Key Set, relative to the project file."""
    roles_claim: Text = "roles"


class IdentityPart(Part):
    called: ClassVar[str] = "identity"

    issuers: list[IssuerPart] = Key(min_length=1)


class ProjectDocument(Part):
    called: ClassVar[str] = "agentctl.yaml"

    agentctl: Literal["project/v1"] | None = None
    local: LocalPart | None = None
    task_defaults: dict[Id, dict[Ident, Any]] = Key(default_factory=dict)
    handlers: list[Text] = Key(default_factory=list)
    db: Text | None = None
    lint: dict[str, LevelPart] = Key(default_factory=dict)
    secrets: dict[Id, SecretPart] = Key(default_factory=dict)
    prices: dict[Text, PricePart] = Key(default_factory=dict)
    limits: dict[Id, dict[Ident, Any]] = Key(default_factory=dict)
    identity: IdentityPart | None = None


@dataclass(frozen=True, slots=True)
class Project:
    """What `agentctl.yaml` says; without one, the defaults."""

    root: Path
    """The folder that relative paths of the file are relative to."""
    file: Path | None
    local: LocalPart | None = None
    task_defaults: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    handlers: tuple[str, ...] = ()
    db: str | None = None
    levels: Mapping[str, LevelPart] = field(default_factory=dict)
    """By code, whatever the file names."""
    secrets: Mapping[str, SecretPart] = field(default_factory=dict)
    prices: Mapping[str, PricePart] = field(default_factory=dict)
    limits: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Policy id -> limit -> value, raised or lowered by the deployment."""
    issuers: tuple[IssuerPart, ...] = ()


def load_project(start: Path) -> Project:
    """The nearest `agentctl.yaml` in `start` or a folder above it; defaults if there is none.

    Raises SourceError if it cannot be read and PolicyInvalid, with diagnostics, if it has faults.
    """
    folder = start.resolve()
    for candidate in (folder, *folder.parents):
        file = candidate / FILE_NAME
        if file.is_file():
            return read_project(file)
    return Project(folder, None)


def read_project(file: Path) -> Project:
    """One project file. Raises SourceError and PolicyInvalid."""
    name = _shown(file)
    project, faults = check_project(name, DiskFiles().read(str(file)))
    if faults or project is None:
        raise PolicyInvalid(
            f"`{name}` has {many(len(faults), 'fault')}",
            remedy="mend the project file",
            diagnostics=faults,
        )
    return _project(file, project)


def check_project(name: str, text: str) -> tuple[ProjectDocument | None, list[Diagnostic]]:
    """The checked document and all its faults."""
    document = parse(name, text, "project/v1")
    faults = Faults()
    found = list(document.faults)
    part = None
    if document.root is not None:
        part = check(ProjectDocument, document.root, faults)
        if part is not None:
            found.extend(_levels(part))
            found.extend(_secrets(part))
            found.extend(_issuers(part))
    elif not text.strip():
        return None, []
    found.extend(faults)
    return part, sorted(found, key=Diagnostic.sort_key)


def _levels(part: ProjectDocument) -> list[Diagnostic]:
    names = {*CODES, *(code.name for code in CODES.values())}
    return [
        finding(
            "Y204",
            part.key_place("lint", name),
            f"`{name}` is no finding",
            suggest(name, names, "name a code such as W213"),
        )
        for name in part.lint
        if name not in names
    ]


def _secrets(part: ProjectDocument) -> list[Diagnostic]:
    return [
        finding(
            "Y205",
            part.key_place("secrets", name),
            f"secret `{name}` must have one of `env` and `file`",
            "write {env: NAME}",
        )
        for name, secret in part.secrets.items()
        if (secret.env is None) == (secret.file is None)
    ]


def _issuers(part: ProjectDocument) -> list[Diagnostic]:
    """An issuer stands for one set of keys, and `local` for identities that nobody signed."""
    issuers = part.identity.issuers if part.identity is not None else []
    names = [each.issuer for each in issuers]
    return [
        finding(
            "Y205",
            each.key_place("issuer"),
            f"the issuer `{each.issuer}` is {'reserved' if each.issuer == 'local' else 'named twice'}",
            "write the `iss` of the tokens, once",
        )
        for index, each in enumerate(issuers)
        if each.issuer == "local" or each.issuer in names[:index]
    ]


def _project(file: Path, part: ProjectDocument) -> Project:
    by_name = {code.name: key for key, code in CODES.items()}
    return Project(
        root=file.parent,
        file=file,
        local=part.local,
        task_defaults=part.task_defaults,
        handlers=tuple(part.handlers),
        db=part.db,
        levels={by_name.get(name, name): level for name, level in part.lint.items()},
        secrets=part.secrets,
        prices=part.prices,
        limits=part.limits,
        issuers=tuple(part.identity.issuers) if part.identity is not None else (),
    )


def _shown(file: Path) -> str:
    try:
        return str(file.relative_to(Path.cwd()))
    except ValueError:
        return str(file)
