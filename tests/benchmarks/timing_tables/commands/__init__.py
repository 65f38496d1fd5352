"""Commands of the timing tables."""
