"""For tests of user code: whole jobs in process, an operator harness, a clock, a scripted source, a sink to read.

`SOURCE_CHECKS` and `SINK_CHECKS` are what a source or sink of your own must keep.
"""

from headwater.testing.clock import ManualClock
from headwater.testing.collecting_sink import CollectingSink
from headwater.testing.comparison import assert_same_records
from headwater.testing.faults import STEPS, Fault
from headwater.testing.harness import OneInputOperatorHarness
from headwater.testing.in_process import InProcess, JobCrashed, in_process
from headwater.testing.operator_harness import OperatorSnapshot
from headwater.testing.recorded_output import EmittedIdle, EmittedWatermark, Record
from headwater.testing.script_source import CRASH, CRASH_JOB, EOF, PAUSE, Crash, ScriptedCrash, ScriptSource, Watermark
from headwater.testing.sink_contract import SINK_CHECKS, SinkCase
from headwater.testing.source_contract import SOURCE_CHECKS, SourceCase
from headwater.testing.two_input_harness import TwoInputOperatorHarness

__all__ = [
    "CRASH",
    "CRASH_JOB",
    "EOF",
    "PAUSE",
    "SINK_CHECKS",
    "SOURCE_CHECKS",
    "STEPS",
    "CollectingSink",
    "Crash",
    "EmittedIdle",
    "EmittedWatermark",
    "Fault",
    "InProcess",
    "JobCrashed",
    "ManualClock",
    "OneInputOperatorHarness",
    "OperatorSnapshot",
    "Record",
    "ScriptSource",
    "ScriptedCrash",
    "SinkCase",
    "SourceCase",
    "TwoInputOperatorHarness",
    "Watermark",
    "assert_same_records",
    "in_process",
]
