"""PyFlink's own examples: which run here, which cannot, and where they are found."""

from __future__ import annotations

import os
from pathlib import Path

HERE = Path(__file__).parent
RECORDED_EXAMPLES = HERE / "recorded_examples"

EXAMPLES = (
    "basic_operations",
    "event_time_timer",
    "process_json_data",
    "state_access",
    "windowing/session_with_dynamic_gap_window",
    "windowing/session_with_gap_window",
    "windowing/sliding_time_window",
    "windowing/tumbling_count_window",
    "windowing/tumbling_time_window",
    "word_count",
)

ELSEWHERE = {
    "connectors/": "Java connectors",
    "asyncio/remote_model_inference": "reads a table of the Table API",
    "streaming_word_count": "reads a table of the Table API, and does not end",
}
"""Examples, or folders of them, that need what is not here: {beginning of the name: why}."""


TABLE_EXAMPLES = (
    "async/async_scalar_function",
    "basic_operations",
    "mixing_use_of_datastream_and_table",
    "multi_sink",
    "pandas/conversion_from_dataframe",
    "pandas/pandas_udaf",
    "process_json_data",
    "process_json_data_with_udf",
    "windowing/over_window",
    "windowing/session_window",
    "windowing/sliding_window",
    "windowing/tumble_window",
    "word_count",
)
"""Examples for the Table API that end. What they print on PyFlink is not recorded."""

ENDLESS_TABLE_EXAMPLES = ("streaming_word_count",)


def examples_folder() -> Path | None:
    """Where an installed PyFlink has them: HEADWATER_PYFLINK_EXAMPLES, or the benchmarks' environment."""
    named = os.environ.get("HEADWATER_PYFLINK_EXAMPLES")
    if named:
        return Path(named)
    found = (HERE.parents[1] / ".bench" / "flink").glob("lib/python*/site-packages/pyflink/examples/datastream")
    return next(iter(found), None)
