"""Where a source of change data begins, as in Flink CDC."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class StartupOptions:
    """Only a job that starts from nothing asks; a restored one goes on where its checkpoint is."""

    mode: str

    @staticmethod
    def initial() -> StartupOptions:
        """All rows that are there, then all changes."""
        return StartupOptions("initial")

    @staticmethod
    def latest() -> StartupOptions:
        """Only changes from now on."""
        return StartupOptions("latest")

    @staticmethod
    def committed() -> StartupOptions:
        """Only changes, from where the server's slot is. For PostgreSQL."""
        return StartupOptions("committed")

    @staticmethod
    def snapshot() -> StartupOptions:
        """Only the rows that are there; then the source has ended."""
        return StartupOptions("snapshot")
