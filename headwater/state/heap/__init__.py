"""State as Python objects in this process's memory."""
