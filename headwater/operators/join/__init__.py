"""Joins of two streams."""
