"""Reads tables in chunks and the log of logical replication beside them."""

from __future__ import annotations

import struct
import time
from dataclasses import replace
from typing import Any, Final

from headwater.common.errors import ExternalSystemError, HeadwaterError
from headwater.common.machine.descriptors import wait_any
from headwater.datastream.connectors.cdc.changes import Place
from headwater.datastream.connectors.cdc.reader import ChangeReader, kind_of, untold
from headwater.datastream.connectors.postgres_cdc.chunks import ChunkReader
from headwater.datastream.connectors.postgres_cdc.connection import (
    ReplicationStream,
    SqlState,
    lsn_number,
    lsn_text,
)
from headwater.datastream.connectors.postgres_cdc.pgoutput import (
    UNCHANGED,
    Begin,
    Relation,
    parse_begin,
    parse_change,
    parse_commit,
    parse_message,
    parse_relation,
)
from headwater.datastream.connectors.postgres_cdc.settings import CdcSettings, slot_lsn
from headwater.datastream.connectors.postgres_cdc.snapshot import Position

_KEEPALIVE: Final = struct.Struct(">QqB").unpack_from
_OID: Final = struct.Struct(">I").unpack_from
ACK: Final = "headwater.ack"
"""Prefix of the messages by which the driver says what is in a durable checkpoint."""
UNSEEN_MOST: Final = 500
"""So many transactions may be left to the next chunk."""
HEARTBEAT_BYTES: Final = 1 << 20
"""A quiet table does not keep more of the log than this, beside the heartbeat's interval."""


class PostgresReader(ChangeReader):
    """As `ChangeReader`; a place in the log is an LSN and the transaction that is partly done there."""

    everywhere = 1 << 64
    _position: Position

    def __init__(self, settings: CdcSettings, position: Position) -> None:
        super().__init__(settings, position)
        self._settings = settings
        self._unseen = position.unseen
        self._stream: ReplicationStream | None = None
        self._chunks = ChunkReader(settings)
        self._relations: dict[int, Relation] = {}
        self._keys: dict[int, list[int] | None] = {}  # {oid of a relation: columns of its key; None: not ours}
        self._begin: Begin | None = None
        self._place = Place(settings.database, "", "", 0)
        self._lsn = position.lsn
        self._pending: bytes | None = None
        """What came while the reader waited."""
        self._epoch_lsn = position.lsn
        self._epoch_time = time.monotonic()
        self._end_lsn = 0

    # --- the contract

    def read_batch(self, max_records: int) -> list[Any] | None:
        self._epoch_time = time.monotonic()
        try:
            found = self._read(max_records)
        except SqlState as error:
            self.close()
            raise HeadwaterError(f"{self._settings.owner}: cannot read: {error}") from None
        except BaseException:
            self.close()
            raise
        self._epoch_lsn = self._position.lsn
        return found

    def gauges(self) -> dict[str, float]:
        offsets = {"currentOffset": self._position.lsn, "endOffset": max(self._end_lsn, self._lsn)}
        return {**offsets, **super().gauges()}

    def wait_readable(self, deadline: float, wake: int) -> bool:
        beat_seconds = self._settings.heartbeat_ms / 1000
        next_beat = self._epoch_time + beat_seconds
        while True:
            if self._stream is None or self._held or self._pending or not self._position.snapshot_done:
                return True
            try:
                message = self._stream.next()
            except ExternalSystemError:
                return True  # read_batch meets it, too, and says so
            now = time.monotonic()
            if message is None:
                if now >= deadline:
                    return False
                if now >= next_beat:
                    self._stream.tell(ask=True)
                    next_beat = now + beat_seconds
                if not self._stream.wait(min(deadline, next_beat), wake) and wait_any([wake], 0):
                    return False
            elif message[0] == 107:  # k
                self._keepalive(message)
                # An epoch without records, so that a checkpoint lets the server forget what others wrote.
                if self._lsn - self._epoch_lsn >= HEARTBEAT_BYTES and now - self._epoch_time >= beat_seconds:
                    return True
            else:
                self._pending = message
                return True

    def close(self) -> None:
        self._chunks.close()
        stream, self._stream = self._stream, None
        if stream is not None:
            stream.close()

    # --- the snapshot

    def _read_chunk(self, most: int, found: list[Any], stamps: list[int | None]) -> None:
        name = self._unfinished_table()
        progress, limit = self._tables[name], min(most, self._settings.chunk_rows)
        rows = self._chunks.read(name, progress, limit, self._unseen)
        names, stamp = list(rows.info.columns), rows.stamp_ms
        place = Place(self._settings.database, name, "", stamp, snapshot=True)
        for values in rows.values():
            found += self._settings.form.records("r", names, None, values, place)
        stamps += [stamp] * len(found)
        self._tables = {**self._tables, name: progress.with_chunk(rows.chunk)}
        self._schemas = {name: rows.info.columns, **self._schemas}
        self._unseen = frozenset()
        self._position = replace(self._position, tables=self._tables, schemas=self._schemas, unseen=self._unseen)

    # --- the log

    def _open(self) -> ReplicationStream:
        settings = self._settings
        connection = settings.connect(replication=True)
        try:
            slot_lsn(settings, connection, self._position.lsn)
            self._stream = ReplicationStream(connection, settings.slot, settings.publication_name, self._position.lsn)
        except SqlState as error:
            connection.close()
            raise connection.failed(f"cannot read slot '{settings.slot}'", error) from None
        except BaseException:
            connection.close()
            raise
        self._relations, self._begin, self._changes, self._pending = {}, None, 0, None
        self._held.clear()
        self._lsn = self._position.lsn
        return self._stream

    def _read_log(self, most: int, found: list[Any], stamps: list[int | None]) -> None:
        was_open = self._stream
        stream = was_open or self._open()
        while len(found) < most and (self._held or len(self._unseen) < UNSEEN_MOST):
            if self._held:
                self._give_held(most, found, stamps)
                continue
            try:
                message, self._pending = self._pending or stream.next(), None
            except ExternalSystemError:
                if found or stream is not was_open:
                    raise
                self.close()  # the server ended it while no epoch read
                stream = self._open()
                continue
            if message is None:
                break
            if message[0] == 119:  # w: a piece of the log
                self._take(message[25:], stream)
            else:
                self._keepalive(message)
        if self._begin is not None and found:
            self._note_lag(self._begin.timestamp_ms)

    def _xid(self) -> int:
        return 0 if self._begin is None else self._begin.xid

    def _place_fields(self) -> dict[str, Any]:
        return {"lsn": self._lsn, "xid": self._xid()}

    def _moved(self) -> None:
        self._position = Position(self._lsn, self._xid(), self._changes, 0, self._tables, self._schemas, self._unseen)

    def _keepalive(self, message: bytes) -> None:
        end, _, reply = _KEEPALIVE(message, 1)
        self._end_lsn = max(self._end_lsn, end)
        partly_done = self._position.changes or self._position.records
        if self._begin is None and end > self._lsn and not partly_done:
            self._passed(end)
        if reply and self._stream is not None:
            self._stream.tell()

    def _passed(self, lsn: int) -> None:
        """All transactions that ended before `lsn` are done."""
        self._lsn, self._changes = lsn, 0
        self._forget_chunks(lsn)
        self._moved()

    def _take(self, data: bytes, stream: ReplicationStream) -> None:
        """Take one message of the log. Its records are held."""
        kind = data[0]
        if kind in (73, 85, 68):  # I, U, D
            self._take_change(data)
        elif kind == 66:  # B
            self._begin = parse_begin(data)
            self._changes = 0
            position = self._position
            if (position.changes or position.records) and position.xid != self._begin.xid:
                raise HeadwaterError(
                    f"{self._settings.owner}: the log goes on at {lsn_text(position.lsn)} with transaction "
                    f"{self._begin.xid}, and the job was in the middle of {position.xid}: it is another log"
                )
            self._place = Place(self._settings.database, "", lsn_text(self._begin.final_lsn), self._begin.timestamp_ms)
        elif kind == 67:  # C
            self._begin = None
            self._passed(parse_commit(data))
        elif kind == 82:  # R
            self._take_relation(parse_relation(data))
        elif kind == 77:  # M
            prefix, content = parse_message(data)
            slot, _, lsn = content.decode(errors="replace").partition(" ")
            if prefix == ACK and slot == self._settings.slot:
                stream.confirmed_lsn = max(stream.confirmed_lsn, lsn_number(lsn))
                stream.tell()
        elif kind == 84:  # T
            self._take_truncate(data)

    def _take_relation(self, relation: Relation) -> None:
        self._relations[relation.oid] = relation
        if relation.name not in self._tables:
            self._keys[relation.oid] = None
            return
        if relation.identity != "f":
            raise HeadwaterError(
                f"{self._settings.owner}: table '{relation.name}' has lost its REPLICA IDENTITY FULL: the log has no "
                "old rows any more. Set it again, and start the job anew: changes since then cannot be told"
            )
        self._chunks.forget(relation.name)
        info = self._chunks.info(relation.name)
        columns = [info.columns[index] for index in info.key]
        missing = [column for column in columns if column not in relation.columns]
        if missing:
            raise HeadwaterError(
                f"{self._settings.owner}: the log has no column {', '.join(missing)} of the primary key of table "
                f"'{relation.name}': the key was changed while the job was behind. Start the job anew"
            )
        self._keys[relation.oid] = [relation.columns.index(column) for column in columns]

    def _take_change(self, data: bytes) -> None:
        begin = self._begin
        assert begin is not None
        oid = _OID(data, 1)[0]
        position, done = self._position, self._changes
        if position.changes > done and position.xid == begin.xid and position.lsn == self._lsn:
            self._changes = done + 1  # given out before this reader was opened
            return
        key_at = self._keys[oid]
        relation = self._relations[oid]
        if key_at is None:
            self._changes = done + 1
            return
        before, after = parse_change(data, relation)
        table = self._tables[relation.name]
        if not table.done or table.chunks:
            if not table.done and begin.xid not in self._unseen:
                self._unseen |= {begin.xid}
            before, after = untold(table, before, after, lambda row: tuple(row[at] for at in key_at), begin.xid)
            if before is None and after is None:
                self._changes = done + 1
                return
        if after is not None and UNCHANGED in after:
            raise HeadwaterError(
                f"{self._settings.owner}: an update of table '{relation.name}' has no old row, and not all new values; "
                "set REPLICA IDENTITY FULL, and start the job anew"
            )
        place = self._place
        if place.table != relation.name:
            place = self._place = replace(place, table=relation.name)
        records = self._settings.form.records(kind_of(before, after), relation.names, before, after, place)
        self._hold(relation.name, relation.columns, records, begin.timestamp_ms)

    def _take_truncate(self, data: bytes) -> None:
        count = _OID(data, 1)[0]
        oids = [_OID(data, 6 + 4 * number)[0] for number in range(count)]
        names = [self._relations[oid].name for oid in oids if self._keys.get(oid) is not None]
        self._check_truncated(names, self._place.position)
