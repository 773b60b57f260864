"""A driver that counts into PostgreSQL and hits itself at a step: `jdbc_driver.py URI DIRECTORY STEP TIMES RECORDS`.

STEP is one of `headwater.testing.STEPS`, or one of `IN_COMMIT` below. It is killed, with SIGKILL, the TIMES-th time
that it gets there. With STEP "none" it runs to the end.
"""

from __future__ import annotations

import sys
from typing import Any

from headwater.common import Configuration, Row
from headwater.common.config.values import IN_PROCESS
from headwater.datastream import StreamExecutionEnvironment
from headwater.datastream.connectors.jdbc import postgres_copy
from headwater.datastream.connectors.jdbc.postgres import Postgres
from tests.recovery.hitting import Hitter
from tests.unit.connectors.jdbc import tables

IN_COMMIT = ("before-transaction", "after-lock", "in-copy", "after-rows", "after-mark", "after-commit")
"""Steps inside the commit of a partition's output."""


def watch_commits(hitter: Hitter) -> None:
    """Make steps of what the committer does with the database."""

    def around(name: str, before: str | None, after: str | None) -> None:
        call = getattr(Postgres, name)

        def watched(self: Postgres, *arguments: Any) -> Any:
            hitter.reached(before)
            answer = call(self, *arguments)
            hitter.reached(after)
            return answer

        setattr(Postgres, name, watched)

    copy, connect = postgres_copy.copy_blocks, Postgres.connect

    def watched_copy(cursor: Any, command: str, blocks: Any) -> None:
        def watched_blocks() -> Any:
            for block in blocks:
                yield block
                hitter.reached("in-copy")

        copy(cursor, command, watched_blocks())

    def watched_connect(self: Postgres, *arguments: Any) -> Any:
        connection = connect(self, *arguments)
        commit = connection.commit

        def watched_commit() -> None:
            writes = connection.info.transaction_status.name == "INTRANS"
            commit()
            if writes and getattr(connection, "wrote", False):
                hitter.reached("after-commit")

        connection.commit = watched_commit
        return connection

    def set_mark(self: Postgres, connection: Any, *arguments: Any) -> None:
        mark(self, connection, *arguments)
        connection.wrote = True
        hitter.reached("after-mark")

    postgres_copy.copy_blocks = watched_copy
    Postgres.try_mark = lambda *arguments: None  # type: ignore[method-assign]  # a start is no commit
    Postgres.connect = watched_connect  # type: ignore[method-assign]
    mark = Postgres.set_mark
    Postgres.set_mark = set_mark  # type: ignore[method-assign]
    around("lock_mark", "before-transaction", "after-lock")
    around("write_copy", None, "after-rows")


def main(uri: str, directory: str, step: str, times: int, records: int) -> None:
    hitter = Hitter(step, times)
    hitter.watch_epochs()
    watch_commits(hitter)
    env = StreamExecutionEnvironment.get_execution_environment(
        Configuration.from_dict(
            {
                "headwater.master": IN_PROCESS,
                "execution.checkpointing.dir": directory,
                "headwater.epoch.min-records": "20",
                "headwater.epoch.max-records": "20",
            }
        )
    )
    env.set_parallelism(2)
    keyed = env.from_sequence(0, records - 1).map(lambda n: (n % 7, 1)).key_by(lambda pair: pair[0])
    counted = keyed.reduce(lambda a, b: (a[0], a[1] + b[1]))
    counted.map(lambda pair: Row(pair[0], str(pair[1])), tables.ROW).add_sink(tables.sink(uri))
    env.execute("counting")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]), int(sys.argv[5]))
