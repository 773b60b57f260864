"""headwater: Flink's stateful stream processing in Python, executed by Spark."""

__version__ = "0.1.0"

__all__ = ["__version__"]
