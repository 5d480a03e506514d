"""What every test may use: recorded texts, compared or written anew by `pytest --update-golden`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

pytest.register_assert_rewrite("tests.contracts.store")

Golden = Callable[[Path, str], None]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden", action="store_true", help="write recorded texts anew instead of comparing"
    )


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Golden:
    """`golden(path, text)` holds `text` to be what is recorded at `path`."""

    def check(path: Path, text: str) -> None:
        if request.config.getoption("--update-golden"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        recorded = path.read_text(encoding="utf-8") if path.is_file() else ""
        assert text == recorded, (
            f"{path.name} differs: `pytest --update-golden` writes it anew, then read the diff"
        )

    return check
