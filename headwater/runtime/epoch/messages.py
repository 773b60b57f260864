"""What the driver, its tasks and the slots tell each other about one epoch.

The driver sends an `EpochHeader` and `SourceTask`s through the engine. A relay sends its slot `BeginEpoch`. Back come
one `SplitAck` per split that was read, one `SourceAck` per task of stage 0 and one `PartitionAck` per partition of the
later stages; or an `AttemptFailedError` (`failure.py`). All of them are pickled, none is persisted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from headwater.checkpoint.restore.rescale import PartitionRestore
from headwater.checkpoint.snapshot.file import SnapshotRef
from headwater.common.connector import Split
from headwater.common.dead_letter import DeadLetter
from headwater.common.ids import Place
from headwater.graph.plan import StageSpec
from headwater.metrics import Measured, add_measured
from headwater.runtime.epoch.figures import Figures, add_counts
from headwater.runtime.epoch.refusals import Refusals
from headwater.runtime.epoch.snapshot_chain import SnapshotChain
from headwater.time.watermark_keys import at_input

T = TypeVar("T")
BATCH_RECORDS = 2048
"""A source's records go through the chained operators in batches of this size; watermarks advance between them."""


@dataclass(frozen=True)
class Attempt:
    """One try to run one epoch. A slot serves only the newest attempt that it has seen; it fences older ones."""

    incarnation: int
    """Counts how often the job has started on its directory, or gone back to a checkpoint."""
    epoch: int
    number: int
    run: str = "run"
    """Random, one per driver process: no other attempt ever uses a name made from `id`."""

    @property
    def id(self) -> str:
        return f"{self.run}-{self.incarnation}-{self.epoch}-{self.number}"

    def order(self) -> tuple[int, int, int]:
        return (self.incarnation, self.epoch, self.number)


@dataclass(frozen=True)
class Base:
    """The state that an epoch starts from, and how far it is persisted."""

    epoch: int
    """The last accepted epoch. -1: empty state."""
    token: str
    """Names the state itself: epochs are numbered again after the job went back to a checkpoint."""
    durable_epoch: int
    """The last epoch with a manifest, -1 if there is none: only this state can be loaded."""
    durable_token: str
    in_flight: str | None = None
    """Token of the checkpoint under way. A cut that is neither this one nor the durable one has failed."""


@dataclass(frozen=True)
class SlotAddress:
    """Where a slot is. One entry of the address book."""

    stage: int
    partition: int
    host: str
    port: int  # 0: Unix socket only
    path: str
    pid: int
    incarnation: str
    query_port: int = 0
    """Where it answers queries of state; 0: on a Unix socket only."""
    query_path: str = ""

    @property
    def place(self) -> Place:
        return Place(self.stage, self.partition)


# --- from the driver


@dataclass(frozen=True)
class SplitAssignment:
    """One split, and how far a task may read it in this epoch."""

    split: Split
    position: bytes | None
    budget: int
    operator_state: bytes
    watermarks: dict[str, int]


@dataclass(frozen=True)
class SourceTask:
    """What one task of stage 0 does in one epoch.

    A source that has nothing to read still holds (or, at its end, releases) event time downstream: `marker` has the
    watermarks that stand for the whole source. With `final` the job's input is over: event time ends here.
    """

    index: int
    source_id: int
    subtask: int
    splits: tuple[SplitAssignment, ...] = ()
    marker: dict[str, int] | None = None
    exhausted: bool = False
    final: bool = False


@dataclass(frozen=True)
class BeginEpoch:
    """All that a slot needs to run one epoch attempt."""

    attempt: Attempt
    base: Base
    now_ms: int
    watermarks: dict[str, int]
    snapshots: Sequence[SnapshotRef]
    """The durable checkpoint's chain, oldest first. The slot loads it only if it does not hold that state."""
    checkpointing: bool
    cut: bool = True
    """The epoch ends with a checkpoint."""
    wait: bool = False
    """Acknowledge only when what the slot has to persist is durable, however long that takes."""
    refusals: Refusals = field(default_factory=Refusals)
    """Records that the epoch runs without."""
    letters: tuple[DeadLetter, ...] = ()
    """Dead letters that come into the epoch once more."""
    restore: PartitionRestore | None = None
    """Takes the place of `snapshots` if a job of another shape made the checkpoint."""


@dataclass(frozen=True)
class EpochHeader:
    """What the tasks of one epoch attempt are told. A task gets only its own part of it: `for_place`."""

    attempt: Attempt
    base: Base
    now_ms: int
    checkpointing: bool
    final: bool
    cut: bool = True
    wait: bool = False
    address_book: dict[Place, SlotAddress] = field(default_factory=dict)
    watermarks: dict[Place, dict[str, int]] = field(default_factory=dict)
    snapshots: dict[Place, SnapshotChain] = field(default_factory=dict)
    restores: dict[Place, PartitionRestore] = field(default_factory=dict)
    """{partition: what it begins with}, as long as the last checkpoint is that of a job of another shape."""
    dataframe_state: dict[int, tuple[bytes, dict[str, int]]] = field(default_factory=dict)
    """{DataFrame source: (operator state, watermarks)} where the last epoch left it."""
    dataframe_bounded: bool = True
    batch_records: int = BATCH_RECORDS
    resident: bool = False
    """The resident engine runs the attempt, where there is one."""
    refusals: Refusals = field(default_factory=Refusals)
    """Records that the epoch runs without."""
    letters: tuple[DeadLetter, ...] = ()
    """Dead letters that come into the epoch once more. Every place gets all, and takes those that are its own."""

    def floors(self, stage: StageSpec, partition: int) -> dict[int, int]:
        """{operator: the watermark that it has reached before this epoch}"""
        reached = self.watermarks.get(Place(stage.index, partition), {})
        keys = {operator.id: at_input(operator.uid) for operator in stage.operators}
        return {operator: reached[key] for operator, key in keys.items() if key in reached}

    def for_place(self, place: Place | None) -> EpochHeader:
        """Return the header without other partitions' entries. None: of a task of stage 0, which has none."""
        return replace(
            self,
            address_book=_entry(self.address_book, place),
            watermarks=_entry(self.watermarks, place),
            snapshots=_entry(self.snapshots, place),
            restores=_entry(self.restores, place),
            dataframe_state=self.dataframe_state if place is None else {},
        )

    def begin_for(self, place: Place) -> BeginEpoch:
        """What the slot of a partition is told."""
        return BeginEpoch(
            attempt=self.attempt,
            base=self.base,
            now_ms=self.now_ms,
            watermarks=self.watermarks.get(place, {}),
            snapshots=self.snapshots.get(place, []),
            checkpointing=self.checkpointing,
            cut=self.cut,
            wait=self.wait,
            refusals=self.refusals,
            letters=self.letters,
            restore=self.restores.get(place),
        )


def _entry(entries: Mapping[Place, T], place: Place | None) -> dict[Place, T]:
    return {place: entries[place]} if place is not None and place in entries else {}


# --- to the driver


@dataclass
class EpochOutcome:
    """What the operators of one partition (or one split) did in an epoch."""

    watermarks: dict[str, int] = field(default_factory=dict)
    committables: dict[str, list[bytes]] = field(default_factory=dict)
    next_timer_ms: int | None = None
    records_in: dict[str, int] = field(default_factory=dict)
    figures: Figures = field(default_factory=Figures)
    metrics: Measured = field(default_factory=dict)
    """What user functions measured in this epoch, {operator uid: {partition: delta}}; only operators that measure."""
    rejected: dict[str, int] = field(default_factory=dict)
    """{operator uid: records that it refused}, those of sources left out."""

    @property
    def state_entries(self) -> int:
        return sum(self.figures.state_entries.values())

    def add(self, other: EpochOutcome) -> None:
        """Add what another split of the same task did. Watermarks stay: each split has its own."""
        for uid, items in other.committables.items():
            self.committables.setdefault(uid, []).extend(items)
        add_counts(self.records_in, other.records_in)
        add_counts(self.rejected, other.rejected)
        self.figures.add(other.figures)
        add_measured(self.metrics, other.metrics)
        timers = [timer for timer in (self.next_timer_ms, other.next_timer_ms) if timer is not None]
        self.next_timer_ms = min(timers, default=None)


@dataclass
class SplitAck:
    """One split was read up to a new position."""

    source_id: int
    split_id: str
    position: bytes
    records: int
    finished: bool
    operator_state: bytes
    watermarks: dict[str, int] = field(default_factory=dict)
    counters: dict[str, int] = field(default_factory=dict)
    """What the reader counted beside records: bad ones that it skipped, say."""
    idle: bool = False
    """The split is idle for those who wait for its watermark."""
    gauges: dict[str, float] = field(default_factory=dict)
    """Where the reader stands: lag, end of the split ..."""


@dataclass
class SourceAck:
    """One task of stage 0 is done: what its chained operators and sinks produced."""

    index: int
    outcome: EpochOutcome
    source_id: int = -1
    subtask: int = 0
    """Which partition of the source's vertex it was."""


@dataclass(frozen=True)
class SnapshotPart:
    """A partition's part of the checkpoint with `token` is durable, or (with `error`) could not be made so."""

    token: str
    ref: SnapshotRef | None = None
    """None: nothing had changed."""
    error: str | None = None
    whole: bool = False
    """The snapshot replaces all earlier ones of the partition."""
    sync_ms: float = 0.0
    """How long the slot stood still for it."""
    async_ms: float = 0.0
    """How long it then took beside the processing."""


@dataclass
class PartitionAck:
    """One partition of a stage has done its part of the epoch. Only slots fill the fields behind `processing_ms`."""

    place: Place
    outcome: EpochOutcome
    processing_ms: float = 0.0
    address: SlotAddress | None = None
    part: SnapshotPart | None = None
    """What became of a checkpoint: the one that ends here, or an earlier one."""
    full: SnapshotRef | None = None
    """Replaces all snapshots up to its epoch."""
    writing: tuple[str, ...] = ()
    """The files of a full snapshot that is being written: not garbage."""
    restored: bool = False
    snapshot_ms: float = 0.0


Ack = SplitAck | SourceAck | PartitionAck
