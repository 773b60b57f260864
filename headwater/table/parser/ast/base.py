"""What all nodes of a syntax tree share."""

from __future__ import annotations

from dataclasses import dataclass, field

from headwater.table.parser.tokens import NOWHERE, Span


@dataclass(frozen=True)
class Node:
    """A part of a statement. Two nodes are equal if they mean the same, wherever they stand in a text."""

    span: Span = field(default=NOWHERE, compare=False, repr=False, kw_only=True)


@dataclass(frozen=True)
class Expression(Node):
    """What has a value."""


@dataclass(frozen=True)
class Relation(Node):
    """What may stand in FROM."""


@dataclass(frozen=True)
class Query(Node):
    """What gives a table: SELECT, VALUES, a set operation, with ORDER BY or WITH around it."""


@dataclass(frozen=True)
class Statement(Node):
    """What can be executed."""


@dataclass(frozen=True)
class DataType(Node):
    """A type as it is written: `DECIMAL(10, 2) NOT NULL`, `ROW<a INT>`, `MAP<STRING, INT>`."""

    name: str
    parameters: tuple[int, ...] = ()
    arguments: tuple[DataType, ...] = ()
    """The types in angle brackets; of a ROW or STRUCTURED type, those of its fields."""
    field_names: tuple[str, ...] = ()
    field_comments: tuple[str | None, ...] = ()
    nullable: bool = True
