"""examples/tweet_impressions on Spark, as its page runs it: every hour of every tweet is archived once."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import json
import sqlite3
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from headwater.cli.main import main
from headwater.cli.run import run_program
from headwater.common.config.session_defaults import set_session_defaults
from headwater.common.configuration import Configuration
from tests.spark.test_examples import as_main

__all__ = ["as_main"]

PROGRAM = Path(__file__).resolve().parents[2] / "examples" / "tweet_impressions" / "impressions.py"
COUNT = 30_000


def load() -> Any:
    spec = importlib.util.spec_from_file_location("impressions", PROGRAM)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_hour_is_archived_once(as_main: None, tmp_path: Path) -> None:
    archive = tmp_path / "archive.db"
    set_session_defaults(Configuration.from_dict({"headwater.master": "local[2]", "parallelism.default": 2}))
    complaints = io.StringIO()
    with contextlib.redirect_stderr(complaints):
        code = run_program(str(PROGRAM), PROGRAM.read_bytes(), [str(archive), str(COUNT)])
    assert code == 0, complaints.getvalue()
    expected: Counter[tuple[str, int]] = Counter()
    for tweet, when, seen in map(load().impression, range(COUNT)):
        expected[tweet, when // 3_600_000 * 3_600_000] += seen
    with contextlib.closing(sqlite3.connect(archive)) as connection:
        rows = connection.execute("SELECT key, start_ms, value FROM headwater_windows").fetchall()
    assert {(json.loads(key), start): int(value) for key, start, value in rows} == expected
    assert len(rows) == len(expected)


def test_a_job_that_does_not_run_says_so(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["state", "series", "--state-dir", str(tmp_path), "impressions", "impressions", "tweet-00042"]) != 0
    assert "impressions" in capsys.readouterr().err
