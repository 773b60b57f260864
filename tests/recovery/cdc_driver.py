"""A driver that writes the changes of table `items` to table `changes`: `cdc_driver.py URI DIRECTORY STEP TIMES`.

It kills itself the TIMES-th time that it gets to STEP, one of `headwater.testing.STEPS`; otherwise it does not end.
"""

from __future__ import annotations

import sys

from headwater.common import Configuration, Row, Types, WatermarkStrategy
from headwater.common.config.values import IN_PROCESS
from headwater.datastream import StreamExecutionEnvironment
from headwater.datastream.connectors.jdbc import JdbcSink
from tests.postgres_server import jdbc_url
from tests.recovery.hitting import Hitter
from tests.unit.connectors.jdbc import tables
from tests.unit.connectors.postgres_cdc.changelog import builder


def main(uri: str, directory: str, step: str, times: int) -> None:
    hitter = Hitter(step, times)
    hitter.watch_epochs()
    env = StreamExecutionEnvironment.get_execution_environment(
        Configuration.from_dict({"headwater.master": IN_PROCESS, "execution.checkpointing.dir": directory})
    )
    env.set_parallelism(1)
    source = builder(uri).split_size(20).build()
    rows = Types.ROW([Types.STRING(), Types.INT(), Types.STRING()])
    sink = JdbcSink.sink("INSERT INTO changes (kind, id, name) VALUES (?, ?, ?)", rows, tables.options(jdbc_url(uri)))
    changes = env.from_source(source, WatermarkStrategy.no_watermarks(), "items")
    named = changes.map(lambda row: Row(row.get_row_kind().name, row.id, row.name), rows)
    named.key_by(lambda row: row[1]).reduce(lambda _, row: row).add_sink(sink)  # through a slot: all steps are there
    env.execute("changes")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]))
