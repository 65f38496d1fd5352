"""Constants of a Poisson-Boltzmann model that a user may set, and the grids it is solved on.

All rules, units and constants are APBS's, version 3.4.1; docs/theory/poisson-boltzmann.md has the formulas.
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

# Constants as APBS has them, two sets that differ in the sixth digit: cgs in the equation, SI in boundary values and
# where kT becomes kJ/mol.
CHARGE_CGS, BOLTZMANN_CGS, AVOGADRO_CGS = 4.803242384e-10, 1.380662e-16, 6.022045e23
CHARGE_SI, BOLTZMANN_SI, PERMITTIVITY_SI, AVOGADRO_SI = 1.6021773e-19, 1.3806581e-23, 8.8541878e-12, 6.0221367e23
KJ_PER_KCAL = 4.184

# Ways in which edges of the grid get coefficients, with the degrees of their splines: by the share of an edge that lies
# in solvent; by where its middle lies; by middles averaged with their neighbours; by splines of the distance.
WAYS = {"cuts": (0,), "middles": (0,), "smoothed": (0,), "splines": (3, 7)}


@dataclass(frozen=True)
class Surface:
    """Border of solute and solvent on a grid; pele_ocl/pb/surface.py computes the ways.

    way : key of WAYS
    order : of the energy's error in the spacing
    safety : factor of |E(h) - E(2h)|, rms of several grids, that covers the error of E(h): section 7 of the theory
    degree : of splines
    safety_if_coarse : safety for spacings above 0.5 A

    Raises InputError for a way or a degree that no code computes.
    """

    way: str
    order: int
    safety: float
    degree: int = 0
    safety_if_coarse: float = 3

    def __post_init__(self) -> None:
        arguments.choice("the way of a surface", self.way, tuple(WAYS))
        if self.degree not in WAYS[self.way]:
            raise InputError(f"a surface by {self.way} of degree {self.degree} is computed by no code")


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
# What input files of APBS by PyMOL and pdb2pqr have, and so published pictures: options of PBModel.
LIKE_APBS: Mapping[str, Any] = {"surface": "smol", "charges": "spl2", "boundary": "sdh"}

SMALL = 1e-9  # A: radii and probes below it count as none, as in APBS
MOST_IONS = 9
_CHOOSE = "choose a set of radii, such as pdb2pqr-amber, pdb2pqr-charmm or pdb2pqr-parse, or give radii of your own"
LEAST_POINTS = 5  # along an axis
MOST_POINTS = 2**31 - 1  # of a grid: kernels count them in 32 bits
MAP_SLACK = 1e-4  # of a map's spacing: the digits of a file's origin
LEAST_DENSE, MOST_DENSE = 0.1, 1000.0  # points per A^2
COARSEST_OF_DENSITY = 0.5  # A: on finer grids the surface "edges" has more probes, as many for each node's face
BEYOND, COARSEST = 15.0, 2.0  # A: how far a grid reaches beyond the one whose border it gives, and its spacing
FINEST_STEP = 0.25  # of spacings between two levels of focusing: finer ones get a level between them


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
        arguments.number("charge", self.charge, least=-100, most=100, needed="a number of e, -100 to 100,")
        molar("concentration", self.concentration)
        arguments.number("radius", self.radius, "a number of A, 0 to 1,000,", least=0, most=1000)


def salt_of(ionic_strength: float) -> tuple[PBIon, ...]:
    """Make the ions of a 1:1 salt, of 2 A, by its concentration in mol/L; none for 0."""
    return (PBIon(1, ionic_strength), PBIon(-1, ionic_strength)) if ionic_strength else ()


@dataclass(frozen=True)
class PBModel:
    """Poisson-Boltzmann model: dielectric constants, salt, surface, charges and boundary.

    solute_dielectric, solvent_dielectric : relative permittivities, 0.001 to 1e6
    ions : PBIon of each species; together they must be neutral; at most 9
    temperature : K
    equation : "linear" or "nonlinear"
    surface : "edges", each edge of the grid by its fraction in solvent; "mol", APBS's molecular surface, edges by their
        midpoints; "smol", the same smoothed; "spl2" and "spl4", APBS's splines of degrees 3 and 7
    probe : A, >= 0, radius of the solvent molecule
    density : points per A^2 of the spheres of probe centres. On grids finer than 0.5 A "edges" uses (0.5 A / spacing)^2
        times as many, so that this error decreases with that of the grid
    window : A, half width of the splines of "spl2" and "spl4"
    charges : "spl0", charges on eight nodes; "spl2" or "spl4", on 27 or 125 nodes by splines of degree 2 or 4
    boundary : potential at the boundary of the outermost grid: "mdh", each atom as a screened sphere; "sdh", one sphere
        with the molecule's moments; "zero"

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
            raise InputError(f"ions is {arguments.described(self.ions)}; a list of PBIon is needed")
        object.__setattr__(self, "ions", tuple(self.ions))
        for ion in self.ions:
            arguments.instance("an ion", ion, PBIon, "a PBIon")
        for name in ("solute_dielectric", "solvent_dielectric"):
            arguments.number(name, getattr(self, name), "a number, 0.001 to 1,000,000,", least=1e-3, most=1e6)
        arguments.number("temperature", self.temperature, "a number of K, 1 to 100,000,", least=1, most=1e5)
        arguments.number("probe", self.probe, "a number of A, 0 to 100,", least=0, most=100)
        arguments.number("density", self.density, "a number per A^2, 0.1 to 1,000,", least=LEAST_DENSE, most=MOST_DENSE)
        arguments.number("window", self.window, "a number of A, 0.01 to 10,", least=0.01, most=10)
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
        """Make the model with the rules of another program, and changes to it: like("apbs", ions=salt).

        program : "apbs": the surface, charges and boundary of the input files that PyMOL and pdb2pqr write
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
        """True if there are mobile ions."""
        return self.ionic_strength > 1e-12

    @property
    def is_nonlinear(self) -> bool:
        """True for the nonlinear equation; without salt both are the same."""
        return self.equation == "nonlinear" and self.has_salt

    @property
    def is_uniform(self) -> bool:
        """True if there is only one dielectric constant, so that no surface is needed."""
        return not self.has_border and not self.has_salt

    @property
    def has_border(self) -> bool:
        """True if solute and solvent have different dielectric constants, so that radii are needed."""
        return abs(self.solute_dielectric - self.solvent_dielectric) >= 1e-12

    @property
    def way(self) -> str:
        """Method by which the surface determines coefficients of edges."""
        return SURFACES[self.surface].way

    def density_on(self, grid: Grid) -> float:
        """Points per A^2 of the probe's surface on a grid."""
        arguments.instance("grid", grid, Grid, "a Grid")
        finer = COARSEST_OF_DENSITY / float(grid.spacing.min())
        return min(MOST_DENSE, self.density * max(1.0, finer) ** 2) if self.way == "cuts" else self.density

    @property
    def has_splines(self) -> bool:
        """True if the surface is a product of splines, without probes."""
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
        """4 pi e^2 / kT, A: factor of charges in the equation for e phi / kT."""
        return 4 * math.pi * CHARGE_CGS * CHARGE_CGS / (BOLTZMANN_CGS * self.temperature) * 1e8

    @property
    def boundary_factor(self) -> float:
        """e^2 / (4 pi eps_0 kT), A: potential of a charge e in vacuum times distance, kT/e A."""
        return CHARGE_SI * CHARGE_SI / (4 * math.pi * PERMITTIVITY_SI * BOLTZMANN_SI * self.temperature) * 1e10

    @property
    def kj_per_kt(self) -> float:
        """kJ/mol of kT."""
        return BOLTZMANN_SI * self.temperature * AVOGADRO_SI * 1e-3

    @property
    def kcal_per_kt(self) -> float:
        """kcal/mol of kT."""
        return self.kj_per_kt / KJ_PER_KCAL

    @property
    def debye_length(self) -> float:
        """Debye length of the solvent, A; infinite without salt."""
        return 1 / self.kappa if self.has_salt else math.inf


@dataclass(frozen=True, eq=False)
class PBSolute:
    """Spheres with charges.

    positions : (n, 3) A; charges : (n,) e; radii : (n,) A
    """

    positions: Floats
    charges: Floats
    radii: Floats

    @classmethod
    def of(cls, atoms: Atoms, radii: ArrayLike | None = None, needs_spheres: bool = True) -> PBSolute:
        """Take the spheres of atoms.

        radii : (n,) A; by default atoms.gb_radii, the fifth column of a PQR file
        needs_spheres : whether an atom at least must have a radius

        Raises InputError for no atoms or radii of another shape, ParameterError if there are none.
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
            raise InputError(f"radii have shape {values.shape}; ({len(atoms)},) is needed, one an atom")
        if not np.isfinite(values).all() or (values < 0).any():
            raise InputError("a radius is negative or no finite number; radii must be 0 or more Angstrom")
        if needs_spheres and not (values > SMALL).any():
            raise ParameterError(f"all radii are 0; {_CHOOSE}")
        return cls(atoms.positions, atoms.charges, read_only(values, np.float64))

    @cached_property
    def axes(self) -> Floats:
        """Coordinates by axis, (3, n) A: NumPy reduces them faster than positions."""
        return np.ascontiguousarray(self.positions.T)

    @cached_property
    def middle(self) -> Floats:
        """Middle of the smallest and largest coordinates of atoms, (3,) A; APBS's centre of a molecule."""
        middle: Floats = (self.axes.max(axis=1) + self.axes.min(axis=1)) / 2
        return middle


def centre_of(atoms: Atoms) -> Floats:
    """Midpoint of the smallest and largest coordinates of atoms, (3,) A: APBS's centre of a molecule (`gcent mol
    1`)."""
    require_atoms(atoms)
    if not len(atoms):
        raise InputError("there are no atoms, and so no centre")
    return PBSolute(atoms.positions, atoms.charges, np.zeros(len(atoms))).middle


def lowered_shape(shape: ArrayLike) -> tuple[int, int, int]:
    """Reduce the numbers of points along x, y, z as APBS does, if they are above 65 and not suitable for multigrid."""

    def lowered(n: int) -> int:
        halvings = ((n - 1) & -(n - 1)).bit_length() - 1
        return n if n <= 65 or halvings - 1 >= 4 else n // 32 * 32 + 1

    x, y, z = (lowered(n) for n in Grid((0, 0, 0), 1, shape).shape)
    return x, y, z


def grid_at(centre: ArrayLike, spacing: ArrayLike, shape: ArrayLike) -> Grid:
    """Make a grid centred at `centre`, (3,) A."""
    points = np.asarray(Grid((0, 0, 0), spacing, shape).shape)
    lengths = (points - 1) * np.broadcast_to(np.asarray(spacing, np.float64), (3,))
    return Grid(np.asarray(centre, np.float64) - lengths / 2, spacing, shape)


def focusing_grids(
    shape: ArrayLike, coarse: ArrayLike, fine: ArrayLike, coarse_centre: ArrayLike, fine_centre: ArrayLike
) -> tuple[Grid, ...]:
    """Make the grids of focusing from a coarse to a fine one, the coarsest first, as in APBS's mg-auto.

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
                raise InputError("the finest grid does not lie inside the grid before it; move its centre or shrink it")
            origin = np.minimum(np.maximum(grid.origin, low), high - size)
            grid = Grid(origin, spacing, points)
        grids.append(grid)
    return tuple(grids)


def grid_around(solute: PBSolute, spacing: float, padding: float) -> Grid:
    """Make the grid whose border lies at least `padding` A beyond every sphere, with its middle at the molecule's.

    Its points can be halved four times or more, so that multigrid has levels to work with.
    """
    reach = np.abs(solute.axes - solute.middle[:, None]) + solute.radii
    steps = np.ceil(2 * (reach.max(axis=1) + padding) / spacing - 1e-9)
    if (steps > MOST_POINTS).any():
        raise InputError(f"a spacing of {spacing:g} A is too small for this molecule; choose a larger one")
    multiple = np.where(steps > 32, 16, 8)
    return grid_at(solute.middle, spacing, (np.ceil(steps / multiple) * multiple + 1).astype(np.int64))


def grid_beyond(grid: Grid, solute: PBSolute, boundary: str) -> Grid:
    """Make a coarser grid around a grid, whose border is far from the molecule, where border values are good.

    boundary : of PBModel; by "sdh" the grid is a cube around the sphere that stands for the molecule

    It has at most about as many nodes as the grid has; usually a tenth.
    """
    middle, lengths = (grid.origin + grid.last) / 2, grid.last - grid.origin + 2 * BEYOND
    if boundary == "sdh":
        apart = np.sqrt(((solute.positions - middle) ** 2).sum(axis=1)) + solute.radii
        lengths = np.full(3, max(2 * (float(apart.max()) + BEYOND), float(lengths.max())))
    spacing = max(COARSEST, 2 * float(grid.spacing.max()), float(np.prod(lengths) / len(grid)) ** (1 / 3))
    return grid_at(middle, spacing, (np.ceil(lengths / spacing / 8) * 8 + 1).astype(np.int64))


def grid_within(grid: Grid, solute: PBSolute, padding: float, probe: float) -> Grid:
    """Make the part of a grid that lies around a molecule, of the same nodes, for as many halvings.

    grid : of grid_around, for a complex that has the molecule; padding : A, as of this grid
    probe : A; the part has room for it and for two steps, as reaction potentials need, also with twice the spacing

    Returns the grid itself, unless the part has at most three quarters as many nodes: grids alike share launches. Each
    second node of the part is on the grid with twice the spacing, too.
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
    """Maps used instead of those computed from the atoms; None for none.

    Maps are interpolated linearly. A map must cover all grids.

    dielectrics : dielectric constants of the edges along x, y and z, each at the midpoints of the edges
    access : accessibility of a node for ions, 0 to 1
    charges : density, e/A^3
    """

    dielectrics: tuple[Map, Map, Map] | None = None
    access: Map | None = None
    charges: Map | None = None

    def __post_init__(self) -> None:
        given = self.dielectrics
        if given is not None and not (isinstance(given, tuple) and len(given) == 3):
            raise InputError(f"dielectrics is {arguments.described(given)}; a tuple of three maps is needed")
        for name, each in (
            *(("dielectrics", each) for each in given or ()), ("access", self.access), ("charges", self.charges),
        ):  # fmt: skip
            if each is not None:
                arguments.instance(name, each, Map, "a Map")
                if not np.isfinite(each.values).all():
                    raise InputError(f"a map of {name} has values that are no finite numbers")
                if (name == "dielectrics" and each.values.min() <= 0) or (name == "access" and each.values.min() < 0):
                    raise InputError(f"a map of {name} has the value {each.values.min():g}, which cannot be")
                if name == "access" and each.values.max() > 1 + 1e-6:
                    raise InputError(f"a map of access has the value {each.values.max():g}; shares are from 0 to 1")

    def require_covering(self, grid: Grid) -> None:
        """Raise InputError for a map that does not cover a grid; edges leaving the grid are not needed."""
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
                        f"{each.grid.origin[axis]:.3f} to {each.grid.last[axis]:.3f} A, and {low:.3f} to {high:.3f} A "
                        "are needed; give a larger map, or a smaller grid"
                    )

    @property
    def is_empty(self) -> bool:
        """True if there is no map."""
        return self.dielectrics is None and self.access is None and self.charges is None


@dataclass(frozen=True, eq=False)
class PBProblem:
    """Problem to solve: spheres, a model, and grids from the coarsest to the finest.

    maps : in place of what is computed of the spheres
    density : points per A^2 of the probe's surface; 0 for those of the model on the finest grid

    Raises InputError for too few or too many points, or a grid that does not lie inside the one before.
    """

    solute: PBSolute
    model: PBModel
    grids: tuple[Grid, ...] = field(default_factory=tuple)
    maps: PBMaps = field(default_factory=PBMaps)
    density: float = 0.0

    @property
    def rolled(self) -> PBModel:
        """The model with the density of the probe's surface on these grids."""
        return replace(self.model, density=self.density)

    @property
    def has_charges_of_nodes(self) -> bool:
        """True if energies are sums over nodes with charges, in place of atoms."""
        return self.model.charges == "spl2" or self.maps.charges is not None

    def __post_init__(self) -> None:
        if not self.grids:
            raise InputError("there is no grid to solve the equation on")
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
                raise InputError("a grid does not lie inside the grid before it; give grids from coarse to fine")
        if not self.density:
            object.__setattr__(self, "density", self.model.density_on(self.grids[-1]))

    def require_atoms_on_grid(self) -> None:
        """Raise InputError if no atom lies inside the outermost grid."""
        if self.atoms_off(self.grids[0]) == len(self.solute.positions):
            raise InputError("no atom lies inside the outermost grid; give a grid around the molecule")

    def atoms_off(self, grid: Grid) -> int:
        """Count the atoms that do not lie strictly inside a grid."""
        positions = self.solute.positions
        inside = ((positions > grid.origin) & (positions < grid.last)).all(axis=1)
        return int((~inside).sum())
