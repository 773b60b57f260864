"""Partial matches survive savepoints, another parallelism and another state backend."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from headwater.testing import CollectingSink
from tests.golden.jobs.pattern import PATTERN
from tests.spark.harness import JobRunner, epochs_of, progress, wait_for_epoch

PATH = "execution.state-recovery.path"


def test_rescaled_in_the_middle_of_a_match(run_job: JobRunner, tmp_path: Path) -> None:
    sink = CollectingSink(str(tmp_path / "out"))
    savepoint: str | None = None
    so_far = 0
    for parallelism, backend in ((2, "rocksdb"), (3, "hashmap"), (1, "rocksdb")):
        conf = {"state.backend.type": backend} | ({PATH: savepoint} if savepoint else {})
        env = run_job.environment(parallelism, **epochs_of(60), **conf)
        PATTERN.build(env).sink_to(sink).uid("out")
        client = env.execute_async("pattern")
        if parallelism == 1:
            client.get_job_execution_result().result(100)
            progress(client)
            break
        wait_for_epoch(client, progress(client)["epoch"] + 5)
        savepoint = client.stop_with_savepoint(False, str(tmp_path / "savepoints")).result(60)
        client.get_job_execution_result().result(60)
        found = len(sink.results())
        assert so_far < found < PATTERN.expected().total()
        so_far = found
    assert Counter(sink.results()) == PATTERN.expected()
