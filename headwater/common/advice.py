"""Things that users should hear about although the job goes on."""

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
    """How far up from `warn_user` the first frame is that is not headwater's own."""
    frame, level = sys._getframe(1), 1
    while frame.f_globals.get("__name__", "").partition(".")[0] == "headwater" and frame.f_back is not None:
        frame, level = frame.f_back, level + 1
    return level
