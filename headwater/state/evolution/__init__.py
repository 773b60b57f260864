"""State that outlives the program that wrote it."""
