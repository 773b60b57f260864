"""Exactly once, on disk: snapshots, manifests, the lock on a checkpoint directory, and the decisions about them."""
