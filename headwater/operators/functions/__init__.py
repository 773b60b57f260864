"""What users implement, and what their functions are handed."""
