"""State as data: reads the state in savepoints, and makes savepoints."""

from headwater.state_processor.reader import SavepointReader
from headwater.state_processor.rows import BroadcastRow, KeyedRow, OperatorRow, StateRows, TimerRow, WindowRow
from headwater.state_processor.stored import StateInfo
from headwater.state_processor.writer import SavepointWriter

__all__ = [
    "BroadcastRow",
    "KeyedRow",
    "OperatorRow",
    "SavepointReader",
    "SavepointWriter",
    "StateInfo",
    "StateRows",
    "TimerRow",
    "WindowRow",
]
