"""A place in a list of tokens, and errors that say what could have stood there."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from typing import TypeVar

from headwater.common.errors import SqlError
from headwater.table.parser.keywords import RESERVED
from headwater.table.parser.tokens import Kind, Span, Token, located, tokenize

T = TypeVar("T")

_SHOWN = 10
"""More alternatives than this help nobody."""


class Cursor:
    """Reads tokens one after another. The grammar's parts extend it.

    Every question "is the next token X?" is remembered until the cursor moves; an error then lists what was asked for.
    """

    def __init__(self, sql: str) -> None:
        self.sql = sql
        self._tokens = tokenize(sql)
        self._index = 0
        self._asked: dict[str, None] = {}

    @property
    def token(self) -> Token:
        return self._tokens[self._index]

    def ahead(self, distance: int = 1) -> Token:
        return self._tokens[min(self._index + distance, len(self._tokens) - 1)]

    @property
    def previous(self) -> Token:
        return self._tokens[max(self._index - 1, 0)]

    def since(self, start: Span) -> Span:
        """From `start` to the last token that was read."""
        return start.to(self.previous.span)

    def at_end(self) -> bool:
        return self.token.kind is Kind.END

    def advance(self) -> Token:
        token = self.token
        self._index = min(self._index + 1, len(self._tokens) - 1)
        self._asked.clear()
        return token

    def mark(self) -> int:
        """The place, to `rewind` to."""
        return self._index

    def forget(self) -> None:
        """Forget what was asked for: the caller asks in an order that helps more."""
        self._asked.clear()

    def rewind(self, mark: int) -> None:
        self._index = mark
        self._asked.clear()

    # -- Keywords and signs

    def at(self, *words: str) -> bool:
        """Whether the next tokens are these words or signs. Asking leaves no trace in an error."""
        return all(self._is(self.ahead(distance), word) for distance, word in enumerate(words))

    def at_any(self, *words: str) -> bool:
        return any(self._is(self.token, word) for word in words)

    @staticmethod
    def _is(token: Token, word: str) -> bool:
        return token.upper == word if word[0].isalpha() else (token.kind is Kind.OPERATOR and token.text == word)

    def accept(self, *words: str) -> bool:
        """Read these words or signs if they come next, all of them."""
        if not self.at(*words):
            self._asked[" ".join(words)] = None
            if words[-1] == "BY" and self.at(words[0]):  # ORDER, GROUP and PARTITION mean nothing else
                self.advance()
                raise self.wanted("BY")
            return False
        for _ in words:
            self.advance()
        return True

    def accept_any(self, *words: str) -> str | None:
        """Read one of these words if one comes next."""
        return next((word for word in words if self.accept(word)), None)

    def expect(self, *words: str) -> None:
        for word in words:
            if not self.accept(word):
                raise self.unexpected()

    def expect_any(self, *words: str) -> str:
        found = self.accept_any(*words)
        if found is None:
            raise self.unexpected()
        return found

    # -- Names and literals

    def at_name(self) -> bool:
        token = self.token
        return token.kind is Kind.QUOTED or (token.kind is Kind.WORD and token.upper not in RESERVED)

    def name(self, what: str = "a name") -> str:
        """Read one name: quoted, or a word that is not reserved."""
        if not self.at_name():
            if self.token.kind is Kind.WORD:
                raise self.error(
                    f"'{self.token.text}' is a reserved word; write it as `{self.token.text}` to use it as a name",
                    self.token.span,
                )
            self._asked[what] = None
            raise self.unexpected()
        return self.advance().text

    def dotted(self, what: str = "a name") -> tuple[str, ...]:
        """Read `a`, `a.b` or `a.b.c`. After a point every word is a name."""
        parts = [self.name(what)]
        while self.at(".") and self.ahead().kind in (Kind.WORD, Kind.QUOTED):
            self.advance()
            parts.append(self.advance().text)
        return tuple(parts)

    def string(self, what: str = "a string") -> str:
        if self.token.kind is not Kind.STRING:
            self._asked[what] = None
            raise self.unexpected()
        return self.advance().text

    def accept_string(self) -> str | None:
        return self.advance().text if self.token.kind is Kind.STRING else None

    def integer(self) -> int:
        if self.token.kind is not Kind.NUMBER or not self.token.text.isdigit():
            self._asked["an integer"] = None
            raise self.unexpected()
        return int(self.advance().text)

    # -- Lists

    def commas(self, item: Callable[[], T]) -> tuple[T, ...]:
        """Read one or more items with commas between them."""
        items = [item()]
        while self.accept(","):
            items.append(item())
        return tuple(items)

    def in_parentheses(self, item: Callable[[], T]) -> tuple[T, ...]:
        """Read `(item, item)`."""
        self.expect("(")
        items = self.commas(item)
        self.expect(")")
        return items

    # -- Errors

    def wanted(self, what: str) -> SqlError:
        """The error that `what` should stand here."""
        self._asked[what] = None
        return self.unexpected()

    def unexpected(self) -> SqlError:
        """The error that the next token is none of those that were asked for."""
        asked = list(self._asked)
        shown = [each if each[0].isalpha() else f"'{each}'" for each in asked[:_SHOWN]]
        expected = ", ".join(shown) + (", …" if len(asked) > _SHOWN else "")
        text = f"found {self.token.shown()}"
        if expected:
            text += f", expected {'one of ' if len(asked) > 1 else ''}{expected}"
        return self.error(text + self._nearest(asked), self.token.span)

    def error(self, text: str, span: Span) -> SqlError:
        return located(text, self.sql, span)

    def _nearest(self, asked: list[str]) -> str:
        """A guess which word was meant by the next token, or by the name before it."""
        words = [word for each in asked for word in each.split()[:1] if word.isalpha() and word.isupper()]
        candidates = [self.token]
        if self._index and self.previous.kind is Kind.WORD and self.previous.upper not in RESERVED:
            candidates.append(self.previous)
        for token in candidates:
            near = difflib.get_close_matches(token.upper, words, n=1, cutoff=0.7) if token.upper else []
            if near and near[0] != token.upper:
                return f"; did you mean {near[0]} instead of '{token.text}'?"
        return ""
