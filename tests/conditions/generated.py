"""Owns random conditions that check without errors."""

from __future__ import annotations

from random import Random

_INTS = (0, 1, -1, 2, 5, 7, 4200, 2**62, 2**63 - 1, -(2**63))
_WORDS = ("a", "red", "widget-7", "", "é👍")


class Generator:
    """Conditions over `worlds.EVERY`; `cel_only` keeps to what CEL has too."""

    def __init__(self, seed: int, *, cel_only: bool) -> None:
        self.random = Random(seed)
        self.cel_only = cel_only

    def cond(self, depth: int, scope: tuple[tuple[str, str], ...] = ()) -> str:
        options = [
            "and",
            "or",
            "not",
            "int",
            "int",
            "word",
            "word",
            "bool",
            "in",
            "in",
            "has",
            "macro",
            "time",
        ]
        if not self.cel_only:
            options += ["done", "origin", "args_of", "grant", "under", "count", "decimal", "links"]
        kind = self.random.choice(options if depth > 0 else ["int", "word", "bool", "has"])
        if kind in ("and", "or"):
            parts = [self.cond(depth - 1, scope) for _ in range(self.random.choice((2, 2, 3)))]
            return "(" + (" && " if kind == "and" else " || ").join(parts) + ")"
        return str(getattr(self, f"_{kind}")(depth, scope))

    def _not(self, depth: int, scope: tuple[tuple[str, str], ...]) -> str:
        return f"!({self.cond(depth - 1, scope)})"

    def _bool(self, depth: int, scope: tuple[tuple[str, str], ...]) -> str:
        one = self.random.choice(("args.flag", "task.freeze", "true", "false", "principal.suspended"))
        other = self.random.choice(("true", "false", "args.flag"))
        return self.random.choice((one, f"{one} == {other}", f"{one} != {other}"))

    def _int(self, depth: int, scope: tuple[tuple[str, str], ...]) -> str:
        op = self.random.choice(("==", "!=", "<", "<=", ">", ">="))
        return f"{self.number(depth, scope)} {op} {self.number(depth, scope)}"

    def number(self, depth: int, scope: tuple[tuple[str, str], ...]) -> str:
        facts = [
            "args.n",
            "state.cart.version",
            "limits.order_cap_minor",
            "args.maybe",
            "args.box.w",
            "args.box.h",
        ]
        facts += [name for name, type_ in scope if type_ == "int"]
        facts += [f"{name}.quantity" for name, type_ in scope if type_ == "row"]
        kind = self.random.choice(
            ("fact", "fact", "literal", "sum", "size", "at", "minus") if depth > 0 else ("fact", "literal")
        )
        if kind == "fact":
            return self.random.choice(facts)
        if kind == "literal":
            return str(self.random.choice(_INTS))
        if kind == "minus":
            return f"-({self.number(depth - 1, scope)})"
        if kind == "size":
            return f"size({self.random.choice(('args.tags', 'args.rows', 'args.body', 'args.sizes'))})"
        if kind == "at":
            return f"args.sizes[{self.number(depth - 1, scope)}]"
        op = self.random.choice(("+", "-", "*"))
        return f"({self.number(depth - 1, scope)} {op} {self.number(depth - 1, scope)})"

    def _word(self, depth: int, scope: tuple[tuple[str, str], ...]) -> str:
        op, other = self.random.choice(("==", "!=")), self.random.choice((self.word(scope), self.quoted()))
        return f"{self.word(scope)} {op} {other}"

    def word(self, scope: tuple[tuple[str, str], ...]) -> str:
        facts = [
            "args.name",
            "principal.id",
            "state.cart.id",
            "args.tags[1]",
            "args.rows[0].sku",
            "args.argv[0]",
        ]
        facts += [name for name, type_ in scope if type_ == "word"]
        facts += [f"{name}.sku" for name, type_ in scope if type_ == "row"]
        return self.random.choice(facts)

    def quoted(self) -> str:
        return f"'{self.random.choice(_WORDS)}'"

    def _in(self, depth: int, scope: tuple[tuple[str, str], ...]) -> str:
        kind = self.random.choice(("tags", "sizes", "words", "numbers"))
        if kind == "tags":
            return f"{self.random.choice((self.word(scope), self.quoted()))} in args.tags"
        if kind == "sizes":
            return f"{self.number(depth - 1, scope)} in args.sizes"
        if kind == "words":
            return (
                f"{self.word(scope)} in [{', '.join(self.quoted() for _ in range(self.random.randrange(4)))}]"
            )
        listed = ", ".join(str(self.random.choice(_INTS)) for _ in range(self.random.randrange(4)))
        return f"{self.number(depth - 1, scope)} in [{listed}]"

    def _has(self, depth: int, scope: tuple[tuple[str, str], ...]) -> str:
        return f"has({self.random.choice(('args.maybe', 'args.box.h', 'args.n', 'state.cart.id'))})"

    def _macro(self, depth: int, scope: tuple[tuple[str, str], ...]) -> str:
        source, type_ = self.random.choice(
            (("args.tags", "word"), ("args.sizes", "int"), ("args.rows", "row"))
        )
        name = self.random.choice(("x", "y"))
        inner = (*((old, kind) for old, kind in scope if old != name), (name, type_))
        return f"{source}.{self.random.choice(('exists', 'all'))}({name}, {self.cond(depth - 1, inner)})"

    def _time(self, depth: int, scope: tuple[tuple[str, str], ...]) -> str:
        op = self.random.choice(("==", "<", "<=", ">", ">=", "!="))
        lapse = self.random.choice(
            ("duration('10m')", "duration('-1h30m')", "duration('250ms')", "duration('24h')")
        )
        stamp = self.random.choice(
            ("timestamp('2026-03-01T12:00:00Z')", "timestamp('2026-02-28T23:30:00+01:00')")
        )
        return self.random.choice(
            (
                f"now + {lapse} {op} {stamp}",
                f"now - {stamp} {op} {lapse}",
                f"now {op} {stamp}",
                f"{lapse} + {lapse} {op} {lapse}",
            )
        )

    # --- what CEL does not have

    def _done(self, depth: int, scope: tuple[tuple[str, str], ...]) -> str:
        return self.random.choice(
            (
                "done('run_check', {'check': 'unit'}, {'verdict': 'pass'})",
                "done('run_check', {'check': 'lint'})",
                f"done('reserve_inventory', {{'cart_version': {self.number(depth - 1, scope)}}})",
                "done('place_order')",
            )
        )

    def _count(self, depth: int, scope: tuple[tuple[str, str], ...]) -> str:
        return self.random.choice(
            (
                "count('pay') > 1",
                "sum('pay', 'cents') == 175",
                "last_age('pay') < duration('5m')",
                "count('pay', 'failed') == 1",
            )
        )

    def _origin(self, depth: int, scope: tuple[tuple[str, str], ...]) -> str:
        asked = self.random.choice(("args.name", "args.n", "args.path", "args.mail"))
        return f"'{self.random.choice(('user', 'untrusted'))}' in origin({asked})"

    def _args_of(self, depth: int, scope: tuple[tuple[str, str], ...]) -> str:
        return f"args_of('{self.random.choice(('address', 'reference'))}').all(z, 'user' in origin(z))"

    def _links(self, depth: int, scope: tuple[tuple[str, str], ...]) -> str:
        return "links(args.body).exists(z, host(z) == 'evil.example')"

    def _grant(self, depth: int, scope: tuple[tuple[str, str], ...]) -> str:
        return self.random.choice(
            (
                "grant.documents.collection == 'prospectus'",
                f"grant.host.level < {self.number(depth - 1, scope)}",
            )
        )

    def _under(self, depth: int, scope: tuple[tuple[str, str], ...]) -> str:
        return self.random.choice(
            (
                "under(args.path, 'src/')",
                "under(args.path, principal.home)",
                "domain(args.mail) == 'example.org'",
                "host(args.link) == 'x.org'",
            )
        )

    def _decimal(self, depth: int, scope: tuple[tuple[str, str], ...]) -> str:
        return f"args.amount * limits.rate {self.random.choice(('<', '>=', '=='))} decimal('18.75')"
