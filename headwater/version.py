"""The version, at the module path where PyFlink has its own."""

from headwater import __version__

__all__ = ["__version__"]
