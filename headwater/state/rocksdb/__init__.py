"""State in RocksDB, for state that is larger than memory."""
