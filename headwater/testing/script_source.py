"""A source that is a list, with ends, crashes and pauses written between the records.

    source = ScriptSource([("a", 1), ("b", 2), CRASH, ("a", 3), PAUSE, ("b", 4), EOF])

reads like the story of the test: two records, the process dies, one more record, the epoch ends, a last record.
"""

from __future__ import annotations

import os
import signal
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from headwater.common.connector import Source, Split, SplitReader
from headwater.common.errors import ConfigurationError
from headwater.common.watermark_strategy import AssignerLike, WatermarkGenerator, WatermarkOutput, WatermarkStrategy
from headwater.graph.picklability import require_picklable
from headwater.runtime.local.killed import Killed, ReaderKilled, is_in_process


@dataclass(frozen=True)
class Eof:
    """The script ends here: later items are never read."""


@dataclass(frozen=True)
class Pause:
    """The epoch ends here: later items are read in a later epoch."""


@dataclass(frozen=True)
class Crash:
    """Fail the first time that any process reaches this item; ignore it afterwards.

    `kill` ends the reading process with SIGKILL, so that no handler and no `finally` runs: in a job this is a Python
    worker of Spark; within `in_process()` just the attempt is lost. Otherwise `ScriptedCrash` is raised. The records
    before it have been read in the same epoch. `job` ends all processes of the job, its driver too, so that `execute()`
    raises `JobCrashed`: only within `in_process()`.
    """

    kill: bool = True
    job: bool = False


@dataclass(frozen=True)
class Watermark:
    """Event time reaches `timestamp` after the record before it. Needs the strategy of `ScriptSource.watermarks`."""

    timestamp: int


EOF: Final = Eof()
PAUSE: Final = Pause()
CRASH: Final = Crash()
CRASH_JOB: Final = Crash(job=True)


class ScriptedCrash(Exception):
    """Raised by `Crash(kill=False)`."""


class ScriptSource(Source):
    """Plays a script of records, `EOF`, `PAUSE`, `CRASH` and `Watermark(...)`, in order, in one split.

    With `bounded=False` the source stays open after its last item, until an `EOF`.
    Files in `crash_directory` (default: a new temporary directory) remember which crashes have happened, because they
    outlive the processes that crash. Pass your own directory to play one script in several runs of a program.
    """

    def __init__(self, items: Iterable[Any], *, bounded: bool = True, crash_directory: str | None = None) -> None:
        self.items = list(items)
        require_picklable(self.items, "the script")
        self.bounded = bounded or any(isinstance(item, Eof) for item in self.items)
        self.stays_open = not bounded
        crashes = any(isinstance(item, Crash) for item in self.items)
        if crash_directory is None and crashes:
            crash_directory = tempfile.mkdtemp(prefix="headwater-script-")
        elif crash_directory is not None:
            os.makedirs(crash_directory, exist_ok=True)
        self.crash_directory = crash_directory

    def discover_splits(self, parallelism: int, known: frozenset[str]) -> list[Split]:
        return [] if "script" in known else [Split("script", None)]

    def open_reader(self, split: Split, position: Any | None) -> SplitReader:
        return _ScriptReader(self, 0 if position is None else position)

    def crash_count(self) -> int:
        """Return how many of the script's crashes have happened, so that a test can check that its fault fired."""
        return len(os.listdir(self.crash_directory)) if self.crash_directory is not None else 0

    def watermarks(self, timestamp_assigner: AssignerLike | None = None) -> WatermarkStrategy:
        """Return the strategy that emits the script's `Watermark`s, each right after the record before it."""
        schedule: list[tuple[int, int]] = []  # (number of records before, watermark)
        records = 0
        for item in self.items:
            if isinstance(item, Watermark):
                if records == 0:
                    raise ConfigurationError(f"{item} comes first in the script; a watermark must follow a record")
                schedule.append((records, item.timestamp))
            elif not isinstance(item, (Eof, Pause, Crash)):
                records += 1
        strategy = WatermarkStrategy.for_generator(_ScheduledWatermarksSupplier(tuple(schedule)))
        return strategy if timestamp_assigner is None else strategy.with_timestamp_assigner(timestamp_assigner)

    def crash_once(self, index: int, crash: Crash) -> None:
        """Crash, unless the crash at `index` has already happened. The reader calls this."""
        assert self.crash_directory is not None
        try:
            marker = os.open(os.path.join(self.crash_directory, f"crash-{index}"), os.O_CREAT | os.O_EXCL)
        except FileExistsError:
            return
        os.close(marker)
        what = f"the script says so, at item {index}"
        if crash.job and not is_in_process():
            raise ConfigurationError(f"item {index} of the script ends the whole job: only within in_process()")
        if crash.job:
            raise Killed(what)
        if crash.kill and is_in_process():
            raise ReaderKilled(what)
        if crash.kill:
            os.kill(os.getpid(), signal.SIGKILL)
        raise ScriptedCrash(what)


class _ScriptReader(SplitReader):
    def __init__(self, source: ScriptSource, position: int) -> None:
        self._source = source
        self._position = position
        self._paused = False
        """A pause follows the records that were returned last."""

    def read_batch(self, max_records: int) -> list[Any] | None:
        items = self._source.items
        records: list[Any] = []
        if self._paused:
            self._paused = False
            return []
        while self._position < len(items) and len(records) < max_records:
            item = items[self._position]
            if isinstance(item, Eof):
                return records or None
            if isinstance(item, Crash):
                if records:
                    return records  # let them be processed first
                self._source.crash_once(self._position, item)
            elif isinstance(item, Pause):
                self._position += 1
                self._paused = bool(records)
                return records
            elif not isinstance(item, Watermark):
                records.append(item)
            self._position += 1
        if not records and self._position >= len(items) and not self._source.stays_open:
            return None
        return records

    def position(self) -> int:
        return self._position


class _ScheduledWatermarks(WatermarkGenerator):
    """Emits each watermark after the record before it in the script. It counts records: there is one split."""

    def __init__(self, schedule: tuple[tuple[int, int], ...]) -> None:
        self._schedule = schedule
        self._seen = 0
        self._next = 0

    def on_event(self, event: Any, event_timestamp: int, output: WatermarkOutput) -> None:
        self._seen += 1
        while self._next < len(self._schedule) and self._schedule[self._next][0] <= self._seen:
            output.emit_watermark(self._schedule[self._next][1])
            self._next += 1

    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        pass


@dataclass(frozen=True)
class _ScheduledWatermarksSupplier:
    schedule: tuple[tuple[int, int], ...]

    def __call__(self) -> WatermarkGenerator:
        return _ScheduledWatermarks(self.schedule)
