"""Owns who does things: principals, and the actor named on each event."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from engine.domain.canonical import Json


class Actor(BaseModel):
    """Who caused an event. The Host is the default; the model only ever authors ModelTurns."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    type: Literal["host", "model", "person", "application"]
    id: str = ""
    issuer: str = ""
    """`local` for identities named on the command line, else the issuer of the verified token."""
    roles: tuple[str, ...] = ()


HOST = Actor(type="host")
MODEL = Actor(type="model")


class Principal(BaseModel):
    """For whom the Run works: an authenticated identity, never from the model."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str
    roles: tuple[str, ...]
    attrs: Mapping[str, Json] = Field(default_factory=dict)
    issuer: str = "local"

    def actor(self) -> Actor:
        return Actor(type="person", id=self.id, issuer=self.issuer, roles=self.roles)


@dataclass(frozen=True, slots=True)
class Verified:
    """What a signed token says of its bearer, once its signature, issuer, audience and times hold."""

    id: str
    issuer: str
    roles: tuple[str, ...]
    claims: Mapping[str, Any]

    def actor(self) -> Actor:
        return Actor(type="person", id=self.id, issuer=self.issuer, roles=self.roles)

    def principal(self, roles: frozenset[str], attrs: Sequence[str]) -> Principal:
        """With the roles and attributes that a policy knows; attributes are claims of the same name."""
        return Principal(
            id=self.id,
            roles=tuple(role for role in self.roles if role in roles),
            attrs={name: self.claims[name] for name in attrs if name in self.claims},
            issuer=self.issuer,
        )
