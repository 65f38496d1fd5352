"""Residues of a decomposition: their backbones, and the printed ones."""

from __future__ import annotations

import re
import string

import numpy as np
from numpy.typing import NDArray

from ...atoms import Atoms, Labels
from ...atoms.selection.nearby import near
from ...common.errors import InputError
from .namelists import Decomp

# The atoms of a backbone by sander's rule; all others of these residues are of the side chain.
_BACKBONE = ("N", "H", "H1", "H2", "H3", "CA", "HA", "HA2", "HA3", "C", "O", "OXT")
_NUCLEIC_BACKBONE = (
    "P", "O1P", "O2P", "OP1", "OP2", "O5'", "C5'", "H5'", "H5''", "C4'", "H4'", "O3'", "C3'", "H3'",
)  # fmt: skip


def backbone(labels: Labels) -> NDArray[np.bool_]:
    """(n,) True for atoms of the backbone of amino acids and nucleotides, as sander's decomposition has it."""
    starts = labels.residue_starts
    has = {name: np.logical_or.reduceat(labels.names == name, starts) for name in ("CA", "N")}
    has_alpha = has["CA"] & has["N"]
    has_sugar = np.logical_or.reduceat(np.isin(labels.names, ("C1'", "C1*")), starts)
    index = labels.residue_index - labels.residue_index[0]
    names = np.char.replace(labels.names.astype(np.str_), "*", "'")
    of_amino_acids = has_alpha[index] & np.isin(names, _BACKBONE)
    of_nucleotides = has_sugar[index] & np.isin(names, _NUCLEIC_BACKBONE)
    return np.asarray(of_amino_acids | of_nucleotides, np.bool_)


def printed_residues(
    decomp: Decomp, atoms: Atoms, is_ligand: NDArray[np.bool_] | None, layout: Labels | None
) -> NDArray[np.intp]:  # fmt: skip
    """Residues (k,) from 0 that print_res names: all, within D, 1-10; 200-241, or A/5-10 by chains."""
    words, starts = decomp.print_res.strip(), starts_of(atoms)
    n = len(starts)
    if words.lower() == "all":
        return np.arange(n)
    within = re.fullmatch(r"within\s+([\d.]+)", words, re.IGNORECASE)
    if within:
        if is_ligand is None:
            raise InputError(f"print_res={words} needs receptor and ligand; name residues by number")
        close = np.zeros(len(atoms), bool)
        for side in (is_ligand, ~is_ligand):
            close |= near(atoms.positions, side, float(within[1])) & ~side
        return np.flatnonzero(np.logical_or.reduceat(close, starts))
    labels, found, chain = layout or atoms.labels, set[int](), ""
    assert labels is not None
    first = labels.residue_starts
    for item in re.split(r"[\s,;]+", words):
        if not item:
            continue
        chain, _, item = item.rpartition("/") if "/" in item else (chain, "", item)
        numbers = re.fullmatch(r"(\d+)(?:-(\d+))?", item)
        if numbers is None:
            raise InputError(f"print_res: {item!r} is no number or range of residues")
        low, high = int(numbers[1]), int(numbers[2] or numbers[1])
        if chain:
            named = (labels.chains[first] == chain_called(chain, labels)) & (labels.residue_numbers[first] >= low)
            places = np.flatnonzero(named & (labels.residue_numbers[first] <= high))
            if not len(places):
                raise InputError(f"print_res: there is no residue {item} in a chain {chain}")
            found |= set(places.tolist())
        elif not 1 <= low <= high <= n:
            raise InputError(f"print_res: {item} is not within the {n:,} residues of the complex")
        else:
            found |= set(range(low - 1, high))
    if not found:
        raise InputError(f"print_res={words} names no residue")
    return np.array(sorted(found), np.intp)


def chain_called(name: str, labels: Labels) -> str:
    """Name of the chain that a run calls so: gmx_MMPBSA gives letters to molecules that have no chains, A the first."""
    chains = list(dict.fromkeys(labels.chains[labels.residue_starts].tolist()))
    letters = string.ascii_uppercase
    if name in chains or name not in letters or not name or not all(of.isdecimal() for of in chains):
        return name
    return str(chains[letters.index(name)]) if letters.index(name) < len(chains) else name


def starts_of(atoms: Atoms) -> NDArray[np.intp]:
    """(n_residues,) first atom of each residue."""
    assert atoms.labels is not None
    return np.asarray(atoms.labels.residue_starts, np.intp)
