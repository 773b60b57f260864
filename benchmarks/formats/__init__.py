"""How long a test of the README's program takes in process, without Spark."""
