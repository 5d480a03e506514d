"""Owns the small policy that every rule's example is a change of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

POLICY_FILE: Final = "loans.policy.yaml"
TOOLS_FILE: Final = "loans.tools.yaml"

_POLICY: Final = """\
agentctl: policy/v1
id: loans
version: 1
owner: library
tool_specs: [loans.tools.yaml]
principals:
  roles: [reader, librarian]
  may_start: [reader]
  attrs: {suspended: {type: bool}}
task:
  branch: {type: enum, values: [main, harbour]}
limits:
  fine_cap_minor: {type: int, value: 2000}
sources:
  shelf: {usable_when: [available, degraded]}
capabilities:
  archive:
    about: "Read one room of the closed archive"
    params: {room: {type: enum, values: [maps, letters]}}
    request: {roles: [reader]}
    approve:
      - {by: {roles: [librarian]}, timeout: 4h}
    expires: {after: 2h, calls: 20}
permissions:
  - id: look
    effect: allow
    roles: [reader]
    tools: [find_books, read_page]
  - id: archive
    effect: allow
    roles: [reader]
    tools: [read_archive]
    needs: [archive]
    when: "args.room == grant.archive.room"
  - id: hold
    effect: allow
    roles: [reader]
    tools: [hold_book]
    unattended: {because: "Lapses by itself after a day", max_per_run: 3}
  - id: borrow
    effect: ask
    roles: [reader]
    tools: [borrow_book]
    when: "state.account.fines_minor <= limits.fine_cap_minor"
    fresh:
      - {state: account, max_age: 30s}
    approval:
      by: {roles: [reader], same_principal: true}
      expires: 10m
  - id: suspended-readers
    effect: deny
    tools: ["kind:write", "kind:hybrid"]
    when: "principal.suspended"
state:
  account:
    fields:
      id: {type: id}
      fines_minor: {type: int}
      loans: {type: list, of: {type: id}, max_items: 20}
    max_age: 1h
outputs:
  answer:
    about: "What the reader takes away"
    fields:
      body: {type: rich_text, max_len: 4000, cites: true, figures: true}
    citations: {kinds: [page, letter], min: 1, max_age: 24h}
    figures: {kinds: [int], from: [page]}
gates:
  finish:
    - output_committed: answer
budgets:
  turns: 30
  cost_usd: "0.60"
  wall_time: 20m
  calls: {total: 80, per_tool: {borrow_book: 2, hold_book: 3}}
context:
  max_input_tokens: 60000
  compact: {at_tokens: 45000, model: primary}
model:
  primary: {id: anthropic/claude-sonnet-4-5-20250929}
  fallbacks: [{id: openai/gpt-5-mini-2025-08-07}]
  prompt: {system: loans.md.j2, vars: [task.branch]}
tests: [loans.test.yaml]
"""

_TOOLS: Final = """\
agentctl: tools/v1
id: loans
sources:
  shelf: {title: "Catalogue and scanned pages"}
  vault: {title: "Closed archive"}
  desk: {title: "Loans desk"}
tools:
  find_books:
    kind: read
    source: shelf
    handler: "python:library.tools:find_books"
    description: "Find books by words. Returns ids, titles and shelves."
    params:
      words: {type: text, max_len: 200}
      before_year: {type: int, min: 1400, max: 2100, required: false}
    cache: {ttl: 10m, key: [words, before_year]}
    evidence: {kind: book, id: "result.hits[].id"}
  read_page:
    kind: read
    source: shelf
    handler: "python:library.tools:read_page"
    description: "Read one page of a book that a search found."
    params:
      book: {type: ref, of: book}
      number: {type: int, min: 1, max: 9999}
    cache: {ttl: 1h, key: [book, number]}
    evidence:
      kind: page
      id: "result.page_id"
      figures: {copies: {type: int, at: "result.copies"}}
  read_archive:
    kind: read
    source: vault
    handler: "python:library.tools:read_archive"
    description: "Read one item of the closed archive."
    params:
      room: {type: enum, values: [maps, letters]}
      item: {type: id, pattern: "[A-Z]{2}-[0-9]{4}", max_len: 7}
    evidence: {kind: letter, id: "result.item_id"}
  hold_book:
    kind: hybrid
    source: desk
    handler: "python:library.tools:hold_book"
    description: "Put a book aside until tomorrow."
    effects: [book.hold]
    reversible: true
    holds: {ttl: 24h, consumed_by: book.borrow}
    params: {book: {type: ref, of: book}}
    result: {hold_id: {type: id}}
    idempotency: {key: [run.id, book]}
    reconcile: {probe: find_hold, args: {key: idempotency_key}, confirms: "result.found"}
    compensate: {tool: release_hold, args: {hold_id: result.hold_id}, on: [run_failed, run_cancelled]}
  borrow_book:
    kind: write
    source: desk
    handler: "python:library.tools:borrow_book"
    description: "Borrow a book for the reader of this Run."
    effects: [book.borrow]
    params:
      account: {type: id, bind: state.account.id}
      book: {type: ref, of: book}
      note: {type: text, max_len: 300, required: false}
    idempotency: {key: [account, book]}
    reconcile: {probe: find_loan, args: {key: idempotency_key}, confirms: "result.found"}
  find_hold:
    kind: read
    exposed: host
    source: desk
    handler: "python:library.tools:find_hold"
    params: {key: {type: id}}
    result: {found: {type: bool}}
  find_loan:
    kind: read
    exposed: host
    source: desk
    handler: "python:library.tools:find_loan"
    params: {key: {type: id}}
    result: {found: {type: bool}}
  release_hold:
    kind: write
    exposed: host
    source: desk
    handler: "python:library.tools:release_hold"
    effects: [book.release]
    params: {hold_id: {type: id}}
    idempotency: {key: [run.id, hold_id]}
    reconcile: {manual: "Look at the shelf of held books"}
"""

_TEST: Final = """\
agentctl: test/v1
policy: loans.policy.yaml
cases:
  - id: anybody-may-look
    given: {principal: {id: r1, roles: [reader], suspended: false}, task: {branch: main}}
    turns:
      - propose: [{call: find_books, args: {words: tide}}]
        expect: {calls: [{outcome: confirmed}]}
"""

_PROMPT: Final = "You help readers of the {{ task.branch }} branch. Cite what you read as [[E1]].\n"


def base(*edits: tuple[str, str], files: Mapping[str, str] | None = None) -> dict[str, str]:
    """The example files by name, the policy first, with edits.

    Each edit (old, new) is made where `old` stands, which must be exactly one place of the policy or the
    tools file; `files` are added, or replace those of their name. Raises ValueError for an edit that fits
    nowhere or twice.
    """
    texts = {
        POLICY_FILE: _POLICY,
        TOOLS_FILE: _TOOLS,
        "loans.test.yaml": _TEST,
        "loans.md.j2": _PROMPT,
        **(files or {}),
    }
    for old, new in edits:
        places = [name for name, text in texts.items() for _ in range(text.count(old))]
        if len(places) != 1:
            raise ValueError(f"{old!r} stands in {len(places)} places")
        texts[places[0]] = texts[places[0]].replace(old, new)
    return texts
