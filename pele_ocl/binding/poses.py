"""Poses of a ligand in a fixed receptor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ..atoms import Atoms, Floats, Labels
from ..atoms.corresponding import correspondence
from ..atoms.graphs import (
    Graph,
    Hands,
    Indices,
    Matching,
    SymmetricRmsd,
    bonds_by_distance,
    difference,
    inverted,
    lacks_hydrogens,
    stretched_bond,
    turned_bonds,
    with_hands,
)
from ..atoms.labels import labels_of
from ..atoms.small_molecules import SmallMolecules
from ..common.arguments import file_path
from ..common.errors import FormatError, InputError
from ..common.inputfile import read_file
from ..common.variant import Progress
from ..formats import STRUCTURES, read_conformations, read_structure, structure_format, structure_suffix
from ..formats.molecules import Molecule, molecules_of, titles_of
from ..results import Terms
from .energies import BindingEnergies, joined_energies

if TYPE_CHECKING:
    from ..energy import EnergyResult
    from .plan import Binding

PIECE_ATOMS = 1 << 20  # maximum number of atoms of poses that are evaluated together
_TORN = 2.0  # times the sum of two covalent radii: longer bonds indicate mismatched atoms
_SURELY = 1.4  # times the sum of two covalent radii: up to this length the ligand's bonds are accepted
_SHOWN = 4  # number of atoms named in a message
MOST_MATCHED = 1000  # maximum number of atoms for assigning equivalent atoms in an rmsd, as the search is expensive
_MOLECULES = (".sdf", ".sd", ".mol", ".mol2")


@dataclass(frozen=True, eq=False)
class Poses:
    """Poses of a ligand.

    positions : (m, n, 3) A in the ligand's order, NaN for unusable poses; errors : their error messages, by index
    notes : messages about how atoms were matched; titles : (m,) titles of the molecules in the file, () for none
    """

    positions: Floats
    errors: Mapping[int, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    titles: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.positions)


def holds_molecules(path: Path) -> bool:
    """Return whether a file is an SDF or mol2 file by its suffix, optionally followed by `.gz`."""
    return _suffix(path) in _MOLECULES


def _suffix(path: Path) -> str:
    return Path(path.name.lower().removesuffix(".gz")).suffix


def read_poses(path: str | PathLike[str], ligand: Atoms) -> Poses:
    """Read poses of a ligand: molecules of an SDF (V2000, V3000) or mol2 file, or models of a .pdb or .cif file.

    Atoms may have any order: they are matched by elements and bonds, or by name in .pdb and .cif files that use the
    ligand's atom names. Unusable poses have NaN and an error message: those with other atoms, without hydrogens,
    with 2D coordinates, or of another stereoisomer.

    Raises FormatError if the file cannot be read, or has no usable pose.
    """
    path = file_path(path)
    return PoseReader(ligand).read(path)


class PoseReader:
    """Reads poses of a ligand whose atoms may have any order.

    ligand : Atoms with elements; without bonds, these are determined by distance

    Raises InputError for atoms without elements.
    """

    def __init__(self, ligand: Atoms) -> None:
        self.ligand = ligand
        if ligand.labels is None:
            raise InputError(
                "reading poses needs elements, which these atoms do not have; read them from a structure file"
            )
        self._labels = ligand.labels
        elements = self._labels.elements.tolist()
        bonds = ligand.bond_pairs if len(ligand.bond_pairs) else bonds_by_distance(elements, ligand.positions)
        self.graph = Graph.of(elements, bonds)
        self._hands = Hands.of(self.graph, ligand.positions)
        self._names = {i: self._labels.atom(i) for i in range(len(ligand))}
        self._known: list[tuple[Graph, Indices]] = []  # cache of matched graphs; most files contain only one

    def read(self, path: Path) -> Poses:
        """Read the poses of a file as in `read_poses`."""
        found = self._of_molecules(path) if holds_molecules(path) else self._of_models(path)
        if len(found.errors) == len(found):
            first = found.errors[0]
            more = f" ({len(found) - 1:,} more also fail)" if len(found) > 1 else ""
            raise FormatError(f"{path}: {first}{more}")
        return found

    def order(self, molecule: Molecule) -> Indices:
        """Return the molecule's atom for each atom of the ligand, (n,). Raises FormatError if they do not match."""
        return self._check(molecule, self._matched(molecule.graph))

    def placed(self, molecule: Molecule) -> Floats:
        """Return the positions of a molecule in the ligand's order, (n, 3) A.

        Raises FormatError if the atoms do not match.
        """
        return self._laid(molecule)

    def read_native(self, path: Path) -> Floats:
        """Read the first pose of a file as reference positions of heavy atoms, (n, 3) A; hydrogens are NaN.

        The file may lack hydrogens, and may be a crystal structure: residues with other names are ignored.

        Raises FormatError if the file cannot be read, or its heavy atoms are not the ligand's.
        """
        ours, names = self.graph.heavy, None
        if holds_molecules(path):
            molecule = next(molecules_of(read_file(path), _suffix(path) == ".mol2"))
            if isinstance(molecule, FormatError):
                raise FormatError(f"{path}: {molecule}")
            if _is_drawn(molecule):
                raise FormatError(f"{path}: {_DRAWN}")
            theirs, positions = molecule.graph.part(molecule.graph.heavy), molecule.positions[molecule.graph.heavy]
            if not len(theirs.bonds):
                theirs = Graph.of(theirs.elements, bonds_by_distance(theirs.elements, positions))
        else:
            structure = read_structure(path)
            heavy = np.flatnonzero(structure.labels.elements != "H")
            if len(heavy) > len(ours):
                of_ligand = np.isin(structure.labels.residue_names[heavy], self._labels.residue_names)
                heavy = heavy[of_ligand] if of_ligand.any() else heavy
            names, positions = labels_of(structure.labels, heavy), structure.positions[heavy]
            if len(heavy) != len(ours):
                raise FormatError(f"{path}: has {len(heavy):,} heavy atoms, the ligand {len(ours):,}")
            theirs = Graph.of(names.elements.tolist(), bonds_by_distance(names.elements.tolist(), positions))
        part = self.graph.part(ours)
        mapping = None if names is None else _by_names(labels_of(self._labels, ours), names)
        if mapping is None or stretched_bond(part, positions[mapping], _SURELY) is not None:
            matched = Matching(part, theirs).best()
            mapping = mapping if matched is None else matched
        if mapping is None:
            why = difference(part, theirs, {k: self._names[i] for k, i in enumerate(ours.tolist())})
            raise FormatError(f"{path}: its heavy atoms are not the ligand's: {why}")
        found = np.full((len(self.graph), 3), np.nan)
        found[ours] = positions[mapping]
        return found

    def _of_molecules(self, path: Path) -> Poses:
        """Read the molecules of an SDF or mol2 file."""
        positions, errors = list[Floats](), dict[int, str]()
        file, is_mol2 = read_file(path), _suffix(path) == ".mol2"
        for k, molecule in enumerate(molecules_of(file, is_mol2)):
            try:
                if isinstance(molecule, FormatError):
                    raise molecule
                positions.append(self._laid(molecule, f"molecule {k + 1}: "))
            except FormatError as error:
                errors[k] = str(error)
                positions.append(np.full((len(self.graph), 3), np.nan))
        return Poses(np.stack(positions), errors, titles=tuple(titles_of(file, is_mol2)))

    def _of_models(self, path: Path) -> Poses:
        """Read the models of a .pdb or .cif file."""
        if structure_suffix(path) not in STRUCTURES or structure_format(path).conformations is None:
            raise FormatError(
                f"{path}: poses can be read from .sdf, .mol2, .pdb and .cif files; write frames of a trajectory as .pdb"
            )
        errors = dict[int, str]()
        numbers, models = read_conformations(path, errors)
        good = [k for k in range(len(numbers)) if k not in errors]
        errors = {k: f"model {numbers[k]}: {why.removeprefix(f'{path}:').lstrip()}" for k, why in errors.items()}
        positions = np.full((len(numbers), len(self.graph), 3), np.nan)
        if good:
            labels = read_structure(path, numbers[good[0]]).labels
            mapping = _by_names(self._labels, labels)
            for k in good:
                try:
                    positions[k] = self._model(labels, models[k], mapping)
                except FormatError as error:
                    errors[k] = f"model {numbers[k]}: {error}" if len(numbers) > 1 else str(error)
        return Poses(positions, dict(sorted(errors.items())))

    def _model(self, labels: Labels, positions: Floats, mapping: Indices | None) -> Floats:
        """Return a model's positions in the ligand's order.

        Atoms are matched by name, or by bonds if names differ or would lead to too long bonds.
        """
        elements = labels.elements.tolist()
        molecule = Molecule(Graph.of(elements, bonds_by_distance(elements, positions)), positions)
        if mapping is None:
            return self._laid(molecule)
        named: Floats = positions[mapping]
        if stretched_bond(self.graph, named, _SURELY) is not None:
            with suppress(FormatError):
                return self._laid(molecule)
        self._check(Molecule(self.graph, named), np.arange(len(named)))
        return named

    def _laid(self, molecule: Molecule, where: str = "") -> Floats:
        """Return a molecule's positions in the ligand's order, (n, 3) A. where : prefix of error messages"""
        try:
            if _is_drawn(molecule):
                raise FormatError(_DRAWN)
            if not len(molecule.graph.bonds):
                molecule = self._bonded(molecule)
            mapping = self._matched(molecule.graph)
            mapping = self._check(molecule, mapping)
        except FormatError as error:
            raise FormatError(f"{where}{error}") from None
        positions: Floats = molecule.positions[mapping]
        return positions

    def _bonded(self, molecule: Molecule) -> Molecule:
        """Assign bonds to a molecule without any: the ligand's if the order of atoms is the same, else by distance."""
        elements, positions = molecule.graph.elements, molecule.positions
        if elements == self.graph.elements and stretched_bond(self.graph, positions, _SURELY) is None:
            return replace(molecule, graph=self.graph)
        return replace(molecule, graph=Graph.of(elements, bonds_by_distance(elements, positions)))

    def _matched(self, theirs: Graph) -> Indices:
        """Match the ligand's atoms to a graph. Raises FormatError with the difference."""
        if theirs.is_same(self.graph):
            return np.arange(len(theirs))
        for graph, mapping in self._known:
            if graph.is_same(theirs):
                return mapping
        found = Matching(self.graph, theirs).best()
        if found is None:
            raise FormatError(self._why(theirs))
        self._known.append((theirs, found))
        return found

    def _why(self, theirs: Graph) -> str:
        """Describe how a graph differs from the ligand's."""
        if lacks_hydrogens(self.graph, theirs):
            return (
                f"hydrogens are missing: it has {len(theirs):,} of the ligand's {len(self.graph):,} atoms; add them "
                "to the pose as in the ligand, for example with RDKit's Chem.AddHs(molecule, addCoords=True)"
            )
        counts = f"its poses have {len(theirs):,} atoms, the ligand {len(self.graph):,}"
        why = difference(self.graph, theirs, self._names)
        return f"{counts}: {why}" if len(theirs) != len(self.graph) else f"its atoms are not the ligand's: {why}"

    def _check(self, molecule: Molecule, mapping: Indices) -> Indices:
        """Return the mapping that preserves the stereo configuration.

        Raises FormatError if there is none, or if bonds would be too long.
        """
        ours, theirs = self.graph, molecule.graph
        torn = stretched_bond(ours, molecule.positions[mapping], _TORN)
        if torn is not None:
            i, j, length = torn
            raise FormatError(f"the bond of {self._names[i]} and {self._names[j]} would be {length:.1f} A long")
        hands = Hands.of(theirs, molecule.positions)
        if wrong := inverted(self._hands, hands, mapping):
            better = Matching(ours, theirs, (self._hands, hands)).best()
            if better is None:
                names = ", ".join(self._names[i] for i in wrong[:_SHOWN])
                more = f" and {len(wrong) - _SHOWN:,} more" if len(wrong) > _SHOWN else ""
                what = "its mirror image" if len(wrong) == len(ours.centres) else "another stereoisomer of it"
                raise FormatError(f"it is not the ligand but {what}: {names}{more} inverted")
            mapping = better
        places = np.argsort(mapping)
        double = [(int(places[i]), int(places[j])) for i, j in molecule.double]
        colours = Matching(ours, ours).colours() if double else None
        if colours is not None:
            both = self.ligand.positions, molecule.positions
            if turned := turned_bonds(ours, both, mapping, double, colours[0]):
                i, j = turned[0]
                raise FormatError(
                    f"it is not the ligand but another stereoisomer of it: cis and trans are exchanged at the double "
                    f"bond of {self._names[i]} and {self._names[j]}"
                )
        return with_hands(ours, theirs, mapping, (self.ligand.positions, molecule.positions))


_DRAWN = "is a two-dimensional drawing; give three-dimensional positions, for example from a docking program"


def _is_drawn(molecule: Molecule) -> bool:
    """Return whether a molecule is a 2D drawing: flat, and either marked as 2D or with an atom of four neighbours."""
    is_flat = float(np.ptp(molecule.positions[:, 2])) < 1e-3
    return is_flat and (molecule.is_drawing or any(len(near) > 3 for near in molecule.graph.neighbours))


def _by_names(ours: Labels, theirs: Labels) -> Indices | None:
    """Match atoms by residue and name: the atom of `theirs` for each of `ours`, (n,); None if this fails."""
    try:
        return correspondence(ours, theirs, "the pose").order
    except InputError:
        return None


def read_complexes(path: Path, atoms: Atoms) -> Poses:
    """Read complexes (m, n, 3) A from the models of a .pdb or .cif file; atoms are matched by name.

    atoms : all atoms of the complex

    Raises FormatError if the file cannot be read, or has other atoms.
    """
    errors = dict[int, str]()
    numbers, positions = read_conformations(path, errors)
    first = next((k for k in range(len(numbers)) if k not in errors), None)
    if first is None:
        raise FormatError(errors[0])
    labels = read_structure(path, numbers[first]).labels
    try:
        found = correspondence(atoms.labels, labels, str(path), n_atoms=(len(atoms), len(labels)))
    except InputError as error:
        raise FormatError(str(error)) from None
    return Poses(positions[:, found.order], errors, found.notes)


def evaluate_poses(binding: Binding, poses: Floats | Poses, progress: Progress | None = None) -> BindingEnergies:
    """Compute the energies of poses (m, n_ligand, 3) A; the fixed receptor is computed once.

    Failed poses have NaN, and an error message in `errors`; so do poses that overlap with another small molecule of the
    receptor. Raises InputError for another shape, and for a Binding with a decomposition, which is a mean over frames.
    """
    parts = binding.parts
    if binding.idecomp is not None:
        raise InputError("a decomposition is a mean over frames, not over poses; leave it out")
    given = poses if isinstance(poses, Poses) else Poses(poses)
    positions = given.positions
    if positions.ndim != 3 or positions.shape[1:] != (len(parts.ligand), 3) or not len(positions):
        raise InputError(f"poses have shape {positions.shape}; expected (m, {len(parts.ligand)}, 3), m at least 1")
    errors = dict(given.errors)
    for k in np.flatnonzero(~np.isfinite(positions).all(axis=(1, 2))).tolist():
        errors.setdefault(k, "a position is not a number")
    errors = _occupied(binding, positions, errors) | errors
    good = [k for k in range(len(positions)) if k not in errors]
    fixed = binding.plans["receptor"].evaluate()
    size, found = max(1, PIECE_ATOMS // len(binding.atoms)), list[BindingEnergies]()
    for first in range(0, len(good), size):
        found.append(_piece(binding, fixed, positions[good[first : first + size]]))
        if progress is not None:
            progress(min(1.0, (first + size) / len(good)))
    energies = _spread(binding.names, joined_energies(found) if found else None, good, errors, len(positions))
    return replace(energies, rmsd=pose_rmsd(binding.atoms[parts.ligand], positions), titles=given.titles)


def _occupied(binding: Binding, positions: Floats, failed: Mapping[int, str]) -> dict[int, str]:
    """Return error messages of poses (m, n_ligand, 3) A that overlap with another small molecule, by index."""
    atoms, ligand, found = binding.atoms, binding.parts.ligand, dict[int, str]()
    if atoms.labels is None:
        return found
    small, ours = SmallMolecules(atoms, ligand), atoms.labels.elements[ligand] != "H"
    for k in set(range(len(positions))) - failed.keys():
        try:
            small.require_apart(atoms.positions, positions[k, ours])
        except InputError as error:
            found[k] = str(error)
    return found


def _piece(binding: Binding, fixed: EnergyResult, poses: Floats) -> BindingEnergies:
    """Compute the energies of finite poses. fixed : result for the receptor"""
    plans, m = binding.plans, len(poses)
    positions = np.repeat(binding.atoms.positions[np.newaxis], m, axis=0)
    positions[:, binding.parts.ligand] = poses
    ligand = plans["ligand"].evaluate_batch(poses, errors="record")
    repeated = Terms(fixed.terms.names, np.repeat(fixed.terms.values[np.newaxis], m, axis=0))
    batches = {
        "complex": plans["complex"].evaluate_batch(positions, errors="record"),
        "receptor": replace(
            ligand,
            atoms=fixed.atoms,
            terms=repeated,
            per_atom=None,
            born_radii=np.repeat(fixed.born_radii[np.newaxis], m, axis=0),
            errors={},
        ),
        "ligand": ligand,
    }
    return binding.systems.joined(binding.systems.precise(batches, positions, "record"))


def _spread(
    names: tuple[str, ...], energies: BindingEnergies | None, good: Sequence[int], errors: Mapping[int, str], m: int
) -> BindingEnergies:  # fmt: skip
    """Expand the energies of good poses to all m poses; the others have NaN and an error message."""
    if energies is not None and len(good) == m:
        return energies
    failed = dict(errors)
    systems = {}
    for name in ("complex", "receptor", "ligand", "delta"):
        values = np.full((m, len(names)), np.nan)
        if energies is not None:
            values[good] = getattr(energies, name).values
        systems[name] = Terms(names, values)
    if energies is not None:
        failed |= {good[k]: why for k, why in energies.errors.items()}
    return BindingEnergies.of(systems, errors=dict(sorted(failed.items())))


def pose_rmsd(ligand: Atoms, poses: Floats) -> Floats | None:
    """Compute the rmsd of the heavy atoms of poses (m, n, 3) A from the ligand, (m,) A; None without elements.

    Equivalent atoms are assigned to minimize the rmsd, except in ligands of more than 1,000 atoms, such as proteins. It
    is NaN if the ligand has too many symmetric assignments to search.
    """
    if ligand.labels is None:
        return None
    if len(ligand) > MOST_MATCHED:
        heavy = ligand.labels.elements != "H"
        chosen = heavy if heavy.any() else ~heavy
        squares = ((poses[:, chosen] - ligand.positions[chosen]) ** 2).sum(axis=2)
        return np.asarray(np.sqrt(squares.mean(axis=1)), np.float64)
    try:
        return SymmetricRmsd(PoseReader(ligand).graph)(poses, ligand.positions)
    except InputError:
        return np.full(len(poses), np.nan)
