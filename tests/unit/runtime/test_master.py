"""A master that is not there is told at once."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator

import pytest

from headwater.common.errors import ConfigurationError
from headwater.runtime.spark import master
from headwater.runtime.spark.master import require_master, told_while_waiting


@pytest.fixture
def listening() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@pytest.fixture
def closed() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def test_a_master_that_listens_is_taken(listening: int, closed: int) -> None:
    require_master(f"spark://127.0.0.1:{listening}")
    require_master(f"spark://127.0.0.1:{closed},127.0.0.1:{listening}")
    require_master(f"k8s://https://127.0.0.1:{listening}")


@pytest.mark.parametrize("name", ["local", "local[2]", "local-cluster[2,1,1024]", "yarn", "spark://"])
def test_masters_without_a_host_are_not_asked(name: str) -> None:
    require_master(name)


def test_one_that_does_not_is_told_at_once_and_then_an_error(
    closed: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(master, "PATIENCE_SECONDS", 0.2)
    with pytest.raises(ConfigurationError, match=f"127.0.0.1:{closed}: Connection refused. Is it started"):
        require_master(f"spark://127.0.0.1:{closed}")
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert f"spark://127.0.0.1:{closed} cannot be reached" in caplog.text


def test_a_host_that_nobody_knows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(master, "PATIENCE_SECONDS", 0)
    with pytest.raises(ConfigurationError, match=r"spark://no\.such\.host\.invalid:7077 cannot be reached"):
        require_master("spark://no.such.host.invalid:7077")


def test_one_is_told_what_is_waited_for(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(master, "TELL_SECONDS", 0.01)
    with told_while_waiting("spark://host:7077"):
        deadline = time.monotonic() + 30
        while not caplog.records and time.monotonic() < deadline:
            time.sleep(0.01)
    assert "waiting for Spark on spark://host:7077" in caplog.text
