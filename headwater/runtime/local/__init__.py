"""The in-process engine: whole jobs in one process, without Spark. For tests, and for small programs."""
