"""Operators with two inputs."""
