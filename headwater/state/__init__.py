"""State backends, key groups, timers, TTL."""
