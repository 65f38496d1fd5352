"""Structs and constants shared by host and kernels.

A kernel file includes a definition with a line such as `#include "shared/pair_model"`; the C header is generated.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import Any, Literal, NamedTuple

import numpy as np

from ..common.installation import shipped

FOLDER = "shared/"


class ArrayMember(NamedTuple):
    """Array member of a struct."""

    size: int
    meaning: str


class Struct:
    """Struct argument of kernels; all members are reals, or all are integers."""

    def __init__(self, name: str, kind: Literal["real", "int"], **members: str | ArrayMember) -> None:
        """name : of the C type; members : descriptions of the members in order"""
        self.name, self.kind, self.members = name, kind, members

    def dtype(self, precision: str) -> np.dtype[Any]:
        """Return the NumPy type of the struct."""
        kind = np.dtype(precision) if self.kind == "real" else np.dtype(np.int32)
        return np.dtype([(name, kind, _shape(member)) for name, member in self.members.items()])

    def pack(self, precision: str, **values: float | Sequence[float]) -> np.void:
        """Return a struct with the given values, one number or sequence per member.

        Raises TypeError for missing or unknown members.
        """
        if values.keys() != self.members.keys():
            wrong = ", ".join(sorted(values.keys() ^ self.members.keys()))
            raise TypeError(f"{self.name} and its values differ in {wrong}")
        packed: np.void = np.array([tuple(values[member] for member in self.members)], self.dtype(precision))[0]
        return packed

    def in_c(self) -> str:
        """Return the C definition."""
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
    """Step after the layers of a launch are summed: another launch, the chain rule, or none."""

    KEEP_TOTALS = 0
    KEEP_WEIGHTS = 1
    KEEP_RESULTS = 2


class Role(IntEnum):
    """Role of an atom in the pairs of its segment: first, second, or both."""

    FIRSTS = 0
    SECONDS = 1
    BOTH = 2


class Scatter(IntEnum):
    """How pair gradients are accumulated: with data races, atomically, or stored per pair."""

    NAIVE = 0
    ATOMIC = 1
    STORED = 2


class PairSums(IntEnum):
    """Columns of the sums over pairs per atom.

    Energies, with each pair counted twice [kcal/mol]; gradient in three columns [kcal/mol/A]; 2 B dE/dB of the GB pair
    energy [kcal/mol].
    """

    LENNARD_JONES_SUM = 0
    COULOMB_SUM = 1
    GB_SUM = 2
    GRADIENT_SUM = 3
    RADIUS_SUM = 6


class BondedKind(IntEnum):
    """Kinds of bonded terms in cl/energy/terms/bonded.clh.

    Distances, angles, cosine torsions, harmonic torsions, CMAP terms, 1-4 pairs.
    """

    STRETCH = 0
    BEND = 1
    TWIST = 2
    HOLD = 3
    CROSS_TWISTS = 4
    MEET = 5


class StepState(IntEnum):
    """Columns of the minimizer state of a structure, see cl/minimize/state.clh; integers are stored as reals.

    ENERGY, GRADIENT2 and LARGEST2 are the energy, the squared gradient norm and the largest squared gradient of an atom
    at the last accepted positions. ITERATIONS and EVALUATIONS are counts, STOPPED is the reason for stopping, 0 while
    running. SHARE is the trial step's fraction of the direction, TRIALS the number of trials from these positions,
    LENGTH a factor of the gradient. STORED and NEXT are the number of stored pairs and the index of the next one. SMALL
    counts successive iterations with little change of the energy, FAILURES successive directions without progress. MIX
    and DOWNHILL belong to FIRE: fraction of the gradient in the velocity, and successive downhill steps. LOWEST is the
    lowest energy, SINCE the number of iterations since it decreased by more than rounding. PHASE to FARTHEST belong to
    truncated Newton, see cl/minimize/newton.cl. MOVING is the number of mobile atoms.
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
    """Reason why the minimization of a structure stopped; 0 while it runs."""

    RUNNING = 0
    GRADIENT = 1
    LARGEST = 2
    ENERGY = 3
    ITERATIONS = 4
    STUCK = 5
    TIME = 6


class Halt(IntEnum):
    """Reason why the simulation of a row stopped; 0 while it runs."""

    FORCES = 1  # not finite
    BONDS = 2  # constraints do not converge
    SPEED = 3  # an atom moves too far in a step


class VariableKind(IntEnum):
    """Collective variables; each has a file in cl/energy/terms/variables."""

    TORSION = 0
    DISTANCE = 1
    GYRATION = 2
    RMSD = 3


class Descent(IntEnum):
    """Minimization method."""

    LBFGS = 0
    STEEPEST = 1
    FIRE = 2
    NEWTON = 3


SIDE_CHAIN_BLOCK = 16  # atoms per block with special pairs to a side chain; at least the vector width
MOST_POLAR = 36  # maximum number of polar hydrogen placements
VARIABLE_REALS = 4  # per row: up to three collective variables and the bias energy
ROW_BLOCK = 256  # alignment of the arrays of a row, bytes
WORD = 8  # bytes; copied pieces are aligned and padded to words
PAIR_SUMS = PairSums.RADIUS_SUM + 1
N_STATE = max(StepState) + 1
N_TERMS = 5  # per atom: Lennard-Jones, Coulomb, GB pair, GB self, nonpolar
READY_TERMS = 7  # of the HCT series with precomputed coefficients
LEAF = 8  # slots per leaf of the tree
MOMENTS = 9  # real4 values per leaf
LAW_TERMS = 20  # coefficients per polynomial of a potential
SANDER_TERMS = 5  # of sander's HCT series
ONE_FOUR = 0x80000000  # bit of the second atom's index that marks a 1-4 pair

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
    own_sigma2="conversion factor for the sigma^2 of a list [1/A^2 to 1/step^2]",
    own_charges="factor for the charge products of a list",
    inv_outside="1 / solvent dielectric",
    kappa="inverse screening length [1/step]",
    coulomb_cut="share of 1-4 pairs' Coulomb energy that is subtracted",
    lj_cut="share of 1-4 pairs' Lennard-Jones energy that is subtracted",
)
STOPPING = Struct(
    "Stopping",
    "real",
    mean2="mean square gradient of the moving atoms below which a structure has converged [(kcal/mol/A)^2]",
    largest2="square of the largest gradient of an atom below which it has converged; negative for never",
    energy="change of the energy below which it has converged, three times in a row; negative for never [kcal/mol]",
    iterations="at most",
    most_step="of an atom in an iteration [A]",
    ramp2="square of the largest gradient of an atom above which steepest descent is used [(kcal/mol/A)^2]",
)
DESTINATION = Struct(
    "Destination",
    "int",
    size="reals per conformation in the results",
    energies_first="offset of its energies in their buffer",
    energies_size="reals per conformation in that buffer",
)
ROW = Struct(
    "Row",
    "int",
    n_atoms="of the structure",
    first_atom="atoms of all rows before",
    positions="offset of its positions, in blocks of ROW_BLOCK bytes",
    results="offset of its results, in such blocks",
    n_energies="number of energies of each term of the passes, one per atom or tile",
    counted="bits of the terms of the passes that are included",
)
SIDE_CHAIN = Struct(
    "SideChain",
    "int",
    first_moved="offset of its atoms among those of all side chains",
    n_moved="number of rotating atoms",
    first_bond="offset of its bonds among those of all",
    n_bonds="number of rotatable bonds",
    n_chi="number of chi angles among them; the other bond rotates polar hydrogens",
    polar_steps="positions of the polar hydrogens, 1 without",
    first_near="blocks of atoms with special pairs",
    n_near="such blocks",
    first_pairs="its special pairs, in reals",
    first_inner="pairs of its own atoms",
    first_torsion="index of the first torsion about its bonds",
    first_polar_torsion="index of the first of them with a polar hydrogen",
    end_torsion="one after the last",
)
REACHES = Struct(
    "Reaches",
    "real",
    largest_rho="largest offset radius of all atoms [A]",
    neck_excess="half of the distance beyond the sum of their offset radii within which two atoms have a neck [A]",
    neck="distance beyond which no atoms have one [A]",
    rgb_max="distance from an atom beyond which spheres are ignored, if RGB_MAX [A]",
)
RUNS = Struct(
    "Runs",
    "int",
    per_run="number of tiles of a run; the last one may have fewer",
    n_runs="runs",
    per_cut="steps of a part",
    met="maximum number of tiles of a part: per_run + per_cut - 1",
)
POTENTIAL_LAW = Struct(
    "Law",
    "real",
    kappa="inverse Debye length [1/A]",
    min_r2="square of the minimum distance [A^2]",
    cutoff2="square of the cutoff [A^2]",
    inv_cutoff2="1 / cutoff2",
    outer=ArrayMember(LAW_TERMS, "coefficients of the near part outer/r - inner, in powers of 2 r^2/cutoff^2 - 1"),
    inner=ArrayMember(LAW_TERMS, "the same [1/A]"),
)
COLOUR_GRID = Struct(
    "ColourGrid",
    "int",
    nx="nodes along x",
    ny="along y",
    nz="along z",
    row="nodes of one colour per row",
    first="offset of its first node in arrays of several grids",
    stride="stride between the arrays of two rows",
)
RING_STEPS = Struct(
    "RingSteps",
    "int",
    first_step="of this launch",
    end_step="one after its last step",
    steps_per_chunk="a chunk is the work of one group",
    first_chunk="number of its first chunk among those of all launches",
    all_chunks="chunks of all launches",
    n_chunks="chunks of this launch",
    n_layers="layers of this launch",
    starts_totals="whether the sums of all launches start with this one",
    then="next step when they are complete: shared/follows",
)


STRUCTS = {  # by header name
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
    """Return a header that includes physics/radius_<name>.clh according to the macro GB_RADIUS_<NAME>."""
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
