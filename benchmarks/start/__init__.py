"""How long a ten-record job takes from `python job.py` to its last line."""
