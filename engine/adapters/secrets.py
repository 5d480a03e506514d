"""Owns the registered secrets of this process: where their values come from, how they are found and masked."""

from __future__ import annotations

import html
import json
import os
import re
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.parse import quote

from engine.domain.errors import SourceError, UsageError

MIN_LENGTH = 8
"""Characters; a shorter value would be found in ordinary text."""
_KEY_NAMES = ("_API_KEY", "_ACCESS_KEY", "_AUTH_TOKEN")
"""Environment variables that end so hold model keys: they are registered by themselves."""
_JSON_SIGNS = ("", "<>&", "<>&'", "<>&'+`", "<>&'+`\"")
"""What writers of JSON escape beyond what they must."""
_URL_KEPT = ("", "/", "*", "!'()*", "!'()*;,/?:@&=+$#")
"""What encoders of URLs leave as it is: a component, a path, a form field, JavaScript's component and URI."""
_HTML_QUOTES = tuple(
    str.maketrans({'"': double, "'": single})
    for double, single in (
        ("&quot;", "&#x27;"),
        ("&quot;", "&#39;"),
        ("&quot;", "&#039;"),
        ("&#34;", "&#39;"),
    )
)


class RegisteredSecrets:
    """Values by name, found as they are, escaped in JSON or HTML, in base64 and URL-encoded.

    A value inside a longer base64 text is found at each of the three alignments. What is encrypted, compressed,
    split into pieces or encoded otherwise is not found.
    """

    def __init__(self, values: Mapping[str, str]) -> None:
        """Raises UsageError for a value that is too short to be looked for."""
        self._names: dict[str, str] = {}
        self.values = dict(values)
        for name, value in values.items():
            if len(value) < MIN_LENGTH:
                raise UsageError(
                    f"secret `{name}` has {len(value)} characters, at least {MIN_LENGTH} are needed",
                    remedy="use a longer value: a short one occurs in ordinary text",
                )
            for form in _forms(value):
                self._names.setdefault(form, name)
        forms = sorted(self._names, key=len, reverse=True)
        self._forms = tuple(forms)
        self._starts = frozenset(form[0] for form in forms)
        self._pattern = re.compile("|".join(map(re.escape, forms))) if forms else None

    def find(self, text: str) -> str | None:
        """The name of a secret that occurs in `text`."""
        for form in self._forms:
            if form in text:
                return self._names[form]
        return None

    def may_begin(self, text: str) -> int:
        """Where the end of `text` starts that a secret may begin with; the length of `text` where none does."""
        longest = len(self._forms[0]) if self._forms else 0
        for at in range(max(0, len(text) - longest + 1), len(text)):
            if text[at] in self._starts and any(form.startswith(text[at:]) for form in self._forms):
                return at
        return len(text)

    def mask(self, text: str) -> str:
        """`text` with `[secret NAME]` where a secret stood."""
        if self._pattern is None or self.find(text) is None:
            return text
        return self._pattern.sub(lambda found: f"[secret {self._names[found.group()]}]", text)


def registered(
    named: Mapping[str, tuple[str | None, str | None]],
    root: Path,
    environ: Mapping[str, str] | None = None,
) -> RegisteredSecrets | None:
    """The secrets of `agentctl.yaml` (`name -> (env, file)`, files relative to `root`) and the model keys of the
    environment; None where there is nothing to look for.

    A variable or a file that is not there registers nothing: this process does not hold the value. Raises
    SourceError for a file that cannot be read, UsageError for a value that is too short.
    """
    environment = os.environ if environ is None else environ
    values: dict[str, str] = {}
    for name, (env, file) in named.items():
        value = environment.get(env, "") if env else _read(root / str(file), name)
        if value:
            values[name] = value
    for variable, value in environment.items():
        if variable.endswith(_KEY_NAMES) and len(value) >= MIN_LENGTH and value not in values.values():
            values[variable] = value
    return RegisteredSecrets(values) if values else None


def _read(file: Path, name: str) -> str:
    path = file.expanduser()
    try:
        return path.read_text(encoding="utf-8").rstrip("\r\n") if path.exists() else ""
    except (OSError, UnicodeDecodeError) as error:
        raise SourceError(
            f"secret `{name}`: `{path}` cannot be read: {type(error).__name__}",
            remedy="mend `secrets` in agentctl.yaml or the file's permissions",
        ) from error


def _forms(value: str) -> Iterator[str]:
    yield value
    yield from _json_forms(value)
    yield from _url_forms(value)
    yield html.escape(value, quote=False)
    for quotes in _HTML_QUOTES:
        yield html.escape(value, quote=False).translate(quotes)
    data = value.encode("utf-8", "surrogatepass")
    for encode in (b64encode, urlsafe_b64encode):
        for shift in range(3):
            yield _certain(encode(b"\0" * shift + data).decode("ascii"), shift, len(data))


def _json_forms(value: str) -> Iterator[str]:
    """As Python, JavaScript, Go, PHP and .NET write it, and each of these once more as text in JSON."""
    for signs in _JSON_SIGNS:
        for wholly in (True, False):
            for digits in ("04x", "04X"):
                escaped = "".join(_json(sign, signs, digits, wholly=wholly) for sign in value)
                for form in (escaped, escaped.replace("/", "\\/")):
                    yield form
                    yield json.dumps(form, ensure_ascii=False)[1:-1]


def _json(sign: str, escaped: str, digits: str, *, wholly: bool) -> str:
    """One character in a JSON text; `wholly` escapes all that is not ASCII."""
    if sign in escaped or (wholly and not sign.isascii()):
        units = sign.encode("utf-16-be", "surrogatepass")
        return "".join(
            f"\\u{int.from_bytes(units[at : at + 2], 'big'):{digits}}" for at in range(0, len(units), 2)
        )
    return json.dumps(sign, ensure_ascii=False)[1:-1]


def _url_forms(value: str) -> Iterator[str]:
    for kept in _URL_KEPT:
        quoted = quote(value, safe=kept)
        for form in (quoted, quoted.replace("~", "%7E"), quoted.replace("%20", "+").replace("~", "%7E")):
            yield form
            yield re.sub("%[0-9A-F]{2}", lambda found: found.group().lower(), form)


def _certain(encoded: str, shift: int, size: int) -> str:
    """The characters that the secret alone decides, whatever stands before and after it."""
    first = -(-shift * 8 // 6)
    return encoded[first : (shift + size) * 8 // 6]
