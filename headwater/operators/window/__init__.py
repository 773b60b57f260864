"""Window operators."""
