"""How often a slot looks for cycles."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from typing import Any

import pytest

from headwater.runtime.slot.garbage import FULL_COLLECTION_EVERY, GarbageCollection


class Knot:
    """Refers to itself, so that only a collection can end it."""

    def __init__(self) -> None:
        self.me = self


@pytest.fixture(autouse=True)
def collector_as_before() -> Iterator[None]:
    gc.collect()
    yield
    gc.enable()


@pytest.fixture
def collections(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The generations that were collected."""
    made: list[int] = []
    real = gc.collect

    def collect(generation: int = 2) -> int:
        made.append(generation)
        return real(generation)

    monkeypatch.setattr(gc, "collect", collect)
    return made


def run(garbage: GarbageCollection, epochs: int, leave: Any = None) -> None:
    for _ in range(epochs):
        garbage.begin_epoch()
        assert not gc.isenabled()
        if leave is not None:
            leave()
        garbage.epoch_ended()


def test_where_nothing_is_found_it_is_looked_for_more_rarely(collections: list[int]) -> None:
    run(GarbageCollection(), 1 + 2 + 4 + 8 + 16)
    assert collections == [0] * 5


def test_cycles_are_collected_after_each_epoch(collections: list[int]) -> None:
    garbage = GarbageCollection()
    run(garbage, 31)
    collections.clear()
    run(garbage, 16, Knot)  # it is looked for at the latest after sixteen epochs, and from then on after each
    assert collections == [0]
    ended = []
    for _ in range(5):
        run(garbage, 1, lambda: ended.append(weakref.ref(Knot())))
        assert ended.pop()() is None


def test_everything_is_looked_at_now_and_then(collections: list[int]) -> None:
    run(GarbageCollection(), FULL_COLLECTION_EVERY)
    assert collections[-1] == 2
    assert collections.count(2) == 1
