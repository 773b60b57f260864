"""Asynchronous requests to other services."""
