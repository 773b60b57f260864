"""The jobs of a job server: submissions, their drivers, who leads, and what is known of jobs that have ended."""
