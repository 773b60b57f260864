"""What it costs to write files and tables of a lake, and to commit them."""
