"""Owns signed identities: a JSON Web Token is verified against the keys of its issuer, or refused with the reason."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from engine.domain.actors import Verified
from engine.domain.errors import Refused, SourceError

ALGORITHMS: Final = (
    "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA",
)  # fmt: skip
"""Signatures with a private key only: who can verify a token cannot make one."""
LEEWAY: Final = 10
"""Seconds by which two clocks may differ."""
MAX_TOKEN: Final = 16 * 1024
MAX_NAME: Final = 200
REMEDY: Final = "get a new token from an issuer that `identity` in agentctl.yaml names"


@dataclass(frozen=True, slots=True)
class Issuer:
    """Who may sign identities: `keys` is a file with one PEM public key or a JSON Web Key Set."""

    issuer: str
    audience: str
    keys: Path
    roles_claim: str = "roles"
    """The claim with the roles, dotted where it is nested: a list, or words in one text."""


class SignedTokens:
    """Verifies tokens of the configured issuers. Nothing of a token counts before all of it holds."""

    def __init__(self, issuers: Sequence[Issuer]) -> None:
        self._issuers = {each.issuer: each for each in issuers}

    def verify(self, token: str) -> Verified:
        """Raises Refused for a token that does not hold, SourceError for keys that cannot be read."""
        jwt = _library()
        text = token.strip()
        if not text or len(text) > MAX_TOKEN:
            raise _refused("it is empty" if not text else "it is too long")
        try:
            issuer = self._issuer(jwt.decode(text, options={"verify_signature": False}).get("iss"))
            claims = jwt.decode(
                text,
                self._key(jwt, issuer, jwt.get_unverified_header(text).get("kid")),
                algorithms=list(ALGORITHMS),
                issuer=issuer.issuer,
                audience=issuer.audience,
                leeway=LEEWAY,
                options={"require": ["iss", "sub", "aud", "exp"]},
            )
        except (jwt.PyJWTError, TypeError, ValueError) as error:
            raise _refused(_said(error)) from None
        return Verified(_subject(claims), issuer.issuer, _roles(claims, issuer.roles_claim), claims)

    def _issuer(self, named: object) -> Issuer:
        found = self._issuers.get(named) if isinstance(named, str) else None
        if found is None:
            raise _refused("its issuer is none that agentctl.yaml names")
        return found

    def _key(self, jwt: Any, issuer: Issuer, kid: object) -> Any:
        text = _read(issuer.keys)
        if not text.lstrip().startswith("{"):
            return text
        try:
            keys = jwt.PyJWKSet.from_dict(json.loads(text)).keys
        except (jwt.PyJWTError, ValueError, TypeError, AttributeError) as error:
            raise SourceError(
                f"`{issuer.keys}` is no key set: {error}", remedy="write the issuer's JWKS into it"
            ) from None
        named = [key for key in keys if kid is not None and key.key_id == kid]
        if not named and not (kid is None and len(keys) == 1):
            raise _refused("it is signed with a key that is not in the key set of its issuer")
        return (named or keys)[0]


def _library() -> Any:
    try:
        import jwt
    except ImportError:
        raise SourceError(
            "signed identities need the package PyJWT", remedy="install `agentctl[identity]`"
        ) from None
    return jwt


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SourceError(
            f"the keys `{file}` cannot be read: {getattr(error, 'strerror', None) or 'not UTF-8'}",
            remedy="mend `keys` in `identity` of agentctl.yaml",
        ) from None


def _said(error: Exception) -> str:
    """The library's reason, as a clause; it never holds the token."""
    said = str(error).rstrip(".") or type(error).__name__
    return said[:1].lower() + said[1:200]


def _subject(claims: Mapping[str, Any]) -> str:
    subject = claims.get("sub")
    if (
        not isinstance(subject, str)
        or not subject.strip()
        or len(subject) > MAX_NAME
        or not subject.isprintable()
    ):
        raise _refused("its subject is no name")
    return subject


def _roles(claims: Mapping[str, Any], path: str) -> tuple[str, ...]:
    """The claim as a list of texts; anything else gives no role."""
    found: Any = claims.get(path)
    if found is None:
        found = claims
        for name in path.split("."):
            found = found.get(name) if isinstance(found, Mapping) else None
    if isinstance(found, str):
        found = found.split()
    if not isinstance(found, list):
        return ()
    return tuple(role for role in found if isinstance(role, str) and role)


def _refused(why: str) -> Refused:
    return Refused(f"the token is refused: {why}", remedy=REMEDY)
