"""The epoch: what it is made of, what is decided about it, and the contract with the engines that run it."""
