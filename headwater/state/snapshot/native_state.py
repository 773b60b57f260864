"""The interface of keyed backends that keep state in immutable files: they can hand the files out and restore them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Protocol, runtime_checkable

from headwater.state.snapshot.section import Section


@runtime_checkable
class NativeState(Protocol):
    """A keyed backend with native checkpoints. The process must not fork while such a backend is open."""

    uid: str
    key_groups: range
    damaged: bool
    """A write to its files failed. Its state must be restored into a new backend."""

    @property
    def local_directory(self) -> Path | None:
        """A local directory with room for state. None: the machine's directory for temporary files."""
        ...

    def new_native_checkpoint(self) -> Path:
        """Return a new directory with the last committed epoch's state. The caller owns it. Called between epochs."""
        ...

    def new_native_parts(self) -> tuple[Path, Iterable[Section]]:
        """Like `new_native_checkpoint`, in two parts: a directory, and sections to load after it.

        The sections are encoded while the caller iterates over them, in any thread.
        """
        ...

    def load_native(self, directory: Path) -> bool:
        """Restore from such a directory, before anything else. Return True if the backend now uses these very files.

        Otherwise (other key groups, changed classes) it has loaded the entries one by one.
        """
        ...

    def delta_sections(self, *, on_native: bool = False) -> list[Section]:
        """Like `KeyedStateBackend.delta_sections`. With `on_native`: the changes since the native checkpoint that was
        made right after the state was restored."""
        ...

    def state_names(self) -> list[str]: ...

    def close(self) -> None:
        """Free the memory and delete the files."""
        ...
