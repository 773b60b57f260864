"""Files that store columns: Parquet and ORC, by way of Arrow."""
