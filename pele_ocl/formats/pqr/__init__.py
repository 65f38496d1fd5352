"""PQR files: positions, charges and radii (the format of PDB2PQR and APBS)."""

from __future__ import annotations

from .reading import FORMAT, pqr_models, read_pqr

__all__ = ["FORMAT", "pqr_models", "read_pqr"]
