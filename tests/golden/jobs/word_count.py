"""Running word counts: flat_map, key_by, reduce."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

from headwater.datastream import DataStream, StreamExecutionEnvironment
from tests.golden.jobs.golden_job import GoldenJob

_random = random.Random(1)
LINES = [
    " ".join(_random.choices(["the", "quick", "brown", "fox", "jumps", "over", "a", "lazy", "dog"], k=3))
    for _ in range(1_200)
]


def build(env: StreamExecutionEnvironment) -> DataStream:
    words = env.from_collection(LINES).flat_map(str.split).map(lambda word: (word, 1))
    return words.key_by(lambda pair: pair[0]).reduce(lambda a, b: (a[0], a[1] + b[1]))


def expected() -> Counter[Any]:
    counts: Counter[str] = Counter()
    result: Counter[Any] = Counter()
    for line in LINES:
        for word in line.split():
            counts[word] += 1
            result[word, counts[word]] += 1
    return result


WORD_COUNT = GoldenJob("word_count", build, expected, epoch_records=100)
