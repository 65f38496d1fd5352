"""The systems of a run from the files that MMPBSA.py and gmx_MMPBSA take."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ...atoms import Atoms, Labels
from ...errors import FormatError, InputError, printable
from ...formats import read_structure_or_atoms, read_topology
from ...formats.amber.topology import read_names
from ...inputfile import read_file
from ...textfiles import lines, quoted
from .namelists import MmpbsaInput
from .runs import Source, masked, parts_by_topologies, require_alike


@dataclass(frozen=True, eq=False)
class Systems:
    """The systems of a run.

    sources : "complex", and "receptor" and "ligand" where they have trajectories of their own
    is_ligand : (n,) of the complex's atoms; None where its energy alone is wanted
    layout : names of the complex's atoms by a reference structure, where there is one
    """

    sources: dict[str, Source]
    is_ligand: NDArray[np.bool_] | None
    layout: Labels | None = None


def amber_systems(
    wanted: MmpbsaInput, topologies: dict[str, Path], solvated: dict[str, Path], paths: dict[str, tuple[Path, ...]],
) -> Systems:  # fmt: skip
    """The systems of MMPBSA.py.

    topologies, solvated : of "complex", "receptor" and "ligand", as far as they are given; paths : trajectories alike

    Raises FormatError where a file cannot be read, and InputError where topologies do not belong together.
    """
    atoms = {name: read_topology(path).parameters for name, path in topologies.items()}
    is_ligand = None
    if wanted.masks is not None:
        is_receptor, is_ligand = (masked(atoms["complex"], mask) for mask in wanted.masks)
        if (is_receptor == is_ligand).any():
            raise InputError(
                f"the masks {wanted.masks[0]!r} and {wanted.masks[1]!r} do not share out the atoms of "
                f"{topologies['complex']}; each is in one of them"
            )
    elif len(atoms) == 3:
        is_ligand = parts_by_topologies(atoms["complex"], atoms["receptor"], atoms["ligand"])
    elif len(atoms) == 2:
        raise InputError("receptor and ligand go together: give -rp and -lp, or neither for the complex alone")
    if is_ligand is not None and len(paths) == 1:
        for name, chosen in (("receptor", ~is_ligand), ("ligand", is_ligand)):
            if name in atoms:
                require_alike(atoms["complex"], chosen, atoms[name], name)
    sources = {name: _source(wanted, atoms[name], topologies[name], solvated.get(name), of)
               for name, of in paths.items()}  # fmt: skip
    if len(sources) > 1 and is_ligand is not None:
        for name, chosen in (("receptor", ~is_ligand), ("ligand", is_ligand)):
            if name not in sources:  # a part without a trajectory of its own comes from frames of the complex
                own = sources["complex"]
                sources[name] = replace(own, atoms=atoms[name], chosen=own.chosen[chosen])
        sources = {name: sources[name] for name in ("complex", "receptor", "ligand")}
    return Systems(sources, is_ligand)


def _source(
    wanted: MmpbsaInput, atoms: Atoms, topology: Path, solvated: Path | None, paths: tuple[Path, ...]
) -> Source:  # fmt: skip
    if solvated is None:
        return Source(atoms, paths, atoms, np.arange(len(atoms)))
    whole = read_names(solvated)
    chosen = np.flatnonzero(~masked(whole, wanted.strip_mask))
    if len(chosen) != len(atoms):
        raise InputError(
            f"{solvated} has {len(chosen):,} atoms without {wanted.strip_mask!r}, {topology} {len(atoms):,}; set "
            "strip_mask in &general to what the topology lacks"
        )
    assert whole.labels is not None
    assert atoms.labels is not None
    far = np.flatnonzero(whole.labels.names[chosen] != atoms.labels.names)
    if len(far):
        k = int(far[0])
        raise InputError(
            f"{topology} has {atoms.describe(k)} where {solvated} has {whole.describe(int(chosen[k]))}; set strip_mask"
        )
    return Source(atoms, paths, whole, chosen)


def gromacs_systems(
    wanted: MmpbsaInput, topology: Path, index: Path, groups: Sequence[int], paths: tuple[Path, ...],
    reference: Path | None,
) -> Systems:  # fmt: skip
    """The systems of gmx_MMPBSA: a topology of all atoms of the frames, and two groups of an index file."""
    whole = read_topology(topology).parameters
    found = read_index(index)
    chosen = list[NDArray[np.intp]]()
    for number in groups:
        if not 0 <= number < len(found):
            raise InputError(f"{index}: has no group {number}; its groups are 0 to {len(found) - 1}")
        name, group = found[number]
        if not len(group) or group.min() < 0 or group.max() >= len(whole):
            raise InputError(f"{index}: the group {name} is not of the {len(whole):,} atoms of {topology}")
        chosen.append(np.unique(group))
    receptor, ligand = chosen
    if len(np.intersect1d(receptor, ligand)):
        raise InputError(f"{index}: the groups {groups[0]} and {groups[1]} share atoms; an atom is in one part")
    complex_ = np.union1d(receptor, ligand)
    atoms = whole[complex_].with_radii(wanted.gb_radii)
    layout = None if reference is None else _layout(reference, atoms)
    if layout is not None:
        atoms = replace(atoms, labels=layout)
    return Systems({"complex": Source(atoms, paths, whole, complex_)}, np.isin(complex_, ligand), layout)


def _layout(path: Path, atoms: Atoms) -> Labels:
    """The atoms' labels with chains and residue numbers of a structure of the same residues."""
    found = read_structure_or_atoms(path).labels
    own = atoms.labels
    assert found is not None
    assert own is not None
    if len(found.residue_starts) != len(own.residue_starts):
        raise InputError(
            f"{path}: has {len(found.residue_starts):,} residues, receptor and ligand {len(own.residue_starts):,}; "
            "they are to be the same, in this order"
        )
    index = own.residue_index
    first = found.residue_starts
    return replace(own, chains=found.chains[first][index], residue_numbers=found.residue_numbers[first][index],
                   insertion_codes=found.insertion_codes[first][index])  # fmt: skip


def read_index(path: Path) -> list[tuple[str, NDArray[np.intp]]]:
    """The groups of a GROMACS index file (.ndx): names and atoms from 0. Raises FormatError, with the line."""
    found, values = list[tuple[str, NDArray[np.intp]]](), list[list[int]]()
    names = list[str]()
    for number, line in enumerate(lines(read_file(path), "GROMACS index"), 1):
        words = line.split(";")[0].strip()
        if words.startswith("["):
            names.append(printable(words.strip("[] ")))
            values.append([])
        elif words:
            if not names:
                raise FormatError(f"{path}:{number}: {quoted(words)}; an index file begins with [ a name ]")
            wrong = [word for word in words.split() if not (word.isascii() and word.isdigit() and len(word) < 10)]
            if wrong or 0 in (of := [int(word) for word in words.split()]):
                raise FormatError(f"{path}:{number}: {quoted(words)}; numbers of atoms, from 1, are needed")
            values[-1] += [atom - 1 for atom in of]
    for name, of in zip(names, values, strict=True):
        found.append((name, np.array(of, np.intp)))
    return found
