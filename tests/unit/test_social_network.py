"""examples/social_network, as its page tells it: a bug in the read side, repaired by reading the log anew. No Spark."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headwater.cli.main import main
from headwater.runtime.job.run_directory import JobCard, RunDirectory
from tests.unit.server.rest_server import serving
from tests.waiting import wait_until

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "social_network"


def load(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(name, EXAMPLE / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Network:
    """The folder of the example, its programs in processes of their own, and a server that knows them."""

    def __init__(self, folder: Path, port: int) -> None:
        self.folder, self.port = folder, port
        self.at = 0
        self.readers = load("readers")
        self._jobs: list[subprocess.Popen[bytes]] = []
        for name in ("commands", "log"):
            (folder / name).mkdir()

    def command(self, *commands: dict[str, Any]) -> None:
        """Append commands to their log: one file, which appears whole."""
        lines = []
        for command in commands:
            self.at += 1
            lines.append(json.dumps({"at": self.at, **command}) + "\n")
        draft = self.folder / "commands" / f".{self.at:06d}.json"
        draft.write_text("".join(lines))
        draft.rename(draft.with_name(draft.name[1:]))

    def run(self, program: str, name: str, *arguments: str) -> str:
        """Start a program; return `host:port job-id` once its job runs."""
        settings = {
            "headwater.master": "in-process",
            "headwater.state.dir": self.folder / "state",
            "headwater.rest.enabled": "false",
            "execution.checkpointing.interval": "50 ms",
        }
        options = [part for key, value in settings.items() for part in ("-D", f"{key}={value}")]
        command = [sys.executable, "-m", "headwater", "run", "-c", str(self.folder / f"{name}-job"), *options]
        log = (self.folder / f"{name}.log").open("w")
        paths = [str(self.folder / argument) for argument in arguments]
        job = subprocess.Popen(
            [*command, str(EXAMPLE / f"{program}.py"), *paths],
            stdout=log,
            stderr=subprocess.STDOUT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
        log.close()
        self._jobs.append(job)
        directory = RunDirectory(str(self.folder / "state"))
        cards: list[JobCard] = []

        def runs() -> bool:
            cards[:] = [card for card in directory.cards() if card.pid == job.pid]
            assert job.poll() is None, (self.folder / f"{name}.log").read_text()
            return bool(cards)

        wait_until(runs, f"job {name}", 90, 0.05)
        return f"127.0.0.1:{self.port} {cards[0].job_id}"

    def has_read(self, where: str, events: int) -> None:
        side = self.readers.ReadSide(where)
        wait_until(lambda: side.position() == events, lambda: f"{events} events, found {side.position()}", 60, 0.05)

    def refused(self) -> list[dict[str, Any]]:
        return [json.loads(line) for path in (self.folder / "refused").rglob("part*") for line in path.open()]

    def end(self) -> None:
        for job in self._jobs:
            job.terminate()
        for job in self._jobs:
            with contextlib.suppress(subprocess.TimeoutExpired):
                job.wait(30)
            job.kill()


@pytest.fixture
def network(tmp_path: Path) -> Iterator[Network]:
    with serving(tmp_path) as rest:
        made = Network(tmp_path, rest.port)
        try:
            yield made
        finally:
            made.end()


def by(user: str, do: str, **what: str) -> dict[str, Any]:
    return {"user": user, "do": do, **what}


@pytest.mark.timeout(300)
def test_the_story(network: Network, capsys: pytest.CaptureFixture[str]) -> None:
    like = by("bob", "like", post="p1")
    network.command(by("ann", "post", post="p1"), by("ann", "post", post="p2"))
    network.command(
        like, by("cleo", "like", post="p1"), like, by("cleo", "like", post="p2"), by("ann", "like", post="p3")
    )
    network.command(*(by(user, "follow", whom="ann") for user in ("bob", "cleo", "ann")))
    network.run("write_side", "write-side", "commands", "log", "refused")
    first = network.run("read_side_v1", "v1", "log")
    network.readers.put_in_charge(str(network.folder), first)
    network.has_read(first, 8)
    wait_until(lambda: len(network.refused()) == 2, "what is refused")
    assert {each["refused"] for each in network.refused()} == {"there is no such post", "nobody follows themselves"}

    def ask(view: str, key: str = "all") -> Any:
        return network.readers.in_charge(str(network.folder)).ask(view, key)

    assert ask("followers", "ann") == ["bob", "cleo"]
    assert (ask("likes", "p1"), ask("likes", "p2")) == (3, 1), "the mistake: bob's phone sent its like twice"
    assert ask("ranking") == [["p1", 3], ["p2", 1]]

    # Version 2 reads the whole log into state of its own, beside version 1. Apps go on asking, people go on liking.
    second = network.run("read_side_v2", "v2", "log")
    done, positions, likes = threading.Event(), [], []

    def apps() -> None:
        while not done.is_set():
            side = network.readers.in_charge(str(network.folder))
            positions.append(side.position())
            likes.append(side.ask("likes", "p1"))

    app = threading.Thread(target=apps)
    app.start()
    try:
        network.command(by("dora", "like", post="p2"), by("dora", "like", post="p2"), by("bob", "unlike", post="p1"))
        network.has_read(first, 11)
        network.readers.switch(str(network.folder), second)
        wait_until(lambda: len(positions) > 5 and likes[-1] == 1, "an answer of version 2", 30)
        network.command(by("eve", "follow", whom="bob"))
        network.has_read(second, 12)
    finally:
        done.set()
        app.join()
    assert positions == sorted(positions), "no answer is of an older log than the one before"
    assert set(likes) <= {3, 2, 1} and None not in likes, "somebody answered all the time"
    assert (ask("likes", "p1"), ask("likes", "p2"), ask("followers", "bob")) == (1, 2, ["eve"])
    assert ask("ranking") == [["p2", 2], ["p1", 1]]

    # The way back: version 1, with its state.
    where = ["--state-dir", str(network.folder / "state")]
    assert main(["stop", *where, "read-side-v1", "--savepoint-dir", str(network.folder / "savepoints")]) == 0
    assert "Savepoint completed. Path: " in capsys.readouterr().out
