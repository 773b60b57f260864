"""A savepoint that somebody else made runs nothing in the commands that only look at it."""

from __future__ import annotations

import os
import pickle
import re
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec
import pytest

from headwater.checkpoint.manifest import Manifest, PartitionRecord, SourceRecord, SplitRecord
from headwater.checkpoint.paths import CheckpointLayout
from headwater.checkpoint.savepoint.savepoint import write_savepoint
from headwater.checkpoint.snapshot.file import write_snapshot
from headwater.checkpoint.store import ManifestStore
from headwater.cli.main import main
from headwater.state.descriptors import ValueStateDescriptor
from headwater.state.snapshot.payload import FORMAT
from headwater.state.snapshot.section import BROADCAST, EVENT_TIMERS, KEYED, OPERATOR, Section
from tests.unit.checkpoint.native_job import NativeJob

ROOT = Path(__file__).resolve().parents[3]
PROGRAM = ROOT / "examples" / "evolve_state" / "orders_v1.py"
UID = "accounts"  # as in the program
VALUE = ("value", False, False, 1, None)

Explode = Callable[[], Any]


class Bomb:
    """Unpickled, it runs a command, if it was armed when it was pickled."""

    armed = True

    def __init__(self, trace: Path) -> None:
        self.trace = trace

    def __reduce__(self) -> Any:
        return (os.system, (f"touch {self.trace}",)) if self.armed else (Bomb, (self.trace,))


def state(keys: list[Any], values: list[Any], layout: Any = VALUE) -> bytes:
    return pickle.dumps((FORMAT, layout, (keys, values, [])))


def evil_module(trace: Path, directory: Path) -> bytes:
    """State of a dataclass whose module, once imported, leaves a trace."""
    module = ModuleType("evil_module")
    exec("class X:\n    def __init__(self): self.a = 1", module.__dict__)
    module.X.__module__ = "evil_module"
    sys.modules["evil_module"] = module
    try:
        content = state(["k"], [module.X()])
    finally:
        del sys.modules["evil_module"]
    (directory / "evil_module.py").write_text(f"open({str(trace)!r}, 'w')\nclass X: pass\n")
    schemas = msgspec.msgpack.encode([("evil_module", "X", "dataclass", [("a", "int")])])
    return content + schemas + struct.pack("<I4s", len(schemas), b"HWS1")


def sections(trace: Path, directory: Path) -> list[Section]:
    bomb = Bomb(trace)
    crafted = {
        "key": state([bomb, "k"], [1, 2]),
        "value": state(["k"], [[{"deep": (bomb,)}]]),
        "layout": state(["k"], [1], (bomb, *VALUE[1:])),
        "all of it": pickle.dumps(bomb),
        "account": evil_module(trace, directory),
        "escape": pickle.dumps((FORMAT, VALUE, "\x1b[2J")),
    }
    found = [Section(UID, KEYED, name, 0, content) for name, content in crafted.items()]
    unkeyed = pickle.dumps((FORMAT, ("list", False, False), bomb))
    found += [Section(UID, kind, kind, -1, unkeyed) for kind in (OPERATOR, BROADCAST)]
    timers = pickle.dumps((FORMAT, ("timers", False, False), (([1], [bomb], [None]), [0], [])))
    return [*found, Section(UID, EVENT_TIMERS, "timers", 0, timers)]


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    return tmp_path / "exploded"


@pytest.fixture
def crafted(tmp_path: Path, trace: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkpoint directory. Everything in it that is a pickle explodes."""
    layout = CheckpointLayout(tmp_path / "job")
    layout.create()
    (tmp_path / "modules").mkdir()
    monkeypatch.syspath_prepend(str(tmp_path / "modules"))
    header = {"epoch": 1, "kind": "delta", "key_groups": (0, 16)}
    ref = write_snapshot(layout.new_snapshot(1, 0, 1, "a", "delta"), header, sections(trace, tmp_path / "modules"))
    bomb = pickle.dumps(Bomb(trace))
    splits = {"split": SplitRecord(bomb, position=bomb, operator_state=bomb)}
    ManifestStore(layout).write(
        Manifest(
            "id", "\x1b[2Jjob", 1, 1, 0, 0, "", 128,
            operators={UID: "Count"}, partitions=[PartitionRecord(1, 0, [ref])],
            sources={"source": SourceRecord(splits)}, committables={"sink": [bomb]},
        )
    )  # fmt: skip
    return tmp_path / "job"


@pytest.fixture
def native(tmp_path: Path, trace: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    job = NativeJob(tmp_path / "native", [UID], 1)
    backend: Any = job.states[UID][0].keyed
    backend.begin_epoch()
    monkeypatch.setattr(Bomb, "armed", False)  # state keeps copies
    for name in ("first", "second"):
        value = backend.get_state(ValueStateDescriptor(name))
        for key in ("k", ("l", name)):
            backend.current_key = key
            value.update([Bomb(trace)])
    monkeypatch.undo()
    backend.event_timers.register(1, "k", None)
    backend.commit_epoch(cut=True)
    job.epoch = 1
    job.snapshot_natively()
    manifest = Manifest(
        "id", "job", 1, 1, 0, 0, "", 16, operators={UID: "Count"}, partitions=[PartitionRecord(1, 0, job.chains[0])]
    )
    ManifestStore(job.layout).write(manifest)
    job.close()
    return tmp_path / "native" / "checkpoints"


@pytest.mark.parametrize("place", ["crafted", "native"])
def test_looking_runs_nothing(
    place: str, request: pytest.FixtureRequest, tmp_path: Path, trace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    where = request.getfixturevalue(place)
    copied = tmp_path / "copied"
    assert main(["savepoint", "inspect", str(where)]) == 0
    assert main(["savepoint", "list", str(where)]) == 0
    assert main(["checkpoints", str(where)]) == 0
    assert main(["savepoint", "copy", str(where), str(copied)]) == 0
    assert main(["savepoint", "inspect", str(copied)]) == 0
    assert main(["savepoint", "dispose", str(copied)]) == 0
    assert not trace.exists() and not copied.exists()
    assert "\x1b" not in "".join(capsys.readouterr())


def test_what_can_be_said_is_said(crafted: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["savepoint", "inspect", str(crafted)]) == 0
    out, err = capsys.readouterr()
    rows = {line[20:37].strip(): line.split() for line in out.splitlines() if line.startswith(UID)}
    assert rows["key"][-4:-1] == ["value", "1", "2"]
    assert rows["value"][-4:-1] == ["value", "1", "1"]
    assert rows["account"][-4:-1] == ["value", "1", "1"]
    assert rows["all of it"][-3:-1] == ["?", "?"] == rows["layout"][-3:-1]
    assert "--trust" in err and "posix.system not loaded" in err and "state 'all of it' of operator 'accounts'" in err


def test_what_rocksdb_holds_is_counted(native: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["savepoint", "inspect", str(native)]) == 0
    out, err = capsys.readouterr()
    assert [line.split()[2:6] for line in out.splitlines() if line.startswith(UID)] == [
        ["event-time", "timers", "timers", "1"],
        ["first", "value", "1", "2"],
        ["second", "value", "1", "2"],
    ]
    assert "posix.system not loaded" in err


@pytest.mark.parametrize("trust", [False, True])
def test_comparing_runs_nothing_but_the_program(crafted: Path, tmp_path: Path, trace: Path, trust: bool) -> None:
    (tmp_path / "orders").mkdir()
    ended = subprocess.run(
        [sys.executable, "-m", "headwater", "savepoint", "diff", *(["--trust"] if trust else []), crafted, PROGRAM,
         tmp_path / "orders"],
        cwd=tmp_path / "modules",
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )  # fmt: skip
    assert ended.returncode == 1
    assert trace.exists() is trust
    if not trust:
        assert re.search(
            "accounts +account +unknown +it has objects of module 'evil_module', which .*--trust", ended.stdout
        )


def test_with_trust_it_is_read_as_a_job_reads_it(crafted: Path, native: Path, trace: Path) -> None:
    for where in (crafted, native):
        main(["savepoint", "inspect", "--trust", str(where)])
        assert trace.exists(), "the bomb is none"
        trace.unlink()


def test_a_savepoint_is_started_from_only_by_jobs(crafted: Path, tmp_path: Path, trace: Path) -> None:
    """Making one of a checkpoint copies bytes."""
    layout = CheckpointLayout(crafted)
    manifest = ManifestStore(layout).load(1)
    write_savepoint(layout, manifest, tmp_path / "made", durable=False)
    assert not trace.exists()
