"""Queries of a slot's state: what is asked, how it is answered, and on which sockets."""
