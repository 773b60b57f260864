"""`OutputTag` under PyFlink's path."""

from headwater.common.output_tag import BAD_TIMESTAMPS, OutputTag

__all__ = ["BAD_TIMESTAMPS", "OutputTag"]
