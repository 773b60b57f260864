"""Spark's own files of a streaming DataFrame, missing or damaged between two starts of a job."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from headwater.common.errors import CheckpointError
from headwater.testing import CollectingSink
from tests.recovery.streaming_driver import NumberWords, expected, word
from tests.spark.harness import JobRunner
from tests.waiting import wait_until

WORDS_PER_FILE = 5


class Stream:
    """A directory that grows, and a job that is started on it again and again."""

    def __init__(self, run_job: JobRunner, directory: Path) -> None:
        self._run_job = run_job
        self._input = directory / "input"
        self._input.mkdir()
        self._files = 0
        self.checkpoints = directory / "checkpoints"
        self.sink = CollectingSink(str(directory / "out"))

    def run(self, files: int) -> None:
        """Give it `files` more files, and stop it when it has read them."""
        for _ in range(files):
            words = [word(self._files * WORDS_PER_FILE + number) for number in range(WORDS_PER_FILE)]
            draft = self._input / f".{self._files:03}.txt"
            draft.write_text("\n".join(words) + "\n")
            draft.rename(self._input / f"{self._files:03}.txt")
            self._files += 1
        client = self._start()
        wait_until(lambda: self.is_over(client), f"{self._files} files")
        client.cancel().result()

    def is_over(self, client: Any) -> bool:
        if client.get_job_execution_result().done():
            client.get_job_execution_result().result()
        return len(self.sink.results()) >= self._files * WORDS_PER_FILE

    def _start(self) -> Any:
        from pyspark.sql import SparkSession

        session = SparkSession.builder.getOrCreate()
        words = session.readStream.option("maxFilesPerTrigger", 1).text(str(self._input))
        env = self._run_job.environment(
            1,
            self.checkpoints,
            **{
                "headwater.epoch.duration": 100,
                "execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION",
            },
        )
        env.from_dataframe(words).key_by(lambda row: row["value"]).process(NumberWords()).sink_to(self.sink)
        return env.execute_async("words")

    def check(self) -> None:
        assert Counter(self.sink.results()) == expected(self._files * WORDS_PER_FILE)

    def newest_offsets(self) -> Path:
        return max((self.checkpoints / "spark" / "offsets").glob("[0-9]*"), key=lambda path: int(path.name))


@pytest.fixture
def stream(run_job: JobRunner, tmp_path: Path) -> Stream:
    run_job(lambda env: env.from_collection([1]))  # Spark is there
    return Stream(run_job, tmp_path)


def test_the_next_start_makes_sparks_files_what_the_manifest_says(stream: Stream) -> None:
    def one_bit(spark: Path) -> None:
        offsets = stream.newest_offsets()
        offsets.with_name(f".{offsets.name}.crc").unlink()  # where it is left out, Spark does not notice
        text = offsets.read_text()
        last = int(text.rpartition(":")[2].rstrip("}\n"))
        offsets.write_text(text.replace(f'"logOffset":{last}', f'"logOffset":{last ^ 1}'))

    def all_of_it(spark: Path) -> None:
        shutil.rmtree(spark)

    def seen_files(spark: Path) -> None:
        shutil.rmtree(spark / "sources")

    stream.run(2)
    damages: list[Callable[[Path], None]] = [one_bit, all_of_it, seen_files]
    for damage in damages:
        damage(stream.checkpoints / "spark")
        stream.run(1)
        stream.check()


def test_what_the_manifest_does_not_hold_itself_is_named(stream: Stream, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headwater.checkpoint.spark_offsets.KEPT_WHOLE", 60)
    stream.run(1)
    log = stream.checkpoints / "spark" / "sources" / "0" / "0"
    whole = log.read_bytes()
    log.write_bytes(whole.replace(b"000.txt", b"001.txt"))
    with pytest.raises(CheckpointError, match=r"sources/0/0 of micro-batch \d+ is damaged.*Restore the file"):
        stream.run(1)
    log.write_bytes(whole)
    stream.run(0)
    stream.check()
