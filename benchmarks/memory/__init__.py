"""What state costs in the slots: a million keys, and a backfill in one epoch or in a hundred."""
