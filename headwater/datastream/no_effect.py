"""Settings of PyFlink that are accepted, so that programs run unchanged, but have no effect here. Warns once."""

from __future__ import annotations

import warnings

_said: set[str] = set()


class NoEffectWarning(UserWarning):
    """A setting was accepted and changes nothing. The text says why, and what to use instead."""


def warn_no_effect(setting: str, reason: str) -> None:
    """Warn, once per process, that `setting` has no effect. Call it from the setter itself."""
    if setting not in _said:
        _said.add(setting)
        warnings.warn(f"{setting} has no effect in headwater: {reason}", NoEffectWarning, stacklevel=3)


def forget_warnings() -> None:
    """Warn about every setting again. For tests."""
    _said.clear()
