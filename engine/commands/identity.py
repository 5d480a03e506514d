"""Owns who acts by a signed token: where it is read from, and that nothing else is named beside it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import click

from engine.commands.given import actor_of
from engine.domain.actors import Actor, Principal, Verified
from engine.domain.errors import SourceError, UsageError
from engine.domain.policy import Policy
from engine.policy.documents.project import Project

META = "agentctl.token"
ENV = "AGENTCTL_TOKEN"
_MAX = 64 * 1024


def remember(context: click.Context, _: click.Parameter, value: str | None) -> None:
    """Keeps what `--token` names for the command that asks who acts."""
    context.meta[META] = value


def signed_actor(project: Project, identity: str | None, roles: Sequence[str]) -> Actor | None:
    """Who the token says acts; None where none is given. Raises Refused, UsageError and SourceError."""
    verified = _verified(project, identity, roles, ())
    return verified.actor() if verified is not None else None


def who_acts(project: Project, identity: str | None, roles: Sequence[str]) -> Actor:
    """Who acts, by the token or by name."""
    return signed_actor(project, identity, roles) or actor_of(identity, roles, project.local)


def signed_principal(
    project: Project, policy: Policy, identity: str | None, roles: Sequence[str], attrs: Sequence[str]
) -> Principal | None:
    """For whom a new Run works by the token: roles and attributes that the policy knows."""
    verified = _verified(project, identity, roles, attrs)
    return verified.principal(policy.roles, tuple(policy.attrs)) if verified is not None else None


def _verified(
    project: Project, identity: str | None, roles: Sequence[str], attrs: Sequence[str]
) -> Verified | None:
    from engine.bootstrap import open_tokens

    source = click.get_current_context().meta.get(META)
    if source is None:
        return None
    if identity or roles or attrs:
        raise UsageError(
            "`--token` says who acts, so nothing else may", remedy="leave out `--as`, `--role` and `--attr`"
        )
    return open_tokens(project).verify(_text(source))


def _text(source: str) -> str:
    if source.startswith("eyJ"):
        raise UsageError(
            "`--token` takes no token: other processes could read it",
            remedy=f"name a file, or `env` for the variable {ENV}",
        )
    if source == "env" or source.startswith("env:"):
        name = source.partition(":")[2] or ENV
        if name not in os.environ:
            raise UsageError(f"the variable `{name}` is not set", remedy=f"set {name} to the token")
        return os.environ[name]
    try:
        return Path(source).read_text(encoding="utf-8")[:_MAX]
    except (OSError, UnicodeDecodeError) as error:
        raise SourceError(
            f"the token `{source}` cannot be read: {getattr(error, 'strerror', None) or 'not UTF-8'}",
            remedy="name a file that holds the token",
        ) from None
