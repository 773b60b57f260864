"""Random queries in event time: windows, windows joined and ranked, OVER by time, interval joins.

The text for DuckDB filters the rows: those that were late do not count, and those that wait for the watermark not yet.
"""

from __future__ import annotations

from tests.unit.table.stream.random_sql.choices import Choices
from tests.unit.table.stream.random_sql.expressions import Col
from tests.unit.table.stream.random_sql.parts import BASE, Rel
from tests.unit.table.stream.random_sql.relations import Relations

_NAMES = ", ".join(each.name for each in BASE)
_BOUNDS = (Col("window_start", "ts"), Col("window_end", "ts"))


def window(kind: str, table: str, waits: bool) -> str:
    """A windowing table function. `waits`: for DuckDB, only windows that are over, without the rows that were late."""
    if kind == "TUMBLE":
        step, size, sizes = 5, 5, "INTERVAL '5' SECOND"
    else:
        step, size, sizes = 2, 6, "INTERVAL '2' SECOND, INTERVAL '6' SECOND"
    slot = step if kind == "HOP" else size
    begin = f"epoch_ms(ts) // {slot * 1000} * {slot * 1000}"
    end = f"{begin} + {step * 1000} * i"
    start = begin if kind != "HOP" else f"{end} - {size * 1000}"
    over = "e - 1 > wm0 AND e - 1 <= {wm} AND " if waits else ""
    duck = (
        f"(SELECT {_NAMES}, ts, make_timestamp(s * 1000) AS window_start, make_timestamp(e * 1000) AS window_end FROM"
        f" (SELECT *, {start} AS s, {end} AS e FROM {table}, range(1, {size // step + 1}) n(i))"
        f" WHERE {over}epoch_ms(ts) < e)"
    )
    return f"⟦TABLE({kind}(TABLE {table}, DESCRIPTOR(ts), {sizes}))¦{duck}⟧"


def in_time(table: str, waits: bool) -> str:
    """A table for an operator that drops late rows, and, if it `waits`, holds rows back until the watermark passes."""
    until = " AND epoch_ms(ts) <= {wm}" if waits else ""
    return f"⟦{table}¦(SELECT * FROM {table} WHERE epoch_ms(ts) > wm0{until})⟧"


class TimedRelations(Relations):
    """Queries over `t` and `u`, whose `ts` is an event time; nothing is updated."""

    def __init__(self, choices: Choices) -> None:
        super().__init__(choices, timed=True)
        self.more = [self.windowed, self.open_window, self.window_join, self.window_top, self.over_time, self.interval]

    def _window(self, waits: bool = True, kind: str = "", table: str = "") -> tuple[str, list[Col]]:
        kind = kind or self.choose.pick(["TUMBLE", "HOP", "CUMULATE"])
        alias = self.choose.name("r")
        text = window(kind, table or self.choose.pick(["t", "u"]), waits)
        return f"{text} AS {alias}", [each.of(alias) for each in (*BASE, *_BOUNDS)]

    def windowed(self, depth: int) -> Rel:
        """Groups of a window: they close with the watermark."""
        source, scope = self._window()
        plain, bounds = scope[:-2], scope[-2:]
        calls, columns = self.calls(plain)
        keys = self.choose.some(plain, 0, 2)
        shown = [*self.choose.some(keys, 0, 2), *self.choose.some(bounds, 0, 2)]
        select, own = self.named(shown)
        group = ", ".join(each.name for each in [*bounds, *keys])
        where, having = self.where(plain), self.having(keys, plain)
        text = f"SELECT {', '.join(filter(None, [select, calls]))} FROM {source}{where} GROUP BY {group}{having}"
        return Rel(text, (*own, *columns), 8)

    def open_window(self, depth: int) -> Rel:
        """Windows as columns: nothing waits."""
        source, scope = self._window(waits=False)
        if self.choose.chance(50):
            calls, columns = self.calls(scope[:-2])
            keys = [*self.choose.some(scope[:-2], 0, 1), scope[-2]]
            select, own = self.named(keys)
            group = ", ".join(each.name for each in keys)
            return Rel(f"SELECT {select}, {calls} FROM {source} GROUP BY {group}", (*own, *columns), 12)
        select, columns = self.select(scope)
        return Rel(f"SELECT {select} FROM {source}{self.where(scope)}", columns, 30)

    def window_join(self, depth: int) -> Rel:
        kind = self.choose.pick(["TUMBLE", "HOP", "CUMULATE"])
        left, left_scope = self._window(kind=kind, table="t")
        right, right_scope = self._window(kind=kind, table=self.choose.pick(["u", "t"]))
        on = " AND ".join(f"{a.name} = {b.name}" for a, b in zip(left_scope[-2:], right_scope[-2:], strict=True))
        if self.choose.chance(60):
            on += f" AND {self.on(left_scope[:-2], right_scope[:-2], 0)}"
        if self.choose.chance(25):
            negated = self.choose.pick(["", "NOT "])
            select, columns = self.select(left_scope)
            query = f"{negated}EXISTS (SELECT 1 FROM {right} WHERE {on})"
            return Rel(f"SELECT {select} FROM {left} WHERE {query}", columns, 16)
        word = self.choose.pick(["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"])
        select, columns = self.select([*left_scope, *right_scope])
        return Rel(f"SELECT {select} FROM {left} {word} {right} ON {on}", columns, 20)

    def window_top(self, depth: int) -> Rel:
        source, scope = self._window()
        kept = [*self.choose.some(scope[:-2], 1, 3), *scope[-2:]]
        select, own = self.named(kept)
        bounds = ", ".join(each.name for each in own[-2:])
        function = self.choose.pick(["ROW_NUMBER", "RANK", "DENSE_RANK"])
        keys = [each.name for each in self.choose.some(own[:-2], 0, 1)]
        over = f"PARTITION BY {', '.join([bounds, *keys])} ORDER BY {self.order(own[:-2], True)}"
        inner, rank = self.choose.name("r"), self.choose.name("n")
        ranked = f"SELECT *, {function}() OVER ({over}) AS {rank} FROM (SELECT {select} FROM {source}) AS {inner}"
        shown = ", ".join(each.name for each in own)
        limit = self.choose.pick(["<= 1", "<= 2", "< 4"])
        return Rel(f"SELECT {shown} FROM ({ranked}) AS {self.choose.name('r')} WHERE {rank} {limit}", own, 12)

    def over_time(self, depth: int) -> Rel:
        alias = self.choose.name("r")
        scope = [each.of(alias) for each in BASE]
        select, columns = self.select(scope, 2)
        frame = self.choose.pick(["", " RANGE BETWEEN INTERVAL '3' SECOND PRECEDING AND CURRENT ROW"])
        keys = self.choose.some(scope, 0, 2)
        partition = f"PARTITION BY {', '.join(each.name for each in keys)} " if keys else ""
        call = self.call(scope, over=True)
        name = self.choose.name("c")
        over = f"{call.name} OVER ({partition}ORDER BY {alias}.ts{frame})"
        source = in_time(self.choose.pick(["t", "u"]), waits=True)
        rows = f"SELECT {select}, {over} AS {name} FROM {source} AS {alias}{self.where(scope)}"
        # A column that nobody reads is not computed, and then nothing waits: the filter, which is true, reads it.
        text = f"SELECT * FROM ({rows}) AS {self.choose.name('r')} WHERE {name} IS NULL OR {name} IS NOT NULL"
        return Rel(text, (*columns, Col(name, call.type)), 16)

    def interval(self, depth: int) -> Rel:
        one, other = self.choose.name("r"), self.choose.name("r")
        left, right = ([each.of(alias) for each in BASE] for alias in (one, other))
        lower, upper = self.choose.pick([(2, 1), (0, 4), (5, 0)])
        on = (
            f"{self.on(left, right, 0)} AND {one}.ts BETWEEN {other}.ts - INTERVAL '{lower}' SECOND"
            f" AND {other}.ts + INTERVAL '{upper}' SECOND"
        )
        select, columns = self.select([*left, *right])
        tables = f"{in_time('t', False)} AS {one} JOIN {in_time(self.choose.pick('ut'), False)} AS {other}"
        return Rel(f"SELECT {select} FROM {tables} ON {on}", columns, 16)
