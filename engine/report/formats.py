"""Owns the list of forms in which findings are printed: `lint --format`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from engine.report.findings import RENDERERS, Renderer
from engine.report.github import as_github
from engine.report.sarif import as_sarif

FORMATS: Final[Mapping[str, Renderer]] = {**RENDERERS, "sarif": as_sarif, "github": as_github}
"""`--format` -> how it prints."""
