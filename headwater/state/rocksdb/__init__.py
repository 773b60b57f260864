"""State in RocksDB, for what is larger than memory."""
