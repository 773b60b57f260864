"""Settings whose values nobody may read in a list of settings: those that Flink hides, and the options of stores."""

from __future__ import annotations

from headwater.common.config.job_options import STORAGE_OPTIONS
from headwater.common.configuration import Configuration
from headwater.common.secrets import HIDDEN as HIDDEN
from headwater.common.secrets import names_a_secret


def is_sensitive(key: str) -> bool:
    """Return True if the value of `key` may be a secret."""
    return key == STORAGE_OPTIONS.key or names_a_secret(key)


def shown_settings(configuration: Configuration) -> dict[str, str]:
    """Return all settings as text, secrets replaced by stars."""
    return {key: HIDDEN if is_sensitive(key) else text for key, text in configuration.to_dict().items()}
