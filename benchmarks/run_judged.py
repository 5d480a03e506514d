"""Owns the command that plays the judged benchmarks and prints their tables as Markdown.

`python -m benchmarks.run_judged [agentdojo] [bfcl] [--suite banking] [--reviewer ideal] [--every 20] [--processes 2]`
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

PARTS = ("agentdojo", "bfcl")


def main(argv: Sequence[str] | None = None) -> int:
    options = _options().parse_args(argv)
    for part in options.parts or PARTS:
        sys.stdout.write(_agentdojo(options) if part == "agentdojo" else _bfcl(options))
        sys.stdout.flush()
    return 0


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.run_judged", description=__doc__)
    parser.add_argument(
        "parts", nargs="*", metavar="PART", help=f"any of {', '.join(PARTS)}; all of them if none"
    )
    parser.add_argument(
        "--suite", action="append", help="AgentDojo: banking, slack, travel or workspace; repeatable"
    )
    parser.add_argument(
        "--reviewer", action="append", help="AgentDojo: nobody, ideal, careless or tired; repeatable"
    )
    parser.add_argument(
        "--every", type=int, default=1, help="AgentDojo: one attack pair of so many (default: all)"
    )
    parser.add_argument("--no-wire", action="store_true", help="AgentDojo: not through litellm as well")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    return parser


def _agentdojo(options: argparse.Namespace) -> str:
    from benchmarks.agentdojo import tables
    from benchmarks.agentdojo.reviewers import WHO
    from benchmarks.agentdojo.suites import SUITES

    names = options.suite or SUITES
    parts = [
        "## AgentDojo\n",
        "### Without attack\n",
        tables.benign(names, options.processes),
        "\n### Under attack\n",
        tables.attacks(
            names,
            options.processes,
            who=options.reviewer or WHO,
            every=options.every,
            tell=lambda line: print(line, file=sys.stderr, flush=True),
        ),
    ]
    if not options.no_wire:
        parts += ["\n### The same through litellm\n", tables.on_the_wire(names, every=options.every)]
    return "\n".join(parts) + "\n\n"


def _bfcl(options: argparse.Namespace) -> str:
    from benchmarks.bfcl import tables

    return "\n".join(["## BFCL\n", tables.judged(options.processes)]) + "\n"


if __name__ == "__main__":
    raise SystemExit(main())
