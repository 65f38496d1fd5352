"""Poisson-Boltzmann models and their grids.

Conventions, units and constants are those of APBS 3.4.1; the equations are in docs/theory/poisson-boltzmann.md.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .atoms import Atoms, Floats, require_atoms
from .common import arguments
from .common.errors import InputError, ParameterError
from .common.readonly import read_only
from .grid import Grid, Map
from .units import molar

# Constants of APBS, two sets that differ in the sixth digit: cgs in the equation; SI for boundary values and the
# conversion of kT to kJ/mol.
CHARGE_CGS, BOLTZMANN_CGS, AVOGADRO_CGS = 4.803242384e-10, 1.380662e-16, 6.022045e23
CHARGE_SI, BOLTZMANN_SI, PERMITTIVITY_SI, AVOGADRO_SI = 1.6021773e-19, 1.3806581e-23, 8.8541878e-12, 6.0221367e23
KJ_PER_KCAL = 4.184

# Methods for the coefficients of grid edges, with the possible degrees of splines: fraction of the edge in solvent;
# position of the midpoint; midpoints averaged with their neighbours; splines of the distance.
WAYS = {"cuts": (0,), "middles": (0,), "smoothed": (0,), "splines": (3, 7)}


@dataclass(frozen=True)
class Surface:
    """Boundary between solute and solvent on a grid; the methods are implemented in pele_ocl/pb/surface.py.

    way : key of WAYS
    order : order of the energy's error in the spacing
    safety : factor of |E(h) - E(2h)|, rms over several grids, to bound the error of E(h): section 7 of the theory
    degree : degree of splines
    safety_if_coarse : safety for spacings above 0.5 A

    Raises InputError for an unknown way or degree.
    """

    way: str
    order: int
    safety: float
    degree: int = 0
    safety_if_coarse: float = 3

    def __post_init__(self) -> None:
        arguments.choice("the way of a surface", self.way, tuple(WAYS))
        if self.degree not in WAYS[self.way]:
            raise InputError(f"a surface by {self.way} of degree {self.degree} is not implemented")


SURFACES = {
    "edges": Surface("cuts", order=2, safety=3.2 / 3, safety_if_coarse=2.3 / 3),
    "mol": Surface("middles", order=1, safety=3),
    "smol": Surface("smoothed", order=1, safety=1),
    "spl2": Surface("splines", order=1, safety=3, degree=3),
    "spl4": Surface("splines", order=1, safety=3, degree=7),
}
SPREADINGS = ("spl0", "spl2", "spl4")
BOUNDARIES = ("mdh", "sdh", "zero")
EQUATIONS = ("linear", "nonlinear")
# Options of PBModel in APBS input files written by PyMOL and pdb2pqr, and thus in published pictures.
LIKE_APBS: Mapping[str, Any] = {"surface": "smol", "charges": "spl2", "boundary": "sdh"}

SMALL = 1e-9  # A, smaller radii and probes are treated as zero, as in APBS
MOST_IONS = 9
_CHOOSE = "choose a set of radii, such as pdb2pqr-amber, pdb2pqr-charmm or pdb2pqr-parse, or give your own radii"
LEAST_POINTS = 5  # along an axis
MOST_POINTS = 2**31 - 1  # per grid; kernels use 32-bit indices
MAP_SLACK = 1e-4  # in units of the spacing, for rounding of the origin in map files
LEAST_DENSE, MOST_DENSE = 0.1, 1000.0  # points per A^2
COARSEST_OF_DENSITY = 0.5  # A, on finer grids the surface "edges" has more probes, the same number per node face
BEYOND, COARSEST = 15.0, 2.0  # A, margin and spacing of a grid that provides boundary values for another one
FINEST_STEP = 0.25  # smallest ratio of spacings between focusing levels; otherwise a level is inserted


@dataclass(frozen=True)
class PBIon:
    """Species of mobile ions.

    charge : e, a finite number
    concentration : mol/L, 0 to 20
    radius : A, >= 0; the largest of all species is used for all

    Raises InputError for other values.

    >>> pele_ocl.PBIon(charge=2, concentration=0.05, radius=1.5).charge
    2
    """

    charge: float
    concentration: float
    radius: float = 2.0

    def __post_init__(self) -> None:
        arguments.number("charge", self.charge, least=-100, most=100, needed="a number of e, -100 to 100")
        molar("concentration", self.concentration)
        arguments.number("radius", self.radius, "a number in A, 0 to 1,000", least=0, most=1000)


def salt_of(ionic_strength: float) -> tuple[PBIon, ...]:
    """Return the ions of a 1:1 salt with radius 2 A for a concentration in mol/L; empty for 0."""
    return (PBIon(1, ionic_strength), PBIon(-1, ionic_strength)) if ionic_strength else ()


@dataclass(frozen=True)
class PBModel:
    """Poisson-Boltzmann model: dielectric constants, salt, surface, charges and boundary.

    solute_dielectric, solvent_dielectric : relative permittivities, 0.001 to 1e6
    ions : up to 9 species, PBIon, which must be neutral in total
    temperature : K
    equation : "linear" or "nonlinear"
    surface : "edges", by the fraction of each grid edge in solvent; "mol", the molecular surface of APBS, by midpoints
        of edges; "smol", the same smoothed; "spl2" and "spl4", APBS's splines of degrees 3 and 7
    probe : A, >= 0, radius of the solvent molecule
    density : points per A^2 of the spheres of probe centres. On grids finer than 0.5 A, "edges" uses (0.5 A /
        spacing)^2 times as many, so that the error decreases with the spacing
    window : A, half width of the splines of "spl2" and "spl4"
    charges : "spl0", linear distribution to 8 nodes; "spl2" or "spl4", to 27 or 125 nodes by splines of degree 2 or 4
    boundary : potential at the boundary of the outermost grid: "mdh", each atom as a screened sphere; "sdh", one sphere
        with the moments of the molecule; "zero"

    Raises InputError for other values and for a salt that is not neutral.

    >>> model = pele_ocl.PBModel(solute_dielectric=4, ions=[pele_ocl.PBIon(1, 0.15), pele_ocl.PBIon(-1, 0.15)])
    >>> model.surface, model.equation
    ('edges', 'linear')
    """

    solute_dielectric: float = 2.0
    solvent_dielectric: float = 78.54
    ions: Sequence[PBIon] = ()
    temperature: float = 298.15
    equation: str = "linear"
    surface: str = "edges"
    probe: float = 1.4
    density: float = 10.0
    window: float = 0.3
    charges: str = "spl0"
    boundary: str = "mdh"

    def __post_init__(self) -> None:
        vars(self).update(arguments.in_lower_case(vars(self)))
        if not isinstance(self.ions, tuple | list):
            raise InputError(f"ions is {arguments.described(self.ions)}; expected a list of PBIon")
        object.__setattr__(self, "ions", tuple(self.ions))
        for ion in self.ions:
            arguments.instance("an ion", ion, PBIon, "a PBIon")
        for name in ("solute_dielectric", "solvent_dielectric"):
            arguments.number(name, getattr(self, name), "a number, 0.001 to 1,000,000", least=1e-3, most=1e6)
        arguments.number("temperature", self.temperature, "a number in K, 1 to 100,000", least=1, most=1e5)
        arguments.number("probe", self.probe, "a number in A, 0 to 100", least=0, most=100)
        arguments.number("density", self.density, "a number per A^2, 0.1 to 1,000", least=LEAST_DENSE, most=MOST_DENSE)
        arguments.number("window", self.window, "a number in A, 0.01 to 10", least=0.01, most=10)
        for name, choices in (
            ("equation", EQUATIONS), ("surface", tuple(SURFACES)), ("charges", SPREADINGS), ("boundary", BOUNDARIES),
        ):  # fmt: skip
            arguments.choice(name, getattr(self, name), choices)
        if len(self.ions) > MOST_IONS:
            raise InputError(f"there are {len(self.ions)} species of ions; at most {MOST_IONS} are possible")
        net = sum(ion.charge * ion.concentration for ion in self.ions)
        if abs(net) >= SMALL:
            raise InputError(
                f"the salt is not neutral: charges times concentrations of its ions add up to {net:g} mol/L; give the "
                "ions of a neutral salt"
            )

    @classmethod
    def like(cls, program: str = "apbs", **changes: Any) -> PBModel:
        """Create a model with the conventions of another program, and changes: like("apbs", ions=salt).

        program : "apbs", for the surface, charges and boundary in input files written by PyMOL and pdb2pqr
        changes : fields of PBModel, which have priority

        >>> pele_ocl.PBModel.like("apbs").surface
        'smol'
        """
        arguments.choice("program", program, ("apbs",))
        unknown = set(changes) - {of.name for of in fields(cls)}
        if unknown:
            raise InputError(f"a PBModel has no {', '.join(sorted(unknown))}; see help(PBModel)")
        return cls(**{**LIKE_APBS, **changes})

    @property
    def ionic_strength(self) -> float:
        """Half the sum of concentrations times squared charges, mol/L."""
        return 0.5 * sum(ion.concentration * ion.charge**2 for ion in self.ions)

    @property
    def has_salt(self) -> bool:
        """Whether there are mobile ions."""
        return self.ionic_strength > 1e-12

    @property
    def is_nonlinear(self) -> bool:
        """Whether the equation is nonlinear; False without salt."""
        return self.equation == "nonlinear" and self.has_salt

    @property
    def is_uniform(self) -> bool:
        """Whether there is only one dielectric constant, so that no surface is needed."""
        return not self.has_border and not self.has_salt

    @property
    def has_border(self) -> bool:
        """Whether solute and solvent have different dielectric constants, so that radii are needed."""
        return abs(self.solute_dielectric - self.solvent_dielectric) >= 1e-12

    @property
    def way(self) -> str:
        """Method by which the surface determines coefficients of edges."""
        return SURFACES[self.surface].way

    def density_on(self, grid: Grid) -> float:
        """Return the points per A^2 of probe surface for a grid."""
        arguments.instance("grid", grid, Grid, "a Grid")
        finer = COARSEST_OF_DENSITY / float(grid.spacing.min())
        return min(MOST_DENSE, self.density * max(1.0, finer) ** 2) if self.way == "cuts" else self.density

    @property
    def has_splines(self) -> bool:
        """Whether the surface is a product of splines, without probes."""
        return self.way == "splines"

    @property
    def ion_radius(self) -> float:
        """Largest radius of all species, A, including those of zero concentration, as in APBS."""
        return max((ion.radius for ion in self.ions), default=0.0)

    @property
    def kappa(self) -> float:
        """Inverse Debye length in the solvent, 1/A."""
        if not self.has_salt:
            return 0.0
        thermal = 1000 * self.solvent_dielectric * BOLTZMANN_CGS * self.temperature
        strength = self.ionic_strength * 1e-16
        return math.sqrt(strength * 8 * math.pi * AVOGADRO_CGS * CHARGE_CGS * CHARGE_CGS / thermal)

    @property
    def screening(self) -> float:
        """Solvent dielectric times kappa^2, 1/A^2."""
        return self.solvent_dielectric * self.kappa**2

    @property
    def charge_factor(self) -> float:
        """Factor of charges in the equation for e phi / kT: 4 pi e^2 / kT, A."""
        return 4 * math.pi * CHARGE_CGS * CHARGE_CGS / (BOLTZMANN_CGS * self.temperature) * 1e8

    @property
    def boundary_factor(self) -> float:
        """Potential of a charge e in vacuum times distance: e^2 / (4 pi eps_0 kT), kT/e A."""
        return CHARGE_SI * CHARGE_SI / (4 * math.pi * PERMITTIVITY_SI * BOLTZMANN_SI * self.temperature) * 1e10

    @property
    def kj_per_kt(self) -> float:
        """Conversion factor from kT to kJ/mol."""
        return BOLTZMANN_SI * self.temperature * AVOGADRO_SI * 1e-3

    @property
    def kcal_per_kt(self) -> float:
        """Conversion factor from kT to kcal/mol."""
        return self.kj_per_kt / KJ_PER_KCAL

    @property
    def debye_length(self) -> float:
        """Debye length of the solvent, A; infinite without salt."""
        return 1 / self.kappa if self.has_salt else math.inf


@dataclass(frozen=True, eq=False)
class PBSolute:
    """Charged spheres of a solute.

    positions : (n, 3) A; charges : (n,) e; radii : (n,) A
    """

    positions: Floats
    charges: Floats
    radii: Floats

    @classmethod
    def of(cls, atoms: Atoms, radii: ArrayLike | None = None, needs_spheres: bool = True) -> PBSolute:
        """Create the solute from Atoms.

        radii : (n,) A; by default atoms.gb_radii, the fifth column of a PQR file
        needs_spheres : whether at least one atom must have a radius above 0

        Raises InputError without atoms, or for radii of a wrong shape; ParameterError if radii are missing.
        """
        require_atoms(atoms)
        if not len(atoms):
            raise InputError("there are no atoms; a Poisson-Boltzmann calculation needs at least one")
        if radii is None and atoms.gb_radii is None:
            if atoms.default_radii is not None and atoms.default_radii.lacking:
                raise ParameterError(atoms.default_radii.lacking)
            raise ParameterError(f"the atoms have no radii; {_CHOOSE}")
        values = arguments.numbers("radii", atoms.gb_radii if radii is None else radii)
        if values.shape != (len(atoms),):
            raise InputError(f"radii have shape {values.shape}; expected ({len(atoms)},), one per atom")
        if not np.isfinite(values).all() or (values < 0).any():
            raise InputError("a radius is negative or not finite; radii must be 0 or more Angstrom")
        if needs_spheres and not (values > SMALL).any():
            raise ParameterError(f"all radii are 0; {_CHOOSE}")
        return cls(atoms.positions, atoms.charges, read_only(values, np.float64))

    @cached_property
    def axes(self) -> Floats:
        """Coordinates by axis, (3, n) A, for faster reductions in NumPy."""
        return np.ascontiguousarray(self.positions.T)

    @cached_property
    def middle(self) -> Floats:
        """Centre of the bounding box of the atoms, (3,) A, used by APBS as centre of a molecule."""
        middle: Floats = (self.axes.max(axis=1) + self.axes.min(axis=1)) / 2
        return middle


def centre_of(atoms: Atoms) -> Floats:
    """Return the centre of the bounding box of atoms, (3,) A, as for `gcent mol 1` in APBS."""
    require_atoms(atoms)
    if not len(atoms):
        raise InputError("there are no atoms, so the centre is undefined")
    return PBSolute(atoms.positions, atoms.charges, np.zeros(len(atoms))).middle


def lowered_shape(shape: ArrayLike) -> tuple[int, int, int]:
    """Reduce the numbers of points along x, y, z like APBS, if they are above 65 and not suitable for multigrid."""

    def lowered(n: int) -> int:
        halvings = ((n - 1) & -(n - 1)).bit_length() - 1
        return n if n <= 65 or halvings - 1 >= 4 else n // 32 * 32 + 1

    x, y, z = (lowered(n) for n in Grid((0, 0, 0), 1, shape).shape)
    return x, y, z


def grid_at(centre: ArrayLike, spacing: ArrayLike, shape: ArrayLike) -> Grid:
    """Return a grid centred at `centre`, (3,) A."""
    points = np.asarray(Grid((0, 0, 0), spacing, shape).shape)
    lengths = (points - 1) * np.broadcast_to(np.asarray(spacing, np.float64), (3,))
    return Grid(np.asarray(centre, np.float64) - lengths / 2, spacing, shape)


def focusing_grids(
    shape: ArrayLike, coarse: ArrayLike, fine: ArrayLike, coarse_centre: ArrayLike, fine_centre: ArrayLike
) -> tuple[Grid, ...]:
    """Return the grids for focusing, the coarsest first, as in mg-auto of APBS.

    shape : points of every grid along x, y, z
    coarse, fine : (3,) lengths of the coarsest and the finest grid, A
    coarse_centre, fine_centre : (3,) A

    Raises InputError if the finest grid is not inside the previous one.
    """
    points = Grid((0, 0, 0), 1, shape).shape
    steps = np.array(points) - 1.0
    first, last = (arguments.numbers(name, lengths) / steps for name, lengths in (("coarse", coarse), ("fine", fine)))
    if not (np.isfinite([first, last]).all() and (np.minimum(first, last) > 0).all()):
        raise InputError("lengths of the coarse and the fine grid must be positive numbers of Angstrom")
    ratio, count = last / first, 2
    for share in ratio:
        if share < FINEST_STEP:
            count = max(count, math.ceil(math.log(share) / math.log(FINEST_STEP)) + 1)
    reduction = ratio ** (1 / (count - 1))
    grids, spacing = [grid_at(coarse_centre, first, points)], first
    for level in range(1, count):
        spacing = reduction * spacing
        grid = grid_at(fine_centre, spacing, points)
        parent, size = grids[-1], steps * spacing
        low, high = parent.origin, parent.last
        if (grid.origin < low - 1e-9).any() or (grid.last > high + 1e-9).any():
            if level == count - 1:
                raise InputError("the finest grid is not inside the next coarser grid; move or shrink it")
            origin = np.minimum(np.maximum(grid.origin, low), high - size)
            grid = Grid(origin, spacing, points)
        grids.append(grid)
    return tuple(grids)


def grid_around(solute: PBSolute, spacing: float, padding: float) -> Grid:
    """Return a grid centred at the molecule, which extends at least `padding` A beyond every sphere.

    It can be coarsened at least four times, as needed for multigrid.
    """
    reach = np.abs(solute.axes - solute.middle[:, None]) + solute.radii
    steps = np.ceil(2 * (reach.max(axis=1) + padding) / spacing - 1e-9)
    if (steps > MOST_POINTS).any():
        raise InputError(f"a spacing of {spacing:g} A is too small for this molecule; choose a larger one")
    multiple = np.where(steps > 32, 16, 8)
    return grid_at(solute.middle, spacing, (np.ceil(steps / multiple) * multiple + 1).astype(np.int64))


def grid_beyond(grid: Grid, solute: PBSolute, boundary: str) -> Grid:
    """Return a larger, coarser grid around a grid, with a border far from the molecule for accurate boundary values.

    boundary : as in PBModel; with "sdh", the grid is a cube around the sphere that represents the molecule

    It has at most about as many nodes as the inner grid, usually a tenth.
    """
    middle, lengths = (grid.origin + grid.last) / 2, grid.last - grid.origin + 2 * BEYOND
    if boundary == "sdh":
        apart = np.sqrt(((solute.positions - middle) ** 2).sum(axis=1)) + solute.radii
        lengths = np.full(3, max(2 * (float(apart.max()) + BEYOND), float(lengths.max())))
    spacing = max(COARSEST, 2 * float(grid.spacing.max()), float(np.prod(lengths) / len(grid)) ** (1 / 3))
    return grid_at(middle, spacing, (np.ceil(lengths / spacing / 8) * 8 + 1).astype(np.int64))


def grid_within(grid: Grid, solute: PBSolute, padding: float, probe: float) -> Grid:
    """Return the part of a grid around a molecule, with the same nodes, suitable for multigrid.

    grid : from grid_around, for a complex that contains the molecule; padding : as for this grid, A
    probe : A; the margin is at least one probe radius plus two spacings, as needed for reaction potentials

    The grid itself is returned if the part would have more than three quarters of its nodes, because equal grids can be
    solved together. Every second node of the part is also a node of the grid with twice the spacing.
    """
    reach = solute.radii + np.maximum(padding, probe + 2 * grid.spacing)[:, None]
    low = np.floor(((solute.axes - reach).min(axis=1) - grid.origin) / grid.spacing / 2 + 1e-9) * 2
    steps = np.ceil(((solute.axes + reach).max(axis=1) - grid.origin) / grid.spacing - 1e-9) - low
    multiple = np.where(steps > 32, 16, 8)
    longer = np.ceil(steps / multiple) * multiple
    last = np.array(grid.shape) - 1
    first = np.clip(low - (longer - steps) // 4 * 2, 0, last - longer)
    shape = longer.astype(np.int64) + 1
    if (first < 0).any() or np.prod(shape) > 0.75 * len(grid):
        return grid
    return Grid(grid.origin + first * grid.spacing, grid.spacing, shape)


@dataclass(frozen=True, eq=False)
class PBMaps:
    """Maps that replace the values computed from the atoms, or None.

    Maps are interpolated linearly. Each must cover all grids.

    dielectrics : dielectric constants of edges along x, y and z, at the midpoints of edges
    access : ion accessibility of nodes, 0 to 1
    charges : charge density, e/A^3
    """

    dielectrics: tuple[Map, Map, Map] | None = None
    access: Map | None = None
    charges: Map | None = None

    def __post_init__(self) -> None:
        given = self.dielectrics
        if given is not None and not (isinstance(given, tuple) and len(given) == 3):
            raise InputError(f"dielectrics is {arguments.described(given)}; expected a tuple of three maps")
        for name, each in (
            *(("dielectrics", each) for each in given or ()), ("access", self.access), ("charges", self.charges),
        ):  # fmt: skip
            if each is not None:
                arguments.instance(name, each, Map, "a Map")
                if not np.isfinite(each.values).all():
                    raise InputError(f"a map of {name} has values that are not finite numbers")
                if (name == "dielectrics" and each.values.min() <= 0) or (name == "access" and each.values.min() < 0):
                    raise InputError(f"a map of {name} has the value {each.values.min():g}, which is impossible")
                if name == "access" and each.values.max() > 1 + 1e-6:
                    raise InputError(f"a map of access has the value {each.values.max():g}; expected 0 to 1")

    def require_covering(self, grid: Grid) -> None:
        """Raise InputError if a map does not cover a grid; edges beyond the border are not needed."""
        edges = [
            (f"dielectric constants along {'xyz'[axis]}", each, axis)
            for axis, each in enumerate(self.dielectrics or ())
        ]
        for what, each, along in (*edges, ("access of ions", self.access, None), ("charges", self.charges, None)):
            if each is None:
                continue
            for axis, name in enumerate("xyz"):
                half, slack = 0.5 * grid.spacing[axis] * (axis == along), MAP_SLACK * each.grid.spacing[axis]
                low, high = grid.origin[axis] + half, grid.last[axis] - half
                if low < each.grid.origin[axis] - slack or high > each.grid.last[axis] + slack:
                    raise InputError(
                        f"the map of {what} does not cover the grid along {name}: it reaches from "
                        f"{each.grid.origin[axis]:.3f} to {each.grid.last[axis]:.3f} A, and the grid from "
                        f"{low:.3f} to {high:.3f} A; give a larger map, or a smaller grid"
                    )

    @property
    def is_empty(self) -> bool:
        """Whether there are no maps."""
        return self.dielectrics is None and self.access is None and self.charges is None


@dataclass(frozen=True, eq=False)
class PBProblem:
    """Poisson-Boltzmann problem: spheres, a model, and grids from the coarsest to the finest.

    maps : replace values computed from the spheres
    density : points per A^2 of probe surface; 0 for the density of the model on the finest grid

    Raises InputError for too few or too many points, and if a grid is not inside the previous one.
    """

    solute: PBSolute
    model: PBModel
    grids: tuple[Grid, ...] = field(default_factory=tuple)
    maps: PBMaps = field(default_factory=PBMaps)
    density: float = 0.0

    @property
    def rolled(self) -> PBModel:
        """Model with the density of the probe surface for these grids."""
        return replace(self.model, density=self.density)

    @property
    def has_charges_of_nodes(self) -> bool:
        """Whether energies are sums over charged nodes instead of atoms."""
        return self.model.charges == "spl2" or self.maps.charges is not None

    def __post_init__(self) -> None:
        if not self.grids:
            raise InputError("a grid is missing")
        for grid in self.grids:
            arguments.instance("a grid", grid, Grid, "a Grid")
            if min(grid.shape) < LEAST_POINTS:
                points = " x ".join(map(str, grid.shape))
                raise InputError(f"a grid of {points} points is too small; at least {LEAST_POINTS} along each axis")
            if len(grid) > MOST_POINTS:
                raise InputError(f"a grid of {len(grid):,} points is too large; at most {MOST_POINTS:,} are possible")
            self.maps.require_covering(grid)
        for parent, child in zip(self.grids, self.grids[1:], strict=False):
            if (child.origin < parent.origin - 1e-9).any() or (child.last > parent.last + 1e-9).any():
                raise InputError("a grid is not inside the previous one; give grids from coarse to fine")
        if not self.density:
            object.__setattr__(self, "density", self.model.density_on(self.grids[-1]))

    def require_atoms_on_grid(self) -> None:
        """Raise InputError if no atom is inside the outermost grid."""
        if self.atoms_off(self.grids[0]) == len(self.solute.positions):
            raise InputError("no atom is inside the outermost grid; give a grid around the molecule")

    def atoms_off(self, grid: Grid) -> int:
        """Return the number of atoms that are not strictly inside a grid."""
        positions = self.solute.positions
        inside = ((positions > grid.origin) & (positions < grid.last)).all(axis=1)
        return int((~inside).sum())
