"""Settings of the command line, for all environments of a program.

As in Flink they are the base of an environment's configuration. What the program sets wins over them: the
`Configuration` it passes to `get_execution_environment`, and calls such as `set_parallelism`. They win over environment
variables and defaults.
"""

from __future__ import annotations

from headwater.common.configuration import Configuration

_defaults = Configuration()


def session_defaults() -> Configuration:
    """Return a copy of them."""
    return Configuration(_defaults)


def set_session_defaults(configuration: Configuration) -> None:
    """Replace them. Existing environments keep what they have."""
    global _defaults
    _defaults = Configuration(configuration)
