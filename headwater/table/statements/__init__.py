"""What statements other than queries do."""
