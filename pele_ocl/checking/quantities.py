"""Quantities that kernels can be checked for, with argument names and launches."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from .cases import Case, born_cases, nonbond_cases, pair_cases, potmap_cases, solvent_cases, sum_cases

# Function that returns the number of work-items along each axis for a case and a group size.
Items = Callable[[Case, int], tuple[int, ...]]


@dataclass(frozen=True)
class Given:
    """A possible kernel argument. kind : C type, where `real` is float or double; is_array : whether it is an array"""

    name: str
    kind: str
    is_array: bool
    meaning: str


@dataclass(frozen=True)
class Quantity:
    """A quantity that kernels can compute.

    summary : description; formula : formula for one element of the output
    element : object of an output element, such as an atom
    given : possible arguments; the last one is the output, initialized with zeros
    launches : possible launches by name, beginning with the default
    cases : function that returns the cases for a group size
    place : description of the index of an output element; "" if it is the number of the element
    """

    name: str
    summary: str
    formula: str
    element: str
    given: tuple[Given, ...]
    launches: Mapping[str, Items]
    cases: Callable[[int], Sequence[Case]]
    place: str = ""

    @property
    def output(self) -> str:
        """Name of the output array."""
        return self.given[-1].name


def _one(case: Case, group: int) -> tuple[int, ...]:
    return (1,)


def _each(name: str) -> Items:
    return lambda case, group: (case.size(name),)


def _group_each(name: str) -> Items:
    return lambda case, group: (group * case.size(name),)


def _points(case: Case, group: int) -> tuple[int, ...]:
    return case.size("nx"), case.size("ny"), case.size("nz")


def _plane(case: Case, group: int) -> tuple[int, ...]:
    return case.size("nx"), case.size("ny")


N_ATOMS = Given("n_atoms", "int", False, "number of atoms")
CHARGED = Given("atoms", "real4", True, "(n_atoms) x, y, z [A], charge [e, times 18.2223]")
N_PAIRS = Given("n_pairs", "int", False, "number of pairs")
PAIRS = Given("pairs", "int2", True, "(n_pairs) first and second atom of each pair; no pair occurs twice")
SIGMA = Given("sigma", "real", True, "(n_atoms) Lennard-Jones diameter [A]; for a pair, the mean of both")
EPSILON = Given("epsilon", "real", True, "(n_atoms) well depth [kcal/mol]; for a pair, the square root of the product")
ATOM_LAUNCHES: Mapping[str, Items] = {"atom": _each("n_atoms"), "group": _group_each("n_atoms"), "one": _one}

QUANTITIES = {
    quantity.name: quantity
    for quantity in (
        Quantity(
            "sum", "sum of numbers, one for each work-group; the program that launches the kernel adds these up",
            "sums[group] = sum of the group's values", "group",
            (
                Given("n", "int", False, "number of values"),
                Given("values", "real", True, "(n) numbers from 0 to 1"),
                Given("sums", "real", True, "(groups) sum of each work-group"),
            ),
            {"number": _each("n"), "one": _one}, sum_cases,
            "each work-group writes one element of `sums`, with the index get_group_id(0)",
        ),
        Quantity(
            "potmap", "electrostatic potential of atoms at the points of a grid",
            "map[(k * ny + j) * nx + i] = sum over atoms a of q_a / r_a", "point",
            (
                N_ATOMS, Given("nx", "int", False, "points along x"), Given("ny", "int", False, "points along y"),
                Given("nz", "int", False, "points along z"),
                Given("corner", "real4", False, "x, y, z of point (0, 0, 0), and the spacing in w [A]"),
                Given("k", "int", False, "the plane; a kernel with this argument is launched for each plane"),
                Given("atoms", "real4", True, "(n_atoms) x, y, z [A], charge [e, times Coulomb's constant]"),
                Given("map", "real", True, "(nz, ny, nx) potential [kcal/mol/e]"),
            ),
            {"point": _points, "plane": _plane, "atom": _each("n_atoms"), "one": _one}, potmap_cases,
            "the index of a point in `map` is (k * ny + j) * nx + i, x varies fastest",
        ),
        Quantity(
            "born", "Born radius sums: the integral over the spheres of other atoms, by Hawkins, Cramer and Truhlar",
            "sums[i] = sum over j, not i, of H(r_ij, rho_i, s_j) / 2, eq. 2 of docs/theory/solvent.md", "atom",
            (
                N_ATOMS, Given("atoms", "real4", True, "(n_atoms) x, y, z [A], radius less the offset, rho [A]"),
                Given("scaled", "real", True, "(n_atoms) scaled radius of the atom's sphere, s [A]"),
                Given("sums", "real", True, "(n_atoms) [1/A]"),
            ),
            ATOM_LAUNCHES, born_cases,
        ),
        Quantity(
            "solvent", "Generalized Born energy of atoms with known Born radii",
            "energies[i] = -factor / 2 * sum over all j, i too, of q_i q_j / f_ij, "
            "f^2 = r^2 + B_i B_j exp(-r^2 / (4 B_i B_j))", "atom",
            (
                N_ATOMS, Given("factor", "real", False, "1 - 1 / dielectric constant of the solvent"), CHARGED,
                Given("radii", "real", True, "(n_atoms) Born radii, B [A]"),
                Given("energies", "real", True, "(n_atoms) [kcal/mol]"),
            ),
            ATOM_LAUNCHES, solvent_cases,
        ),
        Quantity(
            "pair-energy", "Lennard-Jones and Coulomb energy of each pair of a list",
            "energies[p] = 4 e ((s / r)^12 - (s / r)^6) + q_i q_j / r", "pair",
            (N_ATOMS, N_PAIRS, PAIRS, CHARGED, SIGMA, EPSILON, Given("energies", "real", True, "(n_pairs) [kcal/mol]")),
            {"pair": _each("n_pairs"), "one": _one}, pair_cases,
        ),
        Quantity(
            "nonbond", "gradient of the Lennard-Jones and Coulomb energy over a list of pairs",
            "gradient[3 i + c] = sum over pairs of atom i of dE/dr * (x_i - x_j) / r, along x, y, z", "component",
            (
                N_ATOMS, N_PAIRS, PAIRS, CHARGED, SIGMA, EPSILON,
                Given("starts", "int", True, "(n_atoms + 1) where the partners of an atom begin in `partners`"),
                Given("partners", "int", True, "(2 n_pairs) partners of each atom, one atom after the other"),
                Given("gradient", "real", True, "(n_atoms, 3) [kcal/mol/A]"),
            ),
            {"pair": _each("n_pairs"), **ATOM_LAUNCHES}, nonbond_cases,
        ),
    )
}  # fmt: skip
