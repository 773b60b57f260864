"""The resident engine: one Spark task that stays over many epochs and takes small ones through all stages."""
