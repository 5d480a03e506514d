"""Owns the making of one environment per peer: `python -m benchmarks.peers.setup --into DIR`."""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
ENVIRONMENTS: dict[str, list[str]] = {
    "agentctl": ["-e", str(ROOT)],
    "langgraph": ["langgraph", "langgraph-checkpoint-sqlite", "langchain"],
    "openai-agents": ["openai-agents"],
    "pydantic-ai": ["pydantic-ai-slim[dbos]"],
    "dbos": ["dbos"],
    "burr": ["apache-burr"],
}
"""Environment -> what pip installs into it."""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers.setup", description=__doc__)
    parser.add_argument("--into", type=Path, required=True)
    into: Path = parser.parse_args().into
    for name, packages in ENVIRONMENTS.items():
        folder = into / name
        if not folder.exists():
            subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        subprocess.run([str(folder / "bin" / "pip"), "install", "-q", *packages], check=True)
        print(f"{name}: {folder}", flush=True)


if __name__ == "__main__":
    main()
