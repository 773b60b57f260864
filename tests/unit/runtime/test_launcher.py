"""What a job starts and what it leaves behind: Spark only if there is something to run, no directory of its own."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from headwater.common import Configuration
from headwater.common.errors import HeadwaterError
from headwater.datastream import StreamExecutionEnvironment
from headwater.runtime.job import launcher
from headwater.testing import CollectingSink

IN_PROCESS = {"headwater.master": "in-process"}


def run(sink: CollectingSink, function: Any = lambda number: number, **conf: str) -> None:
    env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(conf))
    env.from_collection([1, 2, 3]).map(function).sink_to(sink)
    plan, configuration = env._plan("once")
    launcher.launch(plan, configuration).get_job_execution_result().result(60)


def jobs_of_no_directory() -> list[str]:
    directory = Path(os.environ["XDG_STATE_HOME"]) / "headwater" / "jobs"
    return os.listdir(directory) if directory.exists() else []


def test_a_finished_job_needs_no_spark(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    sink = CollectingSink(str(tmp_path / "out"))
    conf = {"execution.checkpointing.dir": str(tmp_path / "checkpoints")}
    run(sink, **conf, **IN_PROCESS)
    run(sink, **conf)
    assert "finished in an earlier run" in caplog.text
    assert Counter(sink.results()) == Counter([1, 2, 3])


def test_a_job_without_a_directory_leaves_none_behind(tmp_path: Path) -> None:
    sink = CollectingSink(str(tmp_path / "out"))
    before = jobs_of_no_directory()
    run(sink, **IN_PROCESS)
    with pytest.raises(HeadwaterError, match="ZeroDivisionError"):
        run(sink, lambda number: number // 0, **IN_PROCESS)
    with pytest.raises(HeadwaterError, match="nowhere"):
        run(sink, **{"execution.state-recovery.path": str(tmp_path / "nowhere")}, **IN_PROCESS)
    assert jobs_of_no_directory() == before
