"""Reads tables in chunks and the binary log beside them."""

from __future__ import annotations

import contextlib
import random
import re
import time
from collections import deque
from dataclasses import replace
from typing import Any, Final

from headwater.common.errors import ExternalSystemError, HeadwaterError
from headwater.common.optional_library import optional_library
from headwater.datastream.connectors.cdc.changes import Place
from headwater.datastream.connectors.cdc.progress import Chunk
from headwater.datastream.connectors.cdc.reader import ChangeReader, kind_of, untold
from headwater.datastream.connectors.mysql_cdc.position import LogPlace, Position, SeenUpTo
from headwater.datastream.connectors.mysql_cdc.settings import MySqlSettings, TableInfo, begin_snapshot, table_info

_TRUNCATE: Final = re.compile(r"\s*TRUNCATE\s+(?:TABLE\s+)?`?(?:(\w+)`?\s*\.\s*`?)?(\w+)", re.IGNORECASE)
UNSEEN_SECONDS: Final = 30.0
LOG_GONE: Final = 1236


class MySqlReader(ChangeReader):
    """As `ChangeReader`; a place in the log is where the last complete transaction ended."""

    everywhere = LogPlace(1 << 30, "", 0)
    _position: Position

    def __init__(self, settings: MySqlSettings, position: Position) -> None:
        super().__init__(settings, position)
        self._settings = settings
        self._server = settings.server()
        self._place = position.place
        self._rows: deque[tuple[dict[str, Any], Any]] = deque()
        """(row, event) that were not looked at yet."""
        self._stream: Any = None
        self._connection: Any = None
        self._infos: dict[str, TableInfo] = {}
        self._names: dict[str, list[str]] = {}

    # --- the contract

    def read_batch(self, max_records: int) -> list[Any] | None:
        try:
            return self._read(max_records)
        except self._server.error as error:
            self.close()
            if error.args and error.args[0] == LOG_GONE:
                raise HeadwaterError(
                    f"{self._settings.owner}: the log of {self._server.describe()} at {self._position.place} is not "
                    f"there any more: {error}. Nothing was skipped: start the job anew (a new checkpoint directory), "
                    "with a new snapshot, and keep the log for longer than the job may be down"
                ) from None
            raise self._server.failed("cannot read changes", error) from None
        except BaseException:
            self.close()
            raise

    def _log_waits(self) -> bool:
        return bool(self._held or self._rows)

    def close(self) -> None:
        stream, self._stream = self._stream, None
        connection, self._connection = self._connection, None
        for each in (stream, connection):
            if each is not None:
                with contextlib.suppress(Exception):
                    each.close()

    # --- the snapshot

    def _sql(self) -> Any:
        if self._connection is None:
            self._connection = self._server.connect()
        return self._connection

    def _info(self, name: str) -> TableInfo:
        if name not in self._infos:
            self._infos[name] = table_info(self._settings, self._server, self._sql(), name)
            self._connection.rollback()
        return self._infos[name]

    def _read_chunk(self, most: int, found: list[Any], stamps: list[int | None]) -> None:
        name = self._unfinished_table()
        info, progress, connection = self._info(name), self._tables[name], self._sql()
        limit, order = min(most, self._settings.chunk_rows), ", ".join(info.order_by())
        where = f"WHERE ({order}) > ({', '.join(['%s'] * len(info.key))})" if progress.last is not None else ""
        place = begin_snapshot(connection)
        deadline = time.monotonic() + UNSEEN_SECONDS
        while place < self._place:
            # The log shows a transaction a moment before queries see it: what was left to this chunk must be in it.
            connection.rollback()
            if time.monotonic() > deadline:
                raise ExternalSystemError(
                    f"{self._settings.owner}: the log is at {self._place}, and queries see nothing behind {place}"
                )
            time.sleep(0.002)
            place = begin_snapshot(connection)
        cursor = connection.cursor()
        cursor.execute(
            f"SELECT {info.selected()} FROM {info.quoted} {where} ORDER BY {order} LIMIT {limit}", progress.last
        )
        rows = cursor.fetchall()
        connection.rollback()
        stamp, names = int(time.time() * 1000), list(info.columns)
        where_from = Place(name.partition(".")[0], name, "", stamp, snapshot=True)
        for row in rows:
            found += self._settings.form.records("r", names, None, list(row), where_from)
        stamps += [stamp] * len(found)
        high = info.key_of(dict(zip(names, rows[-1], strict=True))) if len(rows) == limit else None
        self._tables = {**self._tables, name: progress.with_chunk(Chunk(progress.last, high, SeenUpTo(place), place))}
        self._schemas = {name: info.columns, **self._schemas}
        self._position = replace(self._position, tables=self._tables, schemas=self._schemas)

    # --- the log

    def _open(self) -> Any:
        """Open the log where the last complete transaction ended. Ends at the end of the log."""
        replication = optional_library("pymysqlreplication", "mysql", self._settings.owner)
        events = optional_library("pymysqlreplication.row_event", "mysql", self._settings.owner)
        others = optional_library("pymysqlreplication.event", "mysql", self._settings.owner)
        settings = self._server.connection_settings()
        settings.pop("database", None)
        place = self._position.place
        self._held.clear()
        self._rows.clear()
        self._changes, self._place = 0, place
        return replication.BinLogStreamReader(
            connection_settings=settings,
            server_id=self._settings.server_id or random.randrange(1 << 20, 1 << 31),
            log_file=place.file,
            log_pos=place.offset,
            resume_stream=True,
            blocking=False,
            only_schemas=sorted({name.partition(".")[0] for name in self._settings.tables}),
            only_tables=sorted({name.partition(".")[2] for name in self._settings.tables}),
            only_events=[
                events.WriteRowsEvent,
                events.UpdateRowsEvent,
                events.DeleteRowsEvent,
                others.QueryEvent,
                others.XidEvent,
                others.RotateEvent,
            ],
        )

    def _read_log(self, most: int, found: list[Any], stamps: list[int | None]) -> None:
        while len(found) < most:
            if self._held:
                self._give_held(most, found, stamps)
            elif self._rows:
                self._take_row(*self._rows.popleft())
            else:
                if self._stream is None:
                    self._stream = self._open()
                event = self._stream.fetchone()
                if event is None:
                    with contextlib.suppress(Exception):
                        self._stream.close()
                    self._stream = None
                    return
                self._take(event)

    def _take(self, event: Any) -> None:
        """Take one event of the log. Its rows wait."""
        kind = type(event).__name__
        if kind in ("WriteRowsEvent", "UpdateRowsEvent", "DeleteRowsEvent"):
            self._rows.extend((row, event) for row in event.rows)
        elif kind == "XidEvent":
            self._passed(LogPlace.of(self._place.file, event.packet.log_pos))
        elif kind == "RotateEvent":
            place = LogPlace.of(event.next_binlog, event.position)
            if place > self._place:
                self._passed(place)
        elif kind == "QueryEvent":
            text = event.query if isinstance(event.query, str) else event.query.decode(errors="replace")
            if text.strip().upper() == "BEGIN":
                return
            self._check_truncate(text, event)
            self._passed(LogPlace.of(self._place.file, event.packet.log_pos))

    def _check_truncate(self, text: str, event: Any) -> None:
        found = _TRUNCATE.match(text)
        if found is not None:
            schema = event.schema if isinstance(event.schema, str) else event.schema.decode()
            name = f"{found[1] or schema}.{found[2]}"
            self._check_truncated([name] if name in self._tables else [], self._place)

    def _passed(self, place: LogPlace) -> None:
        """All transactions that ended before `place` are done."""
        self._place, self._changes = place, 0
        self._forget_chunks(place)
        self._moved()

    def _place_fields(self) -> dict[str, Any]:
        return {"place": self._place}

    def _moved(self) -> None:
        self._position = Position(self._place, self._changes, 0, self._tables, self._schemas)

    def _take_row(self, row: dict[str, Any], event: Any) -> None:
        name = f"{event.schema}.{event.table}"
        position, done = self._position, self._changes
        if name not in self._tables or (position.place == self._place and position.changes > done):
            self._changes = done + 1  # not ours, or given out before this reader was opened
            return
        kind = type(event).__name__
        before = row["values"] if kind == "DeleteRowsEvent" else row.get("before_values")
        after = row["values"] if kind == "WriteRowsEvent" else row.get("after_values")
        columns = tuple(before or after or ())
        table = self._tables[name]
        if not table.done or table.chunks:
            info, transaction = self._info(name), LogPlace.of(self._place.file, event.packet.log_pos)
            before, after = untold(table, before, after, info.key_of, transaction)
            if before is None and after is None:
                self._changes = done + 1
                return
        stamp = int(event.timestamp) * 1000
        self._note_lag(stamp)
        place = Place(event.schema, name, str(self._place), stamp)
        if self._names.get(name) != list(columns):
            self._names[name] = list(columns)
        records = self._settings.form.records(
            kind_of(before, after),
            self._names[name],
            None if before is None else list(before.values()),
            None if after is None else list(after.values()),
            place,
        )
        self._hold(name, columns, records, stamp)
