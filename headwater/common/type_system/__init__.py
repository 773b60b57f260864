"""Declared types, and how values are checked against them."""
