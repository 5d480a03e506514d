"""Every gate, fence and binding, taken out by hand one at a time, turns a test red."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.mutations.listed import Mutation
from tests.mutations.play import ROOT, SOME_FAILED, Copy, listed, page, times_found


@pytest.mark.parametrize("mutation", listed(), ids=lambda mutation: mutation.breaks)
def test_each_mutation_still_applies_and_names_tests_that_are_there(mutation: Mutation):
    assert times_found(mutation) == 1, "the source moved: write its text anew into tests/mutations/listed.py"
    assert mutation.old != mutation.new
    for test in mutation.tests:
        file, *_, name = test.split("::")
        source = (ROOT / file).read_text(encoding="utf-8")
        if "::Test" in test:
            source += (ROOT / "tests/contracts/store.py").read_text(encoding="utf-8")
        assert f"def {name}(" in source, test


def test_each_mutation_is_listed_once():
    assert len({mutation.breaks for mutation in listed()}) == len(listed()) >= 25


def test_the_page_is_what_is_listed(golden: Callable[[Path, str], None]):
    golden(ROOT / "docs" / "mutations.md", page())


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Copy:
    """A copy in which the named tests pass as long as nothing is broken."""
    made = Copy(tmp_path_factory.mktemp("mutated"))
    calm = made.run(*dict.fromkeys(test for mutation in listed() for test in mutation.tests))
    assert calm.status == 0, calm.said
    return made


@pytest.mark.slow
@pytest.mark.parametrize("mutation", listed(), ids=lambda mutation: mutation.breaks)
def test_each_mutation_turns_a_test_red(mutation: Mutation, copy: Copy):
    played = copy.play(mutation)
    assert played.status == SOME_FAILED, f"nothing turned red: {mutation.breaks}\n{played.said}"
