"""Residues of a run: backbone atoms, residues to print in a decomposition, and mutants of an alanine scan."""

from __future__ import annotations

import re
import string
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ...atoms import Atoms, Labels
from ...atoms.selection.nearby import near
from ...common.errors import InputError
from ..alanine import Mutant, cut_at
from .namelists import Alanine, Decomp, MmpbsaInput

# Backbone atoms as in sander; all other atoms of these residues belong to the side chain.
_BACKBONE = ("N", "H", "H1", "H2", "H3", "CA", "HA", "HA2", "HA3", "C", "O", "OXT")
_NUCLEIC_BACKBONE = (
    "P", "O1P", "O2P", "OP1", "OP2", "O5'", "C5'", "H5'", "H5''", "C4'", "H4'", "O3'", "C3'", "H3'",
)  # fmt: skip


def backbone(labels: Labels) -> NDArray[np.bool_]:
    """Return a mask (n,) of the backbone atoms of amino acids and nucleotides, as in sander's decomposition."""
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
    """Return the residue indices (k,) selected by print_res, e.g. all, within 6, 1-10;200-241, or A/5-10."""
    words, starts = decomp.print_res.strip(), starts_of(atoms)
    n = len(starts)
    if words.lower() == "all":
        return np.arange(n)
    within = re.fullmatch(r"within\s+([\d.]+)", words, re.IGNORECASE)
    if within:
        if is_ligand is None:
            raise InputError(f"print_res={words} needs receptor and ligand; select residues by number")
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
            raise InputError(f"print_res: {item!r} is not a number or range of residues")
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
    """Return the chain for a name in the input file: gmx_MMPBSA labels molecules without chains A, B, ..."""
    chains = list(dict.fromkeys(labels.chains[labels.residue_starts].tolist()))
    letters = string.ascii_uppercase
    if name in chains or name not in letters or not name or not all(of.isdecimal() for of in chains):
        return name
    return str(chains[letters.index(name)]) if letters.index(name) < len(chains) else name


def starts_of(atoms: Atoms) -> NDArray[np.intp]:
    """Return the index of each residue's first atom, (n_residues,)."""
    assert atoms.labels is not None
    return np.asarray(atoms.labels.residue_starts, np.intp)


_LETTERS = {
    "ALA": "A", "ARG": "R", "ASN": "N", "ASP": "D", "ASH": "D", "CYS": "C", "CYX": "C", "CYM": "C", "GLN": "Q",
    "GLU": "E", "GLH": "E", "GLY": "G", "HIS": "H", "HID": "H", "HIE": "H", "HIP": "H", "ILE": "I", "LEU": "L",
    "LYS": "K", "LYN": "K", "MET": "M", "PHE": "F", "PRO": "P", "SER": "S", "THR": "T", "TRP": "W", "TYR": "Y",
    "VAL": "V", "HSD": "H", "HSE": "H", "HSP": "H",
}  # fmt: skip
_KINDS = {
    "positive": ("ARG", "LYS", "HIP", "HSP"), "negative": ("ASP", "GLU"),
    "nonpolar": ("ALA", "GLY", "ILE", "LEU", "MET", "PHE", "PRO", "TRP", "VAL"),
}  # fmt: skip


def mutated_residue(wild: Atoms, mutant: Atoms) -> int | None:
    """Return the index of the residue that is alanine in the mutant topology; None if no residue differs.

    Raises InputError if more than one residue differs.
    """
    assert wild.labels is not None
    assert mutant.labels is not None
    before, after = (of.residue_names[of.residue_starts] for of in (wild.labels, mutant.labels))
    if len(before) != len(after):
        raise InputError(f"the mutant has {len(after):,} residues, the complex {len(before):,}")
    differ = np.flatnonzero(before != after)
    if not len(differ):
        return None
    if len(differ) > 1 or str(after[differ[0]])[-3:] != "ALA":
        raise InputError(
            f"{len(differ)} residues of the mutant differ from the complex, the first of them {before[differ[0]]} "
            f"{differ[0] + 1} to {after[differ[0]]}; only mutations to ALA are supported"
        )
    return int(differ[0])


def mutant_of(wild: Atoms, topology: Atoms, residue: int) -> Mutant:
    """Build the mutant for a mutant topology, with positions derived from the wild type.

    Raises InputError if the topology's atoms are not those of the wild type with this residue truncated to alanine.
    """
    site = cut_at(wild, residue)
    assert wild.labels is not None
    assert topology.labels is not None
    placed = np.sort(np.concatenate([site.hydrogens, site.gamma]))
    by_name = {str(wild.labels.names[i]): int(i) for i in np.intersect1d(site.own, site.kept) if i not in placed}
    free, order = [int(i) for i in placed], list[int]()
    starts = starts_of(topology)
    end = starts[residue + 1] if residue + 1 < len(starts) else len(topology)
    for name in topology.labels.names[starts[residue] : end].tolist():
        if name in by_name:
            order.append(by_name.pop(name))
        elif name.lstrip("123").startswith("HB") and free:
            order.append(free.pop(0))
        else:
            raise InputError(
                f"the mutant's residue {residue + 1} has the atom {name}, which the cut residue does not have"
            )
    before = np.arange(site.own[0])
    kept = np.concatenate([before, np.array(order, np.intp), np.arange(site.own[-1] + 1, len(wild))])
    rest = np.concatenate([np.arange(starts[residue]), np.arange(end, len(topology))])
    of_rest = np.concatenate([before, np.arange(site.own[-1] + 1, len(wild))])
    same = by_name == {} and not free and len(rest) == len(of_rest)
    if not same or (topology.labels.names[rest] != wild.labels.names[of_rest]).any():
        raise InputError("the atoms of the mutant's topology are not those of the complex with one alanine")
    position = {int(i): k for k, i in enumerate(kept)}
    return Mutant(topology, kept, position[site.beta], np.array([position[int(i)] for i in site.gamma], np.intp))


def mutant_label(atoms: Atoms, residue: int) -> str:
    """Return a label of the mutation: `D231A` by residue index, or `A:D231A` if the residue has a chain."""
    labels = atoms.labels
    assert labels is not None
    of = labels.residues[residue]
    letter = _LETTERS.get(of.name[-3:], _LETTERS.get(of.name[:3], of.name))
    return f"{of.chain}:{letter}{of.number}{of.insertion_code}A" if of.chain else f"{letter}{residue + 1}A"


def residue_named(word: str, labels: Labels) -> int:
    """Return the index of a residue in gmx_MMPBSA's notation: CHAIN:NUMBER, CHAIN/NUMBER, CHAIN/NUMBER:INSERTION_CODE.

    Raises InputError if there is no such residue.
    """
    found = re.fullmatch(r"(\w*)[:/](-?\d+)(?::(\w))?", word)
    if found is None:
        raise InputError(f"mutant_res={word}: expected CHAIN:NUMBER")
    first = labels.residue_starts
    chain, number, code = chain_called(found[1], labels), int(found[2]), found[3] or ""
    named = (labels.chains[first] == chain) & (labels.residue_numbers[first] == number)
    places = np.flatnonzero(named & (labels.insertion_codes[first] == code))
    if not len(places):
        chains = ", ".join(dict.fromkeys(of or "''" for of in labels.chains[first].tolist()))
        raise InputError(
            f"mutant_res={word}: there is no residue {found[2]}{code} in a chain {found[1]} (chains here: "
            f"{chains}); use a reference structure of receptor and ligand for other chains and numbers"
        )
    if len(places) > 1:
        names = " and ".join(labels.residue(int(first[k])) for k in places[:2])
        raise InputError(f"mutant_res={word}: {len(places)} residues have that number, such as {names}; give a "
                         "reference structure that has different chains")  # fmt: skip
    return int(places[0])


def with_dielectric(wanted: MmpbsaInput, alanine: Alanine, name: str) -> MmpbsaInput:
    """Return the input with the dielectric constant of cas_intdiel for a residue of this name."""
    if alanine.dielectrics is None:
        return wanted
    kind = next((kind for kind, names in _KINDS.items() if name[-3:] in names), "polar")
    return replace(wanted, model=replace(wanted.model, solute_dielectric=alanine.dielectrics[kind]))
