"""Owns the reading of a facts file, checked against the policy that it is about."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from engine.domain.diagnostics import Diagnostic, many
from engine.domain.errors import PolicyInvalid
from engine.domain.policy import Policy
from engine.policy.documents.base import Faults
from engine.policy.documents.facts import FactsDocument
from engine.policy.files import DiskFiles, Files
from engine.policy.source import parse
from engine.policy.stages.cases import check_facts
from engine.policy.stages.shape import check_document

_EXAMPLE: Final = "write a fact, as in `principal: {id: u1, roles: [ROLE]}`"


def read_facts_file(file: str, policy: Policy, files: Files | None = None) -> FactsDocument:
    """Raises SourceError if it cannot be read, PolicyInvalid with every finding if it has faults."""
    document = parse(file, (files or DiskFiles()).read(file))
    faults = Faults()
    part = check_document(document, FactsDocument, lambda _: None, faults)
    if part is not None and not document.faults:
        check_facts(policy, part, faults.add)
    read = [replace(each, help=_EXAMPLE) if each.code == "Y105" else each for each in document.faults]
    found = sorted({*read, *faults}, key=Diagnostic.sort_key)
    if part is None or found:
        count = len(found)
        raise PolicyInvalid(
            f"`{file}` has {many(count, 'fault')}",
            remedy="a facts file has the keys of `given` in a test, and `history: [{call, args, outcome, result}]`",
            diagnostics=found,
        )
    return part
