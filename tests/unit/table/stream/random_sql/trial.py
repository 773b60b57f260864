"""Runs random queries against the oracle, many in one job, and finds the simplest that fails."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import duckdb

from tests.unit.table.stream.oracle import Query, Setting, differences, random_rows, refusal
from tests.unit.table.stream.random_sql.choices import Choices, shrink
from tests.unit.table.stream.random_sql.relations import Relations
from tests.unit.table.stream.random_sql.timed import TimedRelations

PER_JOB = 10
TRIES = 120
"""How many simpler queries are tried for each that fails."""


@dataclass
class Trial:
    """What became of the queries."""

    ran: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    """By the reason."""
    failures: list[str] = field(default_factory=list)


def made(choices: Choices, timed: bool) -> Query:
    relations = TimedRelations(choices) if timed else Relations(choices)
    rel = relations.query(1 + choices.below(4))
    return Query(rel.sql(), rel.sql(duck=True))


def setting_of(job: int) -> Setting:
    """Every fourth job keeps its parallelism and does not crash; the backends take turns."""
    return Setting(
        job,
        deletes=job % 3 != 2,
        backend=("hashmap", "rocksdb")[job // 3 % 2],
        crash=job % 4 in (1, 3),
        rescale=(None, None, 3, 1)[job % 4],
        epochs=4,
        size=11,
    )


def try_job(job: int, found: Trial, tries: int = TRIES) -> None:
    """Run the queries of one job. Its number is the seed of all."""
    setting = setting_of(job)
    queries: dict[Query, list[int]] = {}
    for number in range(PER_JOB):
        choices = Choices(job * 1_000 + number)
        query = made(choices, not setting.deletes)
        try:
            error = refusal(query, setting.deletes)
        except Exception:  # planning must not fail in any other way
            found.failures.append(_simplest(choices.made, setting, tries))
            continue
        if error is None:
            queries[query] = choices.made
        else:
            found.refused[str(error).splitlines()[0]] += 1
    found.ran += len(queries)
    if queries and _failure(list(queries), setting) is not None:
        for query, decisions in queries.items():
            if _failure([query], setting) is not None:
                found.failures.append(_simplest(decisions, setting, tries))


def _failure(queries: Sequence[Query], setting: Setting) -> str | None:
    try:
        if len(queries) == 1 and refusal(queries[0], setting.deletes) is not None:
            return None
        wrong = differences(queries, setting)
    except duckdb.Error as error:
        return None if len(queries) == 1 else f"DuckDB: {error}"
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return str(wrong[0]) if wrong else None


def _simplest(decisions: Sequence[int], setting: Setting, tries: int) -> str:
    timed = not setting.deletes

    def fails(less: Sequence[int], setting: Setting = setting) -> bool:
        return _failure([made(Choices(given=less), timed)], setting) is not None

    calm = replace(setting, crash=False, rescale=None, backend="hashmap")
    if fails(decisions, calm):
        setting = calm
    decisions = shrink(decisions, lambda less: fails(less, setting), tries)
    for size in (2, 3, 5, 7):
        small = replace(setting, epochs=3, size=size)
        if fails(decisions, small):
            setting = small
            break
    query = made(Choices(given=decisions), timed)
    rows = "\n".join(
        f"  epoch {epoch}: " + ", ".join(f"{kind.name} {values}" for kind, values in changes)
        for epoch, changes in enumerate(random_rows(setting.seed, setting.epochs, setting.size, setting.deletes))
    )
    return f"{setting}\n{query.sql}\nDuckDB: {query.duck}\n{_failure([query], setting)}\nrows:\n{rows}"
