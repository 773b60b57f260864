"""The epoch: its parts, the decisions about it, and the contract with the engines that run it."""
