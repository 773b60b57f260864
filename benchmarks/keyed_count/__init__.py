"""Keyed count-and-sum: one state value per key, read and written for every record."""
