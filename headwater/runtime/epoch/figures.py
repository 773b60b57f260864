"""What one task or partition measured in one epoch. It travels with the acknowledgement: failed attempts count nothing.

Counters are kept per batch and per chunk, never per record. What is 0 is left out: acknowledgements stay small.
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

K = TypeVar("K")
N = TypeVar("N", int, float)


class Traffic(NamedTuple):
    """What went over one edge. Bytes are those of the chunks' payloads."""

    records: int
    bytes: int


class HotKey(NamedTuple):
    """A key that came up often in a sample of the records."""

    key: str
    """Its repr, shortened."""
    key_group: int
    hits: float


class KeySampling(NamedTuple):
    """What a sample of the keys of one operator says. Older samples count for less."""

    samples: float
    keys: tuple[HotKey, ...]
    """The most frequent first."""


@dataclass
class Figures:
    """All counts are of this epoch, except for gauges: `state_entries`, `event_timers`, `idle`."""

    records_out: dict[str, int] = field(default_factory=dict)
    """{operator or source uid: records that it emitted, side outputs included}"""
    sent: dict[int, Traffic] = field(default_factory=dict)
    """{edge: what was written to it}; a broadcast record counts once, its bytes once per target"""
    received: dict[int, Traffic] = field(default_factory=dict)
    busy_ms: dict[str, float] = field(default_factory=dict)
    """{uid of a vertex' head: time in its operators}, without the time in which nobody took their output"""
    blocked_ms: float = 0.0
    """Time in which a slot could not get rid of its output."""
    cpu_ms: float = 0.0
    """Processor time of the thread that runs the operators."""
    major_faults: int = 0
    """Pages that had to be read from disk for it: swapped out, or of a mapped file."""
    preempted: int = 0
    """Involuntary context switches: the thread had more to do, but another one got the processor."""
    gc_ms: float = 0.0
    """How long the slot's garbage collector stopped it since its last acknowledgement."""
    state_entries: dict[str, int] = field(default_factory=dict)
    event_timers: dict[str, int] = field(default_factory=dict)
    """{operator uid: when its earliest event-time timer or window is due}"""
    idle: tuple[str, ...] = ()
    """Uids of the operators and sources whose edges out of the stage are idle."""
    key_samples: dict[str, KeySampling] = field(default_factory=dict)
    """{operator uid: ...}, about once a second"""

    def add(self, other: Figures) -> None:
        """Add what another split of the same task did. Nothing in stage 0 has state or keys."""
        add_counts(self.records_out, other.records_out)
        add_counts(self.busy_ms, other.busy_ms)
        for total, more in ((self.sent, other.sent), (self.received, other.received)):
            for edge, traffic in more.items():
                known = total.get(edge, NO_TRAFFIC)
                total[edge] = Traffic(known.records + traffic.records, known.bytes + traffic.bytes)
        self.blocked_ms += other.blocked_ms
        self.cpu_ms += other.cpu_ms
        self.major_faults += other.major_faults
        self.preempted += other.preempted


NO_TRAFFIC = Traffic(0, 0)


def add_counts(total: MutableMapping[K, N], more: Mapping[K, N]) -> None:
    """Add `more` to `total`, key by key."""
    for key, count in more.items():
        total[key] = total.get(key, 0) + count
