"""Timing tables that compare the variants with each other, and with published figures."""
