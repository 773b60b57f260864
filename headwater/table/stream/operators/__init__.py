"""The operators of SQL on streams. Pure: no Spark, no I/O, no clock."""
