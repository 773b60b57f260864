"""The REST server: Flink's routes, answered by the control sockets of jobs."""
