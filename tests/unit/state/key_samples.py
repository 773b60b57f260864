"""Keys of every class that Python and numpy have, for the tests of their hashes, bytes and state."""

from __future__ import annotations

import datetime
import enum
import ipaddress
import re
import uuid
from collections import OrderedDict
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

import numpy

from headwater.common.types import Row, RowKind
from headwater.time.windows import CountWindow, GlobalWindow, TimeWindow, Window


class Point(NamedTuple):
    x: Any
    y: Any


class Text(str):
    """A str in all but class; what it overrides says nothing about equality."""

    def encode(self, *_: Any) -> bytes:
        return b"?"

    def __str__(self) -> str:
        return "?"


class Number(int):
    def __repr__(self) -> str:
        return "?"


class Pair(tuple[Any, ...]):
    def __iter__(self) -> Any:
        return iter(())


class Folded(str):
    """Equal whatever the case."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, str) and self.lower() == other.lower()

    def __hash__(self) -> int:
        return hash(self.lower())


class Colour(enum.Enum):
    RED = 1
    CRIMSON = 1
    BLUE = 2


class Level(enum.IntEnum):
    LOW = 1


class Word(enum.StrEnum):
    A = "a"


class Access(enum.Flag):
    READ = 1
    WRITE = 2


class Bits(enum.IntFlag):
    ONE = 1


@dataclass(frozen=True)
class Account:
    bank: Any
    number: Any
    note: str = field(default="", compare=False)


@dataclass(frozen=True)
class Branch(Account):
    street: str = ""


class Nickname(Account):
    """Inherits the generated `__eq__`, which compares classes too."""


@dataclass(frozen=True)
class FoldedAccount:
    name: str

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FoldedAccount) and self.name.lower() == other.name.lower()

    def __hash__(self) -> int:
        return hash(self.name.lower())


@dataclass
class Unfrozen:
    name: str


class Plate:
    """A key class as users write them by hand: which of its attributes are compared cannot be seen from outside."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.spoken = text.lower()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Plate) and other.spoken == self.spoken

    def __hash__(self) -> int:
        return hash(self.spoken)


class Session:
    """Compares by identity."""


class LongWindow(TimeWindow):
    """Inherits the `__eq__` of windows, which compares classes too."""


class LetterWindow(Window):
    """A window of one's own, with slots and without."""

    __slots__ = ("letter",)

    def __init__(self, letter: str, tags: list[str]) -> None:
        self.letter = letter
        self.tags = tags

    def max_timestamp(self) -> int:
        return ord(self.letter)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LetterWindow) and (other.letter, other.tags) == (self.letter, self.tags)

    def __hash__(self) -> int:
        return hash(self.letter)


UTC, CET = datetime.UTC, datetime.timezone(datetime.timedelta(hours=1))
PARIS, BERLIN = ZoneInfo("Europe/Paris"), ZoneInfo("Europe/Berlin")
NOON = datetime.datetime(2026, 1, 1, 12)
TWICE = datetime.datetime(2026, 10, 25, 2, 30)  # on the clocks of Paris and Berlin
NEVER = datetime.datetime(2026, 3, 29, 2, 30)

ONE_KEY_EACH: list[list[Any]] = [
    [1, 1.0, True, Decimal(1), Fraction(1), 1 + 0j, Level.LOW, Bits.ONE, Number(1), numpy.True_, numpy.int8(1),
     numpy.uint64(1), numpy.float16(1), numpy.float32(1), numpy.float64(1), numpy.complex64(1), numpy.complex128(1)],
    [0, 0.0, -0.0, False, Decimal("-0.00"), complex(-0.0, 0.0), complex(0.0, -0.0), Bits(0), numpy.False_,
     numpy.float32(-0.0)],
    [-1, Decimal(-1), numpy.int64(-1)],
    [-2, numpy.int16(-2), -2.0],
    [2**61 - 1, Decimal(2**61 - 1), numpy.uint64(2**61 - 1)],
    [2**63, numpy.uint64(2**63), float(2**63), Fraction(2**63)],
    [2**63 + 1, Decimal(2**63 + 1), numpy.uint64(2**63 + 1)],
    [-(2**63)], [-(2**63) - 1],
    [2**70, float(2**70), Decimal(2**70), numpy.float32(2**70)],
    [10**300], [1e300, int(1e300), Decimal(int(1e300))],
    [0.5, Fraction(1, 2), Decimal("0.5"), Decimal("0.50"), numpy.float16(0.5), complex(0.5)],
    [0.1, numpy.float64(0.1)], [numpy.float32(0.1), float(numpy.float32(0.1))], [Decimal("0.1"), Fraction(1, 10)],
    [Fraction(1, 3)], [Decimal("1e-400")], [Decimal("1e400"), 10**400],
    [float("inf"), Decimal("Infinity"), numpy.float32("inf")], [float("-inf")],
    [1 + 2j, numpy.complex64(1 + 2j)], [2 + 1j], [complex(float("inf"), 1)],
    ["a", Text("a"), Word.A, numpy.str_("a")], ["A"], ["1"], ["", Text()], ["\ud800"], ["a\0"],
    [b"a", numpy.bytes_(b"a")], [b"a\0"], [b""], [b"1"],
    [None],
    [(1, 2), Point(1, 2), Pair((1, 2)), (1.0, True + 1), (numpy.int8(1), Decimal(2))],
    [()], [(1,)], [((1,), 2)], [(1, (2,))], [("a", None), Point(numpy.str_("a"), None)],
    [frozenset({1, "a"}), frozenset({"a", numpy.True_})], [frozenset()], [frozenset({frozenset()})],
    [Row("a", 1), Row("a", 1.0)], [Row("a", 2)], [Row()],
    [Row(x=1, y=2), Row(y=2, x=numpy.int8(1))], [Row(x=2, y=1)],
    [Row.of_kind(RowKind.DELETE, "a", 1), Row.of_kind(RowKind.DELETE, "a", True)],
    [Row.of_kind(RowKind.UPDATE_AFTER, "a", 1)], [Row.of_kind(RowKind.DELETE, x=1, y=2)],
    [(Row("a"),)], [(Row.of_kind(RowKind.DELETE, "a"),)],
    [Account("x", 1), Account("x", True, "noted")], [Account("x", 2)], [Branch("x", 1)], [Nickname("x", 1)],
    [Colour.RED, Colour.CRIMSON], [Colour.BLUE], [RowKind.DELETE],
    [Access(0)], [Access.READ, Access(1)], [Access.READ | Access.WRITE, Access(3)], [Access.WRITE],
    [uuid.UUID(int=7), uuid.UUID(int=7)],
    [datetime.date(2026, 1, 1)],
    [NOON, NOON.replace(fold=1)], [NOON.replace(hour=0)],
    [NOON.replace(tzinfo=UTC), NOON.replace(hour=13, tzinfo=CET), NOON.replace(hour=13, tzinfo=PARIS)],
    [TWICE.replace(tzinfo=PARIS), TWICE.replace(tzinfo=PARIS, fold=1)], [TWICE.replace(tzinfo=BERLIN)],
    [TWICE.replace(hour=0, tzinfo=UTC)], [TWICE.replace(hour=1, tzinfo=UTC)],
    [NEVER.replace(tzinfo=PARIS), NEVER.replace(tzinfo=PARIS, fold=1)], [NEVER.replace(hour=1, tzinfo=UTC)],
    [datetime.datetime.min.replace(tzinfo=CET)], [datetime.datetime.min.replace(tzinfo=UTC)],
    [datetime.datetime.max.replace(tzinfo=datetime.timezone(datetime.timedelta(hours=-1)))],
    [datetime.time(12), datetime.time(12, fold=1), datetime.time(12, tzinfo=PARIS)],
    [datetime.time(12, tzinfo=UTC), datetime.time(13, tzinfo=CET)], [datetime.time(0, tzinfo=CET)],
    [datetime.timedelta(1), datetime.timedelta(hours=24)], [datetime.timedelta(-1)],
    [range(0), range(1, 1), range(5, 0)], [range(3), range(0, 3, 1)], [range(0, 3, 2), range(0, 4, 2)],
    [range(5, 6), range(5, 7, 3)],
    [PurePosixPath("/a/b"), PurePosixPath("/a//b"), Path("/a/b")], [PurePosixPath("/A/b")],
    [PureWindowsPath("C:/A"), PureWindowsPath("c:\\a")], [PureWindowsPath("/a/b")],
    [ipaddress.ip_address("10.0.0.1"), ipaddress.IPv4Address(0x0A000001)], [ipaddress.ip_address("10.0.0.2")],
    [ipaddress.ip_address("::1"), ipaddress.ip_address("0::1")], [ipaddress.ip_address("fe80::1%a")],
    [ipaddress.ip_address("fe80::1%b")], [ipaddress.ip_network("10.0.0.0/8")], [ipaddress.ip_network("10.0.0.0/9")],
    [ipaddress.ip_network("::/8")],
    [ipaddress.ip_interface("10.0.0.1/8")], [ipaddress.ip_interface("10.0.0.1/9")], [ipaddress.ip_interface("::1/8")],
    [int], [str], [Point], [RowKind],
    [TimeWindow(0, 10), TimeWindow(0, 10)], [TimeWindow(0, 11)], [LongWindow(0, 10)], [CountWindow(1)],
    [GlobalWindow(), GlobalWindow.get()],
    [LetterWindow("a", []), LetterWindow("a", [])], [LetterWindow("a", ["b"])], [LetterWindow("b", [])],
]  # fmt: skip
"""Keys in one list are equal, those of two lists are not."""

REFUSED: list[Any] = [
    float("nan"), Decimal("NaN"), Decimal("sNaN"), complex(0, float("nan")), numpy.float32("nan"),
    Decimal("1e100000"), Decimal("1e-100000"),
    numpy.datetime64("2026-01-01"), numpy.datetime64("2026-01-01", "ns"), numpy.datetime64("NaT"),
    numpy.timedelta64(1, "D"), numpy.timedelta64("NaT"), numpy.longdouble(1), numpy.clongdouble(1),
    numpy.void(b"a"), numpy.array([1]), numpy.array(1),
    [1], {"a": 1}, {1}, bytearray(b"a"), (1, [2]), OrderedDict(a=1), memoryview(b"a"),
    Account("x", []), Account("x", float("nan")), Unfrozen("a"), Row([1]), Row(float("nan")),
    Folded("a"), FoldedAccount("a"), Plate("M-1"), (1, Plate("M-1")), frozenset({Plate("M-1")}),
    Session(), object(), re.compile("a"), UTC, len, ..., slice(1),
    type("Local", (), {}),
]  # fmt: skip
"""No keys: not equal to themselves, mutable, or of a class whose equality is not known."""


def comparable(left: Any, right: Any) -> bool:
    """False for a numpy scalar and a Decimal or Fraction, which Python compares with a `TypeError`, or wrongly."""
    return not any(
        isinstance(one, numpy.generic) and isinstance(other, (Decimal, Fraction))
        for one, other in ((left, right), (right, left))
    )


def taken_for_one(left: Any, right: Any) -> bool:
    """Whether a dict takes two keys for one."""
    if hash(left) != hash(right):
        return False
    return bool(left == right)
