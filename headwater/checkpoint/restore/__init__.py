"""Restores the state of a partition from the snapshots of a checkpoint: rescaling and repair."""
