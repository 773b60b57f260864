"""A shadow run: runs new code on a copy of a job's state, compares its output, and throws it away."""
