"""Timing tables: our variants beside each other, and beside the figures of the works they come from."""
