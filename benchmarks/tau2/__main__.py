"""Owns the command `python -m benchmarks.tau2`: plays the suite through the engine and prints tables as Markdown."""

from __future__ import annotations

import argparse
import sys

from benchmarks.tau2 import crashes, killed, replays


def main() -> int:
    """Exits 1 where a replay does not match or a crash point ends otherwise."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.tau2", description=__doc__)
    parser.add_argument("--domains", default="airline,retail,telecom")
    parser.add_argument("--full", action="store_true", help="all 2,285 telecom tasks instead of 114")
    parser.add_argument("--only", type=int, help="the first N tasks of each domain")
    parser.add_argument(
        "--crashes", default="", metavar="DOMAINS", help="walk every crash point of these domains"
    )
    parser.add_argument("--every", type=int, default=1, help="each N-th crash point only")
    parser.add_argument(
        "--kills", type=int, default=0, metavar="N", help="real SIGKILLs in each of those domains"
    )
    chosen = parser.parse_args()
    faults: list[str] = []

    print(f"### Gold replays\n\n{replays.HEAD}")
    for domain in filter(None, chosen.domains.split(",")):
        played = replays.replay(domain, chosen.full, chosen.only)
        print(played.row(), flush=True)
        faults += played.faults
    killers = [name for name in chosen.crashes.split(",") if name]
    if killers:
        print(f"\n### Crashed at every event boundary, resumed\n\n{crashes.HEAD}")
    for domain in killers:
        walked = crashes.walk(domain, chosen.only, chosen.every)
        print(walked.row(), flush=True)
        faults += walked.faults
    if killers and chosen.kills:
        print(f"\n### Real SIGKILL on SQLite, resumed by a new process\n\n{crashes.HEAD}")
    for domain in killers if chosen.kills else []:
        shot = killed.sample(domain, chosen.kills)
        print(shot.row(), flush=True)
        faults += shot.faults
    for fault in faults:
        print(f"- {fault}", file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
