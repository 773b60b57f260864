"""Texts about a failed checkpoint: which partition, how long, which setting, what to do."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from headwater.common.config_options import CHECKPOINTING_TIMEOUT
from headwater.common.ids import Place
from headwater.runtime.epoch.messages import SnapshotPart

_SHOWN = 3

StageOperators = Mapping[int, Sequence[str]]
"""{stage: names of its operators with state}"""


class UnfinishedCut(Protocol):
    """A checkpoint that still lacks the parts of some partitions."""

    @property
    def waiting_for(self) -> set[Place]: ...
    @property
    def parts(self) -> Mapping[Place, SnapshotPart]: ...


def described(place: Place, operators: StageOperators) -> str:
    """Return a partition as text, with the names of its operators."""
    stage, partition = place
    names = ", ".join(operators.get(stage, ()))
    return f"stage {stage} partition {partition}" + (f" ({names})" if names else "")


def part_failed(place: Place, error: str, operators: StageOperators) -> str:
    """Return the text if a partition could not write its part."""
    return f"{described(place, operators)}: {error}"


def not_in_time(cut: UnfinishedCut, waited_ms: float, timeout_ms: float, operators: StageOperators) -> str:
    """Return the text if some partitions have not written their parts in time."""
    late = sorted(cut.waiting_for)
    key = CHECKPOINTING_TIMEOUT.key
    verb = "has" if len(late) == 1 else "have"
    text = (
        f"{_duration(waited_ms)} after its cut, {_list(late, operators)} {verb} not written what changed; {key} allows "
        f"{_duration(timeout_ms)}. "
    )
    if cut.parts:
        slowest, part = max(cut.parts.items(), key=lambda item: item[1].async_ms)
        which = "The other one" if len(cut.parts) == 1 else f"The slowest of the {len(cut.parts)} others"
        text += f"{which}, {described(slowest, operators)}, wrote for {_duration(part.async_ms)}. "
    return (
        f"{text}See whether the store is slow for all of them (headwater checkpoints JOB: ASYNC of earlier ones), or "
        f"one has far more to write than the others (--epoch N: a hot key); or raise {key}"
    )


def _list(places: Iterable[Place], operators: StageOperators) -> str:
    names = [described(place, operators) for place in places]
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more


def _duration(milliseconds: float) -> str:
    return f"{milliseconds / 1000:,.1f} s" if milliseconds >= 1_000 else f"{milliseconds:.0f} ms"
