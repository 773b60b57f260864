"""Windows: what elements are grouped by, besides their key. Names as in `pyflink.datastream.window`.

Inside the engine a window is a *namespace*: plain data that is cheap to hash and to persist. Window objects are made
for users only.
"""

from __future__ import annotations

import struct
from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable
from io import BytesIO
from typing import TYPE_CHECKING, Any, ClassVar

from headwater.common.ids import MAX_WATERMARK
from headwater.common.serializer import TypeSerializer

if TYPE_CHECKING:
    from headwater.time.assigners import MergingWindowAssigner


class Window(ABC):
    """A finite group of elements.

    A user's subclass must be hashable and picklable, and its `==` must compare all attributes.
    """

    @abstractmethod
    def max_timestamp(self) -> int:
        """The largest timestamp that an element of the window can have."""


class TimeWindow(Window):
    """The time from `start` (inclusive) to `end` (exclusive), in milliseconds."""

    __slots__ = ("end", "start")

    def __init__(self, start: int, end: int) -> None:
        self.start = start
        self.end = end

    def max_timestamp(self) -> int:
        return self.end - 1

    def intersects(self, other: TimeWindow) -> bool:
        """True if the two overlap, or one begins where the other ends."""
        return self.start <= other.end and self.end >= other.start

    def cover(self, other: TimeWindow) -> TimeWindow:
        """The smallest window with both in it."""
        return TimeWindow(min(self.start, other.start), max(self.end, other.end))

    @staticmethod
    def get_window_start_with_offset(timestamp: int, offset: int, window_size: int) -> int:
        """Where the window of `window_size` that has `timestamp` in it begins, if one begins at `offset`."""
        return timestamp - (timestamp - offset) % window_size

    @staticmethod
    def merge_windows(windows: Iterable[TimeWindow], callback: MergingWindowAssigner.MergeCallback) -> None:
        """Tell `callback` which of `windows` intersect, and what covers them."""
        together: list[tuple[TimeWindow, set[TimeWindow]]] = []
        for window in sorted(windows):
            if together and together[-1][0].intersects(window):
                cover, members = together[-1]
                members.add(window)
                together[-1] = (cover.cover(window), members)
            else:
                together.append((window, {window}))
        for cover, members in together:
            if len(members) > 1:
                callback.merge(members, cover)

    def __eq__(self, other: object) -> bool:
        return other.__class__ is self.__class__ and (self.start, self.end) == (other.start, other.end)

    def __hash__(self) -> int:
        return hash((self.start, self.end))

    def __lt__(self, other: TimeWindow) -> bool:
        if not isinstance(other, TimeWindow):
            return NotImplemented
        return (self.start, self.end) < (other.start, other.end)

    def __le__(self, other: TimeWindow) -> bool:
        return self == other or self < other

    def __repr__(self) -> str:
        return f"TimeWindow(start={self.start}, end={self.end})"


class CountWindow(Window):
    """The `id`-th window of a key, counted from 0, of a number of elements."""

    __slots__ = ("id",)

    def __init__(self, id: int) -> None:
        self.id = id

    def max_timestamp(self) -> int:
        return MAX_WATERMARK

    def __eq__(self, other: object) -> bool:
        return other.__class__ is self.__class__ and self.id == other.id

    def __hash__(self) -> int:
        return hash(self.id)

    def __repr__(self) -> str:
        return f"CountWindow(id={self.id})"


class GlobalWindow(Window):
    """The one window of `GlobalWindows`: it has all elements of a key, and never ends."""

    __slots__ = ()

    @staticmethod
    def get() -> GlobalWindow:
        return _THE_GLOBAL_WINDOW

    def max_timestamp(self) -> int:
        return MAX_WATERMARK

    def __eq__(self, other: object) -> bool:
        return other.__class__ is self.__class__

    def __hash__(self) -> int:
        return 0

    def __repr__(self) -> str:
        return "GlobalWindow"


_THE_GLOBAL_WINDOW = GlobalWindow()


def namespace_of(window: Any) -> Hashable:
    """Return what the engine keeps: `(start, end)`, a number, None for the global window, any other window itself."""
    cls = window.__class__
    if cls is TimeWindow:
        return window.start, window.end
    if cls is CountWindow:
        return window.id  # type: ignore[no-any-return]
    if cls is GlobalWindow:
        return None
    return window  # type: ignore[no-any-return]


def window_of(namespace: Any) -> Any:
    """Return the window from which `namespace_of` made `namespace`."""
    cls = namespace.__class__
    if cls is tuple:
        return TimeWindow(*namespace)
    if cls is int:
        return CountWindow(namespace)
    if namespace is None:
        return _THE_GLOBAL_WINDOW
    return namespace


class _StructSerializer(TypeSerializer[Any]):
    """A window as big-endian 64-bit numbers."""

    _layout: ClassVar[struct.Struct]

    def _read(self, stream: BytesIO) -> tuple[Any, ...]:
        return self._layout.unpack(stream.read(self._layout.size))


class TimeWindowSerializer(_StructSerializer):
    """Writes time windows: start and end, 8 bytes each."""

    _layout = struct.Struct(">qq")

    def serialize(self, element: TimeWindow, stream: BytesIO) -> None:
        stream.write(self._layout.pack(element.start, element.end))

    def deserialize(self, stream: BytesIO) -> TimeWindow:
        return TimeWindow(*self._read(stream))


class CountWindowSerializer(_StructSerializer):
    """Writes count windows: the id in 8 bytes."""

    _layout = struct.Struct(">q")

    def serialize(self, element: CountWindow, stream: BytesIO) -> None:
        stream.write(self._layout.pack(element.id))

    def deserialize(self, stream: BytesIO) -> CountWindow:
        return CountWindow(*self._read(stream))


class GlobalWindowSerializer(_StructSerializer):
    """Writes the global window: one byte."""

    _layout = struct.Struct(">b")

    def serialize(self, element: GlobalWindow, stream: BytesIO) -> None:
        stream.write(self._layout.pack(0))

    def deserialize(self, stream: BytesIO) -> GlobalWindow:
        self._read(stream)
        return _THE_GLOBAL_WINDOW
