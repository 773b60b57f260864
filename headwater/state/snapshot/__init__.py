"""State as persisted data: sections, their payload and layout."""
