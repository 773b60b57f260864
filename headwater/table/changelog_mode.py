"""Which kinds of change a stream of rows has."""

from __future__ import annotations

from headwater.table.stream.connectors.contract import ChangelogMode as Mode


class ChangelogMode:
    """`ChangelogMode.insert_only()`, `.upsert()` or `.all()`."""

    def __init__(self, mode: Mode) -> None:
        self.mode = mode

    @staticmethod
    def insert_only() -> ChangelogMode:
        return ChangelogMode(Mode.APPEND)

    @staticmethod
    def upsert() -> ChangelogMode:
        return ChangelogMode(Mode.UPSERT)

    @staticmethod
    def all() -> ChangelogMode:
        return ChangelogMode(Mode.ALL)
