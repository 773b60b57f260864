"""Patterns of events: three steps within ten minutes, memory over a long stream, and many patterns at once."""
