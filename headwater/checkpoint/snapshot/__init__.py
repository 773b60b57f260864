"""Files in which a slot persists its state."""
