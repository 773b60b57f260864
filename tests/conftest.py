"""What all tests share: marks by folder, time limits, a private state directory, no Spark where none belongs."""

from __future__ import annotations

import logging
import os
import signal
import sys
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from headwater.compat import pyflink_imports

HERE = Path(__file__).parent

MARKS_BY_FOLDER = {"spark": ("spark",), "golden": ("golden", "spark"), "recovery": ("recovery", "spark")}
MAY_START_SPARK = {*MARKS_BY_FOLDER, "parity"}
"""The folders in which `make test` looks for tests with the `spark` mark."""

TIMEOUT_S_BY_MARK = {"recovery": 600, "golden": 300}
"""For tests without a `timeout` mark of their own; others get the default of pyproject.toml."""

# A shared two-core machine stalls for longer than any deadline; and CI must say the same thing twice.
settings.register_profile("dev", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", parent=settings.get_profile("dev"), derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "dev")

# A shell that starts `make test &` ignores Ctrl-C for all its descendants; tests press it in processes that they start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        folder = item.path.relative_to(HERE).parts[0]
        for mark in MARKS_BY_FOLDER.get(folder, ()):
            item.add_marker(mark)
        if item.get_closest_marker("spark") and folder not in MAY_START_SPARK:
            raise pytest.UsageError(f"{item.nodeid} is marked `spark`: put it into tests/spark, or nobody runs it")
        if item.get_closest_marker("timeout") is None:
            for mark, seconds in TIMEOUT_S_BY_MARK.items():
                if item.get_closest_marker(mark):
                    item.add_marker(pytest.mark.timeout(seconds))
                    break


@pytest.fixture(scope="session", autouse=True)
def private_state_directory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Jobs without a checkpoint directory put it below the user's state directory: not below yours."""
    directory = tmp_path_factory.mktemp("state")
    before = os.environ.get("XDG_STATE_HOME")
    os.environ["XDG_STATE_HOME"] = str(directory)
    yield directory
    if before is None:
        del os.environ["XDG_STATE_HOME"]
    else:
        os.environ["XDG_STATE_HOME"] = before


@pytest.fixture(scope="session", autouse=True)
def nothing_is_left_in_the_repository() -> Iterator[None]:
    """A test that writes to a relative path leaves files where `git add -A` finds them."""
    root = HERE.parent
    ignored = [line.rstrip("/") for line in (root / ".gitignore").read_text(encoding="utf-8").splitlines()]
    before = set(os.listdir(root))
    yield
    left = [name for name in set(os.listdir(root)) - before if not any(fnmatch(name, each) for each in ignored)]
    assert not left, f"a test left {sorted(left)} in the repository: give it a directory of its own"


@pytest.fixture(autouse=True)
def pyflink_is_itself_again() -> Iterator[None]:
    """A command that ran a program in this process has mapped `pyflink` to headwater: not for the next test."""
    before = pyflink_imports.is_installed()
    yield
    if not before:
        pyflink_imports.uninstall()


@pytest.fixture(autouse=True)
def the_log_level_is_as_before() -> Iterator[None]:
    """A job that ran in this process has set the level of headwater's log: not for the next test."""
    logger = logging.getLogger("headwater")
    before = logger.level
    yield
    logger.setLevel(before)


def _spark_runs() -> bool:
    pyspark = sys.modules.get("pyspark")
    context = getattr(pyspark, "SparkContext", None)
    return getattr(context, "_active_spark_context", None) is not None


@pytest.fixture(autouse=True)
def spark_only_where_marked(request: pytest.FixtureRequest) -> Iterator[None]:
    """A test without the `spark` mark that starts Spark fails: the fast tests must stay fast."""
    marked = request.node.get_closest_marker("spark") is not None
    ran_before = _spark_runs()
    yield
    if not marked and not ran_before and _spark_runs():
        pytest.fail("this test started Spark; mark it with @pytest.mark.spark or keep Spark out of it")
