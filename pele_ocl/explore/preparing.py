"""Write a control file for a structure and its ligand, with the ligand's parameters in PELE's format."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from string import ascii_uppercase, digits

import numpy as np

from ..atoms import Atoms, Floats, Labels, labels_of
from ..atoms.chemistry import is_polymer, is_water
from ..atoms.graphs import Indices
from ..atoms.selection import Composition
from ..common.errors import FormatError, InputError
from ..common.inputfile import read_file
from ..common.notes import note
from ..common.writing import replacing
from ..forcefield.control import CONTROL
from ..formats import brings_parameters, read_structure, structure_suffix
from ..jobs.journal import make_folder
from ..ligand import LigandTemplate
from ..parametrize.writing import pele_texts, write_structure
from ..reading import Reading, ligand_templates
from .presets import LEAST_NODES, PRESETS, Preset, alpha_carbons, control_of
from .rigid import random_frames

_DATA = "DataLocal"
_CHAINS = "LZ" + "".join(sorted(set(ascii_uppercase + digits) - set("LZ")))  # chain letters for a ligand, in order
_OF_POLYMERS = (".pdb", ".ent", ".cif", ".mmcif", ".pdbx")
_TOUCHING = 5.0  # A, PELE's proximityDistance, beyond which only the ligand moves
_LEAST = 3.0  # A, minimum distance between a randomly placed ligand and the receptor
_TRIES = 10_000  # random placements per explorer


@dataclass(frozen=True)
class Prepared:
    """Files written for a run: control file, complex, initial structures, and folder of parameters."""

    control: Path
    structure: Path
    starts: tuple[Path, ...]
    data: Path


def prepare_run(
    structure: Path, folder: Path, preset: Preset, reading: Reading, seed: int | None, steps: int | None,
    explorers: int = 1,
) -> Prepared:  # fmt: skip
    """Write the files of a run.

    structure : PDB or mmCIF file of the receptor, with or without the ligand
    reading : defines the molecules: the first is explored, others are part of the receptor
    seed : None to take it from the clock; steps : None for the preset's number of steps
    explorers : number of explorers; if the preset uses random placements, each gets its own, with seed 0 by default

    The ligand gets a separate chain. Water is removed, as the solvent is implicit.

    Raises InputError or ParameterError for molecules without parameters, and FormatError for files that cannot be
    written or if the folder contains a different control file.
    """
    molecules = _molecules(structure, reading)
    waters = Composition.of(read_structure(read_file(structure)).labels).waters
    if waters:
        note(
            f"Note: {structure}: {waters:,} water{'' if waters == 1 else 's'} left out, because the solvent is implicit"
        )
    atoms = replace(reading, without="water" if waters else None)(read_file(structure))
    assert atoms.labels is not None
    places = list(_places(molecules, atoms))
    explored = next(own for k, own in places if k == 0)
    labels = _labelled(atoms.labels, places, explored)
    _notes_of(structure, atoms, explored, [own for k, own in places if k == 0], preset)
    named = f"{structure.name.split('.')[0]}_start.pdb"
    whole = replace(atoms, labels=labels)
    masses = atoms.masses[explored]
    center = masses @ atoms.positions[explored] / masses.sum()
    used = preset if steps is None else replace(preset, epochs=1, steps=steps)
    placed = list[Floats]()
    if preset.starts_anywhere:
        center, radius = _sphere(atoms, explored)
        used = replace(used, radius=radius)
        placed = _placed(atoms, explored, center, radius, explorers, seed or 0)
    names = [f"{Path(named).stem}_{k}.pdb" for k in range(1, len(placed) + 1)]
    control = control_of(used, named, str(labels.chains[explored[0]]), center, labels, seed, names)
    starts = tuple(folder / name for name in names or [named])
    found = Prepared(folder / CONTROL, folder / named, starts, folder / _DATA)
    make_folder(folder)
    inputs = [structure, *(Path(each) for each in reading.ligands if isinstance(each, str | PathLike))]
    _write(found.control, json.dumps(control, indent=2) + "\n")
    write_structure(found.structure, whole, 0, inputs)
    for path, positions in zip(starts, placed, strict=False):
        write_structure(path, whole.moved(positions), 0, inputs)
    written = set[str]()
    for k, own in places:
        molecule = replace(molecules[k].atoms.moved(atoms.positions[own]), labels=labels_of(labels, own))
        if (residue := str(labels.residue_names[own[0]])) not in written:
            written.add(residue)
            for path, text in pele_texts(molecule, found.data).items():
                make_folder(path.parent)
                with replacing(path, inputs) as temporary:
                    temporary.write_text(text, encoding="utf-8")
    return found


def _molecules(structure: Path, reading: Reading) -> list[LigandTemplate]:
    """Assign parameters to the molecules. Raises InputError if there are none, and for unsuitable files."""
    if brings_parameters(structure):
        raise InputError(
            f"{structure}: has its own parameters, which PELE's files cannot contain; give a PDB or mmCIF file"
        )
    for each in reading.ligands:
        if isinstance(each, str | PathLike) and structure_suffix(each) in _OF_POLYMERS:
            raise InputError(
                f"{each}: is a structure; the ligand must be in a file of small molecules with bond orders, such "
                "as .sdf. For a peptide, use a control file whose selectionToPerturb names its chain"
            )
    molecules = ligand_templates(structure, reading)
    if not molecules:
        raise InputError(
            f"{structure}: is a structure; give the file of the ligand as `ligands`, or give PELE's "
            "control file, whose selectionToPerturb may also name the chain of a peptide"
        )
    return molecules


def _places(molecules: Sequence[LigandTemplate], atoms: Atoms) -> Iterator[tuple[int, Indices]]:
    """Yield the molecule's index and the atoms, in the molecule's order, of each residue that matches a molecule."""
    labels = atoms.labels
    assert labels is not None
    starts = labels.residue_starts
    for start, end in zip(starts, [*starts[1:], len(labels)], strict=True):
        name = str(labels.residue_names[start])
        if is_polymer(name) or is_water(name):
            continue
        own = np.arange(start, end)
        for k, molecule in enumerate(molecules):
            order, _ = molecule.fit(labels_of(labels, own), atoms.positions[own])
            if order is not None:
                yield k, own[order]
                break


def _labelled(labels: Labels, places: Sequence[tuple[int, Indices]], explored: Indices) -> Labels:
    """Return labels with a separate chain for the ligand, and unique residue and atom names for each molecule."""
    names, residues, chains = labels.names.copy(), labels.residue_names.astype("U3"), labels.chains.copy()
    chain = str(chains[explored[0]])
    if len(chain) != 1 or np.count_nonzero(chains == chain) > len(explored):
        free = next((each for each in _CHAINS if each not in set(chains.tolist())), None)
        if free is None:
            raise InputError("the structure uses all chain letters; reduce the number of chains")
        chains[explored] = free
    first, taken = dict[int, Indices](), set(residues.tolist()) - {str(residues[own[0]]) for _, own in places}
    for k, own in sorted(places, key=lambda each: each[0]):
        if k not in first:
            wanted = str(residues[own[0]])
            residues[own] = next(name for name in _residue_names(wanted) if name not in taken)
            taken.add(str(residues[own[0]]))
            first[k] = own
        residues[own], names[own] = residues[first[k][0]], names[first[k]]
    return replace(labels, names=names, residue_names=residues, chains=chains)


def _residue_names(wanted: str) -> Iterator[str]:
    yield wanted
    for k in range(1, 1000):
        yield f"{wanted[: 3 - len(str(k))]}{k}"


def _notes_of(structure: Path, atoms: Atoms, explored: Indices, copies: Sequence[Indices], preset: Preset) -> None:
    """Report notes about the structure. Raises InputError if there are no atoms besides the molecule."""
    labels = atoms.labels
    assert labels is not None
    rest = np.delete(np.arange(len(atoms)), explored)
    if not len(rest):
        raise InputError(f"{structure}: contains only the ligand's atoms; give the receptor, or the complex")
    if len(copies) > 1:
        note(
            f"Note: {structure}: {len(copies):,} residues are the ligand; {labels.residue(int(copies[0][0]))} is "
            "explored, and the others are part of the receptor"
        )
    near = _nearest(atoms.positions[explored], atoms.positions[rest])
    if near > _TOUCHING and not preset.starts_anywhere and preset is not PRESETS["out_in"]:
        note(
            f"Note: {structure}: the ligand is {near:.1f} A from the receptor, where moves are small; dock it "
            "first, or choose `preset='out_in'`"
        )
    if preset.anm_frequency and len(alpha_carbons(labels)) < LEAST_NODES:
        note(f"Note: {structure}: fewer than {LEAST_NODES} alpha carbons, so the backbone is not moved")


def _sphere(atoms: Atoms, explored: Indices) -> tuple[Floats, float]:
    """Return the centre (3,) and radius, A, of pele_platform's box around the receptor, with a margin for a ligand."""
    rest = np.delete(np.arange(len(atoms)), explored)
    positions, masses = atoms.positions[rest], atoms.masses[rest]
    center = masses @ positions / masses.sum()
    return center, float(np.ceil(6.0 + np.linalg.norm((positions - center).max(axis=0))))


def _placed(
    atoms: Atoms, explored: Indices, center: Floats, radius: float, count: int, seed: int
) -> list[Floats]:  # fmt: skip
    """Place and orient the ligand at random near the receptor's surface; return `count` positions (n, 3) A.

    center, radius : sphere that contains the ligand's centre of mass, A; seed : seed of the random numbers

    Raises InputError if too few placements are found.
    """
    rng = np.random.default_rng(seed)
    rest = np.delete(np.arange(len(atoms)), explored)
    receptor, ligand, masses = atoms.positions[rest], atoms.positions[explored], atoms.masses[explored]
    ligand = ligand - masses @ ligand / masses.sum()
    reach = np.linalg.norm(ligand, axis=1).max()
    found = list[Floats]()
    for _ in range(_TRIES * count):
        direction, share = rng.normal(size=3), rng.uniform()
        middle = center + direction / np.linalg.norm(direction) * radius * np.cbrt(share)
        frame = random_frames(rng.integers(0, 1 << 32, size=4, dtype=np.uint32))
        if not _LEAST < np.linalg.norm(receptor - middle, axis=1).min() < reach + _TOUCHING:
            continue
        there = ligand @ frame.T + middle
        if _LEAST <= _nearest(there, receptor) <= _TOUCHING:
            positions = atoms.positions.copy()
            positions[explored] = there
            found.append(positions)
            if len(found) == count:
                return found
    raise InputError(
        f"{count:,} explorers found no positions for the ligand around the receptor; give fewer `explorers`"
    )


def _nearest(these: Floats, others: Floats) -> float:
    """Return the distance of the closest pair, A."""
    return min(float(np.linalg.norm(others - each, axis=1).min()) for each in these)


def _write(path: Path, text: str) -> None:
    """Write a control file, unless it exists with the same text. Raises FormatError if its text differs."""
    if path.exists():
        if path.read_text(encoding="utf-8", errors="replace") != text:
            raise FormatError(f"{path}: is the control file of another run; choose another folder with `output`")
        return
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")
