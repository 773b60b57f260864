"""Whatever file of a checkpoint directory is missing or damaged: a start resumes rightly, or stops and says the cure.

All files of directories at a dozen moments of a job's life, one at a time, and pairs of them, drawn by seed.
`make chaos` draws many more pairs.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from pathlib import Path

import pytest

from tests.chaos.directories.damage import Damage, damages, judge
from tests.chaos.directories.histories import HISTORIES, History

FULL = os.environ.get("CHAOS") == "full"
PAIRS = 1_000 if FULL else 5

pytestmark = pytest.mark.timeout(3_600 if FULL else 120)


@pytest.mark.parametrize("history", HISTORIES, ids=lambda history: history.__name__)
def test_a_start_resumes_rightly_or_stops_with_the_cure(history: History, tmp_path: Path) -> None:
    setting = history(tmp_path / "whole")
    single = list(damages(setting.checkpoints))
    chance = random.Random(history.__name__)
    tries: list[list[Damage]] = [[damage] for damage in single]
    tries += [chance.sample(single, 2) for _ in range(PAIRS)]
    outcomes: Counter[str] = Counter()
    failures: list[str] = []
    for number, hit in enumerate(tries):
        seed = f"{history.__name__} {number}"
        try:
            outcomes[judge(setting, hit, seed, tmp_path / "hit", linked=number % 2 == 0)] += 1
        except Exception as error:
            failures.append(f"{' and '.join(map(str, hit))}: {type(error).__name__}: {error}")
    assert not failures, f"{len(failures)} of {len(tries)}:\n" + "\n".join(failures)
    print(f"{history.__name__}: {dict(outcomes)}")
    assert outcomes["resumed"], outcomes
