"""Warnings for users. The job goes on."""

from __future__ import annotations

import logging
import sys
import warnings

_log = logging.getLogger("headwater")


def warn_user(text: str) -> None:
    """Say `text` as a Python warning, and in the log if the program has set one up.

    The warning points at the nearest line outside of headwater: the one that should be changed.
    """
    if _log.hasHandlers():
        _log.warning(text)
    warnings.warn(text, UserWarning, stacklevel=_level_of_user())


def _level_of_user() -> int:
    """Return how many frames above `warn_user` the nearest caller outside headwater is."""
    frame, level = sys._getframe(1), 1
    while frame.f_globals.get("__name__", "").partition(".")[0] == "headwater" and frame.f_back is not None:
        frame, level = frame.f_back, level + 1
    return level
