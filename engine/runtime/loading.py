"""Owns newer versions of policies and overlays: kept for Runs to come, told to every open Run, or refused as a whole.

The newest loaded version restricts a Run at once and never widens what its own policy permits.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from engine.domain import events as e
from engine.domain.actors import Actor
from engine.domain.canonical import canonical, digest
from engine.domain.errors import PolicyInvalid
from engine.domain.ids import RunId
from engine.domain.policy import Policy
from engine.domain.state import RunState
from engine.lifecycle.fold import restricted_as
from engine.lifecycle.machine import TERMINAL
from engine.policy.compiler import compile_policy, deployment_of
from engine.policy.documents.base import Faults, check
from engine.policy.documents.overlay import OverlayDocument
from engine.policy.files import DEPLOYMENT
from engine.policy.source import parse
from engine.ports import Clock, EventStore, LoadedPolicy
from engine.runtime.journal import Journal
from engine.runtime.library import PolicyLibrary, bundle_text

ALL = 1_000_000
"""Runs of a store that are looked through."""


@dataclass(frozen=True, slots=True)
class OverlayText:
    """An overlay by itself: it restricts the Runs of every policy."""

    id: str
    version: int
    file: str
    text: str

    @property
    def name(self) -> str:
        """What the text is called beside the files of a policy."""
        return f"loaded/{self.id}.overlay.yaml"

    @property
    def blob(self) -> str:
        return canonical({"file": self.file, "files": {self.file: self.text}})


@dataclass(frozen=True, slots=True)
class Loading:
    """What came of it."""

    id: str
    version: int
    digest: str
    overlay: bool = False
    restricted: tuple[RunId, ...] = ()
    """Open Runs that were told."""
    unchanged: tuple[RunId, ...] = ()
    """Open Runs for which it is no news."""


@dataclass(slots=True)
class _Plan:
    """What each open Run is to be told; made whole before anything is stored."""

    restrictions: dict[RunId, Policy] = field(default_factory=dict)
    states: dict[RunId, RunState] = field(default_factory=dict)


def read_overlay(file: str, text: str) -> OverlayText:
    """Raises PolicyInvalid for a text that is no overlay."""
    document = parse(file, text)
    faults = Faults()
    part = check(OverlayDocument, document.root, faults) if document.root is not None else None
    found = [*document.faults, *faults]
    if part is None or found:
        raise PolicyInvalid(
            f"`{file}` is no overlay that can be loaded",
            remedy=f"run `agentctl lint {file}`",
            diagnostics=found,
        )
    return OverlayText(part.id, part.version, file, text)


def load_policy(
    store: EventStore,
    library: PolicyLibrary,
    clock: Clock,
    policy: Policy,
    by: Actor,
    *,
    drain: bool = False,
) -> Loading:
    """Makes a version known. `drain`, or `on_policy_change: drain` in either version, ends its Runs in order."""
    bundle = store.put_blob(bundle_text(policy))
    library.add(policy)
    loaded = LoadedPolicy(policy.id, policy.version, policy.digest, bundle, clock.now(), by.id, drain=drain)
    store.load_policy(loaded)
    plan = _Plan()  # only now: a Run that starts meanwhile either reads what was loaded or is told of it
    for run in open_runs(store, policy.id):
        plan.restrictions[run] = policy
    told = _tell(store, library, clock, plan, by, policy.id, policy.version, overlay=False, drain=drain)
    return Loading(policy.id, policy.version, policy.digest, False, *told)


def load_overlay(
    store: EventStore, library: PolicyLibrary, clock: Clock, overlay: OverlayText, by: Actor
) -> Loading:
    """Makes an overlay known. Raises PolicyInvalid, and stores nothing, if it does not fit one open Run's policy."""
    plan = _Plan()
    _plan_overlay(plan, store, library, clock, overlay)
    bundle = store.put_blob(overlay.blob)
    now = clock.now()
    store.load_policy(
        LoadedPolicy(overlay.id, overlay.version, digest(overlay.text), bundle, now, by.id, overlay=True)
    )
    _plan_overlay(plan, store, library, clock, overlay)  # those that started meanwhile
    told = _tell(store, library, clock, plan, by, overlay.id, overlay.version, overlay=True, drain=False)
    return Loading(overlay.id, overlay.version, digest(overlay.text), True, *told)


def _plan_overlay(
    plan: _Plan, store: EventStore, library: PolicyLibrary, clock: Clock, overlay: OverlayText
) -> None:
    for run in open_runs(store, None):
        if run not in plan.restrictions:
            own = Journal(store, run, clock).load().bundle
            plan.restrictions[run] = with_overlay(library.policy(own), overlay)


def with_overlay(policy: Policy, overlay: OverlayText) -> Policy:
    """The policy as the overlay restricts it. Raises PolicyInvalid if the two do not fit.

    An older version that the policy names itself gives its place to the loaded one. The Run's own policy still has
    it and is decided beside this one, so the stricter of the two holds.
    """
    files = {name: text for name, text in policy.bundle.items() if name != DEPLOYMENT}
    before, limits = deployment_of(policy.bundle)
    name = next((own.place.file for own in policy.overlays if own.id == overlay.id), overlay.name)
    compiled = compile_policy(
        policy.file,
        {**files, name: overlay.text},
        extra_overlays=(*(other for other in before if other != name), name),
        limits=limits,
    )
    if compiled.policy is None:
        raise PolicyInvalid(
            f"overlay `{overlay.id}` does not fit policy `{policy.id}`",
            remedy="mend it and load it again: it must compile with every policy that it is to restrict",
            diagnostics=compiled.diagnostics,
        )
    return compiled.policy


def restrictions(
    store: EventStore, library: PolicyLibrary, policy: Policy
) -> Sequence[tuple[e.PolicyLoaded, Mapping[str, str]]]:
    """What a new Run of this policy is told at its start, with the texts to keep: the versions loaded last.

    None of them ends it: whoever starts it then wants it in spite of them.
    """
    return [said[1:] for said in _loaded_last(store, library, policy)]


def _loaded_last(
    store: EventStore, library: PolicyLibrary, policy: Policy
) -> Iterator[tuple[LoadedPolicy, e.PolicyLoaded, Mapping[str, str]]]:
    for loaded in store.newest_policies(policy.id):
        if loaded.overlay:
            overlay = _stored_overlay(store, loaded)
            restricted = with_overlay(policy, overlay)
            body = _said(restricted, library.add(restricted), loaded.policy, loaded.version, overlay=True)
            yield loaded, body, {body.bundle: bundle_text(restricted)}
        elif loaded.digest != policy.digest:
            newer = library.policy(loaded.bundle)
            yield loaded, _said(newer, loaded.bundle, loaded.policy, loaded.version), {}


def missed(
    store: EventStore, library: PolicyLibrary, state: RunState
) -> Sequence[tuple[e.PolicyLoaded, Mapping[str, str]]]:
    """Versions that the Run was not told of: it was just starting, or whoever loaded them did not get so far.

    One that ends the Runs that were open when it was loaded ends this one if it was.
    """
    own = library.policy(state.bundle)
    found: list[tuple[e.PolicyLoaded, Mapping[str, str]]] = []
    for loaded, body, texts in _loaded_last(store, library, own):
        if not _is_news(state, body.policy, body.bundle, overlay=body.overlay, drains=False):
            continue
        open_then = state.started_at is not None and state.started_at <= loaded.loaded_at
        drains = open_then and not loaded.overlay and _drains(library.policy(body.bundle), own, loaded.drain)
        found.append((body.model_copy(update={"drain": drains}), texts))
    return found


def _drains(newer: Policy, own: Policy, asked: bool) -> bool:
    return asked or "drain" in (newer.on_policy_change, own.on_policy_change)


def _stored_overlay(store: EventStore, loaded: LoadedPolicy) -> OverlayText:
    file, files = PolicyLibrary(store).texts(loaded.bundle)
    return OverlayText(loaded.policy, loaded.version, file, files[file])


def _said(
    policy: Policy, bundle: str, name: str, version: int, *, overlay: bool = False, drain: bool = False
) -> e.PolicyLoaded:
    return e.PolicyLoaded(
        policy=name, digest=policy.digest, bundle=bundle, version=version, overlay=overlay, drain=drain
    )


def _tell(
    store: EventStore,
    library: PolicyLibrary,
    clock: Clock,
    plan: _Plan,
    by: Actor,
    name: str,
    version: int,
    *,
    overlay: bool,
    drain: bool,
) -> tuple[tuple[RunId, ...], tuple[RunId, ...]]:
    told: list[RunId] = []
    unchanged: list[RunId] = []
    for run, policy in plan.restrictions.items():
        bundle = library.add(policy)
        journal = Journal(store, run, clock)
        journal.load()
        while True:
            state = journal.state
            own = library.policy(state.bundle)
            drains = drain if overlay else _drains(policy, own, drain)
            if state.terminal or not _is_news(state, name, bundle, overlay=overlay, drains=drains):
                unchanged += [] if state.terminal else [run]
                break
            body = _said(policy, bundle, name, version, overlay=overlay, drain=drains)
            if journal.say_with(body, by, {bundle: bundle_text(policy)}):
                told.append(run)
                break
    return tuple(told), tuple(unchanged)


def _is_news(state: RunState, name: str, bundle: str, *, overlay: bool, drains: bool) -> bool:
    held = state.restricted_by.get(restricted_as(name, overlay=overlay))
    if held is None and bundle == state.bundle:
        return False
    return held != bundle or (drains and not state.draining)


def open_runs(store: EventStore, policy: str | None) -> list[RunId]:
    """Runs that are not over, of one policy or of all."""
    return [run.run for run in store.runs(policy=policy, limit=ALL) if run.status not in TERMINAL]
