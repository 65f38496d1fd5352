"""Internal dielectric constant of each atom in PELE's variable-dielectric model, VDGBNP; data/vdgbnp.csv."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from ..atoms import Atoms, Floats, require_atoms
from ..atoms.names import canonical, residue_names
from ..common.errors import InputError
from ..common.installation import shipped
from ..gb_models.solvent_model import SolventModel

_ELSEWHERE = 1.0


@dataclass(frozen=True)
class _Rule:
    """Dielectric constant of atoms in a residue ("*": any) that has some atoms and lacks others."""

    residue: str
    has: frozenset[str]
    lacks: frozenset[str]
    atoms: frozenset[str]
    dielectric: float


def internal_dielectrics(atoms: Atoms) -> Floats:
    """Return the internal dielectric constants of VDGBNP, (n,); a pair of atoms uses the larger one.

    Protonation states and terminal residues are recognized by the atoms present, in any naming convention. Residues
    next to a gap that lack the atoms of a terminal residue are treated as internal. All other atoms have 1.

    Raises InputError for atoms without labels.

    >>> pele_ocl.internal_dielectrics(pele_ocl.read("data/structures/trialanine.pdb")).shape
    (33,)
    """
    require_atoms(atoms)
    labels = atoms.labels
    if labels is None:
        raise InputError(
            "the dielectric constants of VDGBNP need residue and atom names, which these atoms do not have"
        )
    names, residues = labels.names.tolist(), labels.residue_names.tolist()
    starts = labels.residue_starts.tolist()
    values = np.empty(len(atoms))
    for start, stop in zip(starts, [*starts[1:], len(names)], strict=True):
        values[start:stop] = _of_residue(residues[start], tuple(names[start:stop]))
    return values


@lru_cache(maxsize=1024)
def _of_residue(residue: str, names: tuple[str, ...]) -> tuple[float, ...]:
    """Return the constants of a residue's atoms; the first matching rule applies."""
    common = canonical(names)
    known = frozenset([*residue_names(residue), "*"])
    holding = [r for r in _rules() if r.residue in known and r.has <= set(common) and r.lacks.isdisjoint(common)]
    unnumbered = [name.split("#")[0] for name in common]
    return tuple(next((r.dielectric for r in holding if name in r.atoms), _ELSEWHERE) for name in unnumbered)


@lru_cache(maxsize=1)
def _rules() -> tuple[_Rule, ...]:
    with open(shipped("data") / "vdgbnp.csv", encoding="utf-8", newline="") as file:
        return tuple(
            _Rule(
                row["residue"],
                frozenset(row["has"].split()),
                frozenset(row["lacks"].split()),
                frozenset(row["atoms"].split()),
                float(row["dielectric"]),
            )
            for row in csv.DictReader(file)
        )


def inverse_dielectrics(atoms: Atoms, model: SolventModel) -> Floats:
    """Inverse internal dielectric constant of each atom, relative to the solute's, (n,); 1 if it is uniform.

    Raises InputError for atoms without labels in VDGBNP.
    """
    return 1 / internal_dielectrics(atoms) if model.gb_model.own_dielectrics else np.ones(len(atoms))
