"""Into PostgreSQL, and its changes out of it."""
