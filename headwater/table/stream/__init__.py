"""SQL on streams: plans become operators that hand on one netted changelog per epoch."""
