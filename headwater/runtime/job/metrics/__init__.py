"""What the driver knows about a running job in numbers, and what it makes of them."""
