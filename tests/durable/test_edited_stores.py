"""The nine edits of `agmi-check` (the PyPI package agent-memory-integrity) against the event log.

The chain names seven of them. A cut tail and an older copy of the whole database are genuine as far as the
database can tell, so they show only against a head that was kept elsewhere. A forger who computes the hashes
anew is not among the nine: up to the witnessed head he shows as well, behind it he does not.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from agmi import check as agmi

from tests.durable.agmi_adapter import Ledger, WitnessedLedger

ONLY_AGAINST_A_WITNESS = {"truncate", "snapshot_rollback"}


def verdicts(adapter: Ledger) -> dict[str, str]:
    return {row["attack"]: row["verdict"] for row in agmi.run(adapter)}


def test_the_chain_alone_names_seven_of_nine_edits():
    found = verdicts(Ledger())
    assert len(found) == 9
    assert {edit for edit, verdict in found.items() if verdict == "ACCEPTED"} == ONLY_AGAINST_A_WITNESS
    assert sum(verdict == "REPORTED" for verdict in found.values()) == 7


def test_a_head_kept_outside_the_database_shows_all_nine_edits():
    assert set(verdicts(WitnessedLedger()).values()) == {"REPORTED"}


@pytest.mark.parametrize(("adapter", "status"), [("WitnessedLedger", 0), ("Ledger", 1)])
def test_its_own_command_says_the_same(
    adapter: str, status: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    assert agmi.main(["--adapter", f"tests.durable.agmi_adapter:{adapter}"]) == status
    assert capsys.readouterr().out.count("REPORTED") == 9 - 2 * status
