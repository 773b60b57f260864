"""A shadow run: new code on a copy of a job's state, its output compared and thrown away."""
