"""Savepoints and retained checkpoints: write, open, list, compare."""
