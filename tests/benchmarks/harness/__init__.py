"""Common parts of the programs of this folder: comparisons with peers, curves against size, tables and charts."""
