"""What the programs of this folder share: comparisons with peers, curves against size, tables and charts."""
