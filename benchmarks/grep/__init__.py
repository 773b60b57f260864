"""Stateless map and filter over strings."""
