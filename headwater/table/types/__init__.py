"""The types of SQL: logical types, their text, casts between them, and how Arrow and Spark hold their values."""
