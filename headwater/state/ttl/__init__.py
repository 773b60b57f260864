"""State that expires."""
