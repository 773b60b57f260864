"""What sources of change data have in common: formats of records, where to begin, which rows a snapshot has covered."""
