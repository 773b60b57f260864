"""Constants of pyflink.common.constants."""

from __future__ import annotations

from headwater.common.ids import MAX_WATERMARK, MIN_WATERMARK

MAX_LONG_VALUE = MAX_WATERMARK
MIN_LONG_VALUE = MIN_WATERMARK
DEFAULT_OUTPUT_TAG = ""
"""The tag id of an operator's main output; a side output may not use it."""
