"""From the snapshots of a checkpoint to the state of a partition: rescaling and repair."""
