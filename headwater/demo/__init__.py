"""`make demo`: two million card payments, alerts, a slot killed half way, and a proof that nothing was lost."""
