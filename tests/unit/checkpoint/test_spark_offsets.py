"""Spark's files are what the manifest says before Spark reads them, or the start stops and changes nothing."""

from __future__ import annotations

import random
import shutil
from pathlib import Path
from typing import Any

import msgspec
import pytest

from headwater.checkpoint import spark_offsets
from headwater.checkpoint.spark_offsets import SparkRecorder, restore_spark
from headwater.common.errors import CheckpointError

BATCH = 12
LARGE = 9
"""The entry of the file source's log that is too large for a manifest."""


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.with_name(f".{path.name}.crc").write_bytes(b"crc of " + text.encode())


def batch(spark: Path, number: int) -> None:
    """What Spark writes before it hands out a micro-batch; one file each, and a source without a log."""
    if number:
        write(spark / "commits" / str(number - 1), 'v1\n{"nextBatchWatermarkMs":0}')
    compact = number % 10 == LARGE
    files = range(number + 1) if compact else [number]
    lines = [f'{{"path":"file:///input/{file:03}.txt","batchId":{file}}}' for file in files]
    padding = "\n" * (spark_offsets.KEPT_WHOLE if compact else 0)
    name = f"{number}.compact" if compact else str(number)
    write(spark / "sources" / "0" / name, "v1\n" + "\n".join(lines) + padding)
    write(spark / "offsets" / str(number), f'v1\n{{"batchWatermarkMs":0}}\n{{"logOffset":{number}}}\n{number * 1000}')


@pytest.fixture
def spark(tmp_path: Path) -> Path:
    spark = tmp_path / "spark"
    write(spark / "metadata", '{"id":"4711"}')
    write(spark / "sources" / "1" / "0", "v1\n1234567")
    for number in range(BATCH + 1):
        batch(spark, number)
    return spark


def recorded(spark: Path) -> dict[str, Any]:
    """As it comes out of a manifest."""
    found: dict[str, Any] = msgspec.msgpack.decode(msgspec.msgpack.encode(SparkRecorder(spark).record(BATCH)))
    return found


def contents(spark: Path, names: Any) -> dict[str, bytes]:
    return {name: (spark / name).read_bytes() for name in names}


def test_what_spark_reads_at_a_start_is_kept(spark: Path) -> None:
    kept = recorded(spark)["files"]
    large = f"sources/0/{LARGE}.compact"
    offsets = ["metadata", "offsets/11", "offsets/12", "commits/11"]
    assert sorted(kept) == sorted([*offsets, large, *(f"sources/0/{n}" for n in (10, 11, 12)), "sources/1/0"])
    assert [name for name, content in kept.items() if not isinstance(content, bytes)] == [large]
    assert len(msgspec.msgpack.encode(kept)) < 2_000


def test_a_file_that_is_another_one_is_read_again(spark: Path) -> None:
    recorder = SparkRecorder(spark)
    recorder.record(BATCH)
    batch(spark, BATCH + 1)
    assert recorder.record(BATCH + 1) == SparkRecorder(spark).record(BATCH + 1)
    (spark / "metadata").unlink()
    write(spark / "metadata", '{"id":"4712"}')
    assert recorder.record(BATCH + 1)["files"]["metadata"] == b'{"id":"4712"}'


@pytest.mark.parametrize("kind", ["delete", "flip", "truncate"])
def test_each_file_is_made_again_or_named(spark: Path, kind: str) -> None:
    kept = recorded(spark)
    good = contents(spark, kept["files"])
    whole = spark.with_name("whole")
    shutil.copytree(spark, whole)
    chance = random.Random(kind)
    for name in good:
        path = spark / name
        if kind == "delete":
            path.unlink()
        else:
            content = bytearray(good[name])
            content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
            path.write_bytes(content if kind == "flip" else content[: chance.randrange(len(content))])
        if isinstance(kept["files"][name], bytes):
            restore_spark(spark, kept)
            assert contents(spark, good) == good
            assert not (path.parent / f".{path.name}.crc").exists(), "Hadoop's own checksum may be the damaged one"
        else:
            before = sorted(spark.rglob("*"))
            with pytest.raises(CheckpointError, match=rf"{name} of micro-batch 12 is .*Restore the file"):
                restore_spark(spark, kept)
            assert sorted(spark.rglob("*")) == before
        shutil.rmtree(spark)
        shutil.copytree(whole, spark)


def test_all_is_made_again_if_the_manifest_has_all_of_it(tmp_path: Path) -> None:
    spark = tmp_path / "spark"
    write(spark / "metadata", "{}")
    for number in range(3):
        batch(spark, number)
    kept = SparkRecorder(spark).record(2)
    good = contents(spark, kept["files"])
    shutil.rmtree(spark)
    restore_spark(spark, kept)
    assert contents(spark, good) == good


def test_what_does_not_count_is_forgotten(spark: Path) -> None:
    kept = recorded(spark)
    batch(spark, BATCH + 1)
    batch(spark, BATCH + 2)
    restore_spark(spark, kept)
    names = {path.relative_to(spark).as_posix() for path in spark.rglob("*") if path.is_file()}
    assert not {"offsets/13", "offsets/.13.crc", "offsets/14", "commits/12", "commits/13", "sources/0/13"} & names
    assert {"offsets/12", "offsets/0", "commits/11", "sources/0/12", "sources/1/0"} <= names
    restore_spark(spark, {})
    assert not spark.exists(), "no micro-batch counts"


def test_a_manifest_of_an_earlier_version_keeps_nothing(spark: Path) -> None:
    restore_spark(spark, {"batch_id": BATCH})
    assert (spark / "offsets" / "12").exists() and (spark / "offsets" / "11").exists()
    shutil.rmtree(spark)
    with pytest.raises(CheckpointError, match=r"offsets of micro-batch 12 are not at .*offsets/12"):
        restore_spark(spark, {"batch_id": BATCH})
