"""One stage in one partition: its input in order, its operators, its output as chunks."""
