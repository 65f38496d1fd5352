"""Writer of AMBER topologies and restarts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

import gemmi
import numpy as np

from ...atoms import Atoms, Floats, Ints
from ...atoms.bonded import pair_codes
from ...atoms.one_four import scales_of_pairs, written_terms
from ...common.errors import FormatError
from .topology import CHARGE_UNIT

_WHAT = "an AMBER topology"
_SETS = {
    "bondi": "Bondi radii (bondi)", "mbondi": "modified Bondi radii (mbondi)",
    "mbondi2": "H(N)-modified Bondi radii (mbondi2)", "mbondi3": "ArgH and AspGluO modified Bondi2 radii (mbondi3)",
}  # fmt: skip


def prmtop_text(atoms: Atoms, title: str = "") -> str:
    """Return the text of a topology (prmtop, parm7) for AMBER 7 and later, with all parameters.

    title : title line

    Raises InputError for atoms without parameters, and for terms that are not supported.
    """
    bonded = written_terms(atoms, _WHAT)
    labels = atoms.labels
    assert labels is not None
    assert atoms.lj_sigma is not None
    assert atoms.lj_epsilon is not None
    elements = [str(of) for of in labels.elements]
    is_hydrogen = np.array([of in ("H", "D") for of in elements])
    kinds, kind_of = np.unique(np.stack([atoms.lj_sigma, atoms.lj_epsilon], axis=1), axis=0, return_inverse=True)
    kind_of = kind_of.reshape(-1)
    acoef, bcoef, index = _lennard_jones(kinds, atoms.combining == "arithmetic")
    bonds = _rows(bonded.bonds.atoms, bonded.bonds.parameters, is_hydrogen)
    angles = _rows(bonded.angles.atoms, bonded.angles.parameters, is_hydrogen)
    torsion_atoms, torsion_figures = _torsions(atoms)
    torsions = _rows(torsion_atoms, torsion_figures, is_hydrogen, signed=True)
    counts, excluded = _excluded(np.concatenate([bonded.excluded, bonded.one_four.atoms]), len(atoms))
    starts = labels.residue_starts
    sizes = np.diff(starts, append=len(atoms))
    types = elements if atoms.types is None else [str(of) for of in atoms.types]
    pointers = [
        len(atoms), len(kinds), len(bonds[0]), len(bonds[1]), len(angles[0]), len(angles[1]), len(torsions[0]),
        len(torsions[1]), 0, 0, len(excluded), len(starts), len(bonds[1]), len(angles[1]), len(torsions[1]),
        len(bonds[2]), len(angles[2]), len(torsions[2]), len(set(types)), 0, 0, 0, 0, 0, 0, 0, 0, 0,
        int(sizes.max(initial=0)), 0, 0,
    ]  # fmt: skip
    radii = {} if atoms.gb_radii is None else {"RADII": _reals(atoms.gb_radii), "SCREEN": _reals(atoms.gb_scales)}
    set_name = _SETS.get(atoms.gb_radii_set, f"radii ({atoms.gb_radii_set or 'file'})")
    numbers = [gemmi.Element(of).atomic_number for of in elements]
    sections = {
        "TITLE": ("20a4", [title[:80].ljust(4)]),
        "POINTERS": _wholes(pointers),
        "ATOM_NAME": _texts(labels.names),
        "CHARGE": _reals(atoms.charges * CHARGE_UNIT),
        "ATOMIC_NUMBER": _wholes(numbers),
        "MASS": _reals(atoms.masses),
        "ATOM_TYPE_INDEX": _wholes(kind_of + 1),
        "NUMBER_EXCLUDED_ATOMS": _wholes(counts),
        "NONBONDED_PARM_INDEX": _wholes(index),
        "RESIDUE_LABEL": _texts(labels.residue_names[starts]),
        "RESIDUE_POINTER": _wholes(starts + 1),
        "BOND_FORCE_CONSTANT": _reals(bonds[2][:, 0]),
        "BOND_EQUIL_VALUE": _reals(bonds[2][:, 1]),
        "ANGLE_FORCE_CONSTANT": _reals(angles[2][:, 0]),
        "ANGLE_EQUIL_VALUE": _reals(angles[2][:, 1]),
        "DIHEDRAL_FORCE_CONSTANT": _reals(torsions[2][:, 0]),
        "DIHEDRAL_PERIODICITY": _reals(torsions[2][:, 1]),
        "DIHEDRAL_PHASE": _reals(torsions[2][:, 2]),
        "SCEE_SCALE_FACTOR": _reals(torsions[2][:, 3]),
        "SCNB_SCALE_FACTOR": _reals(torsions[2][:, 4]),
        "SOLTY": _reals(np.zeros(len(set(types)))),
        "LENNARD_JONES_ACOEF": _reals(acoef),
        "LENNARD_JONES_BCOEF": _reals(bcoef),
        "BONDS_INC_HYDROGEN": _wholes(bonds[0].ravel()),
        "BONDS_WITHOUT_HYDROGEN": _wholes(bonds[1].ravel()),
        "ANGLES_INC_HYDROGEN": _wholes(angles[0].ravel()),
        "ANGLES_WITHOUT_HYDROGEN": _wholes(angles[1].ravel()),
        "DIHEDRALS_INC_HYDROGEN": _wholes(torsions[0].ravel()),
        "DIHEDRALS_WITHOUT_HYDROGEN": _wholes(torsions[1].ravel()),
        "EXCLUDED_ATOMS_LIST": _wholes(excluded),
        "HBOND_ACOEF": _reals([]), "HBOND_BCOEF": _reals([]), "HBCUT": _reals([]),
        "AMBER_ATOM_TYPE": _texts(types),
        "TREE_CHAIN_CLASSIFICATION": _texts(["BLA"] * len(atoms)),
        "JOIN_ARRAY": _wholes(np.zeros(len(atoms), int)),
        "IROTAT": _wholes(np.zeros(len(atoms), int)),
        "RADIUS_SET": ("1a80", [set_name]),
        **radii,
    }  # fmt: skip
    head = "%VERSION  VERSION_STAMP = V0001.000  DATE = 01/01/00  00:00:00"
    lines = [head.ljust(80)]
    for name, (form, rows) in sections.items():
        lines += [f"%FLAG {name}".ljust(80), f"%FORMAT({form})".ljust(80), *(rows or [""])]
    return "\n".join(lines) + "\n"


def rst7_text(positions: Floats, title: str = "") -> str:
    """Return the text of an AMBER restart (rst7, inpcrd) with positions (n, 3) A. Raises FormatError beyond 9,999 A."""
    lines = [" ".join(title.split())[:80], f"{len(positions):6d}"]
    values = [f"{value:12.7f}" for value in positions.ravel()]
    if any(len(value) > 12 for value in values):
        raise FormatError("positions beyond 9,999 A do not fit into an AMBER restart file; move the molecule")
    lines += ["".join(values[k : k + 6]) for k in range(0, len(values), 6)]
    return "\n".join(lines) + "\n"


Section = tuple[str, list[str]]


def _reals(values: Floats | Sequence[float] | None) -> Section:
    texts = [f"{value:16.8E}" for value in ([] if values is None else values)]
    return "5E16.8", ["".join(texts[k : k + 5]) for k in range(0, len(texts), 5)]


def _wholes(values: Iterable[int]) -> Section:
    texts = [f"{value:8d}" for value in values]
    return "10I8", ["".join(texts[k : k + 10]) for k in range(0, len(texts), 10)]


def _texts(values: Iterable[str]) -> Section:
    texts = [str(value)[:4].ljust(4) for value in values]
    return "20a4", ["".join(texts[k : k + 20]) for k in range(0, len(texts), 20)]


def _lennard_jones(kinds: Floats, is_arithmetic: bool) -> tuple[Floats, Floats, Ints]:
    """Return A and B of all pairs of types, and their index for each pair, from 1. kinds : (k, 2) sigma, epsilon"""
    n = len(kinds)
    j, i = np.triu_indices(n)
    order = np.lexsort((j, i))
    i, j = i[order], j[order]  # j <= i, row by row of the lower triangle
    sigma = (kinds[i, 0] + kinds[j, 0]) / 2 if is_arithmetic else np.sqrt(kinds[i, 0] * kinds[j, 0])
    epsilon = np.sqrt(kinds[i, 1] * kinds[j, 1])
    index = np.zeros((n, n), int)
    index[i, j] = index[j, i] = np.arange(1, len(i) + 1)
    return 4 * epsilon * sigma**12, 4 * epsilon * sigma**6, index.ravel()


def _rows(
    members: Ints, figures: Floats, is_hydrogen: np.ndarray, signed: bool = False
) -> tuple[np.ndarray, np.ndarray, Floats]:  # fmt: skip
    """Return the rows of terms with hydrogen and without, and the distinct parameter sets.

    A row has the atom indices times three and the number of the parameter set. signed : True if members are numbered
    from 1 and may be negative
    """
    kinds, kind_of = np.unique(figures, axis=0, return_inverse=True) if len(figures) else (figures, np.zeros(0, int))
    places = np.sign(members) * (np.abs(members) - 1) * 3 if signed else members * 3
    rows = np.concatenate([places, kind_of.reshape(-1, 1) + 1], axis=1).astype(int)
    own = np.abs(members) - 1 if signed else members
    has = is_hydrogen[own].any(axis=1) if len(own) else np.zeros(0, bool)
    return rows[has], rows[~has], kinds


def _torsions(atoms: Atoms) -> tuple[np.ndarray, Floats]:
    """Return torsions and impropers as in AMBER: atoms (m, 4) from 1, and k, n, phase and the 1-4 scale factors (m, 5).

    A negative third atom means that the row has no 1-4 pair; a negative fourth atom marks an improper. Because index 0
    has no sign in the file, rows with the first atom in the third or fourth position are reversed.
    """
    bonded = atoms.bonded
    assert bonded is not None
    scales = 1 / np.maximum(scales_of_pairs(atoms, _WHAT), 1e-30)
    scales = np.where(scales > 1e29, 0.0, scales)  # no energy in AMBER's programs
    left = dict(zip(pair_codes(bonded.one_four.atoms).tolist(), scales.tolist(), strict=True))
    usual = [1 / scale if scale else 0.0 for scale in atoms.one_four]
    rows, figures = list[list[int]](), list[list[float]]()

    def add(members: Sequence[int], parameters: Sequence[float], pair: Sequence[float] | None, improper: bool) -> None:
        i, j, k, l = members  # noqa: E741
        if 0 in (k, l):
            i, j, k, l = l, k, j, i  # noqa: E741
        rows.append([i + 1, j + 1, (k + 1) * (1 if pair else -1), (l + 1) * (-1 if improper else 1)])
        figures.append([*parameters, *(pair or usual)])

    for members, parameters in zip(bonded.torsions.atoms.tolist(), bonded.torsions.parameters.tolist(), strict=True):
        pair = left.pop(int(pair_codes(np.array([[members[0], members[3]]]))[0]), None)
        add(members, parameters, pair, False)
    if left:  # 1-4 pairs without a torsion
        for members in _paths(bonded.bonds.atoms, left):
            add(members, [0.0, 1.0, 0.0], left.pop(int(pair_codes(np.array([[members[0], members[3]]]))[0])), False)
    for members, parameters in zip(bonded.impropers.atoms.tolist(), bonded.impropers.parameters.tolist(), strict=True):
        add(members, parameters, None, True)
    return np.array(rows, int).reshape(-1, 4), np.array(figures).reshape(-1, 5)


def _paths(bonds: Ints, wanted: dict[int, list[float]]) -> list[list[int]]:
    """Find a path of three bonds between the atoms of each wanted pair."""
    near = defaultdict[int, list[int]](list)
    for i, j in bonds.tolist():
        near[i].append(j)
        near[j].append(i)
    found = dict[int, list[int]]()
    for j, k in bonds.tolist():
        for i in near[j]:
            for l in near[k]:  # noqa: E741
                if len({i, j, k, l}) == 4:
                    code = int(pair_codes(np.array([[i, l]]))[0])
                    if code in wanted:
                        found.setdefault(code, [i, j, k, l])
    return list(found.values())


def _excluded(pairs: Ints, n_atoms: int) -> tuple[list[int], list[int]]:
    """Return the number of excluded later atoms of each atom, and their list from 1, with 0 for atoms without any."""
    ordered = np.unique(np.sort(pairs.reshape(-1, 2), axis=1), axis=0)
    others = defaultdict[int, list[int]](list)
    for i, j in ordered.tolist():
        others[i].append(j + 1)
    lists = [others.get(i, [0]) for i in range(n_atoms)]
    return [len(of) for of in lists], [k for of in lists for k in of]
