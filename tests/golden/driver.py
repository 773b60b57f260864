"""A golden job as a program: ``python -m tests.golden.driver JOB CHECKPOINTS OUTPUT`` writes to files, exactly once."""

from __future__ import annotations

import sys
from pathlib import Path

from headwater.common import Encoder
from headwater.datastream.connectors.file_system import FileSink
from tests.golden.jobs import JOBS
from tests.spark.harness import environment, epochs_of


def main(name: str, checkpoints: str, output: str) -> None:
    job = JOBS[name]
    env = environment(2, Path(checkpoints), epochs_of(job.epoch_records))
    sink = FileSink.for_row_format(output, Encoder.simple_string_encoder()).build()
    job.build(env).map(repr).sink_to(sink)
    env.execute(name)


if __name__ == "__main__":
    main(*sys.argv[1:])
