"""The interfaces of sources and sinks. Connectors implement them; the runtime calls them.

A **source** is read in splits. The driver keeps, per split, a position and hands out budgets; tasks read.
A **sink** is written in two phases. Tasks write and prepare; the driver commits what a durable manifest names.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, BinaryIO, Protocol

from headwater.common.rejected import Rejected


@dataclass(frozen=True)
class Split:
    """One independently readable part of a source: a file, a range of numbers, a generator's share.

    `split_id` is unique within the source for ever: a split that was finished is never offered again.
    `payload` is whatever the reader needs; it is pickled.
    """

    split_id: str
    payload: Any


class TimedBatch(list[Any]):
    """Records with the timestamps that their source knows: what `read_batch` returns if there are some.

    `timestamps` (ms) is as long as the list. None stands for a record without one.
    """

    __slots__ = ("timestamps",)

    def __init__(self, records: Sequence[Any], timestamps: list[int | None]) -> None:
        super().__init__(records)
        self.timestamps = timestamps


class Blocks(list[Any]):
    """Records that are blocks of rows, such as batches of Arrow: what `read_batch` returns so that rows are counted.

    `rows` is how many rows they have together.
    """

    __slots__ = ("rows",)

    def __init__(self, records: Sequence[Any], rows: int) -> None:
        super().__init__(records)
        self.rows = rows


class SplitReader(ABC):
    """Reads one split, from one position on, in one process: for one epoch, or for several one after the other."""

    gives_away: bool = False
    """True if every record is new, and shares nothing that can change with other records or with the reader.

    Otherwise records that can change are copied, because an operator may change them.
    """
    batch_records: int | None = None
    """How many records it likes to be asked for at once; None: as many as suit the engine."""

    @abstractmethod
    def read_batch(self, max_records: int) -> list[Any] | None:
        """Return up to `max_records` records; [] if none is there now; None once the split has ended for good.

        Called again and again until the epoch's budget is used, or [] or None came back. After [] a later epoch may ask
        the same reader again. Must not wait for records: epochs of other splits would wait, too.
        A reader that knows the records' timestamps returns a `TimedBatch`, one of blocks of rows `Blocks`, whose rows
        are counted; a block may have more of them.
        """

    @abstractmethod
    def position(self) -> Any:
        """The position after the last record returned: a reader opened there goes on with the next record."""

    def counters(self) -> dict[str, int]:
        """Return what the reader counted since it was opened, besides records, such as skipped bad ones."""
        return {}

    def gauges(self) -> dict[str, float]:
        """Return where the reader stands, for people: asked at the end of each epoch, so it must be quick.

        Names that every metric page knows (Flink's, where it has them): `pendingRecords` (the lag, in records),
        `currentOffset`, `endOffset`, `currentFetchEventTimeLag` (ms between the last record's timestamp and its
        arrival), `oldestUnreadAge` (ms since the oldest unread record came). Leave out what is not known.
        """
        return {}

    def rejected(self) -> list[Rejected]:
        """Return the records that could not be read since the last call, and forget them.

        Called after each `read_batch`, also after one that returned [] or None. The position is behind them. They go
        out with the epoch, to whoever takes a source's rejected records; if nobody does, the epoch fails.
        """
        return []

    def wait_readable(self, deadline: float, wake: int) -> bool:
        """Wait for records. For a source whose attribute `waits` is True.

        Return True as soon as `read_batch` may return some; False when `time.monotonic()` passes `deadline`, or once
        the file descriptor `wake` can be read (which is not to be read here): then somebody else needs the reader.
        Called between epochs, perhaps in another thread, but never while another method of the reader runs.
        """
        raise NotImplementedError(f"{type(self).__name__} does not wait")

    def close(self) -> None:
        """Release what the reader holds. Called once, also after an error."""


class Source(ABC):
    """Where records come from. Pickled to the tasks; `discover_splits` runs in the driver."""

    bounded: bool = True
    """True if the set of splits and each split end by themselves."""

    rate_per_second: float | None = None
    """Upper limit of records per second over all splits; the driver turns it into budgets."""

    discovery_interval_ms: int | None = None
    """If set, `discover_splits` is called again at most this often, to find new splits (a watched directory)."""

    waits: bool = False
    """True if its readers implement `wait_readable`. A source that does not wait is asked every now and then."""

    @abstractmethod
    def discover_splits(self, parallelism: int, known: frozenset[str]) -> list[Split]:
        """Return splits whose ids are not in `known`. `parallelism` is a hint for how many to make at first."""

    def read_after(self, split: Split) -> Collection[str]:
        """Return the ids of splits that must be read to their end before `split` is opened. Called in the driver.

        For splits whose records follow others' (the parents of a shard). Ids that were never offered do not count.
        The answer is the same whenever it is asked for, also by a driver that has only just restored the split.
        """
        return ()

    def continue_after(self, parallelism: int, known: frozenset[str], watermark_ms: int | None) -> list[Split]:
        """All splits that were found are read to their end: return those that come after them; [] if there are none.

        For a source that is read in stages. `watermark_ms` is the event time that it has reached, if there is any.
        Called in the driver. A bounded source that returns [] has ended; another one is asked again.
        """
        return []

    @abstractmethod
    def open_reader(self, split: Split, position: Any | None) -> SplitReader:
        """Open `split` at `position` (None: from its start). Called in a task, at most once per split and epoch."""

    def plan_read(self, split: Split, position: Any | None, budget: int) -> Split:
        """Return the split for a task that reads at most `budget` records from `position`. Called in the driver.

        A source whose data is in the driver puts the records of this epoch into the split's payload.
        """
        return split

    def rejecting(self) -> Source:
        """Return this source, or one like it, whose readers tell bad records by `rejected()` instead of raising.

        Called in the driver if somebody takes them.
        """
        return self

    def read_again(self, rejected: Rejected) -> Sequence[Any]:
        """Return the records in what a reader of this source rejected, as its format reads them now.

        Called in a task, for dead letters that are put through again; only `raw`, `where`, `timestamp_ms` and
        `attributes` are as they were. What it raises rejects them again.
        """
        raise NotImplementedError(f"{type(self).__name__} cannot read rejected records again")

    def checkpoint_committed(self, positions: Mapping[str, Any]) -> None:
        """A durable checkpoint holds these positions, {split id: position}, and its output is visible.

        Called in the driver, in a thread of its own, one call at a time. For what must know how far a job has safely
        read: group offsets, a replication slot, acknowledgements. It may come late; it may never come, because the
        driver died or a later checkpoint took its place; so nothing may depend on it but that. What it raises is
        logged, and the job goes on. Splits that no epoch has read are left out; one that has ended is in the first
        checkpoint after its end.
        """

    def close(self) -> None:
        """Release what the source holds in the driver. Called when the job ends, or is rescaled: then it goes on."""


class SinkWriter(ABC):
    """Writes one partition's part of the epochs. Lives in a slot or, for a stateless stage, in a Python worker.

    Nothing it writes may be visible before the committer runs. If an epoch fails, the runtime calls `abort`, or the
    process is gone: what the writer wrote must then never become visible.
    """

    @abstractmethod
    def write_batch(self, values: Sequence[Any], timestamps: Sequence[int | None] | None) -> None:
        """Take a batch of records. May buffer."""

    @abstractmethod
    def prepare_commit(self) -> list[Any]:
        """End the epoch: make what was written durable but invisible, and return its committables.

        Committables are pickled into the manifest: small, and enough to commit from another process, days later.
        """

    def make_durable(self) -> None:
        """Make durable what the last `prepare_commit` left to this call, for writers that wait for a disk.

        Called after each `prepare_commit`, before anybody relies on its committables, while the partition's state is
        persisted, too. If it raises, the epoch fails, and the writer is closed.
        """

    def abort(self) -> None:
        """Forget what was written since the last `prepare_commit`."""

    def close(self) -> None:
        """Release what the writer holds."""


class ReusableSinkWriter(SinkWriter):
    """A writer that stays open between epochs, for what is dear to open: a connection, a buffer, a directory.

    `create_writer` makes it for its first epoch. It goes to the next one with `begin_epoch` if its last call was a
    `make_durable` that returned; after an error or `abort` it is closed, and another one is made.
    """

    @abstractmethod
    def begin_epoch(self, context: WriterContext) -> None:
        """Write for another epoch attempt from now on. Called before its first record; not in an epoch without any.

        Only `attempt_id`, `epoch` and `now_ms` of `context` differ. The attempt before may have failed since its
        `prepare_commit`: then its committables will not be committed, and the same records come again.
        """


@dataclass(frozen=True)
class CheckpointMoment:
    """When a checkpoint is cut."""

    epoch: int
    now_ms: int
    """The epoch's processing time, which never goes back."""
    final: bool = False
    """The job ends with this checkpoint, or a savepoint is made of it: hold nothing back."""


@dataclass(frozen=True)
class Selection:
    """What a checkpoint makes visible, and what it holds back."""

    due: list[Any]
    """Committables for `Committer.commit`."""
    held: list[Any] = field(default_factory=list)
    """Committables for the next `Committer.select`. The manifest names them, so they survive whatever the job does."""
    again_ms: int | None = None
    """Cut a checkpoint at this processing time even if nothing else calls for one. None: no need to."""


class Committer(ABC):
    """Makes prepared output visible. Runs in the driver, after the manifest that names the committables is durable.

    The sinks of a job commit side by side, each in one thread at a time unless its `concurrency` allows more.
    """

    def open(self, context: CommitterContext) -> None:
        """Learn whose output it commits. Called once, before any other call."""

    def select(self, prepared: list[Any], held: list[Any], moment: CheckpointMoment) -> Selection:
        """Choose what the checkpoint that is cut now makes visible; the rest is held for a later one.

        For output that should become visible in larger pieces than one checkpoint's. `prepared` are the committables
        of the epochs since the last checkpoint, `held` is what that one held. What is returned may be others than what
        was given: several that became one. Called in the driver between two epochs. It must be quick and must change
        nothing: the checkpoint may fail, and then the same `held` comes again, with more `prepared`.
        """
        return Selection([*held, *prepared])

    def holding(self, held: list[Any]) -> None:
        """Learn what the last durable checkpoint holds back: `find_leftovers`, which is called next, spares it."""

    concurrency: int = 1
    """How many calls of `commit` may run at once, each with some of an epoch's committables. 1: one call with all."""

    @abstractmethod
    def commit(self, committables: list[Any]) -> None:
        """Make all of `committables` visible. Idempotent: after a crash the last epoch's are committed again.

        When it returns they are visible for good, even after a power cut. All of an epoch's are committed before any of
        the next one, so a new driver repeats no other epoch than the last.

        If it raises, the driver calls it again with the same committables, as often as the restart policy allows; then
        the job fails. A reader may already have taken away what an earlier call made visible: that counts as committed.
        """

    def find_leftovers(self, job_id: str) -> list[Any]:
        """Return what attempts of the job left behind and no manifest names. Must not delete it.

        Called when nothing is in flight: at the job's start, after the last epoch was committed again, and at its end.
        The driver then checks that no other driver has taken over the job, and calls `delete_leftovers`.
        """
        return []

    def delete_leftovers(self, leftovers: list[Any]) -> None:
        """Delete what `find_leftovers` returned, and nothing else: newer files may belong to another driver."""

    def close(self) -> None:
        """Release what the committer holds."""


class OutputFiles(Protocol):
    """A sink's own files in the job's checkpoint storage, for output that waits for its commit.

    So large output crosses neither the driver's memory nor a manifest: a writer puts it into a file, and the
    committable names the file. Whoever commits deletes the file afterwards. A name is up to 150 letters, digits, `_`,
    `-` and `.`; make it from the attempt id, so that no other attempt uses it.
    """

    def write(self, name: str) -> AbstractContextManager[BinaryIO]:
        """Open a file for writing. It is there, whole and durable, once the block ends without an error."""
        ...

    def open(self, name: str) -> BinaryIO:
        """Read a file. Raises FileNotFoundError if it is not there."""
        ...

    def delete(self, name: str) -> None:
        """Delete a file, if it is there."""
        ...

    def names(self) -> list[str]:
        """Return the names of all files of this sink."""
        ...


@dataclass(frozen=True)
class CommitterContext:
    """Whose output a committer commits."""

    job_id: str
    operator_name: str
    operator_uid: str
    files: OutputFiles | None = None
    """As the writers' (`WriterContext.files`)."""
    resumed_epoch: int = -1
    """The job resumes from the checkpoint of this epoch: the output of epochs up to it may have been committed before,
    by another driver. -1: the job starts from nothing."""
    spark_session: Callable[[], Any] | None = None
    """Returns the job's Spark session. None: the job runs without Spark."""


@dataclass(frozen=True)
class WriterContext:
    """Where a writer runs."""

    job_id: str
    operator_name: str
    partition: int
    parallelism: int
    attempt_id: str
    """Unique per epoch attempt: files named with it cannot clash with those of another attempt."""
    epoch: int
    operator_uid: str = ""
    """The identity of the operator across versions of the job."""
    files: OutputFiles | None = None
    """Where large output can wait for its commit. None: the job has no checkpoint storage, as in BATCH mode."""
    now_ms: int = 0
    """The epoch's processing time. A replayed epoch has the same."""


class Sink(ABC):
    """Where records go. Pickled to the tasks."""

    insert_only: bool = False
    """True if it writes every row as a new one. Then rows of the kinds UPDATE_BEFORE and DELETE are refused before
    a writer gets them, as if it had raised SerializationError."""

    eager: bool = False
    """Commit after every epoch, even if the next checkpoint is further away. Output is then at least once: when the job
    goes back to its last checkpoint, later output comes again."""

    @abstractmethod
    def create_writer(self, context: WriterContext) -> SinkWriter:
        """Called once per partition and epoch attempt that has records, unless a `ReusableSinkWriter` is open."""

    @abstractmethod
    def create_committer(self) -> Committer:
        """Called once per job in the driver."""


def drain(reader: SplitReader, batch: int) -> Iterator[list[Any]]:
    """Yield all batches that `reader` has now. For tests and tools."""
    while records := reader.read_batch(batch):
        yield records
