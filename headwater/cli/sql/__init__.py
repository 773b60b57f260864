"""`headwater sql`: the SQL client."""
