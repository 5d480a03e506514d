"""Owns the question which process this is, and whether another one on this host still lives."""

from __future__ import annotations

import os
import socket
from functools import lru_cache
from pathlib import Path

from engine.ports import Owner

_FIRST_PID_NAMESPACE = "pid:[4026531836]"
_PROC = Path("/proc")


def this_process(name: str = "") -> Owner:
    """The owner that a claim of this process names; `name` says what it does, such as `agentctl run`."""
    pid = os.getpid()
    return Owner(this_host(), pid, _identity(pid), name)


def is_dead(owner: Owner) -> bool:
    """True only if the process surely ended: another host, or a system that does not tell, counts as alive."""
    if owner.host != this_host() or os.name != "posix":
        return False
    try:
        os.kill(owner.pid, 0)
    except ProcessLookupError:
        return True
    except (PermissionError, OverflowError):
        pass
    started = _started(owner.pid)
    if started is None:
        return False
    return started == 0.0 or bool(owner.started and abs(started - owner.started) > 0.005)


def this_host() -> str:
    """The host name, this boot of it, and in a container its pid namespace: a pid means the same process only there.

    Machines that were made from one image have one name and share a database.
    """
    return _host(os.getpid())


@lru_cache(maxsize=2)
def _host(pid: int) -> str:
    parts = [socket.gethostname() or "localhost"]
    try:
        parts.append((_PROC / "sys" / "kernel" / "random" / "boot_id").read_text().strip()[:8])
        namespace = os.readlink(_PROC / str(pid) / "ns" / "pid")
    except OSError:
        return "/".join(parts)
    return "/".join(parts if namespace == _FIRST_PID_NAMESPACE else [*parts, namespace])


@lru_cache(maxsize=2)
def _identity(pid: int) -> float:
    return _started(pid) or 0.0


def _started(pid: int) -> float | None:
    """Seconds from boot to the start of the process; 0.0 for one that ended and was not yet waited for;
    None where nothing tells."""
    try:
        stat = (_PROC / str(pid) / "stat").read_text(errors="replace")
        fields = stat[stat.rindex(")") + 2 :].split()
        if fields[0] in "ZXx" and int(fields[17]) <= 1:
            return 0.0
        return int(fields[19]) / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError):
        return None
