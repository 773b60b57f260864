"""Which server leads: one at a time, the next one soon, and never one that was deposed."""

from __future__ import annotations

import os
import socket
import threading
from pathlib import Path
from unittest.mock import patch

import pytest

from headwater.common.errors import HeadwaterError
from headwater.server.jobs import leadership
from headwater.server.jobs.leadership import LEASE_SECONDS, Leadership, NotLeaderError, check_storage


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def storage(tmp_path: Path) -> Path:
    check_storage(tmp_path)
    return tmp_path


def server(storage: Path, name: str, clock: Clock) -> Leadership:
    return Leadership(storage, f"http://{name}:1", clock)


def test_the_first_server_leads_and_the_second_stands_by(storage: Path, clock: Clock) -> None:
    one, two = server(storage, "one", clock), server(storage, "two", clock)
    assert one.step() and not two.step()
    one.check()
    with pytest.raises(NotLeaderError, match=r"stands by; ask http://one:1") as refused:
        two.check()
    assert refused.value.leader == two.leader() == "http://one:1"
    for _ in range(100):  # the leader gives signs of life: however long it takes, nobody takes over
        clock.now += 1
        assert one.step() and not two.step()


def test_a_silent_leader_is_deposed_after_its_lease_and_then_refuses(storage: Path, clock: Clock) -> None:
    one, two = server(storage, "one", clock), server(storage, "two", clock)
    one.step()
    two.step()
    clock.now += LEASE_SECONDS
    assert not two.step(), "not before the lease is over"
    clock.now += 0.1
    assert two.step()
    assert one.leads, "it does not know yet"
    with pytest.raises(NotLeaderError, match="ask http://two:1"):
        one.check()
    assert not one.leads and not one.step()
    two.check()


def test_a_dead_leader_of_this_host_is_followed_at_once(storage: Path, clock: Clock) -> None:
    one, two = server(storage, "one", clock), server(storage, "two", clock)
    with patch.object(leadership, "start_time", return_value="another boot/1"):
        one = server(storage, "one", clock)  # as if its process had ended: this pid began at another time
    one.step()
    assert two.leader() == "", "nobody is sent to a dead server"
    assert two.step()


def test_a_leader_of_another_host_has_its_lease(storage: Path, clock: Clock) -> None:
    two = server(storage, "two", clock)
    with patch.object(socket, "gethostname", return_value="elsewhere"):
        server(storage, "one", clock).step()
    assert not two.step()
    clock.now += LEASE_SECONDS + 0.1
    assert two.step()


def test_a_leader_that_ends_lays_its_claim_down(storage: Path, clock: Clock) -> None:
    one, two = server(storage, "one", clock), server(storage, "two", clock)
    one.step()
    one.lay_down()
    assert two.step() and not one.leads


def test_a_claim_without_a_sign_of_life_is_waited_for(storage: Path, clock: Clock) -> None:
    one, two = server(storage, "one", clock), server(storage, "two", clock)
    one.step()
    for path in (storage / "claims").glob("*.sign"):
        path.write_bytes(b"damaged")
    assert not two.step()
    clock.now += LEASE_SECONDS + 0.1
    assert two.step()


@pytest.mark.parametrize("round_", range(50))
def test_of_servers_that_race_one_leads(storage: Path, clock: Clock, round_: int) -> None:
    servers = [server(storage, f"s{number}", clock) for number in range(4)]
    barrier = threading.Barrier(len(servers))

    def race(one: Leadership) -> None:
        barrier.wait()
        one.step()

    threads = [threading.Thread(target=race, args=(one,)) for one in servers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    leading = []
    for one in servers:
        try:
            one.check()
            leading.append(one)
        except NotLeaderError:
            pass
    assert len(leading) == 1
    assert sum(one.step() for one in servers) == 1, "and it stays so"


def test_a_storage_that_cannot_keep_servers_apart_is_refused(tmp_path: Path) -> None:
    with (
        patch.object(os, "link", side_effect=PermissionError(1, "Operation not permitted")),
        pytest.raises(HeadwaterError, match="on a file system with hard links"),
    ):
        check_storage(tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(HeadwaterError, match="cannot be used"):
        check_storage(tmp_path / "file" / "below")
