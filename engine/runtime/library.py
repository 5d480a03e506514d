"""Owns the policies of a store: kept as texts with the Runs, compiled again whenever they are needed."""

from __future__ import annotations

from collections.abc import Mapping

from engine.domain.canonical import Json, JsonObject, canonical, digest, parse_json
from engine.domain.errors import AgentctlError, Fault, PolicyInvalid
from engine.domain.policy import Policy
from engine.policy.compiler import compile_policy
from engine.policy.publication import in_order
from engine.ports import EventStore


def bundle_text(policy: Policy) -> str:
    """The texts that a policy was compiled from, as one canonical blob."""
    return canonical({"file": policy.file, "files": dict(policy.bundle)})


class PolicyLibrary:
    """Compiles stored bundles once per process."""

    def __init__(self, store: EventStore) -> None:
        self._store = store
        self._known: dict[str, Policy] = {}

    def add(self, policy: Policy) -> str:
        """Remembers a compiled policy and returns the digest of its bundle; nothing is stored."""
        bundle = digest(bundle_text(policy))
        self._known[bundle] = policy
        return bundle

    def policy(self, bundle: str) -> Policy:
        """The policy of a stored bundle. Raises PolicyInvalid if this version cannot compile it any more."""
        known = self._known.get(bundle)
        if known is not None:
            return known
        file, texts = self.texts(bundle)
        compiled = compile_policy(file, texts)
        if compiled.policy is None:
            raise PolicyInvalid(
                "the policy that this Run was started with no longer compiles",
                remedy="use the agentctl version that started the Run",
                diagnostics=compiled.diagnostics,
            )
        self._known[bundle] = compiled.policy
        return compiled.policy

    def published(self, bundle: str, output: str, fields: Mapping[str, Json]) -> JsonObject:
        """Fields of a publication in the order that the policy declares, or as stored where it does not compile."""
        try:
            declared = self.policy(bundle).outputs.get(output)
        except AgentctlError:
            declared = None
        return dict(fields) if declared is None else in_order(declared, fields)

    def texts(self, bundle: str) -> tuple[str, Mapping[str, str]]:
        """The main file of a stored bundle, and the text of each of its files by name."""
        text = self._store.blob(bundle)
        if text is None:
            raise Fault(
                f"the policy bundle {bundle[:12]} is not in the store",
                remedy="the database lost a blob: restore it from a backup",
            )
        data = parse_json(text)
        assert isinstance(data, dict)
        files = data["files"]
        assert isinstance(files, dict)
        return str(data["file"]), {name: str(body) for name, body in files.items()}
