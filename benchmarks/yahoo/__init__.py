"""The Yahoo streaming benchmark (examples/yahoo_streaming.py): how many events, and how late the counts are."""
