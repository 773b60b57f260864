"""What `'connector' = …` means on streams. Each connector is one file; others come in by entry points."""
