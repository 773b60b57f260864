"""CAST: between text and values, between columns of Arrow, and as Spark's SQL."""
