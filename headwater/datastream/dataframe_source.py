"""A Spark DataFrame as a source. The DataFrame is opaque here: only the runtime knows Spark."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class DataFrameSource:
    """Reads `dataframe`, streaming or batch, each row a named `Row`.

    The DataFrame stays in the driver: pickled, the source is just its name.
    """

    dataframe: Any
    name: str

    @property
    def bounded(self) -> bool:
        return not self.dataframe.isStreaming

    def __getstate__(self) -> dict[str, Any]:
        return {"dataframe": None, "name": self.name}
