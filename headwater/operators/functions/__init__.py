"""The interfaces that users implement, and the contexts that their functions get."""
