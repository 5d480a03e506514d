"""Owns the project of the working directory, as commands read it."""

from __future__ import annotations

from pathlib import Path

from engine.policy.documents.project import Project, load_project


def this_project() -> Project:
    """What the nearest `agentctl.yaml` says. Raises SourceError and PolicyInvalid."""
    return load_project(Path.cwd())
