"""How many dead letters are too many: then the data is not bad, the job is, and it stops."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Final

from headwater.common import config_options as options
from headwater.common.configuration import Configuration
from headwater.common.errors import HeadwaterError
from headwater.runtime.epoch.failure import AttemptFailedError
from headwater.runtime.epoch.messages import Ack, SplitAck
from headwater.runtime.epoch.refusals import Refusals
from headwater.runtime.stage.source_task import REJECTED

WINDOW_MS: Final = 60_000
LEAST_RECORDS: Final = 100
"""A share of fewer records says nothing."""


class DeadLetterLimits:
    """Counts over the last minute of processing time. Owned by the coordinator."""

    def __init__(self, settings: Configuration) -> None:
        self._per_minute = settings.get(options.DEAD_LETTERS_PER_MINUTE)
        self._percent = settings.get(options.DEAD_LETTERS_PERCENT)
        self._epochs: deque[tuple[int, int, int]] = deque()  # (processing time, letters, records)

    def check(self, now_ms: int, messages: Iterable[Ack]) -> HeadwaterError | None:
        """Return the error to fail with if the epoch with these acknowledgements has too many; else count it."""
        letters = records = 0
        for message in messages:
            if isinstance(message, SplitAck):
                records += message.records
                letters += message.counters.get(REJECTED, 0)
            else:
                letters += sum(message.outcome.rejected.values())
        while self._epochs and self._epochs[0][0] <= now_ms - WINDOW_MS:
            self._epochs.popleft()
        all_letters = letters + sum(epoch[1] for epoch in self._epochs)
        all_records = records + all_letters + sum(epoch[2] for epoch in self._epochs)
        if letters and (problem := self._problem(all_letters, all_records)) is not None:
            return HeadwaterError(
                f"{problem}; look at them (headwater dead-letters list), correct the data or the job, and start it "
                "again: this epoch was not committed"
            )
        self._epochs.append((now_ms, letters, records))
        return None

    def without_refused(self, refusals: Refusals, failure: AttemptFailedError) -> Refusals | None:
        """Return what the next attempt runs without, if `failure` is a record that may go to the dead letters.

        None: the failure counts as one.
        """
        refusal = None if failure.error is None else failure.error.refusal
        learnt = None if refusal is None else refusals.with_one_more(refusal)
        if learnt is not None and self._per_minute is not None and len(learnt.known) > self._per_minute:
            return None  # each of them costs another attempt: do not go on to the end
        return learnt

    def _problem(self, letters: int, records: int) -> str | None:
        if self._per_minute is not None and letters > self._per_minute:
            return (
                f"{letters} dead letters within a minute: more than {options.DEAD_LETTERS_PER_MINUTE.key} = "
                f"{self._per_minute}"
            )
        share = 100 * letters / max(records, 1)
        if self._percent is not None and records >= LEAST_RECORDS and share > self._percent:
            return (
                f"{share:.1f} % of the records of the last minute are dead letters: more than "
                f"{options.DEAD_LETTERS_PERCENT.key} = {self._percent:g}"
            )
        return None
