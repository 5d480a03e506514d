"""Our own part of the benchmark of peers, in this environment: the loop, the kill, the taking up again.

The whole is `python -m benchmarks.peers`, with an environment for each peer.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from benchmarks.peers.__main__ import PEERS, Peer, crash, loop

pytestmark = pytest.mark.slow


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """This interpreter, where the benchmark looks for that of an environment."""
    python = tmp_path / "agentctl" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    return tmp_path


OURS: Peer = PEERS[0]


def test_an_effect_that_was_killed_before_its_record_is_not_repeated(here: Path):
    assert crash(here, OURS) == "| ours | 3 | 3 | 1 times | awaiting_reconciliation: call 2.1 is unknown |"


def test_a_loop_that_is_killed_goes_on_at_the_turn_it_had_reached(
    here: Path, capsys: pytest.CaptureFixture[str]
):
    done = loop(here, OURS, 30)
    assert done.median > 0
    assert 0 < done.bytes < 16_000
    assert capsys.readouterr().err == ""
