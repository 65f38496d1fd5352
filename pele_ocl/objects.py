"""Conversion of objects of MDAnalysis, MDTraj, ParmEd, ASE, RDKit and OpenMM, and of Ligands, to structures.

`checked` (common/arguments.py) calls `converted` for public functions, which therefore only handle Atoms and files.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from functools import partial
from inspect import signature
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .atoms import Atoms, Floats, Ints, Labels, Structure
from .common.arguments import described, is_object
from .common.errors import InputError, KeywordError
from .common.inputfile import InputFile, read_file
from .common.modules import with_words
from .common.notes import Note
from .formats.assembly import ListedAtoms, of_float32, structure
from .formats.registry import HeldFile, StructureFormat, held_file
from .jobs.outputs import expanded
from .ligand import Ligand, is_mol, ligand_of_mol, molecules_among
from .reading import Reading
from .trajectories.files.memory import UniverseFile, reader_of

_OF_FIELD = ("forcefield", "templates", "obc", "pele_data", "guess_radii")  # keywords for parameters assigned by name
_OF_RECORDS = ("output", "strict", "per_residue")  # keywords only for files
_OF_FILE = ("model", "coordinates", "solvent", "structures", "trajectory")  # fields of Reading that are about files


def converted(
    function: Callable[..., Any], what: Any, by_place: Mapping[str, Any], keywords: Mapping[str, Any]
) -> tuple[Any, dict[str, Any]]:
    """Convert the structure of a call to a type accepted by the function, as marked by `takes_structures`.

    what : the object, or a list of objects; by_place, keywords : the other arguments by name

    If the function accepts Atoms, keywords for reading are applied here. Returns the structure and the remaining
    keywords. Raises InputError for an object that is not a molecule.
    """
    kind, words = vars(function)["_structure"], dict(keywords)
    given = {**by_place, **words}
    parameters = words.pop("parameters", None) or ()
    by_names = kind == "structure" or any(given.get(name) for name in _OF_FIELD)
    if isinstance(given.get("model"), int) and kind != "file":
        name = type(what).__name__
        raise KeywordError(f"an object of type {name} is read at its current frame; leave out the number in `model`")
    universe, frames = getattr(what, "universe", None), words.get("trajectory")
    if universe is not None and frames is not None:  # use only the atoms of the structure, with their names
        if getattr(frames, "universe", None) is universe:
            words["trajectory"] = what.atoms
        elif reader_of(frames) is universe.trajectory:
            words["trajectory"] = (UniverseFile(what, frames),)
    every = what if isinstance(what, list | tuple) else [what]
    held = [held_object(of, parameters, by_names) if is_object(of) else of for of in every]
    if words.get("trajectory") is None and not is_object(given.get("poses")):
        takes_frames = "trajectory" in signature(with_words(function)).parameters
        held = [_noted(file, _notes_of_frames(of, takes_frames)) for of, file in zip(every, held, strict=True)]
    are_files = kind == "either" and (every is what or any(given.get(name) for name in _OF_RECORDS))
    if kind in ("file", "structure") or are_files:
        return held if every is what else held[0], words
    reading = words.pop("reading", None)
    if reading is None:
        reading = Reading(**{name: words.pop(name) for name in _words_of(function) if name in words})
    poses = molecules_among(given.get("poses"))
    molecules = [each for of in poses for each in (expanded([Path(of)]) if isinstance(of, str | PathLike) else [of])]
    atoms = [
        of if isinstance(of, Atoms)
        else reading.with_molecules(molecules, lambda reads, of=of: reads.one(read_file(of)).atoms)
        for of in held
    ]  # fmt: skip
    return atoms if every is what else atoms[0], words


def _words_of(function: Callable[..., Any]) -> list[str]:
    """Return the keywords for reading that a function accepts, except those it declares."""
    if "reading" not in vars(function).get("_groups", ()):
        return []
    code = function.__wrapped__.__code__  # type: ignore[attr-defined]
    own = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    return [of.name for of in fields(Reading) if of.name not in (*own, *_OF_FILE)]


def held_object(what: Any, parameters: Any = (), by_names: bool = False) -> InputFile | Atoms:
    """Convert an object of another library to a file in memory, with its current or first frame, or to Atoms.

    parameters : CHARMM parameter files for a universe from a .psf file
    by_names : True for only names and positions, False to include parameters of the object
    """
    if hasattr(type(what), "as_structure"):
        of_result: InputFile | Atoms = what.as_structure()
        return of_result
    for library, hold in _HOLDERS.items():
        if any(of.__module__.partition(".")[0] == library for of in type(what).__mro__):
            found = hold(what, parameters, by_names) if library == "MDAnalysis" else hold(what, by_names)
            if found is not None:
                return found
    raise InputError(f"the structure is {described(what)}; {_NEEDED}")


def _notes_of_frames(what: Any, takes_frames: bool) -> tuple[Note, ...]:
    """Return a note if only one of several frames is used. takes_frames : whether `trajectory` could use all"""
    library = type(what).__module__.partition(".")[0]
    every = "; `trajectory` uses all frames" if takes_frames else ""
    if library == "MDAnalysis" and (n := len(what.universe.trajectory)) > 1:
        read = f"the universe: the current one, {what.universe.trajectory.frame}, of its {n:,} frames was read"
        return (Note(f"{read}; universe.trajectory[k] selects another{every}", code="first_model"),)
    if library == "mdtraj" and (n := len(what)) > 1:
        read = f"the trajectory of MDTraj: the first of its {n:,} frames was read"
        return (Note(f"{read}; traj[k] selects another{every}", code="first_model"),)
    return ()


def _noted(file: Any, notes: tuple[Note, ...]) -> Any:
    """Add notes to a molecule held as a file."""
    if not notes or not isinstance(file, HeldFile):
        return file
    form = file.form

    def read(of: InputFile, model: int | None) -> Structure | Atoms:
        found = form.read(of, model)
        return replace(found, notes=(*found.notes, *notes))

    return HeldFile(str(file), replace(form, read=read))


_NEEDED = (
    "expected a molecule with positions: Atoms, a path, a Universe or an AtomGroup of MDAnalysis, a Trajectory of "
    "MDTraj, a Structure of ParmEd, Atoms of ASE, a Mol of RDKit, a PDBFile, Modeller or Simulation of OpenMM"
)


def _of_mdanalysis(what: Any, parameters: Any, by_names: bool) -> HeldFile | None:
    from .interop.mdanalysis import held_universe

    group = getattr(what, "atoms", None)
    if group is None or not hasattr(group, "universe"):
        return None
    if not len(group):
        raise InputError("the AtomGroup has no atoms; select some")
    return held_universe(group, parameters, by_names)


def _of_mdtraj(what: Any, by_names: bool) -> HeldFile | None:
    from .trajectories.files.memory import A_PER_NM, labels_of_mdtraj

    name = "the trajectory of MDTraj"
    if not hasattr(what, "xyz"):
        return None
    if what.topology is None:
        raise InputError(f"{name} has no topology; load it with one")
    pieces = np.array([atom.residue.chain.index for atom in what.topology.atoms], np.int32)
    cell = None if what.unitcell_vectors is None else A_PER_NM * what.unitcell_vectors[0].astype(np.float64)
    labels, positions = labels_of_mdtraj(what.topology), of_float32(what.xyz[0], A_PER_NM)
    return held_file(name, _structure(name, labels, positions, pieces), cell)


def _of_parmed(what: Any, by_names: bool) -> HeldFile | None:
    from .interop.parmed import from_parmed, residues_of

    name = "the structure of ParmEd"
    if not hasattr(what, "coordinates") or not hasattr(what, "residues"):
        return None
    has_own = bool(what.bond_types or what.angle_types or hasattr(what, "parm_data"))
    if has_own and not by_names:
        return held_file(name, from_parmed(what))
    if what.coordinates is None:
        raise InputError(f"{name} has no coordinates; load it with coordinates")
    from .forcefield.openmm.system import labels_of_topology

    labels = labels_of_topology(what.topology, residues_of(what))
    return held_file(name, _structure(name, labels, np.array(what.coordinates, np.float64)))


def _of_openmm(what: Any, by_names: bool) -> HeldFile | None:
    from .forcefield.openmm.system import from_openmm, in_angstrom, labels_of_topology

    name = f"the {type(what).__name__} of OpenMM"
    topology, system = getattr(what, "topology", None), getattr(what, "system", None)
    positions = getattr(what, "positions", None)
    if positions is None and hasattr(what, "context"):
        positions = what.context.getState(getPositions=True).getPositions(asNumpy=True)
    if topology is None or not hasattr(topology, "residues"):
        return None
    if positions is None:
        raise InputError(f"{name} has no positions; give the file, and its positions as `coordinates`")
    if system is not None and not by_names:
        return held_file(name, from_openmm(topology, system, positions))
    pieces = np.array([atom.residue.chain.index for atom in topology.atoms()], np.int32)
    places = in_angstrom(positions, topology.getNumAtoms())
    return held_file(name, _structure(name, labels_of_topology(topology), places, pieces))


def _of_ase(what: Any, by_names: bool) -> HeldFile | None:
    from .ase import Calculator, is_named, labels_of_ase

    name = "the atoms of ASE"
    if not hasattr(what, "arrays"):
        return None
    if isinstance(what.calc, Calculator) and not by_names:
        return held_file(name, what.calc.ordered(what))
    if not is_named(what):
        raise InputError(
            f"{name} have no atom and residue names, which are needed for parameters; read them with ASE from a PDB "
            "file, or give a file of the molecule, such as .sdf"
        )
    cell = np.array(what.cell.array, np.float64) if what.pbc.all() else None
    return held_file(name, _structure(name, labels_of_ase(what), np.array(what.positions, np.float64)), cell)


def _of_rdkit(what: Any, by_names: bool) -> HeldFile | None:
    from .interop.rdkit import polymer_of

    name = "the Mol of RDKit"
    if not is_mol(what):
        return None
    found = polymer_of(what)
    if found is not None:
        return held_file(name, found)
    return _of_ligand(name, partial(ligand_of_mol, what, name))


def _of_ligand(name: str, make: Callable[..., Ligand]) -> HeldFile:
    """Convert a small molecule to a file in memory; parameters are assigned when it is read, as for an SDF file."""

    def read(
        file: InputFile, model: int | None, forcefield: str = "gaff2", charges: str = "mmff", hydrogens: Any = "given",
        ph: float | None = None,
    ) -> Atoms:  # fmt: skip
        return make(hydrogens=hydrogens, ph=ph).parametrize(forcefield, charges)

    return HeldFile(name, StructureFormat(read, lambda file: [1], True, True, kind=name))


def _of_own(what: Any, by_names: bool) -> HeldFile | None:
    if not isinstance(what, Ligand):
        return None
    return _of_ligand("the Ligand", lambda hydrogens, ph: what)


_HOLDERS: dict[str, Callable[..., HeldFile | None]] = {
    "MDAnalysis": _of_mdanalysis, "mdtraj": _of_mdtraj, "parmed": _of_parmed, "openmm": _of_openmm,
    "pdbfixer": _of_openmm, "ase": _of_ase, "rdkit": _of_rdkit, "pele_ocl": _of_own,
}  # fmt: skip


def _structure(
    name: str, labels: Labels, positions: ArrayLike, pieces: Ints | None = None
) -> Structure:  # fmt: skip
    """Create a Structure from labels and positions (n, 3) A, as file readers do."""
    n = len(labels)
    zeros = np.zeros(n, np.int32)
    places: Floats = np.asarray(positions, np.float64)
    listed = ListedAtoms(
        places, labels.names, labels.elements, labels.residue_names, labels.residue_numbers, labels.insertion_codes,
        labels.chains, np.full(n, ""), np.ones(n), np.zeros(n, np.bool_), zeros if pieces is None else pieces, zeros,
        zeros,
    )  # fmt: skip
    return structure(listed, name, (), names_matter=False)
