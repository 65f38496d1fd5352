"""Systems of a run from the files that MMPBSA.py and gmx_MMPBSA take."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ...atoms import Atoms, Labels
from ...common.errors import FormatError, InputError, printable
from ...common.inputfile import read_file
from ...common.textfiles import lines, quoted
from ...formats import read_structure_or_atoms, read_topology
from ...formats.amber.topology import read_names
from ..parts import left_out_notes, names_of
from .namelists import MmpbsaInput
from .sources import Source, masked, parts_by_topologies, require_alike


@dataclass(frozen=True, eq=False)
class Systems:
    """Systems of a run.

    sources : "complex", and "receptor" and "ligand" where they have trajectories of their own
    is_ligand : (n,) of the complex's atoms; None where its energy alone is wanted
    layout : names of the complex's atoms by a reference structure, where there is one
    """

    sources: dict[str, Source]
    is_ligand: NDArray[np.bool_] | None
    layout: Labels | None = None

    @property
    def left_out(self) -> dict[str, int]:
        """How many residues of each name, among all atoms of the complex's frames, have atoms in neither part."""
        return names_of(self.sources["complex"].whole, self._is_left_out)

    @property
    def notes(self) -> list[str]:
        """Sentences about the atoms of the complex's frames that are in neither part."""
        return left_out_notes(self.sources["complex"].whole, self._is_left_out)

    @property
    def _is_left_out(self) -> NDArray[np.bool_]:
        complex_ = self.sources["complex"]
        mask = np.ones(len(complex_.whole), bool)
        mask[complex_.chosen] = False
        return mask


def amber_systems(
    wanted: MmpbsaInput, topologies: dict[str, Path], solvated: dict[str, Path], paths: dict[str, tuple[Path, ...]],
) -> Systems:  # fmt: skip
    """Systems of MMPBSA.py.

    topologies, solvated : of "complex", "receptor" and "ligand", as far as they are given; paths : trajectories alike

    Raises FormatError where a file cannot be read, and InputError where topologies do not belong together.
    """
    atoms = {name: read_topology(path).parameters for name, path in topologies.items()}
    if len(paths) > 1 and len(atoms) < 3:
        raise InputError("frames of a part need topologies of both: give -rp and -lp beside -yr or -yl")
    is_ligand = None
    if wanted.masks is not None:
        is_receptor, is_ligand = (masked(atoms["complex"], mask) for mask in wanted.masks)
        for mask, chosen in zip(wanted.masks, (is_receptor, is_ligand), strict=True):
            if not chosen.any():
                raise InputError(f"the mask {mask!r} takes no atom of {topologies['complex']}")
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
    return Systems(_with_parts(sources, atoms, is_ligand), is_ligand)


def _with_parts(
    sources: dict[str, Source], atoms: Mapping[str, Atoms], is_ligand: NDArray[np.bool_] | None
) -> dict[str, Source]:  # fmt: skip
    """Sources of all three where one part has frames of its own: the other one's come from the complex's.

    atoms : of the parts, by topologies of their own as far as there are any
    """
    if len(sources) == 1 or is_ligand is None:
        return sources
    whole = sources["complex"]
    for name, chosen in (("receptor", ~is_ligand), ("ligand", is_ligand)):
        if name not in sources:
            own = atoms.get(name, whole.atoms[chosen])
            sources[name] = replace(whole, atoms=own, chosen=whole.chosen[chosen])
    return {name: sources[name] for name in ("complex", "receptor", "ligand")}


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


@dataclass(frozen=True)
class FrameFiles:
    """Files of GROMACS' frames of a system.

    paths : trajectories; topology : of all atoms of a frame, None for the part's in the complex
    index, number : the group of an index file that the system is, None for all atoms
    """

    paths: tuple[Path, ...]
    topology: Path | None = None
    index: Path | None = None
    number: int | None = None


def gromacs_systems(
    wanted: MmpbsaInput, topology: Path, index: Path, groups: Sequence[int], paths: tuple[Path, ...],
    reference: Path | None, parts: Mapping[str, FrameFiles],
) -> Systems:  # fmt: skip
    """Systems of gmx_MMPBSA: a topology of all atoms of the frames, and two groups of an index file.

    parts : "receptor" and "ligand" that have frames of their own
    """
    whole = read_topology(topology).parameters
    found = read_index(index)
    receptor, ligand = (_group(index, found, number, whole, topology) for number in groups)
    if len(np.intersect1d(receptor, ligand)):
        raise InputError(f"{index}: the groups {groups[0]} and {groups[1]} share atoms; an atom is in one part")
    complex_ = np.union1d(receptor, ligand)
    atoms = whole[complex_].with_radii(wanted.gb_radii)
    layout = None if reference is None else _layout(reference, atoms)
    if layout is not None:
        atoms = replace(atoms, labels=layout)
    is_ligand = np.isin(complex_, ligand)
    sources = {"complex": Source(atoms, paths, whole, complex_)}
    for name, chosen in (("receptor", ~is_ligand), ("ligand", is_ligand)):
        if name in parts:
            sources[name] = _of_group(wanted, name, atoms[chosen], parts[name])
    return Systems(_with_parts(sources, {}, is_ligand), is_ligand, layout)


def _of_group(wanted: MmpbsaInput, name: str, own: Atoms, group: FrameFiles) -> Source:
    """Source of a part with frames of its own; own : its atoms in the complex."""
    if group.topology is None:
        return Source(own, group.paths, own, np.arange(len(own)))
    whole = read_topology(group.topology).parameters
    chosen = np.arange(len(whole))
    if group.index is not None and group.number is not None:
        chosen = _group(group.index, read_index(group.index), group.number, whole, group.topology)
    atoms = whole[chosen].with_radii(wanted.gb_radii)
    assert atoms.labels is not None
    assert own.labels is not None
    if len(atoms) != len(own) or (atoms.labels.names != own.labels.names).any():
        raise InputError(
            f"{group.topology}: the {name} there has {len(atoms):,} atoms and others than the {len(own):,} of the "
            f"complex; choose its group by {'-ri and -rg' if name == 'receptor' else '-li and -lg'}"
        )
    return Source(replace(atoms, labels=own.labels), group.paths, whole, chosen)


def _group(
    index: Path, found: Sequence[tuple[str, NDArray[np.intp]]], number: int, whole: Atoms, topology: Path
) -> NDArray[np.intp]:  # fmt: skip
    """Atoms of a group of an index file, rising. Raises InputError where it is not of these atoms."""
    if not 0 <= number < len(found):
        raise InputError(f"{index}: has no group {number}; its groups are 0 to {len(found) - 1}")
    name, group = found[number]
    if not len(group):
        raise InputError(f"{index}: the group {number}, {name}, holds no atom")
    if group.min() < 0 or group.max() >= len(whole):
        raise InputError(f"{index}: the group {number}, {name}, is not of the {len(whole):,} atoms of {topology}")
    return np.unique(group)


def _layout(path: Path, atoms: Atoms) -> Labels:
    """Atoms' labels with chains and residue numbers of a structure of the same residues."""
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
    """Groups of a GROMACS index file (.ndx): names and atoms from 0. Raises FormatError, with the line."""
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
