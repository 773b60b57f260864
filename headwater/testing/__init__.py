"""For tests of user code: an operator harness, a manual clock, a scripted source and a collecting sink."""

from headwater.testing.clock import ManualClock
from headwater.testing.collecting_sink import CollectingSink
from headwater.testing.harness import OneInputOperatorHarness
from headwater.testing.operator_harness import OperatorSnapshot
from headwater.testing.recorded_output import EmittedIdle, EmittedWatermark, Record
from headwater.testing.script_source import CRASH, EOF, PAUSE, Crash, ScriptedCrash, ScriptSource, Watermark
from headwater.testing.two_input_harness import TwoInputOperatorHarness

__all__ = [
    "CRASH",
    "EOF",
    "PAUSE",
    "CollectingSink",
    "Crash",
    "EmittedIdle",
    "EmittedWatermark",
    "ManualClock",
    "OneInputOperatorHarness",
    "OperatorSnapshot",
    "Record",
    "ScriptSource",
    "ScriptedCrash",
    "TwoInputOperatorHarness",
    "Watermark",
]
