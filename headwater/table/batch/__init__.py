"""Batch: plans as Spark SQL, tables as Spark reads and writes them."""
