"""Owns the command `python -m benchmarks.peers`: runs every peer in its environment and prints tables as Markdown."""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Peer:
    name: str
    environment: str
    file: str
    packages: tuple[str, ...]
    """What its version line names."""


PEERS = (
    Peer("ours", "agentctl", "peer_agentctl.py", ("agentctl",)),
    Peer("LangGraph create_agent", "langgraph", "peer_langgraph_agent.py", ("langchain", "langgraph")),
    Peer(
        "LangGraph, delta channel", "langgraph", "peer_langgraph_delta.py", ("langgraph-checkpoint-sqlite",)
    ),
    Peer("OpenAI Agents SDK", "openai-agents", "peer_openai_agents.py", ("openai-agents",)),
    Peer("Pydantic AI + DBOS", "pydantic-ai", "peer_pydantic_ai_dbos.py", ("pydantic-ai-slim", "dbos")),
    Peer("DBOS steps", "dbos", "peer_dbos_steps.py", ("dbos",)),
    Peer("Apache Burr", "burr", "peer_burr.py", ("apache-burr",)),
)


@dataclass
class Loop:
    median: float = 0.0
    """Milliseconds a turn, over the whole loop."""
    last: float = 0.0
    """The same over its last tenth."""
    bytes: int = 0
    """Of everything that the store keeps on disk, per turn."""
    resume: float = 0.0
    """Milliseconds from opening the store to the next model request, in a new process."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers", description=__doc__)
    parser.add_argument("--envs", type=Path, required=True, help="where `benchmarks.peers.setup` put them")
    parser.add_argument("--turns", default="10,100,1000")
    parser.add_argument("--only", default="", help="names of peers, separated by semicolons")
    parser.add_argument(
        "--on", help="where the databases lie, such as /dev/shm for no disk; else the usual place"
    )
    parser.add_argument("--rounds", type=int, default=1, help="each length so often; the best round counts")
    chosen = parser.parse_args()
    tempfile.tempdir = chosen.on
    lengths = [int(each) for each in chosen.turns.split(",")]
    wanted = [each for each in chosen.only.split(";") if each]
    peers = [peer for peer in PEERS if not wanted or peer.name in wanted]

    print("| peer | versions | flushes a turn |\n|---|---|---:|")
    for peer in peers:
        print(f"| {peer.name} | {versions(chosen.envs, peer)} | {flushes(chosen.envs, peer)} |", flush=True)
    heads = " | ".join(f"ms a turn at {n:,}" for n in lengths)
    print(f"\n| peer | {heads} | last tenth of {lengths[-1]:,} | bytes a turn | resume ms | floor ms |")
    print("|---|" + "---:|" * (len(lengths) + 4))
    found: dict[str, Loop] = {}
    for peer in peers:
        base = floor()
        loops = {n: best([loop(chosen.envs, peer, n) for _ in range(chosen.rounds)]) for n in lengths}
        base = (base + floor()) / 2
        last = found[peer.name] = loops[lengths[-1]]
        cells = " | ".join(f"{loops[n].median:.2f}" for n in lengths)
        print(
            f"| {peer.name} | {cells} | {last.last:.2f} | {last.bytes:,} | {last.resume:,.0f} | {base:.2f} |",
            flush=True,
        )
    scaled(found)
    print("\n| peer | effects wanted | effects after the resume | the second one | how the Run ended |")
    print("|---|---:|---:|---:|---|")
    for peer in peers:
        print(crash(chosen.envs, peer), flush=True)
    return 0


def scaled(found: dict[str, Loop]) -> None:
    """Our turn in a run in which the best peer's last tenth needs 2.6 ms."""
    ours, others = found.get("ours"), [each.last for name, each in found.items() if name != "ours"]
    if ours and others:
        best_peer = min(others)
        print(
            f"\nbest peer {best_peer:.2f} ms, ours {ours.last:.2f} ms; scaled to a run in which the best peer ",
            end="",
        )
        print(f"needs 2.6 ms: {2.6 * ours.last / best_peer:.2f} ms")


def process(
    envs: Path, peer: Peer, act: str, what: str, turns: int, folder: Path, under: tuple[str, ...] = ()
) -> int:
    """One process of a peer, `under` another program; its exit code, negative for a signal."""
    done = subprocess.run(
        [*under, str((envs / peer.environment / "bin" / "python").absolute()), str(HERE / peer.file),
         act, what, str(turns), str(folder)],
        capture_output=True, text=True, timeout=1800, check=False, cwd=folder,
        env={**os.environ, "OPENAI_API_KEY": "unused", "LANGSMITH_TRACING": "false", "DO_NOT_TRACK": "1"},
    )  # fmt: skip
    if done.returncode not in (0, -signal.SIGKILL):
        sys.stderr.write(f"{peer.name}: {act} {what} ended with {done.returncode}\n{done.stderr[-3000:]}\n")
    return done.returncode


def loop(envs: Path, peer: Peer, turns: int) -> Loop:
    """`turns` turns, the death, the taking up again."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        process(envs, peer, "start", "loop", turns, folder)
        marks = json.loads((folder / "marks.json").read_text())["marks"]
        kept = kept_on_disk(folder)
        process(envs, peer, "resume", "loop", turns, folder)
        resumed = json.loads((folder / "resume.json").read_text())
    if resumed["turn"] != turns + 1:
        sys.stderr.write(f"{peer.name}: went on at turn {resumed['turn']} instead of {turns + 1}\n")
    times = [1000 * (after - before) for before, after in itertools.pairwise(marks)]
    tail = times[-max(1, len(times) // 10) :]
    return Loop(median(times), median(tail), kept // turns, 1000 * resumed["seconds"])


def best(loops: list[Loop]) -> Loop:
    return min(loops, key=lambda each: each.last)


def crash(envs: Path, peer: Peer) -> str:
    """Three turns with an effect each; killed between the second effect and its record."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        first = process(envs, peer, "start", "crash", 3, folder)
        second = process(envs, peer, "resume", "crash", 3, folder)
        effects = Counter((folder / "effects").read_text().split())
        end = folder / "end.json"
        note = json.loads(end.read_text())["note"] if end.exists() else f"ended with {second}"
    if first != -signal.SIGKILL:
        note += f" (the first process ended with {first})"
    return f"| {peer.name} | 3 | {effects.total()} | {effects['2']} times | {note or 'completed'} |"


def versions(envs: Path, peer: Peer) -> str:
    code = (
        "import importlib.metadata as m, sys; print(', '.join(f'{p} {m.version(p)}' for p in sys.argv[1:]))"
    )
    python = str(envs / peer.environment / "bin" / "python")
    done = subprocess.run([python, "-c", code, *peer.packages], capture_output=True, text=True, check=False)
    return done.stdout.strip() or "a checkout"


def flushes(envs: Path, peer: Peer, turns: int = 100) -> str:
    """How often a turn waits for the disk, counted by strace where there is one."""
    if shutil.which("strace") is None:
        return "-"
    counts = []
    for length in (10, 10 + turns):
        with tempfile.TemporaryDirectory() as name:
            trace = Path(name) / "trace"
            under = ("strace", "-f", "-qq", "-e", "trace=fsync,fdatasync", "-o", str(trace))
            process(envs, peer, "start", "loop", length, Path(name), under)
            counts.append(trace.read_text().count("sync("))
    return f"{(counts[1] - counts[0]) / turns:.1f}"


def kept_on_disk(folder: Path) -> int:
    """Bytes of the database, the write-ahead log folded into it: in a copy, so that the resume finds what was left."""
    with tempfile.TemporaryDirectory() as name:
        for each in folder.glob("store.db*"):
            shutil.copy(each, name)
        with contextlib.closing(sqlite3.connect(Path(name) / "store.db")) as connection:
            connection.execute("pragma wal_checkpoint(truncate)")
        return (Path(name) / "store.db").stat().st_size


def floor(turns: int = 200) -> float:
    """Median milliseconds of two commits of 1.5 KB each with raw sqlite3, WAL and FULL: the disk at this moment."""
    with tempfile.TemporaryDirectory() as name:
        connection = sqlite3.connect(Path(name) / "floor.db", isolation_level=None)
        connection.execute("pragma journal_mode=wal")
        connection.execute("pragma synchronous=full")
        connection.execute("create table e (seq integer primary key, payload text)")
        taken = []
        for _ in range(turns):
            began = time.perf_counter()
            for _ in range(2):
                connection.execute("begin immediate")
                connection.execute("insert into e (payload) values (?)", ("y" * 1500,))
                connection.execute("commit")
            taken.append(1000 * (time.perf_counter() - began))
        connection.close()
    return median(taken)


def median(values: list[float]) -> float:
    ordered = sorted(values)
    return ordered[len(ordered) // 2]


if __name__ == "__main__":
    sys.exit(main())
