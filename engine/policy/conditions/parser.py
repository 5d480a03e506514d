"""Owns the grammar: tokens to the tree as written (language reference, section 1.3)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Literal

from engine.domain.conditions import Span
from engine.policy.conditions.lexer import Kind, Token, tokens
from engine.policy.conditions.syntax import (
    MAX_DEPTH,
    At,
    Chain,
    Choice,
    Entries,
    Infix,
    Invoke,
    Items,
    Member,
    Name,
    Prefix,
    Scalar,
    Syntax,
    SyntaxFault,
)

KEYWORDS: Final = frozenset({"true", "false", "null", "in"})
RESERVED: Final = KEYWORDS | frozenset(
    {
        "as",
        "break",
        "const",
        "continue",
        "else",
        "for",
        "function",
        "if",
        "import",
        "let",
        "loop",
        "package",
        "namespace",
        "return",
        "var",
        "void",
        "while",
    }
)
"""Words that CEL keeps for itself."""
_RELATIONS: Final = frozenset({"==", "!=", "<", "<=", ">", ">=", "in"})
_WORDS: Final = {
    "and": "write `&&`",
    "or": "write `||`",
    "not": "write `!`",
    "is": "write `==`",
    "if": "write the condition alone; what follows from it is the rule's effect",
}
_INT_LIMIT: Final = 2**63


def parse(text: str) -> Syntax:
    """The tree of a whole condition. Raises SyntaxFault."""
    found = tokens(text)
    if len(found) == 1:
        raise SyntaxFault(Span(0, len(text)), "the condition is empty", "write a condition, or drop the key")
    return _Parser(found).whole()


class _Parser:
    def __init__(self, found: list[Token]) -> None:
        self._tokens = found
        self._at = 0
        self._level = 0

    def whole(self) -> Syntax:
        expr = self._cond()
        left_over = self._peek
        if left_over.kind is not Kind.END:
            raise SyntaxFault(
                left_over.span,
                f"`{left_over.value}` does not continue the condition",
                _WORDS.get(left_over.value, "join two conditions with `&&` or `||`"),
            )
        return expr

    # --- operators, loosest first

    def _cond(self) -> Syntax:
        self._enter()
        expr = self._joined("||")
        if self._sees("?"):
            expr = self._choice(expr)
        self._level -= 1
        return expr

    def _choice(self, test: Syntax) -> Choice:
        mark = self._next()
        then = self._joined("||")
        self._expect(":", mark, "the `?` has no `:`")
        other = self._cond()
        span = Span(test.span.start, other.span.end)
        return Choice((test, then, other), mark.span, span, self._depth(mark, test, then, other))

    def _joined(self, op: Literal["||", "&&"]) -> Syntax:
        operands = [self._joined("&&") if op == "||" else self._relation()]
        while self._sees(op):
            self._next()
            operands.append(self._joined("&&") if op == "||" else self._relation())
        if len(operands) == 1:
            return operands[0]
        # Joining is associative in three-valued logic: `(a && b) && c` is one chain of three.
        flat = [part for each in operands for part in _parts(each, op)]
        span = Span(operands[0].span.start, operands[-1].span.end)
        return Chain(op, tuple(flat), span, self._depth(self._peek, *flat))

    def _relation(self) -> Syntax:
        left = self._sum()
        while self._peek.value in _RELATIONS and self._peek.kind in (Kind.SIGN, Kind.NAME):
            left = self._infix(left, self._sum)
        return left

    def _sum(self) -> Syntax:
        left = self._product()
        while self._sees("+", "-"):
            left = self._infix(left, self._product)
        return left

    def _product(self) -> Syntax:
        left = self._unary()
        while self._sees("*", "/", "%"):
            left = self._infix(left, self._unary)
        return left

    def _infix(self, left: Syntax, operand: Callable[[], Syntax]) -> Infix:
        mark = self._next()
        right = operand()
        span = Span(left.span.start, right.span.end)
        return Infix(mark.value, mark.span, left, right, span, self._depth(mark, left, right))

    def _unary(self) -> Syntax:
        if not self._sees("!", "-"):
            return self._postfix(self._primary())
        mark = self._next()
        if mark.value == "-" and self._peek.kind is Kind.NUMBER:
            number = self._next()
            span = Span(mark.span.start, number.span.end)
            return self._postfix(_integer("-" + number.value, span))
        self._enter()
        operand = self._unary()
        self._level -= 1
        op: Literal["!", "-"] = "!" if mark.value == "!" else "-"
        return Prefix(op, operand, Span(mark.span.start, operand.span.end), self._depth(mark, operand))

    # --- operands

    def _postfix(self, expr: Syntax) -> Syntax:
        while True:
            if self._sees("."):
                expr = self._member(expr)
            elif self._sees("["):
                opening = self._next()
                index = self._cond()
                end = self._expect("]", opening, "the `[` is not closed").span.end
                expr = At(expr, index, Span(expr.span.start, end), self._depth(opening, expr, index))
            else:
                return expr

    def _member(self, operand: Syntax) -> Syntax:
        self._next()
        word = self._peek
        if word.kind is not Kind.NAME or word.value in KEYWORDS:
            raise self._unexpected("a field name")
        self._next()
        if not self._sees("("):
            span = Span(operand.span.start, word.span.end)
            return Member(operand, word.value, word.span, span, self._depth(word, operand))
        return self._invoke(operand, word)

    def _invoke(self, receiver: Syntax | None, word: Token) -> Invoke:
        opening = self._next()
        args, end = self._listed(opening, ")")
        start = receiver.span.start if receiver is not None else word.span.start
        inner = args if receiver is None else (receiver, *args)
        return Invoke(receiver, word.value, word.span, args, Span(start, end), self._depth(word, *inner))

    def _primary(self) -> Syntax:
        token = self._peek
        match token.kind:
            case Kind.NUMBER:
                return _integer(self._next().value, token.span)
            case Kind.STRING:
                return Scalar(self._next().value, token.span)
            case Kind.NAME:
                return self._word()
        if token.value == "(":
            return self._parenthesised()
        if token.value == "[":
            items, end = self._listed(self._next(), "]")
            return Items(items, Span(token.span.start, end), self._depth(token, *items))
        if token.value == "{":
            return self._entries()
        raise self._unexpected("a value")

    def _word(self) -> Syntax:
        token = self._peek
        if token.value in ("true", "false"):
            return Scalar(self._next().value == "true", token.span)
        if token.value == "null":
            raise SyntaxFault(
                token.span, "`null` is not a value of the language", "ask `has(x)` or `!has(x)`"
            )
        if token.value in RESERVED or token.value == "not":
            raise self._unexpected("a value")
        self._next()
        return self._invoke(None, token) if self._sees("(") else Name(token.value, token.span)

    def _parenthesised(self) -> Syntax:
        opening = self._next()
        expr = self._cond()
        self._expect(")", opening, "the `(` is not closed")
        return expr

    def _listed(self, opening: Token, closing: str) -> tuple[tuple[Syntax, ...], int]:
        items: list[Syntax] = []
        while not self._sees(closing):
            items.append(self._cond())
            if not self._sees(","):
                break
            self._next()
            if self._sees(closing):
                raise self._unexpected("a value")
        end = self._expect(closing, opening, f"the `{opening.value}` is not closed").span.end
        return tuple(items), end

    def _entries(self) -> Entries:
        self._enter()
        opening = self._next()
        entries: list[tuple[Scalar, Syntax]] = []
        while not self._sees("}"):
            key = self._peek
            if key.kind is not Kind.STRING:
                raise self._unexpected("a quoted name")
            self._next()
            self._expect(":", opening, "after the name comes `:`")
            entries.append((Scalar(key.value, key.span), self._joined("||")))
            if not self._sees(","):
                break
            self._next()
        end = self._expect("}", opening, "the `{` is not closed").span.end
        self._level -= 1
        values = [value for _, value in entries]
        return Entries(tuple(entries), Span(opening.span.start, end), self._depth(opening, *values))

    # --- tokens and limits

    @property
    def _peek(self) -> Token:
        return self._tokens[self._at]

    def _next(self) -> Token:
        token = self._tokens[self._at]
        self._at += 1
        return token

    def _sees(self, *signs: str) -> bool:
        token = self._peek
        return token.kind is Kind.SIGN and token.value in signs

    def _expect(self, sign: str, opening: Token, message: str) -> Token:
        if self._sees(sign):
            return self._next()
        if self._peek.kind is Kind.END:
            raise SyntaxFault(opening.span, message, f"add `{sign}`")
        raise self._unexpected(f"`{sign}`")

    def _unexpected(self, wanted: str) -> SyntaxFault:
        token = self._peek
        if token.kind is Kind.END:
            before = self._tokens[self._at - 1]
            return SyntaxFault(
                before.span, f"the condition ends after `{before.value}`", "finish the expression"
            )
        advice = _WORDS.get(token.value, f"{wanted} belongs here")
        return SyntaxFault(token.span, f"expected {wanted}, found `{token.value}`", advice)

    def _enter(self) -> None:
        self._level += 1
        if self._level > MAX_DEPTH:
            raise _too_deep(self._peek)

    def _depth(self, token: Token, *parts: Syntax) -> int:
        depth = 1 + max((part.depth for part in parts), default=0)
        if depth > MAX_DEPTH:
            raise _too_deep(token)
        return depth


def _parts(expr: Syntax, op: str) -> tuple[Syntax, ...]:
    return expr.operands if isinstance(expr, Chain) and expr.op == op else (expr,)


def _integer(digits: str, span: Span) -> Scalar:
    value = int(digits)
    if not -_INT_LIMIT <= value < _INT_LIMIT:
        raise SyntaxFault(span, f"`{digits}` does not fit into 64 bits", "use a smaller number")
    return Scalar(value, span)


def _too_deep(token: Token) -> SyntaxFault:
    return SyntaxFault(
        token.span,
        f"the condition is nested more than {MAX_DEPTH} levels deep",
        "split it into several rules",
    )
