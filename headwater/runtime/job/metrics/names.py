"""The names of metrics: Flink's, where Flink has the metric."""

from __future__ import annotations

from typing import Final

RECORDS_IN: Final = "numRecordsIn"
RECORDS_OUT: Final = "numRecordsOut"
BYTES_IN: Final = "numBytesIn"
BYTES_OUT: Final = "numBytesOut"
LATE_DROPPED: Final = "numLateRecordsDropped"
BUSY: Final = "busyTimeMs"
IDLE: Final = "idleTimeMs"
BACK_PRESSURED: Final = "backPressuredTimeMs"
CPU: Final = "cpuTimeMs"
GC: Final = "garbageCollectionTimeMs"
BLOCKED: Final = "blockedTimeMs"
MAJOR_FAULTS: Final = "majorFaults"
PREEMPTED: Final = "preemptions"

COUNTS: Final = (RECORDS_IN, RECORDS_OUT, BYTES_IN, BYTES_OUT)
"""Each has a rate: `numRecordsInPerSecond` ..."""
TIMES: Final = (BUSY, IDLE, BACK_PRESSURED)
"""Each is shown as a share of the time: `busyTimeMsPerSecond` ... The three add up to 1000."""

PER_SECOND: Final = "PerSecond"

INPUT_WATERMARK: Final = "currentInputWatermark"
OUTPUT_WATERMARK: Final = "currentOutputWatermark"
WATERMARK_LAG: Final = "watermarkLag"
STATE_ENTRIES: Final = "stateEntries"
STATE_BYTES: Final = "stateBytes"
PENDING_RECORDS: Final = "pendingRecords"
"""Of a source: how many records are there that the job has not read."""
FETCH_LAG: Final = "currentFetchEventTimeLag"
OLDEST_UNREAD: Final = "oldestUnreadAge"
NEXT_EVENT_TIMER: Final = "nextEventTimer"
NEXT_PROCESSING_TIMER: Final = "nextProcessingTimer"
