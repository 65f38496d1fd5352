"""A calculator for ASE, the Atomic Simulation Environment: `from pele_ocl.ase import Calculator`.

    molecule = pele_ocl.read("protein.pdb")
    atoms = pele_ocl.ase.to_ase(molecule)
    atoms.calc = pele_ocl.ase.Calculator(molecule, precision="float64")
    print(atoms.get_potential_energy(), atoms.get_forces())  # eV, eV/A

Needs ASE: pip install 'pele-ocl[ase]'.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import gemmi
import numpy as np
from numpy.typing import NDArray

from ..atoms import Atoms, Ints, Labels, correspondence, require_atoms
from ..common.errors import InputError
from ..common.extras import missing
from ..energy import Energy
from ..energy.terms import Term
from ..gb_models.solvent_model import SolventModel

try:
    import ase
    from ase.calculators.calculator import Calculator as AseCalculator
    from ase.calculators.calculator import all_changes
    from ase.units import kcal, mol
except ModuleNotFoundError as error:
    if (error.name or "").split(".")[0] != "ase":
        raise
    raise missing("ase", "the calculator") from None

if TYPE_CHECKING:
    from ..opencl.device import Device

__all__ = ["Calculator", "to_ase"]

EV = kcal / mol  # eV per kcal/mol
_NAMES = ("atomtypes", "residuenames", "residuenumbers")  # arrays set by the file readers of ASE
_MORE_NAMES = ("chainids", "insertioncodes")  # arrays set by `to_ase`


class Calculator(AseCalculator):  # type: ignore[misc]
    """ASE calculator of energy (eV), forces (eV/A) and energies of atoms (eV) for one molecule.

    molecule : Atoms with parameters. ASE atoms must be in the same order, unless they have atom and residue names, such
        as those from `to_ase` and ASE's readers of PDB and GROMACS files. These are matched by name
    Other options are as in `Energy`. Use float64 for optimizers that converge to forces below 1e-3 eV/A.

    The plan is created at the first calculation and reused. Raises InputError for a different number of atoms, other
    names or elements, and periodic systems, and the errors of `Energy`.
    """

    implemented_properties: ClassVar[list[str]] = ["energy", "free_energy", "forces", "energies"]

    def __init__(
        self,
        molecule: Atoms,
        *,
        fixed_radii: bool = False,
        one_four: Literal["scale", "exclude"] = "scale",
        cutoff: float | None = None,
        terms: Sequence[Term] = (),
        only_terms: Sequence[str] | None = None,
        precision: str = "float32",
        variant: str = "auto",
        device: Device | int | str | None = None,
        model: SolventModel | None = None,
    ) -> None:
        require_atoms(molecule)
        super().__init__()
        self.molecule = molecule
        self._numbers = atomic_numbers(molecule)
        self._named: tuple[tuple[NDArray[Any], ...], Ints] | None = None  # names of the last ASE atoms, and their order
        self._plan_of = partial(
            Energy, molecule, fixed_radii=fixed_radii, one_four=one_four, cutoff=cutoff, terms=terms,
            only_terms=only_terms, precision=precision, variant=variant, device=device, model=model,
            born="pairs",  # a continuous energy with the exact gradient
        )  # fmt: skip
        self._plans: dict[bool, Energy] = {}

    def calculate(
        self,
        atoms: ase.Atoms | None = None,
        properties: Sequence[str] = ("energy",),
        system_changes: Sequence[str] = all_changes,
    ) -> None:
        """Compute `results`; called by ASE. Energies of atoms are computed only if requested."""
        super().calculate(atoms, properties, system_changes)
        order = self._order(self.atoms)
        result = self._plan("energies" in properties).evaluate(self.atoms.positions[order])
        assert result.gradient is not None
        forces = np.empty_like(result.gradient)
        forces[order] = -EV * result.gradient
        self.results = {"energy": EV * result.total, "free_energy": EV * result.total, "forces": forces}
        if result.per_atom is not None:
            energies = np.empty_like(result.per_atom.total)
            energies[order] = EV * result.per_atom.total
            self.results["energies"] = energies

    def ordered(self, atoms: ase.Atoms) -> Atoms:
        """Return the molecule with the positions of ASE atoms. Raises InputError if the atoms do not match."""
        return self.molecule.moved(atoms.positions[self._order(atoms)])

    def _plan(self, per_atom: bool) -> Energy:
        """Return the plan, created on first use. There is a second plan for energies of atoms."""
        if per_atom not in self._plans:
            self._plans[per_atom] = self._plan_of(per_atom=per_atom)
        return self._plans[per_atom]

    def _order(self, atoms: ase.Atoms) -> Ints:
        """Return the index of the ASE atom for each atom, (n,). Raises InputError if the atoms do not match."""
        if len(atoms) != len(self.molecule):
            raise InputError(f"ASE gives {len(atoms):,} atoms; the calculator is for {len(self.molecule):,}")
        if atoms.pbc.any():
            raise InputError("periodic boundaries are not supported in implicit solvent; set atoms.pbc = False")
        if self.molecule.labels is not None and is_named(atoms):
            names = tuple(atoms.arrays[name].copy() for name in (*_NAMES, "numbers"))
            if self._named is None or not all(map(np.array_equal, names, self._named[0])):
                found = correspondence(self.molecule.labels, labels_of_ase(atoms), "the atoms of ASE", "the molecule")
                self._named = names, found.order.astype(np.int32)
            return self._named[1]
        other = (self._numbers > 0) & (atoms.numbers > 0) & (atoms.numbers != self._numbers)
        if other.any():
            i = int(np.argmax(other))
            there = gemmi.Element(int(atoms.numbers[i])).name
            raise InputError(
                f"ASE gives {there} as {self.molecule.describe(i)}; create a calculator for these atoms, in their order"
            )
        return np.arange(len(atoms), dtype=np.int32)


def to_ase(molecule: Atoms) -> ase.Atoms:
    """Convert to ASE atoms with elements, names and positions, in the same order; X for an unknown element."""
    require_atoms(molecule)
    atoms = ase.Atoms(numbers=atomic_numbers(molecule), positions=molecule.positions)
    if molecule.labels is not None:
        labels = molecule.labels
        columns = (labels.names, labels.residue_names, labels.residue_numbers, labels.chains, labels.insertion_codes)
        for name, values in zip((*_NAMES, *_MORE_NAMES), columns, strict=True):
            atoms.set_array(name, values.copy())
    return atoms


def is_named(atoms: ase.Atoms) -> bool:
    """Return whether ASE atoms have atom and residue names."""
    return all(name in atoms.arrays for name in _NAMES)


def labels_of_ase(atoms: ase.Atoms) -> Labels:
    """Return labels of ASE atoms. File readers of ASE do not set chains."""
    names, residues, numbers = (atoms.arrays[name] for name in _NAMES)
    blank = np.full(len(atoms), "", np.str_)
    chains, codes = (atoms.arrays.get(name, blank) for name in _MORE_NAMES)
    elements = np.array([gemmi.Element(int(number)).name for number in atoms.numbers], np.str_)
    changes = np.zeros(len(atoms), np.int32)
    for column in (residues, numbers, chains, codes):
        changes[1:] |= column[1:] != column[:-1]
    return Labels(
        names.astype(np.str_), elements, residues.astype(np.str_), numbers.astype(np.int32), codes.astype(np.str_),
        chains.astype(np.str_), np.cumsum(changes, dtype=np.int32),
    )  # fmt: skip


def atomic_numbers(molecule: Atoms) -> Ints:
    """Return atomic numbers, (n,), from the elements of labels; 0 if unknown."""
    if molecule.labels is None:
        return np.zeros(len(molecule), np.int32)
    elements = molecule.labels.elements.tolist()
    known = {element: gemmi.Element(element).atomic_number for element in set(elements)}
    return np.array([known[element] for element in elements], np.int32)
