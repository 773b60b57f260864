"""From syntax trees back to text."""
