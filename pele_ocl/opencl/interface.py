"""Structs and constants that host and kernels share, each defined here alone.

A kernel file takes one by a line such as `#include "shared/pair_model"`; the header in C is made from the definition.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import Any, Literal, NamedTuple

import numpy as np

from ..common.installation import shipped

FOLDER = "shared/"


class ArrayMember(NamedTuple):
    """A member of a struct that is an array."""

    size: int
    meaning: str


class Struct:
    """A struct that kernels take as an argument; its members are all reals or all integers."""

    def __init__(self, name: str, kind: Literal["real", "int"], **members: str | ArrayMember) -> None:
        """name : of the type in C; members : what each member is, in their order"""
        self.name, self.kind, self.members = name, kind, members

    def dtype(self, precision: str) -> np.dtype[Any]:
        """Make the struct in NumPy."""
        kind = np.dtype(precision) if self.kind == "real" else np.dtype(np.int32)
        return np.dtype([(name, kind, _shape(member)) for name, member in self.members.items()])

    def pack(self, precision: str, **values: float | Sequence[float]) -> np.void:
        """Pack a kernel's argument of these values, one for each member or a sequence.

        Raises TypeError if a member is missing and for names that are not members.
        """
        if values.keys() != self.members.keys():
            wrong = ", ".join(sorted(values.keys() ^ self.members.keys()))
            raise TypeError(f"{self.name} and its values differ in {wrong}")
        packed: np.void = np.array([tuple(values[member] for member in self.members)], self.dtype(precision))[0]
        return packed

    def in_c(self) -> str:
        """Write the definition in C."""
        members = (
            f"    {self.kind} {name}[{member.size}];  // {member.meaning}"
            if isinstance(member, ArrayMember)
            else f"    {self.kind} {name};  // {member}"
            for name, member in self.members.items()
        )
        return "\n".join(["typedef struct {", *members, f"}} {self.name};"])


def _shape(member: str | ArrayMember) -> tuple[int, ...]:
    return (member.size,) if isinstance(member, ArrayMember) else ()


class Follows(IntEnum):
    """Step after a launch's layers are summed: another launch, the chain rule, or none."""

    KEEP_TOTALS = 0
    KEEP_WEIGHTS = 1
    KEEP_RESULTS = 2


class Role(IntEnum):
    """Place of an atom in the pairs that its segment holds: first, second, or both."""

    FIRSTS = 0
    SECONDS = 1
    BOTH = 2


class Scatter(IntEnum):
    """Use of a pair's gradient: summed racing; summed atomically; stored by pair."""

    NAIVE = 0
    ATOMIC = 1
    STORED = 2


class PairSums(IntEnum):
    """Columns that a pass over pairs sums for an atom: energies, each pair counted twice [kcal/mol]; gradient in three
    columns [kcal/mol/A]; 2 B dE/dB of the GB pair energy [kcal/mol].
    """

    LENNARD_JONES_SUM = 0
    COULOMB_SUM = 1
    GB_SUM = 2
    GRADIENT_SUM = 3
    RADIUS_SUM = 6


class BondedKind(IntEnum):
    """Kinds of tasks of cl/energy/terms/bonded.clh.

    Distances, angles, cosines of a torsion, harmonic torsions, maps of two torsions, 1-4 pairs.
    """

    STRETCH = 0
    BEND = 1
    TWIST = 2
    HOLD = 3
    CROSS_TWISTS = 4
    MEET = 5


class StepState(IntEnum):
    """Columns of a structure's state while it is minimized, cl/minimize/state.clh; whole numbers are reals.

    The base, which are the positions accepted last, has an energy, squares of the gradient and of its largest atom.
    Next are the numbers of iterations and evaluations, and the reason why it stopped, 0 while it goes on. The trial has
    its share of the direction, the number of trials from this base, and a gradient's factor. Then come stored pairs and
    the place of the next one. Iterations that hardly changed the energy, and directions that led nowhere, are counted
    in a row. FIRE: share of the gradient in the velocity, and steps downhill in a row. Then the lowest energy, and the
    iterations since it fell by more than rounding. Truncated Newton: PHASE to FARTHEST, cl/minimize/newton.cl.
    Last, the number of atoms that move.
    """

    ENERGY = 0
    GRADIENT2 = 1
    LARGEST2 = 2
    ITERATIONS = 3
    EVALUATIONS = 4
    STOPPED = 5
    SHARE = 6
    TRIALS = 7
    LENGTH = 8
    STORED = 9
    NEXT = 10
    SMALL = 11
    FAILURES = 12
    MIX = 13
    DOWNHILL = 14
    LOWEST = 15
    SINCE = 16
    PHASE = 17
    INNER = 18
    RESIDUAL = 19
    FIRST_RESIDUAL = 20
    OFFSET = 21
    FARTHEST = 22
    MOVING = 23


class Stop(IntEnum):
    """Reason why a structure stopped; 0 while it goes on."""

    RUNNING = 0
    GRADIENT = 1
    LARGEST = 2
    ENERGY = 3
    ITERATIONS = 4
    STUCK = 5
    TIME = 6


class Halt(IntEnum):
    """Reasons why a row of a simulation stops; 0 while it goes on."""

    FORCES = 1  # that are no numbers
    BONDS = 2  # that cannot be held
    SPEED = 3  # of an atom that goes too far in a step


class VariableKind(IntEnum):
    """Collective variables, each a file of cl/energy/terms/variables."""

    TORSION = 0
    DISTANCE = 1
    GYRATION = 2
    RMSD = 3


class Descent(IntEnum):
    """Method that finds directions."""

    LBFGS = 0
    STEEPEST = 1
    FIRE = 2
    NEWTON = 3


SIDE_CHAIN_BLOCK = 16  # atoms of a block that has special pairs with a side chain; vectors are no wider
MOST_POLAR = 36  # places of polar hydrogens
VARIABLE_REALS = 4  # of a row: up to three collective variables, and at last the energy of their bias
ROW_BLOCK = 256  # bytes to which the arrays of a row are aligned
WORD = 8  # bytes; pieces that are copied begin at whole words, and have room for whole words
PAIR_SUMS = PairSums.RADIUS_SUM + 1
N_STATE = max(StepState) + 1
N_TERMS = 5  # of an atom's energy: Lennard-Jones, Coulomb, GB pair, GB self, nonpolar
READY_TERMS = 7  # of the HCT series from ready coefficients
LEAF = 8  # slots of the smallest boxes of a tree
MOMENTS = 9  # real4 of such a box
LAW_TERMS = 20  # coefficients of a polynomial of a potential's law
SANDER_TERMS = 5  # of the HCT series as in sander
ONE_FOUR = 0x80000000  # the bit of a pair's second atom that marks a 1-4 pair

PAIR_MODEL = Struct(
    "PairModel",
    "real",
    outside="solute over solvent dielectric",
    kappa="inverse screening length [1/A]",
    cutoff2="square of the distance at which pairs end [A^2]",
)
LIST_MODEL = Struct(
    "ListModel",
    "real",
    own_sigma2="factor of a list's own sigma^2 [1/A^2 to 1/step^2]",
    own_charges="factor of a list's own charge products",
    inv_outside="1 / solvent dielectric",
    kappa="inverse screening length [1/step]",
    coulomb_cut="share of 1-4 pairs' Coulomb energy that is subtracted",
    lj_cut="share of 1-4 pairs' Lennard-Jones energy that is subtracted",
)
STOPPING = Struct(
    "Stopping",
    "real",
    mean2="mean square gradient of the atoms that move below which a structure is done [(kcal/mol/A)^2]",
    largest2="square of the largest atom's gradient below which it is done; negative for never",
    energy="change of the energy below which it is done, three times in a row; negative for never [kcal/mol]",
    iterations="at most",
    most_step="of an atom in an iteration [A]",
    ramp2="square of the largest atom's gradient above which steepest descent comes first [(kcal/mol/A)^2]",
)
DESTINATION = Struct(
    "Destination",
    "int",
    size="reals of a conformation in the results",
    energies_first="where its energies begin in their buffer",
    energies_size="reals of a conformation in that buffer",
)
ROW = Struct(
    "Row",
    "int",
    n_atoms="of the structure",
    first_atom="atoms of all rows before",
    positions="where its positions begin, in blocks of ROW_BLOCK bytes",
    results="where its results begin, in such blocks",
    n_energies="energies of each term of the passes, of atoms or tiles",
    counted="bits of the terms of the passes that count",
)
SIDE_CHAIN = Struct(
    "SideChain",
    "int",
    first_moved="its atoms among those of all side chains",
    n_moved="atoms that turn",
    first_bond="its bonds among those of all",
    n_bonds="bonds that turn atoms",
    n_chi="of them, chi; the other one turns polar hydrogens",
    polar_steps="places of the polar hydrogens, 1 without",
    first_near="blocks of atoms with special pairs",
    n_near="such blocks",
    first_pairs="its special pairs, in reals",
    first_inner="pairs of its own atoms",
    first_torsion="torsions that its bonds turn",
    first_polar_torsion="the first of them with a polar hydrogen",
    end_torsion="one after the last",
)
REACHES = Struct(
    "Reaches",
    "real",
    largest_rho="largest offset radius of all atoms [A]",
    neck_excess="half of how far beyond the sum of their offset radii two atoms have a neck [A]",
    neck="distance beyond which no two atoms have one [A]",
    rgb_max="distance from an atom beyond which no sphere counts, where RGB_MAX [A]",
)
RUNS = Struct(
    "Runs",
    "int",
    per_run="tiles of a run; the last one may have fewer",
    n_runs="runs",
    per_cut="steps of a part",
    met="tiles that a part meets at most: per_run + per_cut - 1",
)
POTENTIAL_LAW = Struct(
    "Law",
    "real",
    kappa="inverse Debye length [1/A]",
    min_r2="square of the minimum distance [A^2]",
    cutoff2="square of the cutoff [A^2]",
    inv_cutoff2="1 / cutoff2",
    outer=ArrayMember(LAW_TERMS, "of the near part outer/r - inner, powers of 2 r^2/cutoff^2 - 1"),
    inner=ArrayMember(LAW_TERMS, "the same [1/A]"),
)
COLOUR_GRID = Struct(
    "ColourGrid",
    "int",
    nx="nodes along x",
    ny="along y",
    nz="along z",
    row="nodes of one colour in a row",
    first="index of its first node in arrays of several grids",
    stride="numbers from a row's arrays to the next row's",
)
RING_STEPS = Struct(
    "RingSteps",
    "int",
    first_step="of this launch",
    end_step="one after its last step",
    steps_per_chunk="a chunk is a group's work",
    first_chunk="number of its first chunk among those of all launches",
    all_chunks="chunks of all launches",
    n_chunks="chunks of this launch",
    n_layers="layers of this launch",
    starts_totals="whether the sums of all launches begin with this one",
    then="what follows when they are complete: shared/follows",
)


STRUCTS = {  # by the headers that kernels include
    "pair_model": PAIR_MODEL,
    "list_model": LIST_MODEL,
    "row": ROW,
    "side_chain": SIDE_CHAIN,
    "reaches": REACHES,
    "runs": RUNS,
    "destination": DESTINATION,
    "potential_law": POTENTIAL_LAW,
    "colour_grid": COLOUR_GRID,
    "ring_steps": RING_STEPS,
    "stopping": STOPPING,
}


def _defined(constants: Mapping[str, int]) -> str:
    return "\n".join(f"#define {name} {value}" for name, value in constants.items())


def _listed(enum: type[IntEnum]) -> str:
    return _defined({member.name: member.value for member in enum})


def _radius_functions() -> str:
    """Include the radius function that a macro asks for: of each file physics/radius_<name>.clh, GB_RADIUS_<NAME>."""
    names = sorted(path.stem.removeprefix("radius_") for path in (shipped("cl") / "physics").glob("radius_*.clh"))
    branches = [f'defined(GB_RADIUS_{name.upper()})\n#include "physics/radius_{name}.clh"' for name in names]
    macros = ", ".join(f"GB_RADIUS_{name.upper()}" for name in names)
    return "#if " + "\n#elif ".join(branches) + f'\n#else\n#error "{macros}: 1 for one of them"\n#endif'


HEADERS = {header: struct.in_c() for header, struct in STRUCTS.items()} | {
    "side_chain_sizes": _defined({"SIDE_CHAIN_BLOCK": SIDE_CHAIN_BLOCK, "MOST_POLAR": MOST_POLAR}),
    "row_block": _defined({"ROW_BLOCK": ROW_BLOCK}),
    "follows": _listed(Follows),
    "role": _listed(Role),
    "scatter": _listed(Scatter),
    "bonded": _listed(BondedKind) + "\n" + _defined({"BONDED_KINDS": len(BondedKind)}),
    "pair_sums": _listed(PairSums) + "\n" + _defined({"PAIR_SUMS": PAIR_SUMS}),
    "n_terms": _defined({"N_TERMS": N_TERMS}),
    "ready_terms": _defined({"READY_TERMS": READY_TERMS, "SANDER_TERMS": SANDER_TERMS}),
    "boxes": _defined({"LEAF": LEAF, "MOMENTS": MOMENTS}),
    "step_state": _listed(StepState) + "\n" + _defined({"N_STATE": N_STATE}),
    "stop": "\n".join(f"#define STOP_{reason.name} {reason.value}" for reason in Stop),
    "descent": _listed(Descent),
    "halt": "\n".join(f"#define HALT_{reason.name} {reason.value}" for reason in Halt),
    "variables": "\n".join(f"#define VARIABLE_{of.name} {of.value}" for of in VariableKind)
    + "\n"
    + _defined({"VARIABLE_REALS": VARIABLE_REALS}),
    "radius_functions": _radius_functions(),
    "one_four": f"#define ONE_FOUR {ONE_FOUR:#x}u",
}
