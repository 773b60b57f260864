"""Decisions of a generator, as a list of numbers: replayed, they make the same query; shortened, a simpler one."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")


class Choices:
    """Draws from `seed`, or replays `given`. When that ends, every answer is 0: the first and simplest alternative."""

    def __init__(self, seed: int = 0, given: Sequence[int] | None = None) -> None:
        self._random = random.Random(seed)
        self._given = given
        self.made: list[int] = []
        self._names = 0

    def below(self, end: int) -> int:
        if self._given is None:
            found = self._random.randrange(end)
        else:
            place = len(self.made)
            found = self._given[place] % end if place < len(self._given) else 0
        self.made.append(found)
        return found

    def pick(self, among: Sequence[T]) -> T:
        """The first is the simplest."""
        return among[self.below(len(among))]

    def chance(self, percent: int) -> bool:
        return self.below(100) >= 100 - percent

    def some(self, among: Sequence[T], least: int, most: int) -> list[T]:
        """Different elements, in their order."""
        most = min(most, len(among))
        count = min(least, most) + self.below(most - min(least, most) + 1)
        places: list[int] = []
        for _ in range(count):
            left = [place for place in range(len(among)) if place not in places]
            places.append(self.pick(left))
        return [among[place] for place in sorted(places)]

    def name(self, stem: str) -> str:
        self._names += 1
        return f"{stem}{self._names}"


def shrink(made: Sequence[int], fails: Callable[[Sequence[int]], bool], tries: int) -> list[int]:
    """A shorter list of decisions that still fails: parts are left out or zeroed, `tries` times at most."""
    best = list(made)
    size = max(len(best) // 2, 1)
    while tries and size:
        begin = 0
        while begin < len(best) and tries:
            for less in (best[:begin] + best[begin + size :], best[:begin] + [0] * size + best[begin + size :]):
                if less != best and tries:
                    tries -= 1
                    if fails(less):
                        best = less
                        break
            else:
                begin += size
        size //= 2
    return best
