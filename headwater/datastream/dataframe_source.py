"""A Spark DataFrame as a source. The DataFrame is opaque here: only the runtime knows Spark."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class DataFrameSource:
    """Reads `dataframe`, streaming or batch, each row a named `Row`.

    The DataFrame stays in the driver: a pickled source has None in its place.
    """

    dataframe: Any
    name: str
    bounded: bool = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "bounded", not self.dataframe.isStreaming)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "dataframe": None}
