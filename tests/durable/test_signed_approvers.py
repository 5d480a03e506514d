"""Owns the promises of `--token`: who acts is who signed, and what is not signed well does nothing."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ed25519

from tests.durable.conftest import OFFICE, Office

KEY = ed25519.Ed25519PrivateKey.generate()
OTHER = ed25519.Ed25519PrivateKey.generate()
ISSUER = "https://idp.example"
SEND = "  - calls: [{tool: send, args: {to: ann, weight: 2}}]\n  - calls: [{tool: finish}]\n"


@pytest.fixture
def signed(office: Office) -> Office:
    """The office, whose sending demands signed approvers."""
    form = serialization.PublicFormat.SubjectPublicKeyInfo
    public = KEY.public_key().public_bytes(serialization.Encoding.PEM, form)
    (office.folder / "idp.pem").write_bytes(public)
    issuers = f"{{issuer: '{ISSUER}', audience: office, keys: idp.pem, roles_claim: groups}}"
    (office.folder / "agentctl.yaml").write_text(
        f"{(OFFICE / 'agentctl.yaml').read_text()}identity: {{issuers: [{issuers}]}}\n"
    )
    file = office.folder / "office.policy.yaml"
    file.write_text(file.read_text().replace("expires: 1h, edit", "expires: 1h, signed: true, edit"))
    return office


def token(folder: Path, key: Any = KEY, **changed: Any) -> str:
    claims = {"iss": ISSUER, "sub": "ann", "aud": "office", "exp": int(time.time()) + 60, "groups": ["lead"]}
    (folder / "token.jwt").write_text(jwt.encode({**claims, **changed}, key, algorithm="EdDSA"))
    return "token.jwt"


def test_only_a_signed_lead_can_approve(signed: Office):
    run = signed.run(SEND).run
    local = signed.ask("approve", run, "1.1", "--as", "ann", "--role", "lead")
    assert local.code == 4
    assert "needs a signed identity" in local.err
    forged = signed.ask("approve", run, "1.1", "--token", token(signed.folder, OTHER))
    assert forged.code == 4
    assert "the token is refused" in forged.err
    assert signed.ask("approve", run, "1.1", "--token", token(signed.folder, groups=["clerk"])).code == 4
    assert signed.ledger == []
    assert signed.ask("approve", run, "1.1", "--token", token(signed.folder)).code == 0
    assert signed.ledger == ["send ann 2"]
    (given,) = signed.log(run, "--kind", "ApprovalGiven")
    assert given["actor"] == {"type": "person", "id": "ann", "issuer": ISSUER, "roles": ["lead"]}


def test_a_run_works_for_who_signed(signed: Office):
    finish = "  - calls: [{tool: finish}]\n"
    said = signed.run(finish, "--token", token(signed.folder, groups=["clerk", "janitor"]))
    assert said.code == 0
    (started,) = signed.log(said.run, "--kind", "RunStarted")
    assert started["principal"] == {"id": "ann", "issuer": ISSUER, "roles": ["clerk"]}
    assert signed.run(finish, "--token", token(signed.folder, groups=["lead"])).code == 4


def test_a_token_is_named_and_never_typed(signed: Office, monkeypatch: pytest.MonkeyPatch):
    text = (signed.folder / token(signed.folder, groups=["clerk"])).read_text()
    typed = signed.run("  - calls: [{tool: finish}]\n", "--token", text)
    assert typed.code == 2
    assert text[:20] not in typed.err
    assert signed.run("  - calls: [{tool: finish}]\n", "--token", "env").code == 2
    monkeypatch.setenv("AGENTCTL_TOKEN", text)
    assert signed.run("  - calls: [{tool: finish}]\n", "--token", "env").code == 0
    monkeypatch.setenv("OTHER", text)
    assert signed.run("  - calls: [{tool: finish}]\n", "--token", "env:OTHER").code == 0
    assert signed.run("  - calls: [{tool: finish}]\n", "--token", "nowhere").code == 2


def test_nobody_else_is_named_beside_a_token(signed: Office):
    said = signed.run("  - calls: [{tool: finish}]\n", "--token", token(signed.folder), "--as", "bob")
    assert said.code == 2
    assert "nothing else may" in said.err


def test_a_token_without_a_configured_issuer_is_refused(office: Office):
    said = office.run("  - calls: [{tool: finish}]\n", "--token", token(office.folder))
    assert said.code == 2
    assert "no issuer of signed identities is known" in said.err


@pytest.mark.parametrize("issuer", ["local", ISSUER])
def test_an_issuer_is_named_once_and_never_local(signed: Office, issuer: str):
    file = signed.folder / "agentctl.yaml"
    text = file.read_text().rstrip().removesuffix("]}")
    file.write_text(f"{text}, {{issuer: '{issuer}', audience: x, keys: idp.pem}}]}}\n")
    assert signed.ask("runs").code == 2
