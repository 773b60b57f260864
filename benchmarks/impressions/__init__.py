"""Tweet impressions: a million counters, read in place, or flushed to Redis every interval."""
