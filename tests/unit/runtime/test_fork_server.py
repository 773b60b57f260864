"""Slots as processes: forked, known by name, and gone when they must be."""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import cloudpickle
import psutil
import pytest

from headwater.common.errors import SerializationError
from headwater.common.ids import Place
from headwater.common.machine.processes import alive, is_named
from headwater.runtime.epoch.failure import ConnectionLostError
from headwater.runtime.epoch.messages import PartitionAck, SlotAddress
from headwater.runtime.main_module import capture_main
from headwater.runtime.slot import fork_client, fork_server
from headwater.runtime.slot import starter as launcher
from headwater.runtime.slot.connection import answers, connect, shut_down
from headwater.runtime.slot.directories import socket_directory
from headwater.runtime.slot.process import PROCESS_NAME
from headwater.runtime.slot.relay import Relay
from headwater.runtime.slot.starter import SlotLaunch, launch_slot, local_host
from tests.unit.runtime.in_process_engine import plan_of
from tests.unit.runtime.slot_servers import begin
from tests.unit.runtime.test_slot import build
from tests.waiting import wait_until

SECRET = b"s" * 32

NEEDS_A_MODULE = b"c%s\nNeeded\n."
"""Pickled: the class `Needed` of a module."""


@pytest.fixture
def high_descriptors() -> Iterator[None]:
    """Every descriptor that the test opens is above 1,023."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, 4096)), hard))
    with contextlib.ExitStack() as taken:
        while (descriptor := os.open(os.devnull, os.O_RDONLY)) < 1024:
            taken.callback(os.close, descriptor)
        os.close(descriptor)
        yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.fixture
def executor(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Stands for the JVM that slots belong to: all of them end with it."""
    with subprocess.Popen(["sleep", "1000"]) as process:
        monkeypatch.setattr(launcher, "find_jvm", lambda: process.pid)
        yield process
        process.kill()


@pytest.fixture
def launch(executor: subprocess.Popen[bytes]) -> SlotLaunch:
    plan = cloudpickle.dumps(plan_of(build))
    return SlotLaunch("job", f"t{executor.pid}", SECRET, plan, (1, 1, 1), capture_main(), None, False)


def start(launch: SlotLaunch, partition: int = 0) -> SlotAddress:
    return launch_slot(launch, Place(1, partition), local_host())


def server_of(slot: SlotAddress) -> int:
    return psutil.Process(slot.pid).ppid()


def test_slots_are_forked_from_one_process(launch: SlotLaunch) -> None:
    slots = [start(launch, partition) for partition in range(3)]
    assert len({slot.pid for slot in slots}) == 3
    assert len({server_of(slot) for slot in slots}) == 1
    for slot in slots:
        assert answers(slot, SECRET, 10)
        assert is_named(slot.pid, PROCESS_NAME)
        assert os.getsid(slot.pid) == slot.pid  # a signal to another's group must not reach it
    shut_down(slots[0], SECRET)
    wait_until(lambda: not alive(slots[0].pid))
    assert answers(slots[1], SECRET, 10)


def test_a_slot_that_was_killed_leaves_no_zombie(launch: SlotLaunch) -> None:
    slot = start(launch)
    os.kill(slot.pid, signal.SIGKILL)
    wait_until(lambda: not alive(slot.pid))
    assert answers(start(launch), SECRET, 10)


def test_one_that_its_driver_does_not_know_ends(launch: SlotLaunch) -> None:
    """A driver learns of a slot by its first acknowledgement. Whoever asked for it may have been killed before."""
    known, asked, held, orphan = (start(launch, partition) for partition in range(4))
    relay = Relay(launch)
    relay.call(known, known.place, begin(0), iter(()))
    assert isinstance(list(relay.events())[-1], PartitionAck)
    relay.close()
    assert answers(asked, SECRET, 10)
    with connect(held, SECRET):
        wait_until(lambda: not alive(orphan.pid) and not alive(asked.pid))
        assert answers(held, SECRET, 10) and not os.path.exists(asked.path)
    assert answers(known, SECRET, 10)


def test_one_that_had_too_many_open_files_takes_connections_again(launch: SlotLaunch) -> None:
    slot = start(launch)
    process = psutil.Process(slot.pid)
    limits = process.rlimit(psutil.RLIMIT_NOFILE)
    process.rlimit(psutil.RLIMIT_NOFILE, (3, limits[1]))  # 0 to 2 are open; to wait for three needs as many
    assert not answers(slot, SECRET, 0.2)
    process.rlimit(psutil.RLIMIT_NOFILE, limits)
    assert answers(slot, SECRET, 10)


def test_all_end_with_their_executor(launch: SlotLaunch, executor: subprocess.Popen[bytes]) -> None:
    slot = start(launch)
    server = psutil.Process(server_of(slot))
    executor.kill()
    wait_until(lambda: not alive(slot.pid))
    wait_until(lambda: not server.is_running() or server.status() == psutil.STATUS_ZOMBIE)
    wait_until(lambda: not os.path.exists(os.path.dirname(slot.path)))


def test_a_fork_server_that_was_killed_is_replaced(launch: SlotLaunch) -> None:
    first = start(launch)
    killed = server_of(first)
    os.kill(killed, signal.SIGKILL)
    second = start(launch, 1)
    assert server_of(second) != killed
    assert answers(first, SECRET, 10)  # its slots do not need it


def test_a_fork_server_that_hangs_is_replaced(launch: SlotLaunch, monkeypatch: pytest.MonkeyPatch) -> None:
    hangs = server_of(start(launch))
    os.kill(hangs, signal.SIGSTOP)
    try:
        with monkeypatch.context() as patched:
            patched.setattr(fork_client, "START_SECONDS", 0.5)
            with pytest.raises(ConnectionLostError, match=r"no answer within 0\.5 s"):
                start(launch, 1)
        assert server_of(start(launch, 2)) != hangs
    finally:
        os.kill(hangs, signal.SIGKILL)


def test_another_environment_has_another_fork_server(launch: SlotLaunch, monkeypatch: pytest.MonkeyPatch) -> None:
    first = start(launch)
    monkeypatch.setenv("PYTHONHASHSEED", "7")
    second = start(launch, 1)
    assert server_of(first) != server_of(second)
    assert psutil.Process(second.pid).environ()["PYTHONHASHSEED"] == "7"


def test_a_slot_works_where_it_was_asked_for(
    launch: SlotLaunch, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    start(launch)  # the fork server is there, and knows nothing of this directory
    (tmp_path / "only_here_a3b1.py").write_text("import os\nraise RuntimeError('imported in ' + os.getcwd())\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SerializationError, match=f"imported in {tmp_path}"):
        start(replace(launch, plan=NEEDS_A_MODULE % b"only_here_a3b1"), 1)


def test_slots_do_not_draw_the_same_numbers(
    launch: SlotLaunch, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "draws_c07e.py").write_text(
        "import random, uuid, numpy\nraise RuntimeError((random.random(), numpy.random.random(), uuid.uuid4().hex))\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    drawn = []
    for partition in range(2):
        with pytest.raises(SerializationError) as raised:
            start(replace(launch, plan=NEEDS_A_MODULE % b"draws_c07e"), partition)
        drawn.append(eval(str(raised.value).rpartition("RuntimeError: ")[2]))
    assert all(first != second for first, second in zip(*drawn, strict=True))


def test_a_plan_that_cannot_be_loaded_is_the_users_error(
    launch: SlotLaunch, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """No further attempt would do better."""
    with pytest.raises(SerializationError, match=r"(?s)cannot be loaded in a slot .*No module named 'nowhere_at_all'"):
        start(replace(launch, plan=NEEDS_A_MODULE % b"nowhere_at_all"), 4)
    (tmp_path / "leaves_e8d2.py").write_text("import sys\nsys.exit('not here')\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(SerializationError, match=r"(?s)SystemExit: not here"):
        start(replace(launch, plan=NEEDS_A_MODULE % b"leaves_e8d2"), 4)


def test_a_machine_that_is_short_of_something_is_asked_again(
    launch: SlotLaunch, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "hungry_51c9.py").write_text("raise OSError(24, 'Too many open files')\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(ConnectionLostError, match=r"(?s)partition 4 did not start: .*Too many open files"):
        start(replace(launch, plan=NEEDS_A_MODULE % b"hungry_51c9"), 4)


def test_a_fork_server_that_does_not_start_is_told(launch: SlotLaunch, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONHASHSEED", "not a number")
    with pytest.raises(ConnectionLostError, match="did not start; its output says why"):
        start(launch)


def test_without_requests_it_ends_also_with_high_descriptors(
    launch: SlotLaunch, monkeypatch: pytest.MonkeyPatch, high_descriptors: None
) -> None:
    path = os.path.join(socket_directory(launch.run_id), "fork")
    listening, listening_write = os.pipe()
    monkeypatch.setattr(fork_server, "IDLE_SECONDS", 0.05)
    monkeypatch.setattr(fork_server.sys, "argv", ["fork_server", path, str(os.getpid()), str(listening_write)])
    monkeypatch.setattr(fork_server.gc, "freeze", lambda: None)
    before = signal.getsignal(signal.SIGCHLD)
    try:
        fork_server.main()
    finally:
        signal.signal(signal.SIGCHLD, before)
    assert os.read(listening, 1) == b"."
    os.close(listening)
    assert not os.path.exists(path)
    with contextlib.suppress(OSError):
        os.rmdir(os.path.dirname(path))
