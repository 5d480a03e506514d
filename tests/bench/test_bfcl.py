"""A small part of BFCL: some schemas compiled, some gold calls judged, their mutants refused.

The whole is `python -m benchmarks.run_judged bfcl`.
"""

from __future__ import annotations

import importlib.util

import pytest

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        importlib.util.find_spec("bfcl_eval") is None,
        reason="bfcl-eval is not installed: see benchmarks/bfcl/requirements.txt",
    ),
    pytest.mark.filterwarnings("ignore"),
]


def test_the_corpus_is_the_one_that_was_counted():
    from benchmarks.bfcl.corpus import questions, schemas

    names = {function["name"] for function in schemas()}
    assert (len(schemas()), len(names), sum(len(each.gold) for each in questions())) == (3420, 1998, 3302)


def test_schemas_compile():
    from benchmarks.bfcl.corpus import schemas
    from benchmarks.bfcl.tables import compiled

    assert all(compiled([function]).tools for function in schemas()[::10])


def test_valid_calls_run_invalid_ones_do_not_and_mutants_are_refused_beside_their_sibling():
    from benchmarks.bfcl.corpus import questions
    from benchmarks.bfcl.tables import Judged, judge

    total = Judged()
    for question in questions()[::15]:
        total.add(judge(question))
    assert (total.let_through, total.refused, total.survived) == ([], [], [])
    assert total.gold > 200
    assert sum(total.mutants.values()) > 600
