"""Structures of different molecules as rows that share launches: what lies where on a device, and who is launched."""
