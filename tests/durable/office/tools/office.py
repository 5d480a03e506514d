"""Owns the tools of the office; `mode.txt` names one that does its work and then loses its answer."""

from pathlib import Path

HERE = Path(__file__).parent.parent
LEDGER = HERE / "ledger.txt"


def effect(line, tool):
    with LEDGER.open("a") as ledger:
        ledger.write(line + "\n")
    mode = HERE / "mode.txt"
    if mode.exists() and tool in mode.read_text().split():
        raise RuntimeError("the line is dead")


def look(shelf):
    return {"shelf": shelf, "papers": shelf * 2}


def search(words):
    return {"found": words}


def post(board, text, context):
    effect(f"post {board} {context.idempotency_key}", "post")
    return {"posted": board}


def send(to, weight, context):
    effect(f"send {to} {weight} {context.idempotency_key}", "send")
    return {"sent": to}


def reserve(van, context):
    effect(f"reserve {van}", "reserve")
    return {"ticket": f"T{van}"}


def give_back(ticket, context):
    effect(f"give back {ticket}", "give_back")
    return {}


def find_sent(key):
    blind = HERE / "blind.txt"
    return {"found": not blind.exists() and LEDGER.exists() and key in LEDGER.read_text()}
