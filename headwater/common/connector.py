"""What a source and a sink must be. Connectors implement these; the runtime calls them.

A **source** is read in splits. The driver keeps, per split, a position and hands out budgets; tasks read.
A **sink** is written in two phases. Tasks write and prepare; the driver commits what a durable manifest names.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Split:
    """One independently readable part of a source: a file, a range of numbers, a generator's share.

    `split_id` is unique within the source for ever: a split that was finished is never offered again.
    `payload` is whatever the reader needs; it is pickled.
    """

    split_id: str
    payload: Any


class SplitReader(ABC):
    """Reads one split, from one position on, in one process: for one epoch, or for several one after the other."""

    gives_away: bool = False
    """True if every record is new, and shares nothing that can change with other records or with the reader.

    Otherwise records that can change are copied, because an operator may change them.
    """

    @abstractmethod
    def read_batch(self, max_records: int) -> list[Any] | None:
        """Return up to `max_records` records; [] if none is there now; None once the split has ended for good.

        Called again and again until the epoch's budget is used, or [] or None came back. After [] a later epoch may ask
        the same reader again. Must not wait for records: epochs of other splits would wait, too.
        """

    @abstractmethod
    def position(self) -> Any:
        """The position after the last record returned: a reader opened there goes on with the next record."""

    def counters(self) -> dict[str, int]:
        """What this reader counted since it was opened, beside records: bad records that it skipped, say."""
        return {}

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

    @abstractmethod
    def open_reader(self, split: Split, position: Any | None) -> SplitReader:
        """Open `split` at `position` (None: from its start). Called in a task, at most once per split and epoch."""

    def plan_read(self, split: Split, position: Any | None, budget: int) -> Split:
        """The split as the task should get it, to read at most `budget` records from `position`. Runs in the driver.

        For sources whose data is in the driver: they put just what the epoch may read into the split's payload.
        """
        return split

    def timestamps_of(self, records: list[Any]) -> list[int] | None:
        """Timestamps (ms) that the source itself knows for the records just read, or None."""
        return None


class SinkWriter(ABC):
    """Writes one partition's part of the epochs. Lives in a slot or, for a stateless stage, in a Python worker.

    Nothing it writes may be visible to readers before the committer ran. If an epoch fails, the writer is told to
    `abort`, or is simply gone: what it had written must stay invisible for ever.
    """

    @abstractmethod
    def write_batch(self, values: Sequence[Any], timestamps: Sequence[int | None] | None) -> None:
        """Take a batch of records. May buffer."""

    @abstractmethod
    def prepare_commit(self) -> list[Any]:
        """End the epoch: make what was written durable but invisible, and return its committables.

        Committables are pickled into the manifest: small, and enough to commit from another process, days later.
        """

    def abort(self) -> None:
        """Forget what was written since the last `prepare_commit`."""

    def close(self) -> None:
        """Release what the writer holds."""


class ReusableSinkWriter(SinkWriter):
    """A writer that stays open between epochs, for what is dear to open: a connection, a buffer, a directory.

    `create_writer` makes it for its first epoch. It goes to the next one with `begin_epoch` if its last call was a
    `prepare_commit` that returned; after an error or `abort` it is closed, and another one is made.
    """

    @abstractmethod
    def begin_epoch(self, context: WriterContext) -> None:
        """Write for another epoch attempt from now on. Called before its first record; not in an epoch without any.

        Only `attempt_id` and `epoch` of `context` are other ones. The attempt before may have failed since its
        `prepare_commit`: then its committables will not be committed, and the same records come again.
        """


class Committer(ABC):
    """Makes prepared output visible. Runs in the driver, after the manifest that names the committables is durable.

    The sinks of a job commit side by side, each in one thread at a time unless its `concurrency` allows more.
    """

    concurrency: int = 1
    """How many calls of `commit` may run at once, each with some of an epoch's committables. 1: one call with all."""

    @abstractmethod
    def commit(self, committables: list[Any]) -> None:
        """Make all of `committables` visible. Idempotent: after a crash the last epoch's are committed again.

        When it returns they are visible for good, even after a power cut. All of an epoch's are committed before any of
        the next one, so a new driver repeats no other epoch than the last.

        Whatever it raises, it is called again with the same committables, as the restart policy says; then the job
        fails. So what is gone because an earlier call made it visible, and a reader took it away, is committed.
        """

    def find_leftovers(self, job_id: str) -> list[Any]:
        """What attempts of the job left that no manifest names.

        Called when nothing is in flight: at the job's start, after the last epoch was committed again, and at its end.
        Deletes nothing: the driver may have slept, and another one may have the job by now.
        """
        return []

    def delete_leftovers(self, leftovers: list[Any]) -> None:
        """Delete what `find_leftovers` found. Between the two no other driver had taken the job over.

        So nothing among them can be another driver's; what has come since may be, and must stay.
        """

    def close(self) -> None:
        """Release what the committer holds."""


@dataclass(frozen=True)
class WriterContext:
    """What a writer may know about where it runs."""

    job_id: str
    operator_name: str
    partition: int
    parallelism: int
    attempt_id: str
    """Unique per epoch attempt: files named with it cannot clash with those of another attempt."""
    epoch: int


class Sink(ABC):
    """Where records go. Pickled to the tasks."""

    eager: bool = False
    """Do not wait for the next checkpoint: with checkpoints further apart than epochs, commit after every epoch. Output
    is then at least once: what came after the last checkpoint comes again when the job goes back to it."""

    @abstractmethod
    def create_writer(self, context: WriterContext) -> SinkWriter:
        """Called once per partition and epoch attempt that has records, unless a `ReusableSinkWriter` is open."""

    @abstractmethod
    def create_committer(self) -> Committer:
        """Called once per job in the driver."""


def drain(reader: SplitReader, batch: int) -> Iterator[list[Any]]:
    """All batches that `reader` has now. For tests and tools."""
    while records := reader.read_batch(batch):
        yield records
