"""Makes output visible exactly once: the rows and a mark that they are there, in one transaction.

The mark is a row of the table `headwater_sink_marks`, one per job, sink and partition: up to which epoch the output is
there. The database has both or neither. So a commit that is repeated, after a lost answer or by another driver, sees
what the first one did (docs/decisions/0033-databases-exactly-once.md).
"""

from __future__ import annotations

import contextlib
import pickle
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Final

import xxhash

from headwater.common.connector import Committer, CommitterContext, OutputFiles
from headwater.common.errors import ExternalSystemError, HeadwaterError
from headwater.datastream.connectors.jdbc.database import CREATE_MARKS, ROWS, Database, MarkKey, open_database
from headwater.datastream.connectors.jdbc.expected import ExpectedTable
from headwater.datastream.connectors.jdbc.noted_limits import read_limits, write_limits
from headwater.datastream.connectors.jdbc.options import JdbcConnectionOptions, JdbcExecutionOptions
from headwater.datastream.connectors.jdbc.refused_row import refused_row
from headwater.datastream.connectors.jdbc.spool import SpooledRows, read_blocks
from headwater.datastream.connectors.jdbc.statement import Statement
from headwater.datastream.connectors.spool_committer import SpoolCommitter
from headwater.datastream.connectors.spool_notes import NOTE, first_note

OUTAGE_SECONDS: Final = 30.0
"""How long one call of `commit` waits for a database that cannot be reached."""
POLL_SECONDS: Final = 0.2
_UID_CHARACTERS: Final = 255
_JOB_CHARACTERS: Final = 100
_NO_PARTITION: Final = -1


@dataclass(frozen=True)
class Checks:
    """What must hold when a job starts from nothing."""

    statements: tuple[tuple[Statement, Sequence[Any]], ...]
    """Statements that can run, and the types of their values."""
    replaces: tuple[str, tuple[str, ...]] | None = None
    """A table whose rows are replaced by these columns."""
    expected: ExpectedTable | None = None

    def run(self, database: Database, connection: Any) -> None:
        for statement, declared in self.statements:
            database.check(connection, statement, declared)
        if self.replaces is not None:
            database.check_replaces(connection, *self.replaces)
        if self.expected is not None:
            database.check_types(connection, self.expected)

    def note_limits(self, database: Database, connection: Any, files: OutputFiles | None) -> None:
        """Look what the columns refuse, and tell the writers."""
        if files is not None:
            write_limits(files, read_limits(database, connection, self.statements[0][0]))


class MarkedCommitter(SpoolCommitter):
    """Runs in the driver. One call has all output of an epoch; partitions are written side by side."""

    def __init__(
        self,
        owner: str,
        options: JdbcConnectionOptions,
        execution: JdbcExecutionOptions,
        checks: Checks,
    ) -> None:
        super().__init__(owner)
        self._options = options
        self._execution = execution
        self._checks = checks
        self._opened: Database | None = None
        self._threads: ThreadPoolExecutor | None = None
        self._lock = threading.Lock()
        self._idle: list[Any] = []
        """Connections that nobody uses."""
        self._tokens: dict[str, str] = {}  # {job id: the rest of its marks' name}

    @property
    def _database(self) -> Database:
        if self._opened is None:
            self._opened = open_database(self._options, self.owner)
        return self._opened

    def open(self, context: CommitterContext) -> None:
        """Check that the statement can run, if the job is new: the error comes before hours of work."""
        self.context = context
        if context.resumed_epoch < 0:
            with self._connection("cannot run the statement") as connection:
                self._checks.run(self._database, connection)
                for statement, _ in self._checks.statements:
                    self._database.warn_if_slow(connection, statement)
                self._try_mark(connection)
                self._checks.note_limits(self._database, connection, context.files)
        else:
            # A database that is away now must not keep the job from going on: the limits of before count, then.
            with contextlib.suppress(HeadwaterError), self._connection("cannot look at the table") as connection:
                self._checks.note_limits(self._database, connection, context.files)

    # --- committing

    def commit(self, committables: list[Any]) -> None:
        ordered = sorted(committables, key=lambda each: (each.job_id, each.partition, each.order))
        groups = [list(group) for _, group in groupby(ordered, lambda each: (each.job_id, each.partition))]
        for job_id in {each.job_id for each in committables}:
            self._token(job_id, min((each for each in ordered if each.job_id == job_id), key=lambda each: each.order))
        if len(groups) > 1 and self._database.parallel_writes > 1:
            if self._threads is None:
                self._threads = ThreadPoolExecutor(self._database.parallel_writes, thread_name_prefix="jdbc-commit")
            running = [self._threads.submit(self._commit_partition, group) for group in groups]
            errors = [error for each in running if (error := each.exception()) is not None]
            if errors:
                raise errors[0]
        else:
            for group in groups:
                self._commit_partition(group)
        self.forget(committables)

    def _commit_partition(self, group: list[SpooledRows]) -> None:
        """Write one partition's output of an epoch, or of several, in one transaction."""
        left = self._execution.max_retries
        while True:
            try:
                what = f"cannot commit the output of epoch {group[-1].epoch}"
                with self._connection(what, OUTAGE_SECONDS) as connection:
                    try:
                        self._write(connection, group)
                    except self._database.error as error:
                        if self._database.refuses_row(error):
                            raise self._refused(connection, group, self._database.failed(what, error)) from None
                        raise
                return
            except ExternalSystemError:
                if left == 0:
                    raise
                left -= 1

    def _refused(self, connection: Any, group: list[SpooledRows], error: HeadwaterError) -> HeadwaterError:
        """Add to the error which row it is, and what can be done: the checkpoint has promised the row."""
        database, size = self._database, self._execution.batch_size
        with contextlib.suppress(database.error):
            connection.rollback()
            there = database.lock_mark(connection, self._key(group[0]))
            for spooled in group:
                blocks = read_blocks(spooled, self.context.files) if spooled.epoch > there else iter(())
                batches = map(pickle.loads if spooled.form == ROWS else database.rows_of, blocks)
                if found := refused_row(database, connection, Statement.of(spooled.sql), batches, size):
                    error = HeadwaterError(f"{error}\n{found}")
                    break
            connection.rollback()
        error.add_note(
            "Nothing of the epoch is lost: its rows wait in the checkpoint storage. Let the table take the row (relax "
            "what forbids it, remove the row in its way, or leave it out with a trigger), and start the job again"
        )
        return error

    def _write(self, connection: Any, group: list[SpooledRows]) -> None:
        database, key = self._database, self._key(group[0])
        there = database.lock_mark(connection, key)
        missing = [spooled for spooled in group if spooled.epoch > there]
        for (sql, form), same in groupby(missing, lambda each: (each.sql, each.form)):
            blocks = (block for spooled in same for block in read_blocks(spooled, self.context.files))
            if form == ROWS:
                rows = map(pickle.loads, blocks)
                database.write_rows(connection, Statement.of(sql), rows, self._execution.batch_size)
            else:
                database.write_copy(connection, Statement.of(sql), blocks, self._execution.batch_size)
        if missing:
            database.set_mark(connection, key, missing[-1].epoch)
            connection.commit()
        else:
            connection.rollback()

    def _key(self, spooled: SpooledRows) -> MarkKey:
        uid = self.context.operator_uid
        if len(uid) > _UID_CHARACTERS:
            uid = xxhash.xxh128_hexdigest(uid.encode())
        return f"{spooled.job_id}.{self._tokens[spooled.job_id]}", uid, spooled.partition

    def _token(self, job_id: str, first: SpooledRows) -> None:
        """Learn the rest of the marks' name, noted before the job's first commit (`first_note` says why)."""
        if job_id not in self._tokens:
            new = xxhash.xxh64_hexdigest(first.name.encode())
            self._tokens[job_id] = first_note(self.context.files, f"{NOTE}{job_id}", new.encode()).decode()

    # --- connections

    @contextlib.contextmanager
    def _connection(self, what: str, wait_seconds: float = 0) -> Iterator[Any]:
        """A connection that is free. After an error it is closed: nothing is known about its transaction."""
        database = self._database
        with self._lock:
            connection = self._idle.pop() if self._idle else None
        try:
            if connection is None:
                identity = f"{self.context.job_id}/{self.context.operator_uid}"
                connection = self._connect(f"headwater sink {xxhash.xxh64_hexdigest(identity.encode())}", wait_seconds)
                self._make_marks(connection)
            yield connection
        except BaseException as error:
            if connection is not None:
                with contextlib.suppress(Exception):
                    connection.close()
            if isinstance(error, database.error):
                raise database.failed(what, error) from None
            raise
        with self._lock:
            self._idle.append(connection)

    def _connect(self, purpose: str, wait_seconds: float) -> Any:
        """Wait for a database that is away for a moment: the restart strategy may allow few attempts only."""
        deadline = time.monotonic() + wait_seconds
        while True:
            try:
                return self._database.connect(purpose)
            except ExternalSystemError:
                if time.monotonic() >= deadline:
                    raise
                time.sleep(POLL_SECONDS)

    def _make_marks(self, connection: Any) -> None:
        with self._marks("cannot make the table of marks"):
            self._database.make_marks(connection)

    def _try_mark(self, connection: Any) -> None:
        context = self.context
        key = context.job_id[:_JOB_CHARACTERS], context.operator_uid[:_UID_CHARACTERS], _NO_PARTITION
        with self._marks("cannot set a mark"):
            self._database.try_mark(connection, key)

    @contextlib.contextmanager
    def _marks(self, what: str) -> Iterator[None]:
        try:
            yield
        except self._database.error as error:
            problem = self._database.failed(what, error)
            problem.add_note(f"Let somebody who may run: {CREATE_MARKS}; and grant SELECT, INSERT and UPDATE on it")
            raise problem from None

    def close(self) -> None:
        if self._threads is not None:
            self._threads.shutdown()
            self._threads = None
        for connection in self._idle:
            with contextlib.suppress(Exception):
                connection.close()
        self._idle = []


class NothingToCommit(Committer):
    """For writers that write themselves. Checks the statement when a job starts from nothing."""

    def __init__(self, owner: str, options: JdbcConnectionOptions, checks: Checks) -> None:
        self._owner = owner
        self._options = options
        self._checks = checks

    def open(self, context: CommitterContext) -> None:
        database = open_database(self._options, self._owner)
        connection = database.connect()
        try:
            if context.resumed_epoch < 0:
                self._checks.run(database, connection)
            self._checks.note_limits(database, connection, context.files)
        except database.error as error:
            raise database.failed("cannot run the statement", error) from None
        finally:
            connection.close()

    def commit(self, committables: list[Any]) -> None:
        """The rows are there."""
