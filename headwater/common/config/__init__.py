"""Settings: what there is, what was set, what holds."""
