"""Quantities in plain NumPy float64: their executable definition, and the oracle of the tests. No OpenCL here."""
