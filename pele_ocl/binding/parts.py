"""Atoms of a complex, its receptor and its ligand."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..atoms import Atoms, Floats, require_atoms
from ..atoms.selection import NO_ATOMS, residue_kinds
from ..common.arguments import array
from ..common.errors import InputError
from ..common.indices import is_group
from ..common.notes import Note
from ..energy import EnergyBatch
from ..trajectories.files import Positions

Chosen = str | ArrayLike
Bools = NDArray[np.bool_]
_COUNTER_IONS = ("Li", "Na", "K", "Rb", "Cs", "F", "Cl", "Br", "I")  # elements of counter-ions
_SHOWN = 8  # number of residue names in a message
NONE = "none"  # value of `strip` for no atoms

# Single-atom residues that other programs strip; names may end in *. Those of MMPBSA.py are its default strip_mask,
# used only for solvated topologies; those of gmx_MMPBSA are the molecules that it removes from a topology.
_AMBER_IONS = ("Cl*", "CIO", "Cs+", "IB", "K*", "Li+", "MG*", "Na+", "Rb+", "CS", "RB", "NA", "F", "CL")
_GROMACS_IONS = ("NA", "CL", "K", "SOD", "Na+", "Na", "CLA", "Cl-", "Cl", "POT", "K+")
_STRIPPED = {"mmpbsa.py": _AMBER_IONS, "sander": _AMBER_IONS, "gmx": _GROMACS_IONS}
_OF_SOLVATED = ("mmpbsa.py", "sander")
_PROGRAMS = {"mmpbsa.py": "MMPBSA.py", "sander": "MMPBSA.py", "gmx": "gmx_MMPBSA"}


@dataclass(frozen=True, eq=False)
class Parts:
    """Atoms of a complex and its parts.

    complex : (k,) ascending indices among all atoms
    receptor, ligand : indices among the k; each atom belongs to exactly one part
    notes : messages about the choice of atoms
    left_out : number of residues by name that have atoms in neither part
    """

    complex: NDArray[np.intp]
    receptor: NDArray[np.intp]
    ligand: NDArray[np.intp]
    notes: tuple[str, ...] = ()
    left_out: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def of(
        cls, atoms: Atoms, ligand: Chosen, receptor: Chosen | None = None, strip: Chosen | None = None,
        like: str | None = None,
    ) -> Parts:  # fmt: skip
        """Determine the parts from selections.

        receptor : by default all atoms except the ligand, water and stripped atoms
        strip : atoms to exclude from both parts in addition to water; "none" for no others. By default those that the
            program `like` strips: the counter-ions for "mmpbsa.py", "sander" and "gmx"

        Raises InputError for a selection without atoms, if receptor and ligand have common atoms, and if both receptor
        and strip are given.
        """
        require_atoms(atoms)
        is_ligand = _ligand_of(atoms, ligand)
        notes = list[str]()
        if receptor is None:
            is_water = ~is_ligand & _kind(atoms, "water")
            if is_water.any():
                notes.append(f"{int(is_water.sum()):,} atoms of water are left out; select a receptor to include them")
            if strip is None:
                is_stripped, why = _stripped_by(like, atoms, bool(is_water.any()))
                notes += [why] if why else []
            else:
                is_none = isinstance(strip, str) and strip.strip().lower() == NONE
                is_stripped = np.zeros(len(atoms), bool) if is_none else mask_of(atoms, strip, "atoms to strip")
            is_stripped &= ~is_ligand & ~is_water
            if is_stripped.any():
                as_whom = f", as {_PROGRAMS[like]} does" if strip is None and like in _PROGRAMS else ""
                notes.append(
                    f"{_atoms_of(atoms, is_stripped)} left out{as_whom}; a receptor that is named may hold them, and "
                    "stripping none keeps them"
                )
            is_receptor = ~is_ligand & ~is_water & ~is_stripped
            if not is_receptor.any():
                raise InputError("ligand, water and what is stripped contain all atoms, so no receptor is left")
        elif strip is not None:
            raise InputError("choose one of receptor and strip: a selected receptor is not stripped")
        else:
            is_receptor = mask_of(atoms, receptor, "receptor")
        shared = np.flatnonzero(is_ligand & is_receptor)
        if len(shared):
            raise InputError(f"{atoms.describe(int(shared[0]))} is in both the receptor and the ligand")
        is_chosen = is_ligand | is_receptor
        if receptor is not None:
            notes += left_out_notes(atoms, ~is_chosen)
        elif not isinstance(strip, str) or strip.strip().lower() == NONE:  # no note if the user chose atoms to strip
            notes += _structural_note(atoms, ~is_chosen)
        chosen = np.flatnonzero(is_chosen)
        in_receptor, in_ligand = np.flatnonzero(is_receptor[chosen]), np.flatnonzero(is_ligand[chosen])
        notes += _copies_note(atoms, is_ligand)
        parts = cls(chosen, in_receptor, in_ligand, tuple(notes), names_of(atoms, ~is_chosen))
        return parts._with_bond_note(atoms)

    def of_complex(self, conformations: Positions) -> Positions:
        """Return the complex's positions (m, k, 3) from those of all atoms (m, n, 3), without a copy if k = n."""
        return conformations if conformations.shape[1] == len(self.complex) else conformations[:, self.complex]

    def born_radii(self, batches: Mapping[str, EnergyBatch], of_parts: bool) -> Floats:
        """Return Born radii (m, n) A in the complex, or in the parts; 1 for atoms without one.

        batches : batches of complex, receptor and ligand
        """
        radii = batches["complex"].born_radii
        if of_parts:
            radii = np.empty_like(radii)
            radii[:, self.receptor] = batches["receptor"].born_radii
            radii[:, self.ligand] = batches["ligand"].born_radii
        return np.where(np.isfinite(radii), radii, 1.0)

    def _with_bond_note(self, atoms: Atoms) -> Parts:
        """Add a note if the parts are bonded to each other."""
        side = np.zeros(len(atoms), np.int8)
        side[self.complex[self.receptor]], side[self.complex[self.ligand]] = 1, 2
        ends = side[atoms.bond_pairs]
        crossing = int(((ends > 0).all(axis=1) & (ends[:, 0] != ends[:, 1])).sum()) if len(ends) else 0
        if not crossing:
            return self
        note = (
            f"receptor and ligand are bonded to each other (bonds: {crossing:,}); the difference contains the terms of "
            "these bonds, and is not the binding energy of two molecules"
        )
        return replace(self, notes=(*self.notes, note))


def solute(atoms: Atoms, strip: Chosen | None = None, like: str | None = None) -> Bools:
    """Return a mask (n,) of all atoms except water and stripped atoms; parameters as in Parts.of."""
    is_water = _kind(atoms, "water")
    if strip is None:
        is_stripped, _ = _stripped_by(like, atoms, bool(is_water.any()))
    elif isinstance(strip, str) and strip.strip().lower() == NONE:
        is_stripped = np.zeros(len(atoms), bool)
    else:
        is_stripped = mask_of(atoms, strip, "atoms to strip")
    return ~is_water & ~is_stripped


def solutes(atoms: Atoms) -> Iterator[Bools]:
    """Yield masks (n,) of the atoms in frames that were stripped in common ways.

    Water is removed, together with the counter-ions that gmx_MMPBSA or MMPBSA.py strips, with no ions, or all ions.
    """
    is_water, is_ion = _kind(atoms, "water"), _kind(atoms, "ion")
    for like in ("gmx", "mmpbsa.py"):
        yield ~is_water & ~_stripped_by(like, atoms, True)[0]
    yield ~is_water
    yield ~is_water & ~is_ion


def _ligand_of(atoms: Atoms, ligand: Chosen) -> Bools:
    """Return a mask (n,) of the ligand. Raises InputError, with advice if the structure has no ligand."""
    try:
        return mask_of(atoms, ligand, "ligand")
    except InputError as error:
        if error.code != NO_ATOMS or _kind(atoms, "ligand").any():
            raise
        raise InputError(
            f"{error}: the complex has no ligand. Give a receptor and poses to `screen`, or a complex that contains "
            "the ligand, which `ligands` can add from a file of the molecule",
            code=NO_ATOMS,
        ) from None


def mask_of(atoms: Atoms, chosen: Chosen, name: str) -> Bools:
    """Convert a selection, a mask or indices to a mask (n,). Raises InputError if it has no atoms."""
    if isinstance(chosen, str) or is_group(chosen):
        return atoms.selected(chosen)
    given = array(f"the {name}", chosen, "iub", "a selection, a mask or indices")
    mask = np.zeros(len(atoms), bool)
    try:
        mask[given] = True
    except IndexError:
        raise InputError(f"the {name} has shape {given.shape} or names no atom of the {len(atoms):,}") from None
    if not mask.any():
        raise InputError(f"the {name} contains no atom")
    return mask


def _kind(atoms: Atoms, kind: str) -> Bools:
    """Return a mask (n,) of the atoms in residues of a kind."""
    if atoms.labels is None:
        return np.zeros(len(atoms), bool)
    starts = atoms.labels.residue_starts
    return np.repeat(residue_kinds(atoms.labels) == kind, np.diff(starts, append=len(atoms)))


def _stripped_by(like: str | None, atoms: Atoms, has_water: bool) -> tuple[Bools, str]:
    """Return a mask (n,) of the atoms that a program strips, and a note if it keeps ions because there is no water."""
    if like not in _STRIPPED or atoms.labels is None:
        return np.zeros(len(atoms), bool), ""
    names = atoms.labels.residue_names
    is_named = np.logical_or.reduce(
        [np.char.startswith(names, name[:-1]) if name.endswith("*") else names == name for name in _STRIPPED[like]]
    )
    found = is_named & _kind(atoms, "ion")
    if has_water or like not in _OF_SOLVATED or not found.any():
        return found, ""
    why = (
        f"{_atoms_of(atoms, found)} kept, because {_PROGRAMS[like]} strips topologies with water alone; strip them "
        "explicitly to remove them"
    )
    return np.zeros(len(atoms), bool), why


def names_of(atoms: Atoms, mask: Bools) -> dict[str, int]:
    """Count the residues by name that have atoms in a mask (n,)."""
    if atoms.labels is None:
        return {}
    starts = atoms.labels.residue_starts
    has = np.logical_or.reduceat(mask, starts)
    return dict(Counter(atoms.labels.residue_names[starts[has]].tolist()))


def _atoms_of(atoms: Atoms, mask: Bools) -> str:
    """Describe the atoms of a mask (n,), e.g. `36 atoms (20 K+, 16 Cl-) are`."""
    names, n = names_of(atoms, mask), int(mask.sum())
    of = f" ({counted_names(names)})" if names else ""
    return f"{n:,} atom{'' if n == 1 else 's'}{of} {'is' if n == 1 else 'are'}"


def counted_names(names: Mapping[str, int]) -> str:
    """Format counts by name, e.g. `20 K+, 16 Cl-`, followed by the number of names not shown."""
    each = [f"{n:,} {name}" for name, n in names.items()]
    more = f" and {len(each) - _SHOWN} more" if len(each) > _SHOWN else ""
    return f"{', '.join(each[:_SHOWN])}{more}"


def left_out_notes(atoms: Atoms, is_left_out: Bools) -> list[str]:
    """Return notes about the atoms in neither part. is_left_out : mask (n,)"""
    if not is_left_out.any():
        return []
    told = Note(f"{_atoms_of(atoms, is_left_out)} in neither receptor nor ligand, and left out", code="left_out")
    return [told, *_structural_note(atoms, is_left_out)]


def _structural_note(atoms: Atoms, is_left_out: Bools) -> list[str]:
    """Return a note about structural ions among the atoms left out, such as zinc, magnesium or haem iron.

    is_left_out : mask (n,)
    """
    if atoms.labels is None:
        return []
    is_structural = is_left_out & _kind(atoms, "ion") & ~np.isin(atoms.labels.elements, (*_COUNTER_IONS, "X"))
    if not is_structural.any():
        return []
    found = counted_names(names_of(atoms, is_structural))
    return [
        f"among the atoms left out are ions that may belong to the structure ({found}); if they do, include them in "
        "receptor or ligand"
    ]


def _copies_note(atoms: Atoms, is_ligand: Bools) -> list[str]:
    """Return a note if the ligand consists of several molecules of the same name, which are treated as one."""
    labels = atoms.labels
    if labels is None:
        return []
    starts = labels.residue_starts
    of_kind = residue_kinds(labels) == "ligand"
    residues = np.flatnonzero(of_kind & np.logical_or.reduceat(is_ligand, starts))
    molecules = _molecules(atoms, is_ligand, residues)
    by_name = dict[str, list[int]]()
    for first in dict.fromkeys(molecules.tolist()):
        names = " ".join(sorted(str(name) for name in labels.residue_names[starts[residues[molecules == first]]]))
        by_name.setdefault(names, []).append(first)
    several = [residues[np.isin(molecules, of)] for of in by_name.values() if len(of) > 1]
    if not several:
        return []
    found = np.sort(np.concatenate(several))
    shown = ", ".join(labels.residue(int(starts[k])) for k in found[:_SHOWN])
    more = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
    n = len({int(m) for m in molecules[np.isin(residues, found)]})
    return [
        f"the ligand contains {n:,} molecules of one name ({shown}{more}), whose energies are summed; select one for "
        "its own energy"
    ]


def _molecules(atoms: Atoms, is_chosen: Bools, residues: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return for each residue the first residue of its molecule, (k,), by bonds between the chosen atoms."""
    assert atoms.labels is not None
    number = np.repeat(np.arange(len(atoms.labels.residue_starts)),
                       np.diff(atoms.labels.residue_starts, append=len(atoms)))  # fmt: skip
    pairs = atoms.bond_pairs
    ends = number[pairs[is_chosen[pairs].all(axis=1)]]
    ends = ends[ends[:, 0] != ends[:, 1]]
    lowest = np.arange(len(atoms.labels.residue_starts))
    while True:
        before = lowest.copy()
        least = np.minimum(lowest[ends[:, 0]], lowest[ends[:, 1]])
        np.minimum.at(lowest, ends[:, 0], least)
        np.minimum.at(lowest, ends[:, 1], least)
        if (lowest == before).all():
            return lowest[residues]


def run_of(indices: NDArray[np.intp]) -> slice | NDArray[np.intp]:
    """Convert contiguous ascending indices to a slice, so that indexing returns a view."""
    is_run = len(indices) == indices[-1] - indices[0] + 1
    return slice(int(indices[0]), int(indices[-1]) + 1) if is_run else indices
