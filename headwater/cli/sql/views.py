"""How the rows of a query are shown: line by line, as the last changes, or as a table that changes in place."""

from __future__ import annotations

import threading
from collections import Counter, deque
from collections.abc import Iterator

from rich.console import Console
from rich.live import Live
from rich.table import Table

from headwater.common.types import Row, RowKind
from headwater.table.batch.rows import boxed, texts_of
from headwater.table.table_result import TableResult
from headwater.table.types.logical import RowType

_OPERATIONS = {
    RowKind.INSERT: "+I",
    RowKind.UPDATE_BEFORE: "-U",
    RowKind.UPDATE_AFTER: "+U",
    RowKind.DELETE: "-D",
}
_LINES_KEPT = 1000


def vertical(result: TableResult, changes: bool = False) -> None:
    """Each row as a block of lines `name: value`. With `changes` its kind comes first."""
    names = [each.name for each in result.get_table_schema().fields]
    width = max((len(name) for name in names), default=0)
    count = 0
    for row in result.collect():
        count += 1
        kind = f" {_OPERATIONS[row.get_row_kind()]}" if changes else ""
        print(f"*************************** {count}. row{kind} ***************************")
        for name, value in zip(names, texts_of([row], result.get_table_schema())[0], strict=True):
            print(f"{name:>{width}}: {value}")
    print(f"{count} {'row' if count == 1 else 'rows'} in set" if count else "Empty set", flush=True)


class _Shown:
    """What a live view has got so far. One thread takes rows, another draws."""

    def __init__(self, row_type: RowType, max_rows: int) -> None:
        self.row_type = row_type
        self.received = 0
        self.lines: deque[tuple[str, list[str]]] = deque(maxlen=min(max_rows, _LINES_KEPT))
        self.table: Counter[tuple[str, ...]] = Counter()
        self._max_rows = max_rows
        self._lock = threading.Lock()

    def take(self, row: Row) -> None:
        kind = _OPERATIONS[row.get_row_kind()]
        texts = texts_of([row], self.row_type)[0]
        with self._lock:
            self.received += 1
            self.lines.append((kind, texts))
            key = tuple(texts)
            self.table[key] += 1 if kind[0] == "+" else -1
            if not self.table[key]:
                del self.table[key]
            if len(self.table) > self._max_rows:
                del self.table[next(iter(self.table))]

    def changes(self, most: int) -> list[tuple[str, list[str]]]:
        with self._lock:
            return list(self.lines)[-most:]

    def rows(self, most: int) -> list[tuple[str, ...]]:
        with self._lock:
            return [row for row, count in self.table.items() for _ in range(max(count, 0))][-most:]


def live(result: TableResult, mode: str, max_rows: int, console: Console) -> int:
    """Show a query that runs until it ends or Ctrl-C; return how many changes came. The last picture stays."""
    shown = _Shown(result.get_table_schema(), max_rows)
    failed: list[BaseException] = []

    def read() -> None:
        try:
            for row in result.collect():
                shown.take(row)
        except BaseException as error:
            failed.append(error)

    reader = threading.Thread(target=read, name="headwater-sql-rows", daemon=True)
    reader.start()
    draw = _changelog if mode == "changelog" else _table
    with Live(draw(shown, console), console=console, refresh_per_second=4) as picture:
        while reader.is_alive():
            reader.join(0.25)
            picture.update(draw(shown, console))
    if failed:
        raise failed[0]
    return shown.received


def _changelog(shown: _Shown, console: Console) -> Table:
    table = _empty(shown, "changelog: Ctrl-C ends the query")
    table.columns.insert(0, table.columns.pop())
    for kind, texts in shown.changes(max(console.height - 6, 1)):
        table.add_row(kind, *texts, style={"+": "green", "-": "red"}[kind[0]])
    return table


def _table(shown: _Shown, console: Console) -> Table:
    table = _empty(shown, "the table as it is now: Ctrl-C ends the query")
    table.columns.pop()
    for texts in shown.rows(max(console.height - 6, 1)):
        table.add_row(*texts)
    return table


def _empty(shown: _Shown, title: str) -> Table:
    table = Table(title=title, caption=f"{shown.received} changes", title_justify="left", caption_justify="left")
    for field in shown.row_type.fields:
        table.add_column(field.name)
    table.add_column("op")
    return table


def box(names: list[str], rows: list[list[str]]) -> Iterator[str]:
    """A table of characters."""
    if not rows:
        yield "Empty set"
        return
    yield from boxed(names, rows)
    yield f"{len(rows)} {'row' if len(rows) == 1 else 'rows'} in set"
