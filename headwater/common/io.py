"""Input formats, as in pyflink.common.io: an older way to name a source."""

from __future__ import annotations

from abc import ABC, abstractmethod

from headwater.common.connector import Source


class InputFormat(ABC):
    """What `env.create_input` takes."""

    @abstractmethod
    def create_source(self) -> Source:
        """Return the source that reads what the format describes."""
