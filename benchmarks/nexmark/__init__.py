"""Nexmark: an auction site's people, auctions and bids, and queries over them (examples/nexmark)."""
