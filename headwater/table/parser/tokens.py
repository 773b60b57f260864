"""From SQL text to tokens, each with its place in the text; and how an error shows that place."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum

from headwater.common.errors import SqlError
from headwater.common.secrets import masked


@dataclass(frozen=True)
class Span:
    """A part of the text: offsets of its first character and of the one after its last."""

    start: int
    end: int

    def to(self, other: Span) -> Span:
        """From the start of this to the end of `other`."""
        return Span(self.start, max(self.end, other.end))


NOWHERE = Span(-1, -1)
"""The place of a node that did not come from text (the Table API makes such nodes)."""


class Kind(Enum):
    WORD = "word"
    QUOTED = "quoted name"
    STRING = "string"
    BINARY = "binary string"
    NUMBER = "number"
    OPERATOR = "operator"
    END = "end of the statement"


@dataclass(frozen=True)
class Token:
    kind: Kind
    text: str
    """As it means: a quoted name without its quotes, a string unescaped; a word as it was written."""
    span: Span

    @property
    def upper(self) -> str:
        """The word in upper case; "" for what is no word, so that it equals no keyword."""
        return self.text.upper() if self.kind is Kind.WORD else ""

    def shown(self) -> str:
        """The token as an error names it."""
        return "the end of the statement" if self.kind is Kind.END else f"'{self.text}'"


_TOKEN = re.compile(
    r"""
      (?P<space>\s+|--[^\n]*|/\*(?!\+).*?\*/)
    | (?P<unicode>[uU]&'(?:[^']|'')*')
    | (?P<binary>[xX]'[^']*')
    | (?P<number>(?:\d+\.\d*|\.\d+|\d+)(?:[eE][+-]?\d+)?)
    | (?P<word>[^\W\d][\w$]*)
    | (?P<quoted>`(?:[^`]|``)*`)
    | (?P<string>'(?:[^']|'')*')
    | (?P<operator>/\*\+|\*/|<>|!=|<=|>=|=>|\|\||->|/(?!\*)|[-+*%<>=(),.;\[\]{}|?^$:])
    """,
    re.VERBOSE | re.DOTALL,
)

_OPENED = {"'": "a string", "`": "a quoted name", "/*": "a comment"}


def tokenize(sql: str) -> list[Token]:
    """Cut `sql` into tokens; the last is of kind END. Raises SqlError at a character that begins no token."""
    tokens: list[Token] = []
    position = 0
    while position < len(sql):
        match = _TOKEN.match(sql, position)
        if match is None:
            raise _bad_character(sql, position)
        span = Span(position, match.end())
        if match.lastgroup != "space":
            tokens.append(_token(sql, match.lastgroup or "", match.group(), span))
        position = match.end()
    tokens.append(Token(Kind.END, "", Span(len(sql), len(sql))))
    return tokens


def _token(sql: str, group: str, text: str, span: Span) -> Token:
    match group:
        case "quoted":
            return Token(Kind.QUOTED, text[1:-1].replace("``", "`"), span)
        case "string":
            return Token(Kind.STRING, text[1:-1].replace("''", "'"), span)
        case "unicode":
            return Token(Kind.STRING, _unicode(sql, text[3:-1].replace("''", "'"), span), span)
        case "binary":
            if len(text) % 2 == 0 or not re.fullmatch(r"[0-9a-fA-F]*", text[2:-1]):
                raise located(f"{text} is no binary string: it needs an even number of hexadecimal digits", sql, span)
            return Token(Kind.BINARY, text[2:-1].upper(), span)
        case _:
            return Token(Kind[group.upper()], text, span)


def _unicode(sql: str, text: str, span: Span) -> str:
    def character(match: re.Match[str]) -> str:
        if match.group() == "\\\\":
            return "\\"
        if not match.group(1):
            raise located("a '\\' in a Unicode string is followed by four hexadecimal digits", sql, span)
        return chr(int(match.group(1), 16))

    return re.sub(r"\\\\|\\([0-9a-fA-F]{4})?", character, text)


def _bad_character(sql: str, position: int) -> SqlError:
    for opening, what in _OPENED.items():
        if sql.startswith(opening, position):
            return located(f"{what} begins here and does not end", sql, Span(position, len(sql)))
    character = sql[position]
    cure = ': names are quoted with "`", strings with "\'"' if character == '"' else ""
    return located(f"unexpected character {character!r}{cure}", sql, Span(position, position + 1))


def line_and_column(sql: str, offset: int) -> tuple[int, int]:
    """Where a character is. Both are counted from 1."""
    before = sql[:offset]
    return before.count("\n") + 1, offset - before.rfind("\n")


def located(text: str, sql: str, span: Span) -> SqlError:
    """An error about the part `span` of `sql`: the line and column, the line itself and a caret under it."""
    if span.start < 0 or not sql:
        return SqlError(text)
    start = min(span.start, len(sql))
    while start > 0 and span.start >= len(sql) and sql[start - 1].isspace():
        start -= 1  # the end of the statement is shown behind its last word
    before = sql[:start]
    line = before.count("\n") + 1
    column = start - (before.rfind("\n") + 1)
    shown = masked(sql).splitlines()[line - 1] if sql.splitlines()[line - 1 :] else ""
    margin = "".join("\t" if character == "\t" else " " for character in shown[:column])
    carets = "^" * max(1, min(span.end, start + len(shown) - column) - start)
    return SqlError(f"line {line}, column {column + 1}: {text}\n  {shown}\n  {margin}{carets}")
