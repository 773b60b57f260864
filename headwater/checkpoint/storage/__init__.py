"""Storages: local directories and object stores. A file appears whole or not at all."""
