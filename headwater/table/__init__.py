"""Stream SQL and the Table API. So far: the types of SQL and its functions, which everything else builds on."""
