"""Random queries, nested: each kind of operator over others. Their results do not depend on the order of equal rows."""

from __future__ import annotations

from collections.abc import Sequence

from tests.unit.table.stream.random_sql.expressions import Col
from tests.unit.table.stream.random_sql.parts import Parts, Rel

MANY_ROWS = 400


class Relations(Parts):
    """Queries on `t` and `u`."""

    def query(self, depth: int) -> Rel:
        if depth <= 0:
            if self.more and self.choose.chance(40):
                return self.choose.pick(self.more)(depth)
            return self.project(0)
        kinds = [
            self.project, self.aggregate, self.join, self.aggregate, self.join, self.filtered, self.distinct,
            self.union, self.top, self.over, self.valued, self.limited, self.grouping_sets, self.twice, self.unnested,
        ]  # fmt: skip
        return self.choose.pick(kinds)(depth - 1)

    def project(self, depth: int) -> Rel:
        source, scope, rows = self.source(depth)
        select, columns = self.select(scope)
        return Rel(f"SELECT {select} FROM {source}{self.where(scope)}", columns, rows)

    def distinct(self, depth: int) -> Rel:
        source, scope, rows = self.source(depth)
        select, columns = self.select(scope, 3)
        return Rel(f"SELECT DISTINCT {select} FROM {source}{self.where(scope)}", columns, rows)

    def aggregate(self, depth: int) -> Rel:
        source, scope, rows = self.source(depth)
        calls, columns = self.calls(scope)
        where = self.where(scope)
        keys = [self.expressions.any(scope, 1) for _ in range(self.choose.below(4))]
        # A literal would be the number of a column, and a constant key is another thing in each engine.
        keys = [each for each in keys if any(column.name in each.name for column in scope)]
        if not keys:
            return Rel(f"SELECT {calls} FROM {source}{where}{self.having([], scope)}", columns, 1)
        names = [Col(self.choose.name("c"), each.type) for each in keys]
        shown = self.choose.some(range(len(keys)), 0, len(keys))
        select = ", ".join([*(f"{keys[place].name} AS {names[place].name}" for place in shown), calls])
        group = ", ".join(each.name for each in keys)
        found = (*(names[place] for place in shown), *columns)
        having = self.having([each for each in keys if each in scope], scope)
        return Rel(f"SELECT {select} FROM {source}{where} GROUP BY {group}{having}", found, max(rows // 2, 1))

    def grouping_sets(self, depth: int) -> Rel:
        source, scope, rows = self.source(depth)
        keys = self.choose.some(scope, 2, 3)
        names = [each.name for each in keys]
        form = self.choose.pick(
            ["ROLLUP ({0})", "CUBE ({0})", "GROUPING SETS (({0}), ())", "GROUPING SETS (({1}), ({2}))"]
        )
        group = form.format(", ".join(names), ", ".join(names[:-1]), names[-1])
        calls, columns = self.calls(scope, 2)
        select, own = self.named(keys)
        return Rel(
            f"SELECT {select}, {calls} FROM {source}{self.where(scope)} GROUP BY {group}", (*own, *columns), 2 * rows
        )

    def on(self, left: Sequence[Col], right: Sequence[Col], rows: int) -> str:
        """A join condition: equal columns, others, or both."""
        form = 0 if rows > MANY_ROWS else self.choose.below(4)
        parts = []
        if form < 3:
            parts.append(self.expressions.comparison(left, right, 0, equal=True))
            if self.choose.chance(20):
                parts.append(self.expressions.comparison(left, right, 0, equal=True))
        if form == 1 or form == 3:
            parts.append(self.expressions.comparison(left, right, 1))
        if form == 2 or self.choose.chance(15):
            parts.append(self.expressions.of("bool", [*left, *right], 1))
        return " AND ".join(parts)

    def join(self, depth: int) -> Rel:
        left, left_scope, left_rows = self.source(depth)
        right, right_scope, right_rows = self.source(depth if self.choose.chance(40) else 0)
        word = self.choose.pick(["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "JOIN", "LEFT JOIN", "CROSS JOIN"])
        rows = left_rows * right_rows
        if word == "CROSS JOIN" and rows > MANY_ROWS:
            word = "JOIN"
        on = "" if word == "CROSS JOIN" else f" ON {self.on(left_scope, right_scope, rows)}"
        scope = [*left_scope, *right_scope]
        select, columns = self.select(scope)
        estimate = max(left_rows, right_rows, rows if not on else rows // 4)
        return Rel(f"SELECT {select} FROM {left} {word} {right}{on}{self.where(scope, 25)}", columns, estimate)

    def condition(self, scope: Sequence[Col], depth: int) -> str:
        """A condition with a query."""
        source, own, _ = self.source(depth)
        parts = []
        if self.choose.chance(60):
            parts.append(self.expressions.comparison(scope, own, 0, equal=True))
        negated = self.choose.pick(["", "NOT "])
        form = self.choose.below(4)
        if form <= 1 and self.choose.chance(40):
            parts.append(self.expressions.comparison(scope, own, 0))
        if self.choose.chance(30):
            parts.append(self.expressions.of("bool", own, 1))
        where = f" WHERE {' AND '.join(parts)}" if parts else ""
        if form == 0:
            return f"{negated}EXISTS (SELECT 1 FROM {source}{where})"
        kinds = [each.type for each in scope if each.type != "time" and each.type in {column.type for column in own}]
        if form == 1 and kinds:
            kind = self.choose.pick(kinds)
            one, other = self.expressions.of(kind, scope, 0), self.expressions.of(kind, own, 0)
            return f"{one} {negated}IN (SELECT {other} FROM {source}{where})"
        if form == 2:
            return f"{self.expressions.of('big', scope, 0)} {self.choose.pick('=<>')} {self._value(scope, depth)}"
        return f"{negated}EXISTS (SELECT {self.choose.pick(own).name} FROM {source}{where})"

    def _value(self, scope: Sequence[Col], depth: int) -> str:
        """A query that gives one number, alike by = with the query around it or not at all."""
        source, own, _ = self.source(depth)
        call = self.choose.pick(["COUNT(*)", "MAX({0})", "SUM({0})", "COUNT({0})", "MIN({0})"])
        call = call.format(self.expressions.of("big", own, 0))
        equal = self.choose.chance(50) and [each for each in scope if each.type in {column.type for column in own}]
        where = ""
        if equal:
            outer = self.choose.pick(equal)
            inner = self.choose.pick([each for each in own if each.type == outer.type])
            where = f" WHERE {inner.name} = {outer.name}"
        return f"(SELECT {call} FROM {source}{where})"

    def filtered(self, depth: int) -> Rel:
        source, scope, rows = self.source(depth)
        condition = self.condition(scope, depth if self.choose.chance(30) else 0)
        form = self.choose.below(6)
        if form == 1:
            condition = f"{condition} AND {self.condition(scope, 0)}"
        elif form == 2:
            condition = f"({condition}) OR {self.expressions.of('bool', scope, 1)}"
        elif form == 3:
            condition = f"{self.expressions.of('bool', scope, 1)} AND NOT ({condition})"
        select, columns = self.select(scope)
        if form == 4:
            name = self.choose.name("c")
            return Rel(f"SELECT {select}, ({condition}) AS {name} FROM {source}", (*columns, Col(name, "bool")), rows)
        return Rel(f"SELECT {select} FROM {source} WHERE {condition}", columns, rows)

    def valued(self, depth: int) -> Rel:
        source, scope, rows = self.source(depth)
        select, columns = self.select(scope, 2)
        name = self.choose.name("c")
        value = self._value(scope, depth if self.choose.chance(30) else 0)
        return Rel(f"SELECT {select}, {value} AS {name} FROM {source}", (*columns, Col(name, "big")), rows)

    def union(self, depth: int) -> Rel:
        left = self.query(depth)
        source, scope, rows = self.source(depth if self.choose.chance(40) else 0)
        select = []
        for column in left.columns:
            same = [each.name for each in scope if each.type == column.type]
            if column.type == "time":
                select.append(same[0] if same else "CAST(NULL AS TIMESTAMP⟦(3)¦⟧)")
            else:
                select.append(self.expressions.of(column.type, scope, 1))
        words = ["UNION ALL", "UNION", "INTERSECT", "EXCEPT", "INTERSECT ALL", "EXCEPT ALL"]
        right = f"SELECT {', '.join(select)} FROM {source}{self.where(scope)}"
        columns = tuple(Col(each.name, "ts" if each.type == "time" else each.type) for each in left.columns)
        if any(each.type == "time" for each in left.columns):
            return left
        return Rel(f"({left.text}) {self.choose.pick(words)} ({right})", columns, left.rows + rows)

    def top(self, depth: int) -> Rel:
        source, scope, rows = self.source(depth)
        kept = self.choose.some([each for each in scope if each.type != "time"] or scope, 2, 4)
        select, columns = self.named(kept)
        inner, rank = self.choose.name("r"), self.choose.name("n")
        function = self.choose.pick(["ROW_NUMBER", "RANK", "DENSE_RANK"])
        over = f"{self.partition(columns)}ORDER BY {self.order(columns, function == 'ROW_NUMBER')}"
        given = f"SELECT {select} FROM {source}{self.where(scope, 20)}"
        ranked = f"SELECT *, {function}() OVER ({over}) AS {rank} FROM ({given}) AS {inner}"
        limit = self.choose.pick(
            [f"{rank} = 1", f"{rank} <= 2", f"{rank} <= 3", f"{rank} < 3", f"{rank} BETWEEN 2 AND 3"]
        )
        shown = (*columns, Col(rank, "big")) if self.choose.chance(40) else columns
        names = ", ".join(each.name for each in shown)
        return Rel(f"SELECT {names} FROM ({ranked}) AS {self.choose.name('r')} WHERE {limit}", shown, rows)

    def limited(self, depth: int) -> Rel:
        rel = self.query(depth)
        limit = f"LIMIT {self.choose.pick([2, 5, 1])}{self.choose.pick(['', ' OFFSET 1'])}"
        inner = self.choose.name("r")
        return Rel(
            f"SELECT * FROM ({rel.text}) AS {inner} ORDER BY {self.order(rel.columns, True)} {limit}", rel.columns, 5
        )

    def over(self, depth: int) -> Rel:
        rel = self.query(depth)
        columns = tuple(each for each in rel.columns if each.type != "time")
        if not columns:
            return rel
        calls = []
        for place in range(1 + self.choose.below(2)):
            form = self.choose.below(2 if place else 5)  # of equal rows, only one call may tell one from the other
            partition = self.partition(columns)
            if form == 0:
                call = self.call(columns, over=True)
                call = Col(f"{call.name} OVER ({partition.strip()})", call.type)
            elif form == 1:
                call = self.call(columns, over=True)
                call = Col(f"{call.name} OVER ({partition}ORDER BY {self.order(columns, False)})", call.type)
            elif form == 2:
                name = self.choose.pick(["ROW_NUMBER", "RANK", "DENSE_RANK"])
                order = self.order(columns, name == "ROW_NUMBER")
                call = Col(f"{name}() OVER ({partition}ORDER BY {order})", "big")
            elif form == 3:
                of = self.choose.pick(columns)
                name = self.choose.pick(
                    ["LAG({0})", "LEAD({0})", "LAG({0}, 2)", "FIRST_VALUE({0}⟦¦ IGNORE NULLS⟧)"]
                ).format(of.name)
                call = Col(f"{name} OVER ({partition}ORDER BY {self.order(columns, True)})", of.type)
            else:
                call = self.call(columns, over=True)
                frame = self.choose.pick(
                    [
                        "1 PRECEDING AND CURRENT ROW",
                        "UNBOUNDED PRECEDING AND CURRENT ROW",
                        "1 PRECEDING AND 1 FOLLOWING",
                    ]
                )
                order = self.order(columns, True)
                call = Col(f"{call.name} OVER ({partition}ORDER BY {order} ROWS BETWEEN {frame})", call.type)
            calls.append(call)
        select, added = self.named(calls)
        names = ", ".join(each.name for each in columns)
        return Rel(
            f"SELECT {names}, {select} FROM ({rel.text}) AS {self.choose.name('r')}", (*columns, *added), rel.rows
        )

    def twice(self, depth: int) -> Rel:
        """A query that is read twice: both sides must see the same rows."""
        rel = self.query(depth)
        name, one, other = (self.choose.name("w") for _ in range(3))
        left, right = ([each.of(alias) for each in rel.columns] for alias in (one, other))
        select, columns = self.select([*left, *right])
        on = self.on(left, right, MANY_ROWS + 1)
        word = self.choose.pick(["JOIN", "LEFT JOIN", "FULL JOIN"])
        return Rel(
            f"WITH {name} AS ({rel.text}) SELECT {select} FROM {name} AS {one} {word} {name} AS {other} ON {on}",
            columns,
            rel.rows * 3,
        )

    def unnested(self, depth: int) -> Rel:
        source, scope, rows = self.source(depth)
        kind = self.choose.pick(["big", "str", "int"])
        among = ", ".join(self.expressions.of(kind, scope, 0) for _ in range(1 + self.choose.below(3)))
        alias, name = self.choose.name("x"), self.choose.name("c")
        select, columns = self.select([*scope, Col(name, kind)], 3)
        return Rel(
            f"SELECT {select}, {name} FROM {source} CROSS JOIN UNNEST(ARRAY[{among}]) AS {alias}({name})",
            (*columns, Col(name, kind)),
            2 * rows,
        )
