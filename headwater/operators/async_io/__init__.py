"""Requests to other services, many at once."""
