"""Owns the import path of the example agents in tests, the same as `handlers: [examples]` gives a Run."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "examples"))
