"""Owns which models overlays allow: globs that every id must match, whoever names it."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase

from engine.domain.policy import Overlay, Policy


def refused_by(policies: Sequence[Policy], model: str) -> Overlay | None:
    """The first overlay, of any policy in force, whose `model.allowed` has no glob that `model` matches."""
    for policy in policies:
        for overlay in policy.overlays:
            allowed = overlay.model_allowed
            if allowed is not None and not any(fnmatchcase(model, glob) for glob in allowed):
                return overlay
    return None
