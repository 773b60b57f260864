"""Several sources one after the other, each in parallel: history from files or a lake, then what is new from Kafka.

The switch happens when all splits of a source are read to their end, which a checkpoint records as any other progress:
so each record is read once, whatever dies meanwhile. Ids of splits begin with the number of their source and the
event time at the switch to it: `1@1700000000000/orders-0`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from headwater.common.connector import Source, Split, SplitReader
from headwater.common.errors import CheckpointError, ConfigurationError, short_repr
from headwater.common.rejected import Rejected

__all__ = ["HybridSource", "HybridSourceBuilder", "SwitchContext"]

_NO_TIME: Final = "-"
_LOOK_AT_ONCE_MS: Final = 1


@dataclass(frozen=True)
class SwitchContext:
    """What is known when a source has ended and the next one begins."""

    previous: Source
    """The source that has ended."""
    watermark_ms: int | None
    """The event time that it has reached; None if its records have none."""


SourceFactory = Callable[[SwitchContext], Source]
"""Makes a source when its turn comes. Called again in other processes and after a restart, with the same time."""


@dataclass(frozen=True)
class _Stage:
    """One source: itself, or what makes it."""

    source: Source | SourceFactory
    bounded: bool


class HybridSource(Source):
    """Reads its sources in turn: the next one begins when the one before it has ended. Only the last may be endless.

    Built by `HybridSource.builder(first).add_source(next).build()`.
    """

    def __init__(self, stages: Sequence[_Stage], rejects: bool = False) -> None:
        self._stages = tuple(stages)
        self._rejects = rejects
        self._made: dict[tuple[int, str], Source] = {}
        self._at: tuple[int, str] | None = None
        """The stage that the driver last looked at, for how often it looks; None: it has not looked yet."""
        self.bounded = self._stages[-1].bounded
        # One limit for all: a source must never be read faster than it allows.
        rates = [stage.source.rate_per_second for stage in self._stages if isinstance(stage.source, Source)]
        self.rate_per_second = min((rate for rate in rates if rate is not None), default=None)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_made": {}, "_at": None}

    @property
    def discovery_interval_ms(self) -> int | None:  # type: ignore[override]
        """Of the source whose turn it is."""
        return _LOOK_AT_ONCE_MS if self._at is None else self._source(*self._at).discovery_interval_ms

    @staticmethod
    def builder(first_source: Source) -> HybridSourceBuilder:
        return HybridSourceBuilder(first_source)

    def rejecting(self) -> Source:
        return HybridSource(self._stages, rejects=True)

    def read_again(self, rejected: Rejected) -> Sequence[Any]:
        """By the first of the sources that can: which one rejected it is not known."""
        problem: Exception | None = None
        for number in range(len(self._stages)):
            try:
                return self._source(number, _NO_TIME).read_again(rejected)
            except Exception as error:
                problem = error
        assert problem is not None, "there is a source"
        raise problem

    def discover_splits(self, parallelism: int, known: frozenset[str]) -> list[Split]:
        number, time = max((_stage_of(each)[:2] for each in known), default=(0, _NO_TIME))
        self._at = max(self._at or (number, time), (number, time))
        return self._found(number, time, parallelism, known)

    def continue_after(self, parallelism: int, known: frozenset[str], watermark_ms: int | None) -> list[Split]:
        number, time = max((_stage_of(each)[:2] for each in known), default=(0, _NO_TIME))
        while number + 1 < len(self._stages):
            number, time = number + 1, _NO_TIME if watermark_ms is None else str(watermark_ms)
            self._at = (number, time)
            if found := self._found(number, time, parallelism, known):
                return found
            if not self._stages[number].bounded:
                return []  # nothing yet
        return []

    def read_after(self, split: Split) -> Collection[str]:
        source, inner = self._inner(split)
        begin = split.split_id.removesuffix(inner.split_id)
        return [begin + each for each in source.read_after(inner)]

    def plan_read(self, split: Split, position: Any | None, budget: int) -> Split:
        source, inner = self._inner(split)
        return Split(split.split_id, source.plan_read(inner, position, budget).payload)

    def open_reader(self, split: Split, position: Any | None) -> SplitReader:
        source, inner = self._inner(split)
        return source.open_reader(inner, position)

    def checkpoint_committed(self, positions: Mapping[str, Any]) -> None:
        by_stage: dict[tuple[int, str], dict[str, Any]] = {}
        for split_id, position in positions.items():
            number, time, inner = _stage_of(split_id)
            by_stage.setdefault((number, time), {})[inner] = position
        for stage, inner_positions in by_stage.items():
            self._source(*stage).checkpoint_committed(inner_positions)

    def close(self) -> None:
        for source in self._made.values():
            source.close()

    def __repr__(self) -> str:
        return f"HybridSource({', '.join(repr(stage.source) for stage in self._stages)})"

    def _found(self, number: int, time: str, parallelism: int, known: frozenset[str]) -> list[Split]:
        begin = f"{number}@{time}/"
        inner = frozenset(each.removeprefix(begin) for each in known if each.startswith(begin))
        found = self._source(number, time).discover_splits(parallelism, inner)
        return [Split(begin + split.split_id, split.payload) for split in found]

    def _inner(self, split: Split) -> tuple[Source, Split]:
        number, time, inner = _stage_of(split.split_id)
        return self._source(number, time), Split(inner, split.payload)

    def _source(self, number: int, time: str) -> Source:
        made = self._made.get((number, time))
        if made is None:
            made = self._made[number, time] = self._make(number, time)
        return made

    def _make(self, number: int, time: str) -> Source:
        stage = self._stages[number]
        if isinstance(stage.source, Source):
            made = stage.source
        else:
            before = self._source(number - 1, time if number > 1 else _NO_TIME)
            made = stage.source(SwitchContext(before, None if time == _NO_TIME else int(time)))
            if not isinstance(made, Source) or made.bounded != stage.bounded:
                kind = "bounded" if stage.bounded else "unbounded"
                raise ConfigurationError(
                    f"HybridSource: the function for source {number} returned {short_repr(made)}; expected a source "
                    f"that is {kind}, as add_source was told"
                )
        return made.rejecting() if self._rejects else made


def _stage_of(split_id: str) -> tuple[int, str, str]:
    """(number of the source, event time at the switch to it, the source's own id)"""
    stage, slash, inner = split_id.partition("/")
    number, at, time = stage.partition("@")
    if not slash or not at:
        raise CheckpointError(
            f"HybridSource: the checkpoint has the split {split_id!r}, which an earlier version of headwater made; run "
            "the job with that version, or start on a fresh checkpoint directory"
        )
    return int(number), time, inner


class HybridSourceBuilder:
    """Collects the sources in the order in which they are read."""

    def __init__(self, first_source: Source) -> None:
        self._stages: list[_Stage] = []
        if not isinstance(first_source, Source):
            raise _no_source(first_source)
        self.add_source(first_source)

    def add_source(self, source: Source | SourceFactory, bounded: bool = False) -> HybridSourceBuilder:
        """Add a source, or a function that makes it from a `SwitchContext` when its turn comes.

        :param bounded: whether the source that the function makes ends.
        """
        if not isinstance(source, Source) and not callable(source):
            raise _no_source(source)
        if self._stages and not self._stages[-1].bounded:
            raise ConfigurationError(
                f"HybridSource: {self._stages[-1].source!r} never ends, so {source!r} would never be read; only the "
                "last source may be unbounded"
            )
        self._stages.append(_Stage(source, source.bounded if isinstance(source, Source) else bounded))
        return self

    def build(self) -> HybridSource:
        return HybridSource(self._stages)


def _no_source(found: object) -> ConfigurationError:
    return ConfigurationError(
        f"HybridSource got {found!r}; expected a source that is read in splits, such as FileSource or "
        "NumberSequenceSource. Read a DataFrame by itself and union both streams"
    )
