"""Reading state from outside: values as JSON, keys in order."""
