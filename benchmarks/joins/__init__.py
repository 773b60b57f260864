"""Two streams joined by key and event time: within a window, and within an interval."""
