"""Programs written for PyFlink, unchanged: `import pyflink.x` gives `headwater.x`."""

from headwater.compat.pyflink_imports import install, is_installed, uninstall

__all__ = ["install", "is_installed", "uninstall"]
