"""Owns the promises of signed identities: what does not verify in every part is refused."""

from __future__ import annotations

import base64
import json
import time
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

from engine.adapters.signed_tokens import Issuer, SignedTokens
from engine.domain.errors import Refused, SourceError

ISSUER = "https://idp.example"
OURS = rsa.generate_private_key(public_exponent=65537, key_size=2048)
THEIRS = rsa.generate_private_key(public_exponent=65537, key_size=2048)


def pem(key: Any) -> str:
    form = serialization.PublicFormat.SubjectPublicKeyInfo
    return key.public_key().public_bytes(serialization.Encoding.PEM, form).decode()


def jwks(**keys: Any) -> str:
    return json.dumps(
        {
            "keys": [
                {**json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(key.public_key())), "kid": kid, "use": "sig"}
                for kid, key in keys.items()
            ]
        }
    )


def claims(**changed: Any) -> dict[str, Any]:
    now = int(time.time())
    found = {"iss": ISSUER, "sub": "ann", "aud": "agentctl", "exp": now + 60, "iat": now, "roles": ["lead"]}
    found.update(changed)
    return {name: value for name, value in found.items() if value is not None}


def token(key: Any = OURS, algorithm: str = "RS256", headers: Any = None, **changed: Any) -> str:
    return jwt.encode(claims(**changed), key, algorithm=algorithm, headers=headers)


@pytest.fixture
def tokens(tmp_path: Path) -> SignedTokens:
    keys = tmp_path / "idp.pem"
    keys.write_text(pem(OURS))
    return SignedTokens([Issuer(ISSUER, "agentctl", keys)])


def test_a_token_that_holds_names_subject_issuer_and_roles(tokens: SignedTokens):
    verified = tokens.verify(token() + "\n")
    assert verified.actor().model_dump() == {
        "type": "person", "id": "ann", "issuer": ISSUER, "roles": ("lead",)
    }  # fmt: skip


def test_a_principal_has_the_roles_and_attributes_that_the_policy_knows(tokens: SignedTokens):
    verified = tokens.verify(token(roles=["lead", "janitor"], desk="funds", shoe=44))
    principal = verified.principal(frozenset({"lead", "clerk"}), ("desk", "floor"))
    assert (principal.id, principal.issuer, principal.roles) == ("ann", ISSUER, ("lead",))
    assert principal.attrs == {"desk": "funds"}


def unsigned() -> str:
    def part(value: Any) -> str:
        return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")

    return f"{part({'alg': 'none', 'typ': 'JWT'})}.{part(claims())}."


def confused() -> str:
    """Signed with the public key as if it were a shared secret."""
    import hashlib
    import hmac

    def part(raw: bytes) -> str:
        return base64.urlsafe_b64encode(raw).decode().rstrip("=")

    head = part(b'{"alg":"HS256","typ":"JWT"}') + "." + part(json.dumps(claims()).encode())
    return f"{head}.{part(hmac.new(pem(OURS).encode(), head.encode(), hashlib.sha256).digest())}"


@pytest.mark.parametrize(
    "given",
    [
        pytest.param(lambda: token(THEIRS), id="another key"),
        pytest.param(lambda: token(iss="https://evil.example"), id="another issuer"),
        pytest.param(lambda: token(iss=None), id="no issuer"),
        pytest.param(lambda: token(aud="somebody-else"), id="another audience"),
        pytest.param(lambda: token(aud=None), id="no audience"),
        pytest.param(lambda: token(exp=int(time.time()) - 60), id="expired"),
        pytest.param(lambda: token(exp=None), id="no expiry"),
        pytest.param(lambda: token(nbf=int(time.time()) + 600), id="not yet"),
        pytest.param(lambda: token(sub=None), id="no subject"),
        pytest.param(lambda: token(sub=" "), id="blank subject"),
        pytest.param(lambda: token(sub="ann\nroot"), id="subject with a line break"),
        pytest.param(lambda: token(sub="x" * 201), id="long subject"),
        pytest.param(unsigned, id="unsigned"),
        pytest.param(confused, id="public key as secret"),
        pytest.param(lambda: token()[:-4], id="cut"),
        pytest.param(lambda: "a.b.c", id="no token"),
        pytest.param(lambda: "", id="empty"),
        pytest.param(lambda: "x" * 20_000, id="long"),
    ],
)
def test_anything_unverified_is_refused(tokens: SignedTokens, given: Any):
    with pytest.raises(Refused, match="the token is refused"):
        tokens.verify(given())


def test_the_payload_cannot_be_exchanged(tokens: SignedTokens):
    head, _, signature = token().split(".")
    _, body, _ = token(sub="root").split(".")
    with pytest.raises(Refused):
        tokens.verify(f"{head}.{body}.{signature}")


def test_a_key_set_is_searched_by_key_id(tmp_path: Path):
    keys = tmp_path / "jwks.json"
    keys.write_text(jwks(old=THEIRS, new=OURS))
    found = SignedTokens([Issuer(ISSUER, "agentctl", keys)])
    assert found.verify(token(headers={"kid": "new"})).id == "ann"
    for headers in ({"kid": "old"}, {"kid": "other"}, None):
        with pytest.raises(Refused):
            found.verify(token(headers=headers))


@pytest.mark.parametrize(
    ("key", "algorithm"),
    [(ec.generate_private_key(ec.SECP256R1()), "ES256"), (ed25519.Ed25519PrivateKey.generate(), "EdDSA")],
    ids=["ES256", "EdDSA"],
)
def test_other_signatures_with_private_keys_are_verified(tmp_path: Path, key: Any, algorithm: str):
    keys = tmp_path / "idp.pem"
    keys.write_text(pem(key))
    found = SignedTokens([Issuer(ISSUER, "agentctl", keys)])
    assert found.verify(token(key, algorithm)).id == "ann"
    with pytest.raises(Refused):
        found.verify(token(OURS))


@pytest.mark.parametrize(
    ("claim", "value", "roles"),
    [
        ("groups", ["a", "b"], ("a", "b")),
        ("scope", "a b", ("a", "b")),
        ("realm.roles", None, ("deep",)),
        ("https://x.example/roles", ["a"], ("a",)),
        ("groups", {"a": 1}, ()),
        ("groups", ["a", 7, None], ("a",)),
        ("groups", None, ()),
    ],
)
def test_roles_come_from_the_configured_claim(tmp_path: Path, claim: str, value: Any, roles: Any):
    keys = tmp_path / "idp.pem"
    keys.write_text(pem(OURS))
    found = SignedTokens([Issuer(ISSUER, "agentctl", keys, claim)])
    assert found.verify(token(**{claim: value}, realm={"roles": ["deep"]})).roles == roles


@pytest.mark.parametrize("text", ["", "{", '{"keys": []}', "-----BEGIN PUBLIC KEY-----"])
def test_keys_that_are_none_verify_nothing(tmp_path: Path, text: str):
    keys = tmp_path / "keys"
    keys.write_text(text)
    with pytest.raises((Refused, SourceError)):
        SignedTokens([Issuer(ISSUER, "agentctl", keys)]).verify(token())
    with pytest.raises(SourceError):
        SignedTokens([Issuer(ISSUER, "agentctl", tmp_path / "none")]).verify(token())
