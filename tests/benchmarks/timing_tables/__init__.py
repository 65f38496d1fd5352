"""Timing tables of what is no ladder, beside other programs where they are installed."""
