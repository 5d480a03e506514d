"""Owns the list of everything that can be found in a file: code, name, severity; written by hand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from engine.domain.diagnostics import Confidence, Diagnostic, Location, Severity


class Code(NamedTuple):
    name: str
    severity: Severity
    confidence: Confidence = Confidence.CERTAIN


_E: Final = Severity.ERROR
_W: Final = Severity.WARNING
_N: Final = Severity.NOTE
_LIKELY: Final = Confidence.LIKELY

CODES: Final[Mapping[str, Code]] = {
    "Y101": Code("yaml-syntax", _E),
    "Y102": Code("yaml-tag-ate-value", _E),
    "Y103": Code("duplicate-key", _E),
    "Y104": Code("yaml-anchor", _E),
    "Y105": Code("unknown-document", _E),
    "Y201": Code("unknown-key", _E),
    "Y202": Code("missing-key", _E),
    "Y203": Code("key-for-other-kind", _E),
    "Y204": Code("bad-choice", _E),
    "Y205": Code("bad-value", _E),
    "C101": Code("condition-syntax", _E),
    "C102": Code("unknown-name", _E),
    "C103": Code("unknown-field", _E),
    "C104": Code("condition-type", _E),
    "C105": Code("unknown-function", _E),
    "C106": Code("impossible-value", _E),
    "C107": Code("substring-test", _E),
    "C108": Code("unguarded-optional", _W),
    "C109": Code("constant-condition", _W),
    "C110": Code("origin-of-trivial-value", _W),
    "S301": Code("prose-is-opaque", _E),
    "S302": Code("prose-disguised-as-id", _W, _LIKELY),
    "S303": Code("semantic-judge", _E),
    "M401": Code("model-repeats-host-fact", _W, _LIKELY),
    "M402": Code("bound-value-described-to-model", _W, _LIKELY),
    "M403": Code("self-reported-status", _W, _LIKELY),
    "M404": Code("finish-writes-state", _E),
    "M405": Code("recovery-from-model-text", _E),
    "M406": Code("prompt-lists-tools", _W, _LIKELY),
    "M407": Code("state-in-prompt", _W),
    "M408": Code("permission-like-parameter", _W, _LIKELY),
    "R201": Code("unknown-tool", _E),
    "R202": Code("unknown-role", _E),
    "R203": Code("unknown-capability", _E),
    "R204": Code("duplicate-id", _E),
    "R205": Code("unknown-source", _E),
    "R206": Code("unknown-state", _E),
    "R207": Code("unknown-effect", _E),
    "R208": Code("unknown-evidence-kind", _E),
    "R209": Code("unknown-output", _E),
    "R210": Code("file-not-found", _E),
    "R211": Code("unused", _W),
    "P201": Code("unreachable-rule", _E),
    "P202": Code("redundant-rule", _W),
    "P203": Code("visible-never-permitted", _E),
    "P204": Code("permitted-never-visible", _E),
    "P205": Code("broad-selector-in-allow", _E),
    "P206": Code("tool-never-granted", _W),
    "P207": Code("rule-without-roles", _E),
    "P208": Code("unanswerable-approval", _E),
    "P210": Code("overlay-cannot-allow", _E),
    "P211": Code("wider-than-base", _E),
    "P213": Code("impossible-rule", _E),
    "K301": Code("capability-cycle", _E),
    "K302": Code("ungrantable-capability", _E),
    "K303": Code("capability-grants-nothing", _E),
    "K304": Code("capability-never-expires", _E),
    "K305": Code("approve-gap", _W),
    "K306": Code("host-approves-write", _E),
    "W201": Code("write-without-idempotency", _E),
    "W202": Code("write-without-reconcile", _E),
    "W203": Code("write-without-effects", _E),
    "W204": Code("hybrid-reversible-unknown", _E),
    "W205": Code("reversible-without-compensation", _E),
    "W206": Code("cache-on-non-read", _E),
    "W207": Code("unattended-write", _E),
    "W208": Code("unattended-irreversible", _E),
    "W209": Code("weak-idempotency-key", _E),
    "W210": Code("probe-not-a-read", _E),
    "W211": Code("compensation-argument", _E),
    "W213": Code("stale-prone-write", _E),
    "W214": Code("cache-outlives-source", _W),
    "W215": Code("cache-key-incomplete", _E),
    "W216": Code("shared-cache-of-private-data", _E),
    "W217": Code("hold-without-end", _E),
    "W219": Code("write-named-read", _W, _LIKELY),
    "W220": Code("probe-that-cannot-tell", _E),
    "G501": Code("finish-unreachable", _E),
    "G502": Code("vacuous-gate", _W),
    "G503": Code("gate-already-implicit", _N),
    "G504": Code("output-without-gate", _N),
    "E601": Code("citation-without-producer", _E),
    "E602": Code("figures-without-producer", _E),
    "E603": Code("citation-older-than-cache", _W),
    "E604": Code("prose-output-without-citations", _W),
    "B701": Code("budget-missing", _E),
    "B702": Code("budget-unbounded", _W),
    "B703": Code("budget-for-unknown-tool", _E),
    "B705": Code("write-without-call-budget", _W),
    "X802": Code("compaction-never-fires", _W),
    "X803": Code("unpinned-model", _W),
    "X804": Code("single-model", _N),
    "X805": Code("undefined-prompt-variable", _E),
    "I901": Code("secret-in-policy", _E, _LIKELY),
    "I902": Code("instruction-in-description", _W, _LIKELY),
    "I903": Code("unpinned-mcp-tool", _E),
    "I905": Code("untrusted-to-irreversible", _E),
    "I907": Code("provider-limit", _E),
    "N101": Code("address-without-origin-rule", _W),
    "N102": Code("untrusted-field-labelled-trusted", _W, _LIKELY),
    "N103": Code("egress-not-declared", _W, _LIKELY),
    "N104": Code("unknown-label", _E),
    "N105": Code("mention-as-consent", _W),
    "T101": Code("no-tests", _W),
    "T102": Code("untested-rule", _W),
    "L001": Code("unused-suppression", _W),
    "L002": Code("suppression-without-reason", _E),
}

NOT_SUPPRESSIBLE: Final = frozenset(
    {"S301", "S303", "M404", "M405", "P205", "P210", "P211", "W207", "W208", "I901", "I903"}
)
"""Only `agentctl.yaml` may lower these, with an owner and an end date."""


def finding(code: str, location: Location, message: str, help_: str) -> Diagnostic:
    """A diagnostic with the name, severity and confidence that the catalogue gives to its code."""
    known = CODES[code]
    return Diagnostic(code, known.name, known.severity, message, location, help_, known.confidence)
