"""What the commands' outputs have in common."""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path
from typing import Any

import numpy as np

from .. import __version__
from ..atoms import Atoms


def duration(seconds: float) -> str:
    """Seconds for reading: `1.52 ms`, `12.30 s`."""
    return f"{seconds:.2f} s" if seconds >= 1 else f"{1e3 * seconds:.3g} ms"


def headline(path: Path, atoms: Atoms) -> str:
    """The molecule in one line."""
    n_residues = "" if atoms.labels is None else f"{len(atoms.labels.residue_starts):,} residues, "
    return f"{path.name}: {len(atoms):,} atoms, {n_residues}net charge {atoms.charges.sum():+.3f} e"


def energy_lines(energy: dict[str, float]) -> list[str]:
    """Energies under a head, kcal/mol."""
    return [
        "Energy        kcal/mol",
        *(f"  {name.replace('_', ' '):15s}{value:15,.3f}" for name, value in energy.items()),
    ]


def origin(source: Path, atoms: Atoms, device: str, variant: str, precision: str) -> dict[str, Any]:
    """How a result was made, for its file: input and its SHA-256, program, command, device."""
    return {
        "input": str(source),
        "input_sha256": hashlib.sha256(source.read_bytes()).hexdigest(),
        "software": f"pele-ocl {__version__}",
        "command": " ".join(["pele-ocl", *sys.argv[1:]]),
        "device": device,
        "variant": variant,
        "precision": precision,
        "notes": "\n".join(atoms.notes),
    }


def label_columns(atoms: Atoms) -> dict[str, Any]:
    """The atoms' labels as columns of a table; none where there are no labels."""
    labels = atoms.labels
    if labels is None:
        return {}
    return {
        "chain": labels.chains,
        "residue_name": labels.residue_names,
        "residue_number": labels.residue_numbers,
        "insertion_code": labels.insertion_codes,
        "atom_name": labels.names,
        "element": labels.elements,
        "residue_index": labels.residue_index,
        "atom_index": np.arange(len(atoms), dtype=np.int32),
    }
