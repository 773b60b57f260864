"""A driver's commit that is stopped at a step: `jdbc_zombie.py URI DIRECTORY STEP`. The committables are in stdin."""

from __future__ import annotations

import pickle
import sys

from headwater.checkpoint.output_files import StoredOutputFiles
from headwater.checkpoint.paths import CheckpointLayout
from headwater.common.connector import CommitterContext
from tests.recovery.hitting import STOP, Hitter
from tests.recovery.jdbc_driver import watch_commits
from tests.unit.connectors.jdbc import tables

if __name__ == "__main__":
    uri, directory, step = sys.argv[1:]
    watch_commits(Hitter(STOP + step, 1))
    committer = tables.sink(uri).create_committer()
    committer.open(CommitterContext("job1", "sink", "sink", StoredOutputFiles(CheckpointLayout(directory), "sink"), 1))
    committables = pickle.load(sys.stdin.buffer)
    committer.commit(committables)
