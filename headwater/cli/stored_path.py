"""Savepoints and checkpoint directories on the command line: paths, and URLs with what it takes to open them."""

from __future__ import annotations

from headwater.checkpoint.storage.base import StorageSpec, is_remote
from headwater.common.config_options import STORAGE_OPTIONS, resolve
from headwater.common.configuration import Configuration


def stored_path(path: str, settings: Configuration | None = None) -> str | StorageSpec:
    """Return `path` as `headwater.checkpoint` takes it: a URL gets the options of its store.

    They come from `settings` (-D of a command that runs a program), else from the environment.
    """
    if not is_remote(path):
        return path
    options: dict[str, str] = resolve(settings or Configuration()).get(STORAGE_OPTIONS, {})
    return StorageSpec(path, options)
