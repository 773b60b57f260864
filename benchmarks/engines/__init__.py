"""What the engines cost beside latency: growth with parallelism, an idle job, throughput."""
