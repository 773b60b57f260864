"""What a keyed backend can do whose state is files that never change: hand them out, and be restored from them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Protocol, runtime_checkable

from headwater.state.snapshot.section import Section


@runtime_checkable
class NativeState(Protocol):
    """A keyed backend that has native checkpoints. The process must not fork while one is open."""

    uid: str
    key_groups: range
    damaged: bool
    """Whether its files could not be written: it must be restored into a new backend."""

    @property
    def local_directory(self) -> Path | None:
        """Where there is room for state on this machine; None: where the machine keeps temporary files."""
        ...

    def new_native_checkpoint(self) -> Path:
        """A new directory with what the last committed epoch left. Called between epochs; belongs to the caller."""
        ...

    def new_native_parts(self) -> tuple[Path, Iterable[Section]]:
        """The same in two parts: a directory, and what is to be loaded on top of it, made when it is asked for, in any
        thread."""
        ...

    def load_native(self, directory: Path) -> bool:
        """Restore from such a directory, before anything else. Whether its files are now those of the backend.

        If not (other key groups, changed classes), the entries were loaded one by one.
        """
        ...

    def delta_sections(self, *, on_native: bool = False) -> list[Section]:
        """As `KeyedStateBackend.delta_sections`; with `on_native` what has to be loaded on top of the last native
        checkpoint, which was made right after the state was restored."""
        ...

    def state_names(self) -> list[str]: ...

    def close(self) -> None:
        """Give back memory and disk."""
        ...
