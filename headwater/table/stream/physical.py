"""A physical plan: operators with their inputs, and what is known about the rows that each gives."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from headwater.operators.base import Operator
from headwater.table.plan.expressions import Column, FunctionCall, Rex
from headwater.table.stream.connectors.contract import TableSink, TableSource
from headwater.table.types.logical import TimeAttribute

ROWTIME = "rowtime"
PROCTIME = "proctime"

Key = frozenset[int]
"""Columns, by id, of which no two rows have the same values."""


@dataclass(frozen=True)
class WindowPart:
    """What a column is of a window: `start`, `end` or `time`. Columns of one window have the same `window`."""

    part: str
    window: str
    time: str
    """ROWTIME or PROCTIME: which time closes the window."""
    zoned: bool = False
    """Its bounds are local times of a TIMESTAMP_LTZ."""


@dataclass(frozen=True)
class State:
    """What an operator keeps, for people: `what`, for how long, and whether it is bounded by itself."""

    what: str
    ttl_ms: int | None = None
    bounded: bool = False


@dataclass(frozen=True)
class Traits:
    """What is known about the rows of a node."""

    append_only: bool = True
    keys: frozenset[Key] = frozenset()
    times: Mapping[int, str] = field(default_factory=dict)
    """{column id: ROWTIME or PROCTIME}"""
    windows: Mapping[int, WindowPart] = field(default_factory=dict)
    culprit: str = ""
    """If rows are updated: the operator that does it, and why."""
    meanings: Mapping[int, str] = field(default_factory=dict)
    """{column id: a digest of what the column is, the same in every run}"""
    rows: str = ""
    """A digest of what the rows are, whatever columns they have."""
    bounded: bool = True

    def projected(self, origins: Mapping[int, int], meanings: Mapping[int, str]) -> Traits:
        """The traits after a projection. `origins`: {new column id: the id of the column that it is a copy of}."""
        copies: dict[int, list[int]] = {}
        for new, old in origins.items():
            copies.setdefault(old, []).append(new)
        keys = frozenset(
            frozenset(copies[each][0] for each in key) for key in self.keys if all(e in copies for e in key)
        )
        return replace(
            self,
            keys=keys,
            times={new: self.times[old] for new, old in origins.items() if old in self.times},
            windows={new: self.windows[old] for new, old in origins.items() if old in self.windows},
            meanings=meanings,
        )


@dataclass(frozen=True, eq=False)
class Physical:
    """A node. `keys`: for each input, by which columns (places) it is partitioned; None: rows stay where they are."""

    kind: str
    detail: str
    columns: tuple[Column, ...]
    inputs: tuple[Physical, ...] = ()
    factory: Callable[[], Operator] | None = None
    keys: tuple[tuple[int, ...], ...] | None = None
    traits: Traits = field(default_factory=Traits)
    state: State | None = None
    uid: str = ""
    source: TableSource | None = None
    sink: TableSink | None = None
    per_split: bool = False
    """It keeps state per split of the source before it."""
    ticks: bool = False
    """It must see processing time pass without data, too."""
    parallelism: int | None = None
    stream: Any = None
    """A transformation of a DataStream program that the rows come from, instead of a source."""
    logical: Any = None
    """Of a Calc: its steps."""

    def place(self, column: Column) -> int:
        """Where a column is."""
        return [each.id for each in self.columns].index(column.id)

    def walk(self) -> Iterator[Physical]:
        yield self
        for each in self.inputs:
            yield from each.walk()


def is_proctime(rex: Rex) -> bool:
    """True for PROCTIME() itself, whose column is a time attribute."""
    attribute = getattr(rex.type, "attribute", TimeAttribute.NONE)
    return isinstance(rex, FunctionCall) and attribute is TimeAttribute.PROCTIME
