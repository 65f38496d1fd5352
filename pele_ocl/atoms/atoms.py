"""Atoms: positions and force-field parameters as read-only NumPy arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..common import arguments
from ..common.errors import InputError, ParameterError, Suggests
from ..common.modules import present, public
from ..common.notes import Note
from ..common.readonly import ReadOnlyArrays, read_only
from .bonded import Bonded
from .close_pairs import close_pair
from .combining import RULES, Combining
from .default_radii import DefaultRadii
from .labels import Floats, Ints, Labels, Strings, labels_of
from .radii import PDB2PQR_SETS, RADII_SETS, elements_of, no_scales_note, radii_set, tidy_set

if TYPE_CHECKING:
    from MDAnalysis import AtomGroup, Universe
    from openmm import System
    from openmm.app import Topology
    from parmed import Structure as ParmedStructure

    from .selection import SelectableAtoms
    from .sites import VirtualSites
    from .undone import UndonePairs

_PARAMETERS = ("lj_sigma", "lj_epsilon", "gb_radii", "gb_scales")


@dataclass(frozen=True, eq=False)
class Atoms(ReadOnlyArrays, Suggests):
    """n atoms with their positions and force-field parameters.

    positions : (n, 3) A
    charges : (n,) e. Changing the charges does not change the charge products in `bonded.one_four`; to scale all
        charges by f, also multiply these products by f^2
    lj_sigma, lj_epsilon : (n,) A and kcal/mol, Lennard-Jones parameters: E = 4 epsilon ((sigma/r)^12 - (sigma/r)^6)
    gb_radii : (n,) A, intrinsic Born radii, without the offset subtracted
    gb_scales : (n,) HCT scale factors, dimensionless
    labels : Labels with atom and residue names, optional
    bonds : (m, 2) pairs of atom indices, from 0, optional
    combining : combining rule for sigma, "arithmetic" (Amber) or "geometric" (OPLS)
    one_four : (Coulomb, Lennard-Jones) scale factors of the 1-4 pairs derived from `bonds`
    bonded : Bonded terms of the force field, with exclusions and 1-4 pairs that replace those derived from `bonds`.
        None if they are unknown
    types : (n,) force-field atom types, optional
    type_family : "amber" if the types are Amber's or GAFF's, otherwise ""
    gb_radii_set : name of the set of gb_radii, such as "mbondi2"; "" if unknown
    virtual_sites : massless particles whose positions are defined by other atoms, None if there are none. Energies use
        the given positions; functions that move atoms recompute the positions of the sites
    rigid_pairs : (k, 2) pairs of atoms with a distance constraint instead of a bond energy, as in rigid water
    undone_pairs : pairs of atoms with an unsupported energy term, None if there are none. Their Lennard-Jones energies
        cannot be computed
    forcefield : name of the force field; "file" for parameters of the input file; "" if unknown
    notes : messages about how the file was read and where the parameters come from
    cell_angles : angles of the unit cell in the topology, degrees, needed because AMBER's text trajectories do not
        contain them. NaN for missing angles, None without a cell. Energies do not depend on them
    default_radii : DefaultRadii if neither the file nor the user chose gb_radii, so that SolventModel.choose_radii may
        replace them by the set of its GB model. None for radii that are never replaced
    sgb : (n, 4) parameters of PELE's SGB solvents: radius of the dielectric surface (A), radius of the accessible
        surface (A), gamma (kcal/mol/A^2) and alpha (kcal/mol); NaN for atoms without them, None if no atom has them

    Parameters that a calculation does not use may be omitted; functions raise an error if a required one is missing.
    Arrays are copied, converted to float64 and made read-only. Raises InputError for unequal lengths, values that are
    not finite, negative radii, and bonds to atoms that do not exist.

    >>> ions = pele_ocl.Atoms(positions=[[0, 0, 0], [3, 0, 0]], charges=[1.0, -1.0], gb_radii=[1.5, 1.7])
    >>> len(ions), ions.positions.shape, float(ions.charges.sum())
    (2, (2, 3), 0.0)
    """

    positions: Floats
    charges: Floats
    lj_sigma: Floats | None = None
    lj_epsilon: Floats | None = None
    gb_radii: Floats | None = None
    gb_scales: Floats | None = None
    labels: Labels | None = None
    bonds: Ints = field(default_factory=lambda: np.empty((0, 2), np.int32))
    combining: Combining = "arithmetic"
    one_four: tuple[float, float] = (1 / 1.2, 1 / 2)
    notes: tuple[str, ...] = ()
    bonded: Bonded | None = None
    types: Strings | None = None
    gb_radii_set: str = ""
    type_family: Literal["", "amber"] = ""
    cell_angles: tuple[float, float, float] | None = None
    sgb: Floats | None = None
    forcefield: str = ""
    default_radii: DefaultRadii | None = None
    virtual_sites: VirtualSites | None = None
    undone_pairs: UndonePairs | None = None
    rigid_pairs: Ints = field(default_factory=lambda: np.empty((0, 2), np.int32))

    def __post_init__(self) -> None:
        object.__setattr__(self, "positions", read_only(arguments.positions_of(self.positions), np.float64))
        if self.labels is not None and len(arguments.instance("labels", self.labels, Labels, "Labels")) != len(self):
            raise InputError(f"{len(self.labels)} labels for {len(self)} atoms")
        self._check_finite("positions", self.positions)
        for name in ("charges", *_PARAMETERS):
            if name == "charges" or getattr(self, name) is not None:
                object.__setattr__(self, name, self._checked(name))
        object.__setattr__(self, "bonds", self._checked_bonds())
        arguments.choice("combining", self.combining, RULES)
        object.__setattr__(self, "one_four", _checked_scales(self.one_four))
        object.__setattr__(self, "notes", arguments.texts("notes", self.notes))
        if self.bonded is not None:
            arguments.instance("bonded", self.bonded, Bonded, "Bonded").require_atoms(len(self))
        if self.types is not None:
            types = arguments.array("types", self.types, "U", "texts")
            if types.shape != (len(self),):
                raise InputError(f"types have shape {types.shape}; expected ({len(self)},), one per atom")
            object.__setattr__(self, "types", read_only(types, np.str_))
        if self.sgb is not None:
            object.__setattr__(self, "sgb", self._checked_sgb())
        if self.virtual_sites is not None:
            from .sites import VirtualSites

            arguments.instance("virtual_sites", self.virtual_sites, VirtualSites, "VirtualSites")
        object.__setattr__(self, "rigid_pairs", self._checked_pairs("rigid_pairs"))
        arguments.text("gb_radii_set", self.gb_radii_set)
        arguments.text("forcefield", self.forcefield)
        arguments.choice("type_family", self.type_family, ("", "amber"))
        if self.default_radii is not None:
            arguments.instance("default_radii", self.default_radii, DefaultRadii, "DefaultRadii")

    @classmethod
    def from_openmm(cls, topology: Topology, system: System, positions: ArrayLike, radii: str | None = None) -> Atoms:
        """Former name of `pele_ocl.from_openmm`; removed in the next release."""
        atoms: Atoms = present("Atoms.from_openmm", "from_openmm")(topology, system, positions, radii)
        return atoms

    @classmethod
    def from_parmed(cls, structure: ParmedStructure) -> Atoms:
        """Former name of `pele_ocl.from_parmed`; removed in the next release."""
        atoms: Atoms = present("Atoms.from_parmed", "from_parmed")(structure)
        return atoms

    @classmethod
    def from_mdanalysis(cls, universe: Universe | AtomGroup, forcefield: object = None) -> Atoms:
        """Former name of `pele_ocl.from_mdanalysis`; removed in the next release."""
        atoms: Atoms = present("Atoms.from_mdanalysis", "from_mdanalysis")(universe, forcefield)
        return atoms

    def __len__(self) -> int:
        return len(self.positions)

    def __repr__(self) -> str:
        residues = "" if self.labels is None else f", {len(self.labels.residue_starts):,} residues"
        missing = [name for name in _PARAMETERS if getattr(self, name) is None]
        without = f", without {' and '.join(missing)}" if missing else ""
        charge = f"net charge {round(float(self.charges.sum()), 3) + 0.0:+.3f} e"
        return f"Atoms({len(self):,} atoms{residues}, {len(self.bonds):,} bonds, {charge}{without})"

    def __getitem__(self, which: slice | ArrayLike) -> Atoms:
        """Return a subset of the atoms: `atoms[:50]`, `atoms[atoms.charges > 0]`, `atoms[[0, 5, 2]]`.

        which : a slice, a boolean mask (n,), or unique indices (k,), which define the order of the result

        Bonds to other atoms are removed, residues are renumbered, and a note records the number of atoms. Raises
        InputError for other shapes, indices out of range and duplicate indices.
        """
        from .joining import chosen_indices  # not needed by most calls

        indices = chosen_indices(len(self), which)
        places = np.full(len(self), -1, np.int32)
        places[indices] = np.arange(len(indices))
        bonds, rigid = places[self.bonds], places[self.rigid_pairs]
        taken: dict[str, Any] = {name: getattr(self, name) for name in ("positions", "charges", *_PARAMETERS)}
        taken = {name: None if values is None else values[indices] for name, values in taken.items()}
        return replace(
            self,
            **taken,
            labels=None if self.labels is None else labels_of(self.labels, indices),
            bonds=bonds[(bonds >= 0).all(axis=1)],
            bonded=None if self.bonded is None else self.bonded.of_atoms(places),
            types=None if self.types is None else self.types[indices],
            sgb=None if self.sgb is None else self.sgb[indices],
            default_radii=None if self.default_radii is None else self.default_radii.of_atoms(indices),
            virtual_sites=None if self.virtual_sites is None else self.virtual_sites.of_atoms(places),
            undone_pairs=None if self.undone_pairs is None else self.undone_pairs.of_atoms(indices.astype(np.int32)),
            rigid_pairs=rigid[(rigid >= 0).all(axis=1)],
            notes=(*self.notes, Note(f"{len(indices):,} of {len(self):,} atoms were selected", code="selected")),
        )

    def __add__(self, other: Atoms) -> Atoms:
        """Append another molecule with its parameters: `complex = receptor + ligand`.

        Both molecules must have the same combining rule and 1-4 scale factors. Default GB radii are replaced so that
        both have the same set. Chain identifiers of the second molecule that are already in use are changed. No bonds
        are added between the two. Raises InputError for incompatible parameters.
        """
        if not isinstance(other, Atoms):
            return NotImplemented
        from .joining import joined

        first, second, notes = _of_one_set(self, other)
        together = Atoms(**joined(first, second))
        return noted(together, (*together.notes, *notes)) if notes else together

    def save(self, path: str | PathLike[str]) -> None:
        """Write the structure to a .pdb, .cif, .pqr or .rst7 file, or in another format of `write_conformations`.

        Raises FormatError for other suffixes, and if the file cannot be written.

        >>> atoms = pele_ocl.read("data/structures/trialanine.pdb")
        >>> atoms.select("not element H").save("heavy.pdb")
        >>> len(pele_ocl.formats.read_structure("heavy.pdb").positions)
        16
        """
        is_pqr = str(path).lower().endswith(".pqr")
        (public("formats").write_pqr if is_pqr else public("write_conformations"))(path, self)

    def selected(self, text: Any) -> NDArray[np.bool_]:
        """Return a mask (n,) of the atoms that match a selection: `atoms.selected("within 5 of resname NAP")`.

        docs/selection.md describes the language. Raises InputError for an invalid or empty selection.

        >>> atoms = pele_ocl.read("data/structures/trialanine.pdb")
        >>> int(atoms.selected("name CA").sum())
        3
        """
        return selection(self, text)

    def select(self, text: Any) -> Atoms:
        """Return the atoms that match a selection, with their bonds: `atoms.select("protein and not resname NAP")`.

        docs/selection.md describes the language. Raises InputError for an invalid or empty selection.

        >>> atoms = pele_ocl.read("data/structures/trialanine.pdb")
        >>> atoms.select("resid 1")
        Atoms(12 atoms, 1 residues, 11 bonds, net charge +1.000 e)
        """
        return self[self.selected(text)]

    def describe(self, i: int) -> str:
        """Describe atom i for messages, by its index and label."""
        return f"atom {i} ({self.labels.atom(i)})" if self.labels is not None else f"atom {i}"

    def require(self, names: Sequence[str], purpose: str) -> None:
        """Raise InputError if there are no atoms or one of the named parameter arrays is missing."""
        for name in arguments.texts("names", names):
            arguments.choice("the parameter", name, ("charges", *_PARAMETERS, "sgb"))
        if self.undone_pairs is not None and "lj_epsilon" in names and (pair := self.undone_pairs.first()):
            i, j = (self.describe(k) for k in pair)
            raise InputError(f"{i} and {j} {self.undone_pairs.what}; leave out one of them")
        if "gb_radii" in names and self.gb_radii_set in PDB2PQR_SETS:
            raise InputError(f"{purpose} needs GB radii; {no_scales_note(self.gb_radii_set)}")
        missing = [name for name in names if getattr(self, name) is None]
        if "gb_radii" in missing and self.default_radii is not None and self.default_radii.lacking:
            raise ParameterError(self.default_radii.lacking)
        if "sgb" in missing:
            raise InputError(
                f"{purpose} needs the SGB parameters of templates (columns 5 to 8 of NBON), which these atoms do "
                "not have; use PELE's OPLS2005"
            )
        if missing:
            way = next((f"; {of}" for of in self.notes if isinstance(of, Note) and of.code == "no_lennard_jones"), "")
            raise InputError(f"{purpose} needs {' and '.join(missing)}, which these atoms do not have{way}")
        if len(self) == 0:
            raise InputError(f"{purpose} needs at least one atom; it has none")

    def moved(self, positions: ArrayLike) -> Atoms:
        """Return the atoms at other positions (n, 3) A, much faster than `replace`: only the positions are validated.

        Raises InputError for another shape or positions that are not finite.

        >>> atoms = pele_ocl.read("data/structures/trialanine.pdb")
        >>> there = atoms.moved(atoms.positions + 1.0)
        >>> round(float((there.positions - atoms.positions).max()), 3)
        1.0
        """
        there = arguments.numbers("positions", positions)
        if there.shape != self.positions.shape:
            raise InputError(f"positions have shape {there.shape}; expected ({len(self)}, 3)")
        self._check_finite("positions", there)
        return placed(self, there)

    @property
    def bond_pairs(self) -> Ints:
        """Pairs of bonded atoms, (m, 2): `bonds`, or those of the bonded terms if `bonds` is empty."""
        return self.bonds if len(self.bonds) or self.bonded is None else self.bonded.bonds.atoms

    @property
    def masses(self) -> Floats:
        """Atomic masses by element, (n,) Da; 0 for virtual sites. Deuterium is treated as hydrogen.

        Raises InputError if labels are missing, or for an unknown element."""
        if self.labels is None:
            raise InputError("masses need elements, which these atoms do not have")
        import gemmi

        symbols, places = np.unique(elements_of(self.labels), return_inverse=True)
        elements = [gemmi.Element(str(symbol)) for symbol in symbols]
        weights = np.array([of.weight if of.atomic_number else 0.0 for of in elements], np.float64)[places]
        unknown = np.flatnonzero((weights == 0) & ~self.is_site)
        if len(unknown):
            raise InputError(f"{self.describe(int(unknown[0]))} has no element with a known mass")
        found: Floats = np.where(self.is_site, 0.0, weights)
        return found

    @property
    def is_site(self) -> NDArray[np.bool_]:
        """Mask of the virtual sites, (n,)."""
        return np.zeros(len(self), np.bool_) if self.virtual_sites is None else self.virtual_sites.mask(len(self))

    def with_radii(self, name: str) -> Atoms:
        """Assign the GB radii and HCT scale factors of a set, by elements, bonds and residue names.

        name : "bondi", "mbondi", "mbondi2" or "mbondi3" as defined by AMBER, "mbondi_pb2" or "mbondi_pb3" from
            gmx_MMPBSA, "openmm-obc" or "pele". "pdb2pqr-amber", "pdb2pqr-charmm" and "pdb2pqr-parse" are the radii of
            PDB2PQR's force fields for Poisson-Boltzmann, assigned by atom names and without scale factors

        A SolventModel does not replace these radii. Raises InputError for unknown names, and if labels or bonds that
        the set needs are missing; ParameterError for residues or atoms that a force field of PDB2PQR does not contain.

        >>> atoms = pele_ocl.read("data/structures/trialanine.pdb")
        >>> atoms.gb_radii_set, atoms.with_radii("mbondi3").gb_radii_set
        ('openmm-obc', 'mbondi3')
        """
        chosen = tidy_set(arguments.text("name", name))
        arguments.choice("the set of GB radii", chosen, (*RADII_SETS, *PDB2PQR_SETS))
        if self.labels is None:
            raise InputError(f"the radii {name} need names and elements, which these atoms do not have")
        if chosen in PDB2PQR_SETS:
            from .pdb2pqr_radii import radii_by_names

            given = radii_by_names(chosen, self.labels)
            former = (
                (f"the radii {name} are named {chosen} now; the former name will be removed in the next release",)
                if name != chosen
                else ()
            )
            return replace(
                self, gb_radii=given, gb_scales=None, gb_radii_set=chosen, default_radii=None,
                notes=(*self.notes, *former),
            )  # fmt: skip
        radii, scales = radii_set(chosen, self.labels, self.bond_pairs)
        return replace(self, gb_radii=radii, gb_scales=scales, gb_radii_set=chosen, default_radii=None)

    @property
    def has_default_radii(self) -> bool:
        """True if gb_radii are defaults, chosen neither by the file nor by the user."""
        own = self.default_radii
        return own is not None and own.has(self.gb_radii_set, self.gb_radii, self.gb_scales)

    def bounds(self) -> tuple[Floats, Floats]:
        """Return the minimum and maximum coordinates, (3,) A each.

        >>> atoms = pele_ocl.Atoms(positions=[[0, 0, 0], [3, 1, 0]], charges=[0.0, 0.0])
        >>> low, high = atoms.bounds()
        >>> high.tolist()
        [3.0, 1.0, 0.0]
        """
        columns = np.ascontiguousarray(self.positions.T)  # ten times faster than the minimum over rows
        return columns.min(axis=1), columns.max(axis=1)

    def require_apart(self, distance: float = 1e-4) -> None:
        """Raise InputError if two atoms are closer than `distance` (A): energies are undefined at r = 0."""
        pair = close_pair(self.positions, arguments.number("distance", distance, "a positive distance in A", above=0))
        if pair is not None:
            i, j = sorted(pair)
            raise InputError(f"{self.describe(i)} and {self.describe(j)} are at the same position; remove one of them")

    def _checked(self, name: str) -> Floats:
        values: Floats = read_only(arguments.numbers(name, getattr(self, name)), np.float64)
        if values.shape != (len(self),):
            raise InputError(f"{name} has shape {values.shape}; expected ({len(self)},), one value per atom")
        self._check_finite(name, values)
        if name != "charges" and np.any(values < 0):
            i = int(np.argmax(values < 0))
            raise InputError(f"{name} of {self.describe(i)} is {values[i]:g}; it cannot be negative")
        return values

    def _checked_sgb(self) -> Floats:
        values: Floats = read_only(arguments.numbers("sgb", self.sgb), np.float64)
        if values.shape != (len(self), 4):
            raise InputError(f"sgb has shape {values.shape}; expected ({len(self)}, 4), four values per atom")
        bad = (values[:, :2] < 0).any(axis=1) | np.isinf(values).any(axis=1)
        if bad.any():
            raise InputError(f"sgb of {self.describe(int(np.argmax(bad)))} has a negative radius or an infinite number")
        return values

    def _check_finite(self, name: str, values: Floats) -> None:
        flat = values.ravel()
        with np.errstate(all="ignore"):
            # Fast check, sufficient for values below 1e300. A BLAS product would wake up spinning threads.
            if np.isfinite(flat.sum()):
                return
        good = np.isfinite(values)
        if not good.all():
            i = int(np.argwhere(~good)[0, 0])
            raise InputError(f"{name} of {self.describe(i)} is {values[i]}; expected a finite number")

    def _checked_pairs(self, name: str) -> Ints:
        pairs = arguments.array(name, getattr(self, name), "iuf", "whole numbers")
        if pairs.size == 0:
            return read_only(np.empty((0, 2)), np.int32)
        if pairs.ndim != 2 or pairs.shape[1] != 2:
            raise InputError(f"{name} have shape {pairs.shape}; expected (m, 2)")
        if not np.isin(pairs, np.arange(len(self))).all():
            raise InputError(f"{name} name atoms that do not exist; the atoms are 0 to {len(self) - 1}")
        return read_only(pairs, np.int32)

    def _checked_bonds(self) -> Ints:
        bonds = arguments.array("bonds", self.bonds, "iuf", "whole numbers")
        if bonds.size == 0:
            return read_only(np.empty((0, 2)), np.int32)
        if (bonds != np.trunc(bonds)).any():
            raise InputError("bonds are not whole numbers; expected atom indices from 0")
        if bonds.ndim != 2 or bonds.shape[1] != 2:
            raise InputError(f"bonds have shape {bonds.shape}; expected (m, 2)")
        if bonds.min() < 0 or bonds.max() >= len(self):
            stray = bonds.min() if bonds.min() < 0 else bonds.max()
            raise InputError(f"a bond names atom {stray}; the atoms are 0 to {len(self) - 1}")
        if np.any(bonds[:, 0] == bonds[:, 1]):
            raise InputError(f"a bond joins atom {bonds[bonds[:, 0] == bonds[:, 1]][0, 0]} to itself")
        return read_only(bonds, np.int32)


def _checked_scales(one_four: object) -> tuple[float, float]:
    """Return the 1-4 scale factors. Raises InputError unless they are two numbers from 0 to 1."""
    scales = arguments.numbers("one_four", one_four)
    if scales.shape != (2,) or not ((scales >= 0) & (scales <= 1)).all():
        given = one_four if isinstance(one_four, tuple | list) and len(one_four) < 5 else arguments.described(one_four)
        raise InputError(f"one_four is {given}; expected (Coulomb, Lennard-Jones) scales of 0 to 1")
    return float(scales[0]), float(scales[1])


def placed(atoms: Atoms, positions: Floats) -> Atoms:
    """Return a copy of the atoms with new positions (n, 3) A, which must be finite and are copied."""
    moved = object.__new__(type(atoms))
    moved.__dict__.update(atoms.__dict__, positions=read_only(positions, np.float64))  # five times faster than `copy`
    return moved


def noted(atoms: Atoms, notes: tuple[str, ...]) -> Atoms:
    """Return a copy of the atoms with other notes, without repeating the validation."""
    return _with(atoms, notes=notes)


def with_default_set(atoms: Atoms, name: str) -> Atoms:
    """Return a copy of atoms with DefaultRadii that has the GB radii of another set."""
    assert atoms.default_radii is not None
    own = atoms.default_radii
    radii, scales = (read_only(values, np.float64) for values in own.of_set(name))
    notes = [sentence for sentence in atoms.notes if sentence not in own.notes]
    notes += own.notes if name == own.name else ()
    return _with(atoms, gb_radii=radii, gb_scales=scales, gb_radii_set=name, notes=tuple(notes))


def _of_one_set(first: Atoms, second: Atoms) -> tuple[Atoms, Atoms, tuple[str, ...]]:
    """Assign one set of GB radii to both molecules if one of them has default radii. Also returns notes, if any."""
    if first.gb_radii is None or second.gb_radii is None:
        return first, second, ()
    chosen = [each.gb_radii_set for each in (first, second) if each.default_radii is None]
    noted_ = (f"GB radii of both molecules are {chosen[0]}, as chosen for one of them",) if chosen else ()
    if first.gb_radii_set == second.gb_radii_set:
        return first, second, noted_ if len(chosen) == 1 else ()
    if first.default_radii is not None and second.default_radii is not None:
        return first, with_default_set(second, first.gb_radii_set), ()
    if second.default_radii is not None and first.gb_radii_set in RADII_SETS:
        return first, second.with_radii(first.gb_radii_set), noted_
    if first.default_radii is not None and second.gb_radii_set in RADII_SETS:
        return first.with_radii(second.gb_radii_set), second, noted_
    note = f"the molecules have different sets of GB radii: {first.gb_radii_set} and {second.gb_radii_set}"
    return first, second, (note,)


def given_default_radii(atoms: Atoms, name: str) -> Atoms:
    """Assign the default GB radii of a reader. If bonds are known, a SolventModel may replace them by another set."""
    chosen = atoms.with_radii(name)
    assert chosen.labels is not None
    pairs = chosen.bond_pairs
    return replace(chosen, default_radii=DefaultRadii(name, chosen.labels, pairs)) if len(pairs) else chosen


def _with(atoms: Atoms, **changed: object) -> Atoms:
    found = object.__new__(type(atoms))
    found.__dict__.update(atoms.__dict__, **changed)
    return found


def selection(atoms: Atoms | Labels, text: Any, positions: ArrayLike | None = None) -> NDArray[np.bool_]:
    """Return a mask (n,) of the atoms that match a selection.

    atoms : Atoms, or the Labels of n atoms
    text : selection such as `protein and not resname NAP`, or an AMBER mask such as `:1-50@CA`; see docs/selection.md.
        Indices, a boolean mask (n,) or an MDAnalysis AtomGroup are also accepted
    positions : (n, 3) A, for distance criteria; by default those of `atoms`

    Raises InputError for an invalid selection, with the position of the error, for an empty selection, and if it refers
    to labels, types or positions that the atoms do not have.

    >>> atoms = pele_ocl.read("data/structures/trialanine.pdb")
    >>> pele_ocl.selection(atoms, "backbone and resid 2").nonzero()[0]
    array([12, 14, 20, 21])
    """
    from .selection import Selection

    return Selection(text).mask(selectable(atoms, positions))


def selectable(atoms: Atoms | Labels, positions: ArrayLike | None = None) -> SelectableAtoms:
    """Return the SelectableAtoms for atoms or labels.

    positions : (n, 3) A; by default those of `atoms`

    Raises InputError for positions of another number of atoms.
    """
    from .selection import SelectableAtoms

    if not isinstance(atoms, Labels):
        arguments.instance("atoms", atoms, Atoms, "Atoms, or Labels")
    there = None if positions is None else arguments.positions_of(positions)
    if there is not None and len(there) != len(atoms):
        raise InputError(f"positions have shape {there.shape}; expected ({len(atoms)}, 3)")
    if isinstance(atoms, Labels):
        return SelectableAtoms(len(atoms), atoms, there)
    return SelectableAtoms(len(atoms), atoms.labels, atoms.positions if there is None else there, atoms.types)


def require_atoms(atoms: object) -> None:
    """Raise InputError for anything other than Atoms."""
    if not isinstance(atoms, Atoms):
        given = arguments.described(atoms)
        raise InputError(
            f"atoms are {given}; expected Atoms: read('protein.pdb'), or Atoms(positions=..., charges=...)"
        )
