"""One stage in one partition: orders its input, runs its operators, cuts its output into chunks."""
