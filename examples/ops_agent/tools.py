"""Owns the list of the operations agent's tools, one name per tool of `tool_specs/ops.tools.yaml`."""

from __future__ import annotations

from ops_agent.checks import run_check
from ops_agent.cluster import restart_service, run_command, service_status
from ops_agent.files import edit_file, read_file, repo_state, restore_file, search_code
from ops_agent.forge import close_pull_request, find_pull_request, open_pull_request, read_issue

__all__ = [
    "close_pull_request",
    "edit_file",
    "find_pull_request",
    "open_pull_request",
    "read_file",
    "read_issue",
    "repo_state",
    "restart_service",
    "restore_file",
    "run_check",
    "run_command",
    "search_code",
    "service_status",
]
