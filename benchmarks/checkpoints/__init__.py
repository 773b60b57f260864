"""What checkpoints, recovery and rescaling cost."""
