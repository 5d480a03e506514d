"""Owns the version of agentctl, as every log, report and page names it."""

from __future__ import annotations


def version() -> str:
    """The installed version; `0` where it runs from a bare checkout."""
    from importlib.metadata import PackageNotFoundError
    from importlib.metadata import version as installed

    try:
        return installed("agentctl")
    except PackageNotFoundError:
        return "0"
