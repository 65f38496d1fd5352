"""Structures for tests of force fields: from reference arrays, or from names only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest

from pele_ocl.atoms import Labels, Structure

ROOT = Path(__file__).resolve().parents[1]
ARRAYS = ROOT / "tests" / "data"
SYSTEMS = ("hexapeptide", "ubiquitin", "src3", "enolase_dimer", "ruvab", "cct12")
SAMPLES = ROOT.parent / "shared" / "pele_samples"
needs_samples = pytest.mark.skipif(not SAMPLES.is_dir(), reason="files of PELE users are not beside this checkout")


def arrays_of(name: str) -> dict[str, np.ndarray]:
    with np.load(ARRAYS / f"{name}.npz") as file:
        return dict(file)


def structure_from(arrays: Mapping[str, np.ndarray]) -> Structure:
    """Return the Structure that a reader would create from a system's file."""
    labels = Labels(
        names=arrays["atom_name"],
        elements=arrays["element"],
        residue_names=arrays["residue_name"],
        residue_numbers=arrays["residue_id"].astype(np.int32),
        insertion_codes=arrays["insertion_code"],
        chains=arrays["chain"],
        residue_index=arrays["residue_index"],
    )
    starts = labels.residue_starts
    return Structure(
        positions=arrays["coordinates"],
        labels=labels,
        segments=arrays["segment"][starts].astype(np.int32),
        hetero=np.zeros(len(starts), bool),
        lines=np.arange(1, len(labels) + 1, dtype=np.int32),
        source="arrays.npz",
    )


def chain(residues: Sequence[tuple[str, str]], segments: Sequence[int] | None = None, step: float = 10.0) -> Structure:
    """Place residues, each a name and its atoms, in a row along x. Only C-N and O3'-P of neighbours are bonded.

    step : distance between residues, A; values other than 10 break the chain
    """
    names = [atoms.split() for _, atoms in residues]
    index = np.repeat(np.arange(len(residues)), [len(atoms) for atoms in names])
    flat = [name for atoms in names for name in atoms]
    x = step * index + np.select([np.isin(flat, ("N", "P")), np.isin(flat, ("C", "O3'", "O3*"))], [-4.3, 4.3], 0.0)
    y = 3.0 * np.concatenate([np.arange(len(atoms)) for atoms in names])
    y[np.abs(x - step * index) > 1] = 0
    labels = Labels(
        names=flat,
        elements=["H" if name.lstrip("123").startswith("H") else name.lstrip("123")[0] for name in flat],
        residue_names=np.array([name for name, _ in residues])[index],
        residue_numbers=index + 1,
        insertion_codes=np.full(len(flat), ""),
        chains=np.full(len(flat), "A"),
        residue_index=index,
    )
    return Structure(
        positions=np.stack([x, y, np.zeros(len(flat))], axis=1),
        labels=labels,
        segments=np.array(segments if segments is not None else np.zeros(len(residues)), np.int32),
        hetero=np.zeros(len(residues), bool),
        lines=np.arange(1, len(flat) + 1, dtype=np.int32),
        source="made.pdb",
    )
