"""Build the metrics, constraints, box and ligand selection of a control file for a molecule."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...atoms import Atoms
from ...common.errors import FormatError, InputError
from ...energy.terms import DistanceRestraint, PositionalRestraint, Term, TorsionRestraint
from ...forcefield.control import beside
from ...gb_models.solvent_model import SolventModel
from ..box import Box, Prism, Shell, Sphere
from ..metrics import (
    Angle,
    BindingEnergy,
    Center,
    ComDistance,
    Dihedral,
    DistanceToPoint,
    InternalEnergy,
    Metric,
    Random,
    Rmsd,
    Sasa,
)
from .selections import ALL, atom_of, selected
from .simulation import TRACKERS, BoxBlock, ConstraintBlock, MetricBlock, Simulation

if TYPE_CHECKING:
    from ...opencl.device import Device

Bools = NDArray[np.bool_]


class MetricMaker:
    """Builds the metrics of a control file for a molecule.

    model, precision, device : for energies, as in `Energy`; notes : messages about the atoms that metrics use
    """

    def __init__(
        self, file: Path, atoms: Atoms, model: SolventModel, precision: str = "float32",
        device: Device | str | None = None,
    ) -> None:  # fmt: skip
        self._file, self._atoms, self._n_random = file, atoms, 0
        self.notes: list[str] = []
        self._energy: dict[str, Any] = {"model": model, "precision": precision, "device": device}

    def make(self, block: MetricBlock) -> Metric | None:
        """Build a metric; None for a tracker. Raises InputError or FormatError if this fails."""
        if block.kind in TRACKERS:
            return None
        makers: dict[str, Callable[[MetricBlock], Metric]] = {
            "bindingEnergy": self._binding, "rmsd": self._rmsd, "sasa": self._sasa, "com_distance": self._distance,
            "distanceToPoint": self._to_point, "atomsAngle": self._angle, "atomsDihedral": self._dihedral,
            "random": self._random, "internalEnergy": self._internal,
        }  # fmt: skip
        return makers[block.kind](block)

    def _mask(self, block: MetricBlock, name: str, default: object = None) -> Bools:
        given = block.settings.get(name, default)
        return selected(self._atoms, given, f"{self._file}: {block.place}.{name}")

    def _flag(self, block: MetricBlock, name: str, default: bool) -> bool:
        found = block.settings.get(name, default)
        if not isinstance(found, bool):
            raise FormatError(f"{self._file}: {block.place}.{name} must be true or false")
        return found

    def _one(self, block: MetricBlock, name: str) -> int:
        chosen = np.flatnonzero(self._mask(block, name))
        if len(chosen) != 1:
            raise InputError(f"{self._file}: {block.place}.{name} selects {len(chosen)} atoms; expected one")
        return int(chosen[0])

    def _binding(self, block: MetricBlock) -> Metric:
        return BindingEnergy(self._atoms, self._mask(block, "boundPartSelection"), **self._energy)

    def _internal(self, block: MetricBlock) -> Metric:
        return InternalEnergy(self._atoms, self._mask(block, "atomSetSelection"), **self._energy)

    def _rmsd(self, block: MetricBlock) -> Metric:
        path = native_of(self._file, block)
        chosen = self._mask(block, "selection", ALL)
        superposed = None
        if self._flag(block, "doSuperposition", True):
            given = "superpositionSelection" in block.settings
            superposed = self._mask(block, "superpositionSelection") if given else chosen
        hydrogens = self._flag(block, "includeHydrogens", False)
        there = beside(self._file, path)
        if not os.path.exists(there):
            raise FormatError(f"{self._file}: {block.place}.Native.path names {there}, which does not exist")
        found = Rmsd(self._atoms, there, chosen, superposed, hydrogens)
        if found.n_compared < found.n_chosen:
            self.notes.append(
                f"{self._file}: {block.place} uses {found.n_compared:,} of the {found.n_chosen:,} selected atoms, "
                f"because {path} contains no others with the same chain, residue and name"
            )
        return found

    def _sasa(self, block: MetricBlock) -> Metric:
        return Sasa(self._atoms, self._mask(block, "selection"))

    def _distance(self, block: MetricBlock) -> Metric:
        first, second = (self._mask(block, f"selection_group_{k}") for k in (1, 2))
        return ComDistance(self._atoms, first, second)

    def _to_point(self, block: MetricBlock) -> Metric:
        point = block.settings.get("point")
        if not isinstance(point, list) or len(point) != 3 or not all(isinstance(x, int | float) for x in point):
            raise FormatError(f"{self._file}: {block.place}.point is not a list of three numbers")
        return DistanceToPoint(self._atoms, self._mask(block, "atoms"), (point[0], point[1], point[2]))

    def _angle(self, block: MetricBlock) -> Metric:
        a, b, c = (self._one(block, f"selection_group_{k}") for k in (1, 2, 3))
        return Angle((a, b, c))

    def _dihedral(self, block: MetricBlock) -> Metric:
        """Build the metric of a torsion angle, with its four atoms in the order of the file."""
        words = f"{self._file}: {block.place}.selection_group_1"
        given = block.settings.get("selection_group_1")
        identities = given.get("atoms", {}).get("ids", []) if isinstance(given, Mapping) else []
        if len(identities) != 4:
            raise FormatError(f"{words} names {len(identities)} atoms; expected four")
        a, b, c, d = (atom_of(self._atoms, identity, words) for identity in identities)
        return Dihedral((a, b, c, d))

    def _random(self, block: MetricBlock) -> Metric:
        self._n_random += 1
        return Random(self._n_random - 1)


def constraint_terms(file: Path, blocks: Sequence[ConstraintBlock], atoms: Atoms) -> tuple[Term, ...]:
    """Build the restraints of a control file, with energy k d^2.

    Restraints to initial positions use the positions of `atoms`.
    """
    held: dict[float, list[tuple[int, tuple[float, float, float] | None]]] = {}
    terms: list[Term] = []
    for number, block in enumerate(blocks):
        own = [atom_of(atoms, identity, f"{file}: constraints") for identity in block.atoms]
        name = f"constraint_{number + 1}"
        if block.kind == "constrainAtomToPosition":
            held.setdefault(block.constant, []).append((own[0], block.point))
        elif block.kind == "constrainAtomsDistance":
            terms.append(DistanceRestraint(np.array([own]), block.target, block.constant, name=name))
        else:
            terms.append(TorsionRestraint(np.array([own]), np.radians(block.target), block.constant, name=name))
    for constant, places in held.items():
        reference = np.array(atoms.positions)
        for i, point in places:
            if point is not None:
                reference[i] = point
        chosen = np.array([i for i, _ in places])
        terms.append(PositionalRestraint(constant, reference, chosen, name=f"constraints_{constant:g}"))
    return tuple(terms)


def ligand_of(simulation: Simulation, atoms: Atoms) -> Bools:
    """Return a mask (n,) of the perturbed atoms. Raises InputError if there are none."""
    mask = selected(atoms, simulation.ligand or "empty", f"{simulation.path}: selectionToPerturb")
    if not mask.any():
        raise InputError(f"{simulation.path}: selectionToPerturb has no atom of the structure")
    return mask


def box_of(file: Path, block: BoxBlock | None, atoms: Atoms) -> Box | None:
    """Build the box of a control file, None if it has no box.

    A box centred on a selection uses its centre of mass at the positions of `atoms`.
    """
    if block is None:
        return None
    center = block.center
    if center is None:
        mask = selected(atoms, block.selection or ALL, f"{file}: Box.selectionOfAtomsForCOM")
        center = tuple(Center(atoms, mask)(atoms.positions[np.newaxis])[0])
    if block.edges is not None:
        return Prism(center, block.edges)
    return Shell(center, *block.radii) if len(block.radii) > 1 else Sphere(center, *block.radii)


def native_of(file: Path, block: MetricBlock) -> Path:
    """Return the path of the native structure of an rmsd metric. Raises FormatError if the block has none.

    file : path of the control file, for messages
    """
    native = block.settings.get("Native")
    path = native.get("path") if isinstance(native, Mapping) else None
    if not isinstance(path, str):
        raise FormatError(f"{file}: {block.place}.Native has no path")
    return Path(path)
