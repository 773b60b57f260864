"""Where a key belongs: its stable hash, its key group, the partition that owns the group."""
