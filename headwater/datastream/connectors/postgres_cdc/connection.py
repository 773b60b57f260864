"""Connections to PostgreSQL for change data: libpq, through psycopg, without its conversions."""

from __future__ import annotations

import contextlib
import struct
import time
from typing import Any, Final

from headwater.common.errors import ExternalSystemError, HeadwaterError
from headwater.common.machine.descriptors import wait_any
from headwater.datastream.connectors.jdbc.options import JdbcConnectionOptions
from headwater.datastream.connectors.jdbc.postgres import Postgres

_STATUS: Final = struct.Struct(">cQQQqB")
_POSTGRES_EPOCH_S: Final = 946_684_800
SESSION: Final = (
    "-c datestyle=ISO -c timezone=UTC -c extra_float_digits=1 -c bytea_output=hex -c intervalstyle=iso_8601"
)
"""Texts of values look the same in the log and in queries."""
STATUS_SECONDS: Final = 10.0
SLOT_SECONDS: Final = 10.0
"""How long to wait for a slot that a dead reader of the same job still holds."""


def lsn_text(lsn: int) -> str:
    return f"{lsn >> 32:X}/{lsn & 0xFFFFFFFF:X}"


def lsn_number(text: str) -> int:
    high, low = text.split("/")
    return (int(high, 16) << 32) | int(low, 16)


class SqlState(Exception):
    """The server refused a statement."""

    def __init__(self, state: str, text: str) -> None:
        super().__init__(text)
        self.state = state


class PgConnection:
    """A plain connection that answers in texts."""

    def __init__(self, options: JdbcConnectionOptions, owner: str, purpose: str, *, replication: bool = False) -> None:
        self.server = Postgres(options, owner)
        settings = {"application_name": purpose, **self.server.connection_settings()}
        settings["options"] = f"{settings.get('options', '')} {SESSION}".strip()
        if replication:
            settings["replication"] = "database"
        psycopg = self.server._psycopg
        self._pq = psycopg.pq
        conninfo = psycopg.conninfo.make_conninfo(**settings)
        self.raw = psycopg.pq.PGconn.connect(conninfo.encode())
        if self.raw.status != self._pq.ConnStatus.OK:
            text = self.raw.error_message.decode(errors="replace").strip()
            self.raw.finish()
            raise self.server.failed("cannot connect", psycopg.OperationalError(text))

    def query(self, sql: str, *values: str | None) -> list[list[bytes | None]]:
        """Run one statement. Raises SqlState, or ExternalSystemError if the connection is gone."""
        if values:
            encoded = [None if value is None else value.encode() for value in values]
            result = self.raw.exec_params(sql.encode(), encoded)
        else:
            result = self.raw.exec_(sql.encode())
        self._check(result)
        columns = range(result.nfields)
        get = result.get_value
        return [[get(row, column) for column in columns] for row in range(result.ntuples)]

    def one(self, sql: str, *values: str | None) -> list[str | None] | None:
        """The first row, as texts."""
        rows = self.query(sql, *values)
        return [None if value is None else value.decode() for value in rows[0]] if rows else None

    def _check(self, result: Any) -> None:
        status = self._pq.ExecStatus
        if result.status in (status.TUPLES_OK, status.COMMAND_OK, status.COPY_BOTH):
            return
        text = (result.error_message or self.raw.error_message).decode(errors="replace").strip()
        state = result.error_field(self._pq.DiagnosticField.SQLSTATE)
        if state is None or self.raw.status != self._pq.ConnStatus.OK or state[:2] in (b"08", b"57"):
            raise self.lost(text)
        raise SqlState(state.decode(), text)

    def lost(self, text: str) -> ExternalSystemError:
        server = self.server
        return ExternalSystemError(f"{server.owner}: the connection to {server.describe()} broke: {text.strip()}")

    def failed(self, what: str, error: SqlState) -> HeadwaterError:
        server = self.server
        return HeadwaterError(f"{server.owner}: {what} in {server.describe()}: {error}")

    def close(self) -> None:
        with contextlib.suppress(Exception):
            self.raw.finish()


class ReplicationStream:
    """The log, from one place on. Tells the server how far the job's checkpoints are, when it learns that."""

    def __init__(self, connection: PgConnection, slot: str, publication: str, lsn: int) -> None:
        self._connection = connection
        self._raw = connection.raw
        self.confirmed_lsn = 0
        """All before this is in durable checkpoints."""
        self._told = time.monotonic()
        command = (
            f"START_REPLICATION SLOT {slot} LOGICAL {lsn_text(lsn)} "
            f"(proto_version '1', publication_names '{publication}', messages 'true')"
        )
        deadline = time.monotonic() + SLOT_SECONDS
        while True:
            try:
                connection.query(command)
                break
            except SqlState as error:
                if error.state != "55006" or time.monotonic() > deadline:
                    raise
                self._end_own(slot, str(error))
                time.sleep(0.05)
        self._raw.nonblocking = 1

    def _end_own(self, slot: str, problem: str) -> None:
        """End a reader of ours that was replaced and does not know it yet. Raises if the slot is somebody else's."""
        query = self._connection
        found = query.one(
            "SELECT a.application_name, a.pid, pg_terminate_backend(a.pid) FROM pg_replication_slots s "
            "JOIN pg_stat_activity a ON a.pid = s.active_pid "
            f"WHERE s.slot_name = '{slot}' AND a.application_name = current_setting('application_name')"
        )
        other = query.one(
            "SELECT a.application_name, a.pid FROM pg_replication_slots s "
            "JOIN pg_stat_activity a ON a.pid = s.active_pid "
            f"WHERE s.slot_name = '{slot}' AND a.application_name <> current_setting('application_name')"
        )
        if found is None and other is not None:
            raise SqlState(
                "55006",
                f"slot '{slot}' is in use by '{other[0]}' (PID {other[1]}); give each job a slot_name of its own",
            )

    def next(self) -> bytes | None:
        """Return the next message of the server, or None if none is there now."""
        size, data = self._raw.get_copy_data(1)
        if size == 0:
            try:
                self._raw.consume_input()
            except Exception as error:
                raise self._connection.lost(str(error)) from None
            size, data = self._raw.get_copy_data(1)
        if size > 0:
            return bytes(data)
        if size < 0:
            result = self._raw.get_result()
            text = b"" if result is None else result.error_message
            raise self._connection.lost((text or self._raw.error_message).decode(errors="replace"))
        if time.monotonic() - self._told > STATUS_SECONDS:
            self.tell()
        return None

    def wait(self, deadline: float, wake: int) -> bool:
        """Return True once the server has sent something; False at the deadline, or if `wake` can be read."""
        socket = self._raw.socket
        left = min(deadline - time.monotonic(), STATUS_SECONDS)
        return left > 0 and socket in wait_any([socket, wake], left)

    def tell(self, *, ask: bool = False) -> None:
        """Say that this reader is alive, and what is safe. With `ask`, the server answers how far it is."""
        now_us = int((time.time() - _POSTGRES_EPOCH_S) * 1_000_000)
        lsn = self.confirmed_lsn
        self._raw.put_copy_data(_STATUS.pack(b"r", lsn, lsn, lsn, now_us, ask))
        self._raw.flush()
        self._told = time.monotonic()

    def close(self) -> None:
        self._connection.close()
