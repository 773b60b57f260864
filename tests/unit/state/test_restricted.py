"""Pickles of others are read without their code, and still tell what is in them."""

from __future__ import annotations

import collections
import contextlib
import datetime
import enum
import io
import os
import pickle
import sys
import uuid
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

import cloudpickle
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.common.types import Row
from headwater.state import restricted
from headwater.state.evolution.schema import NotLoadedError, loaded_class
from headwater.state.restricted import StandIn, StandIns
from headwater.state.rocksdb.database import Database
from headwater.state.rocksdb.options import RocksDBMemory
from headwater.state.snapshot import payload
from headwater.state.snapshot.entries import ValueEntries
from headwater.state.snapshot.layout import StateLayout


@dataclass(frozen=True)
class Point:
    x: int
    y: Any


class Pair(NamedTuple):
    left: int
    right: str


class Colour(enum.Enum):
    RED = 1


class MyList(list[Any]):
    pass


class MyDict(dict[Any, Any]):
    pass


class Plain:
    def __init__(self) -> None:
        self.a = 1


PLAIN = [
    None, True, 1, -(10**30), 1.5, 1j, "text", b"bytes", bytearray(b"x"), (1, (2,)), [1, [2]], {"a": {1: 2}}, {1, 2},
    frozenset((1, 2)), range(3), slice(1, 2), Decimal("1.50"), datetime.datetime(2026, 1, 2, tzinfo=datetime.UTC),
    datetime.date(2026, 1, 2), datetime.timedelta(1), datetime.time(1, 2), collections.OrderedDict(a=1),
    collections.deque([1], 3), collections.defaultdict(list, a=[1]),
]  # fmt: skip

OTHERS = [
    Point(1, [2]), Pair(1, "b"), Colour.RED, MyList([1, 2]), MyDict(a=1), Plain(), uuid.UUID(int=5), np.int64(3),
    np.arange(3), Row(a=1, b=2), collections.Counter("aab"), Path("/tmp/x"), os.system, Plain, ValueError("x"),
]  # fmt: skip


@pytest.mark.parametrize("value", PLAIN, ids=lambda value: type(value).__name__)
@pytest.mark.parametrize("protocol", [4, 5])
def test_plain_values_are_what_they_were(value: Any, protocol: int) -> None:
    stand_ins = StandIns()
    found = stand_ins.loads(pickle.dumps(value, protocol))
    assert found == value and type(found) is type(value) and not stand_ins.unknown


@pytest.mark.parametrize("cls", restricted._PLAIN.values(), ids=lambda cls: cls.__name__)
def test_a_pickle_cannot_change_a_plain_class(cls: type) -> None:
    with pytest.raises(TypeError):
        cls.new_attribute = 1  # type: ignore[attr-defined]


@pytest.mark.parametrize("value", OTHERS, ids=lambda value: getattr(value, "__name__", type(value).__name__))
@pytest.mark.parametrize("protocol", range(6))
def test_everything_else_is_a_stand_in_that_can_be_counted(value: Any, protocol: int) -> None:
    stand_ins = StandIns()
    found, again = stand_ins.loads(pickle.dumps([value, value], protocol))
    assert isinstance(found, StandIn) or issubclass(found, StandIn)
    assert len({found: 1, again: 2, stand_ins.loads(pickle.dumps(value, protocol)): 3}) == 1
    assert found == again


def test_equal_content_is_one_key_and_other_content_another() -> None:
    stand_ins = StandIns()
    keys = [Point(1, "a"), Point(1, "a"), Point(2, "a"), Pair(1, "a"), Colour.RED, Row(1, 2), Row(1, 2)]
    assert len({stand_ins.loads(pickle.dumps(key)) for key in keys}) == 5


def test_classes_in_the_pickle_itself_are_not_made() -> None:
    class Local:
        def __init__(self) -> None:
            self.a = 1

    stand_ins = StandIns()
    found = stand_ins.loads(cloudpickle.dumps([Local(), Local(), lambda: 1]))
    assert found[0] == found[1] and vars(found[0]) == {"a": 1}
    assert isinstance(found[2], StandIn)


def test_what_is_stored_once_more_stays_a_stand_in() -> None:
    """As the entries of a database are, on their way to a section."""
    entries = ValueEntries(["k"], [Point(1, 2)])
    content = payload.encode(StateLayout("value", False, False), entries, "op", "s")
    stand_ins = StandIns()
    first = payload.decode_restricted(content, stand_ins, "op", "s")
    again = payload.encode(first.layout, first.entries, "op", "s")
    assert payload.stored_schemas(again) == payload.stored_schemas(content)
    second = payload.decode_restricted(again, StandIns(), "op", "s")
    assert isinstance(second.entries, ValueEntries) and vars(second.entries.values[0]) == {"x": 1, "y": 2}
    assert payload.decode(again, "op", "s").entries == entries


exploded: list[Any] = []


def explode(*given: Any) -> None:
    exploded.append(given)


WORDS = [
    f"c{__name__}\nexplode\n".encode(), b"\x8c" + bytes([len(__name__)]) + __name__.encode(), b"\x8c\x07explode",
    b"\x93", b"cantigravity\nfly\n", b"cbuiltins\neval\n", b"ccopyreg\n_reconstructor\n", b"(", b"S'x'\n", b"t",
    b"R", b"o", b"i", b"\x81", b"\x92", b"b", b"]", b"}", b"s", b"a", b"e", b"0", b"2", b"K\x01", b"\x85", b"\x86",
    b"\x87",
]  # fmt: skip


@settings(max_examples=300, deadline=None)
@given(st.lists(st.sampled_from(WORDS)), st.binary(max_size=60))
def test_no_pickle_calls_or_imports_anything(words: list[bytes], noise: bytes) -> None:
    for data in (b"".join(words) + b".", b"".join(words) + noise + b"."):
        with contextlib.suppress(Exception):  # what is no pickle is refused
            StandIns().loads(data)
    assert exploded == [] and "antigravity" not in sys.modules


def test_a_database_of_objects_is_not_read_as_one_of_bytes(tmp_path: Path) -> None:
    """rocksdict can store pickles by itself. Its own note in the directory must not make it read them."""
    from rocksdict import Rdict

    trace = tmp_path / "exploded"

    class Bomb:
        def __reduce__(self) -> Any:
            return (os.system, (f"touch {trace}",))

    crafted = Rdict(str(tmp_path / "db"))
    crafted[b"\xff\xffdatabase"] = Bomb()
    crafted.close()
    database = Database(tmp_path / "db", RocksDBMemory(8 << 20).database_options(), read_only=True)
    try:
        for _, value in database.scan(b"\x01"):
            assert isinstance(value, bytes)
        database.meta("database")
    finally:
        database.close()
    assert not trace.exists()


def test_a_class_is_looked_for_without_importing_or_asking(monkeypatch: pytest.MonkeyPatch) -> None:
    assert loaded_class(__name__, "Point") is Point
    assert loaded_class(__name__, "Point.x") is None
    assert loaded_class(__name__, "nothing.at.all") is None
    with pytest.raises(NotLoadedError):
        loaded_class("a_module_that_nobody_has_loaded", "X")
    module = type(sys)("lazy_module")
    module.__getattr__ = lambda name: pytest.fail("asked")  # type: ignore[method-assign]
    monkeypatch.setitem(sys.modules, "lazy_module", module)
    assert loaded_class("lazy_module", "X") is None


def test_a_value_and_the_key_behind_it() -> None:
    data = pickle.dumps(Point(1, 2)) + pickle.dumps("key")
    assert StandIns().key_behind(data) == "key"
    assert StandIns().load(io.BytesIO(data)) == StandIns().loads(data)
