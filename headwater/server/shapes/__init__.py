"""Flink's JSON, made of what jobs answer. Pure functions; one file per group of routes."""
