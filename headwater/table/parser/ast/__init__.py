"""The syntax tree of SQL: what was written, not yet what it means."""
