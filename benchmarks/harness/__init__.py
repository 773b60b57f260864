"""Runs one measured program after another, each in a process of its own, and reports what they said."""
