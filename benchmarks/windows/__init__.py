"""Windows in event time: a sum per key in tumbling ones, a mean in sliding ones, and what an hour of slices takes."""
