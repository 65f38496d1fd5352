"""Timing tables other than ladders, with other programs if they are installed."""
