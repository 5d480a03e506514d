"""Owns the tree of errors that a surface may show to a person.

AgentctlError
├── UsageError            2   a wrong option or argument
├── SourceError           2   a file or store that cannot be read, loaded or written
│   ├── PolicyInvalid     2   the policy has faults; carries its diagnostics
│   ├── StoreError        2   the database cannot be used
│   │   ├── LogBroken     1   the hash chain does not hold
│   │   └── NewerLog      2   the log was written by a newer version
│   └── NotBuiltYet       2   the language has it, this engine does not run it
├── Refused               4   role, claim or decision not eligible
│   ├── ClaimHeld         4   another driver works on the Run
│   └── ClaimLost         4   another driver took the Run over
├── Conflict              4   an append met a newer log
└── Fault                70   a fault of ours
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from engine.domain.diagnostics import Diagnostic


class AgentctlError(Exception):
    """An error with a message for people and a remedy; `exit_code` is what the command line ends with."""

    exit_code: ClassVar[int] = 70

    def __init__(self, message: str, *, remedy: str) -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy


class UsageError(AgentctlError):
    exit_code = 2


class SourceError(AgentctlError):
    exit_code = 2


class PolicyInvalid(SourceError):
    def __init__(self, message: str, *, remedy: str, diagnostics: Sequence[Diagnostic] = ()) -> None:
        super().__init__(message, remedy=remedy)
        self.diagnostics = tuple(diagnostics)


class NotBuiltYet(SourceError):
    """A Run needs something that the language has and this engine does not run."""


class StoreError(SourceError):
    pass


class LogBroken(StoreError):
    """The stored chain does not hash to what it says; `seq` is the first broken event."""

    exit_code = 1

    def __init__(self, message: str, *, remedy: str, seq: int) -> None:
        super().__init__(message, remedy=remedy)
        self.seq = seq


class NewerLog(StoreError):
    pass


class Refused(AgentctlError):
    exit_code = 4


class ClaimHeld(Refused):
    pass


class ClaimLost(Refused):
    pass


class Conflict(AgentctlError):
    """An append expected a sequence number that is no longer the last one."""

    exit_code = 4


class Fault(AgentctlError):
    exit_code = 70
