"""COUNT and SUM by key in SQL, beside Spark's own aggregate."""
