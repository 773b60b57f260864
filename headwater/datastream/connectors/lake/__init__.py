"""What sinks and sources of table formats (Delta, Iceberg) have in common: data files, and commits with a mark."""
