"""A job on a streaming DataFrame as a program: Spark watches a directory of files, one file is one epoch."""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from headwater.common import Encoder, Row
from headwater.datastream import KeyedProcessFunction, RuntimeContext
from headwater.datastream.connectors.file_system import FileSink, RollingPolicy
from headwater.datastream.state import ValueStateDescriptor
from tests.recovery import kills
from tests.spark.harness import environment

KEYS = 13


class NumberWords(KeyedProcessFunction):
    """Numbers what it sees of a key: state that is lost or applied twice shows in every line after it."""

    def open(self, runtime_context: RuntimeContext) -> None:
        kills.install()  # in the slot, which gets this class without its module
        self.count = runtime_context.get_state(ValueStateDescriptor("count"))

    def process_element(self, value: Row, ctx: KeyedProcessFunction.Context) -> Any:
        number = (self.count.value() or 0) + 1
        self.count.update(number)
        yield f"{value['value']} {number}"


def word(index: int) -> str:
    return f"word-{index % KEYS}"


def write_input(directory: Path, files: int, words_per_file: int) -> None:
    directory.mkdir()
    for number in range(files):
        words = [word(index) for index in range(number * words_per_file, (number + 1) * words_per_file)]
        (directory / f"{number:03}.txt").write_text("\n".join(words) + "\n")


def expected(words: int) -> Counter[str]:
    numbers: Counter[str] = Counter()
    lines: Counter[str] = Counter()
    for each in map(word, range(words)):
        numbers[each] += 1
        lines[f"{each} {numbers[each]}"] += 1
    return lines


def main(settings: str) -> None:
    kills.this_is_the_driver()
    kills.install()
    wanted = json.loads(settings)
    session = (
        SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
        .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1").getOrCreate()
    )  # fmt: skip
    session.sparkContext.setLogLevel("OFF")
    words = session.readStream.option("maxFilesPerTrigger", 1).text(wanted["conf"]["input"])
    env = environment(2, Path(wanted["checkpoints"]), {"headwater.epoch.duration": 100})
    sink = (
        FileSink.for_row_format(wanted["output"], Encoder.simple_string_encoder())
        .with_rolling_policy(RollingPolicy.on_checkpoint_rolling_policy())
        .build()
    )
    env.from_dataframe(words).key_by(lambda row: row["value"]).process(NumberWords()).sink_to(sink)
    env.execute("words")


if __name__ == "__main__":
    main(sys.argv[1])
