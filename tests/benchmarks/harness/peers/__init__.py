"""Peers: other programs that compute the same quantities, if they are installed, timed on the same atoms."""

from __future__ import annotations

from collections.abc import Callable

from timing_tables.installed import AbsentError

from pele_ocl.atoms import Atoms

from . import cupy, fmm3d, jax, keops, numba, torch
from .apart import apart
from .peer import Array, MapPeer, Once, talk_to_stderr, version_of

__all__ = [
    "MAP_PEERS",
    "MESH_PEERS",
    "AbsentError",
    "Array",
    "MapPeer",
    "Once",
    "apart",
    "talk_to_stderr",
    "version_of",
]

# By name: makes the peer ready for maps of some atoms in a precision, on a GPU where that is asked for and it can.
# Raises AbsentError where it cannot.
MAP_PEERS: dict[str, Callable[[Atoms, str, bool], MapPeer]] = {
    "numba": numba.potmap,
    "torch": torch.eager,
    "torch.compile": torch.compiled,
    "JAX": jax.potmap,
    "CuPy": cupy.potmap,
    "KeOps": keops.potmap,
}
# The same of maps to an accuracy, the error by norm.
MESH_PEERS: dict[str, Callable[[Atoms, float], MapPeer]] = {"FMM3D": fmm3d.potmap}
