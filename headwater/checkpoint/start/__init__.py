"""How a driver takes a checkpoint directory and decides where to start."""
