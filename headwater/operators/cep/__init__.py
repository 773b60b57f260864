"""Patterns of events, pure: conditions, steps, the compiled pattern, the matcher and its operators."""
