"""Source to sink through two keyed stages at a steady 1,000 records per second."""
