"""Settings that whoever starts a program gives to all its environments: those of the command line.

As in Flink they are the base of an environment's configuration. What the program itself sets wins over them: the
`Configuration` it passes to `get_execution_environment`, and calls such as `set_parallelism`. They win over environment
variables and defaults.
"""

from __future__ import annotations

from headwater.common.configuration import Configuration

_defaults = Configuration()


def session_defaults() -> Configuration:
    """A copy of what was given."""
    return Configuration(_defaults)


def set_session_defaults(configuration: Configuration) -> None:
    """Replace all of it; environments that exist already keep what they have."""
    global _defaults
    _defaults = Configuration(configuration)
