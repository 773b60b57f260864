"""What can be a key, which keys are equal, and where a key belongs: its stable hash, key group and partition."""
