"""Writer of PELE's files for a ligand: the IMPACT template (see templates.py) and the rows of its OBC table."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..atoms import Atoms, Floats
from ..atoms.bonded import pair_codes
from ..atoms.one_four import scales_of_pairs, written_terms
from ..common.errors import InputError

_WHAT = "a PELE template"
_LONGEST = 4  # maximum length of atom names


def template_text(atoms: Atoms, core: Sequence[int] = (), note: str = "") -> str:
    """Return the template of a molecule of one residue.

    core : indices of the atoms that no rotation moves, which PELE marks with M; by default all
    note : comment at the beginning

    Lengths are R* = Rmin/2 if the combining rule is arithmetic (AMBER), otherwise sigma (OPLS). The SGB parameters are
    zero. Atoms are sorted as a tree from the core outwards, as in PELE.

    Raises InputError for atoms without parameters, for several residues, and for unsupported terms.
    """
    bonded = written_terms(atoms, _WHAT)
    labels = atoms.labels
    assert labels is not None
    assert atoms.lj_sigma is not None
    assert atoms.lj_epsilon is not None
    names = [str(name) for name in labels.names]
    if len(labels.residue_starts) != 1 or len(set(names)) < len(names) or max(map(len, names)) > _LONGEST:
        raise InputError(f"{_WHAT} needs a single residue whose atoms have unique names of up to four letters")
    usual = (1 / 1.2, 1 / 2) if atoms.combining == "arithmetic" else (1 / 2, 1 / 2)
    if not np.allclose(scales_of_pairs(atoms, _WHAT), usual, atol=1e-3):
        raise InputError(f"{_WHAT} has the 1-4 scales of its force field, but these atoms have others")
    order, parents = _tree(atoms, list(core) or list(range(len(atoms))))
    place = {atom: number for number, atom in enumerate(order, 1)}
    is_core = set(core) or set(range(len(atoms)))
    torsions = _torsions(atoms, place)
    impropers = [
        f"{_numbers(place, members)} {_figures(figures)}"
        for members, figures in zip(bonded.impropers.atoms.tolist(), bonded.impropers.parameters.tolist(), strict=True)
    ]
    counts = (len(atoms), len(bonded.bonds), len(bonded.angles), len(torsions) + len(impropers), 0)
    kind = "AMBER implementation" if atoms.combining == "arithmetic" else "OPLS"
    lines = [
        f"* LIGAND DATABASE FILE ({kind})", *([f"* {' '.join(note.split())}"] if note else []),
        "* NBON: length (A), epsilon (kcal/mol), charge (e); SGB figures are zero", "*",
        f"{labels.residue_names[0]:<5}" + "".join(f"{count:7d}" for count in counts),
    ]  # fmt: skip
    types = labels.elements if atoms.types is None else atoms.types
    for atom in order:
        parent = parents[atom]
        r, theta, phi = _internal(atoms.positions, atom, parents)
        lines.append(
            f"{place[atom]:5d} {0 if parent is None else place[parent]:5d} {'M' if atom in is_core else 'S'}   "
            f"{types[atom]!s:4} {padded(names[atom], str(labels.elements[atom]))} {0:5d} "
            f"{r:11.6f} {theta:11.6f} {phi:11.6f}"
        )
    lengths = atoms.lj_sigma * (2 ** (1 / 6) / 2 if atoms.combining == "arithmetic" else 1)
    lines.append("NBON")
    for atom in order:
        lines.append(
            f"{place[atom]:5d} {lengths[atom]:.10f} {atoms.lj_epsilon[atom]:.10f} {atoms.charges[atom]:.10f} "
            "0.0 0.0 0.0 0.0"
        )
    lines.append("BOND")
    for members, (k, r0) in zip(bonded.bonds.atoms.tolist(), bonded.bonds.parameters.tolist(), strict=True):
        lines.append(f"{_numbers(place, members)} {k:.8f} {r0:.8f}")
    lines.append("THET")
    for members, (k, angle) in zip(bonded.angles.atoms.tolist(), bonded.angles.parameters.tolist(), strict=True):
        lines.append(f"{_numbers(place, members)} {k:.8f} {np.degrees(angle):.8f}")
    return "\n".join([*lines, "PHI", *torsions, "IPHI", *impropers, "END", ""])


def obc_rows(atoms: Atoms) -> str:
    """Return the rows of an OBC table as in PELE's solventParamsHCTOBC.txt: template, atom, type, radius, scale.

    There is no header, because pele_platform expects five fields in each line. Raises InputError for atoms without GB
    radii.
    """
    atoms.require(("gb_radii", "gb_scales"), "an OBC table")
    labels = atoms.labels
    assert labels is not None
    assert atoms.gb_radii is not None
    assert atoms.gb_scales is not None
    types = labels.elements if atoms.types is None else atoms.types
    lines = list[str]()
    for k, name in enumerate(labels.names):
        radius, scale = atoms.gb_radii[k], atoms.gb_scales[k]
        lines.append(f"{labels.residue_names[k]}Z {name!s:4} {types[k]!s:4} {radius:.6g} {scale:.6g}")
    return "\n".join(lines) + "\n"


def padded(name: str, element: str) -> str:
    """Format an atom name in four columns, with underscores for blanks, as in PELE's files."""
    aligned = name if len(name) == _LONGEST or len(element) == 2 else f"_{name}"
    return aligned.ljust(4, "_")


def _numbers(place: dict[int, int], members: Sequence[int]) -> str:
    return "".join(f"{place[k]:6d}" for k in members)


def _figures(parameters: Sequence[float]) -> str:
    """Format k, sign and periodicity of a torsion, and its phase if it is neither 0 nor 180 degrees."""
    k, n, phase = parameters
    degrees = np.degrees(phase) % 360
    if min(degrees, 360 - degrees) < 1e-4:
        return f"{k:.8f} {1.0:4.1f} {int(n):2d}"
    if abs(degrees - 180) < 1e-4:
        return f"{k:.8f} {-1.0:4.1f} {int(n):2d}"
    return f"{k:.8f} {1.0:4.1f} {int(n):2d} {degrees:.8f}"


def _torsions(atoms: Atoms, place: dict[int, int]) -> list[str]:
    """Return the rows of PHI. A negative third atom marks a repeated 1-4 pair, so that PELE counts each pair once."""
    assert atoms.bonded is not None
    left = set(pair_codes(atoms.bonded.one_four.atoms).tolist())
    rows = list[str]()

    def add(members: Sequence[int], figures: str) -> None:
        code = int(pair_codes(np.array([[members[0], members[3]]]))[0])
        i, j, k, l = (place[m] for m in members)  # noqa: E741
        rows.append(f"{i:6d}{j:6d}{k if code in left else -k:6d}{l:6d} {figures}")
        left.discard(code)

    table = atoms.bonded.torsions
    for members, parameters in zip(table.atoms.tolist(), table.parameters.tolist(), strict=True):
        add(members, _figures(parameters))
    if left:
        near = _neighbours(atoms)
        for j, k in atoms.bond_pairs.tolist():
            for i in near[j]:
                for l in near[k]:  # noqa: E741
                    if len({i, j, k, l}) == 4 and int(pair_codes(np.array([[i, l]]))[0]) in left:
                        add((i, j, k, l), _figures((0.0, 1, 0.0)))
    return rows


def _neighbours(atoms: Atoms) -> list[list[int]]:
    near: list[list[int]] = [[] for _ in range(len(atoms))]
    for i, j in atoms.bond_pairs.tolist():
        near[i].append(j)
        near[j].append(i)
    return near


def _tree(atoms: Atoms, core: Sequence[int]) -> tuple[list[int], dict[int, int | None]]:
    """Sort the atoms as a tree, first those of the core, and return the order and the parent of each atom."""
    near, own = _neighbours(atoms), set(core)
    start = min(core)
    order, parents, ahead, later = list[int](), dict[int, int | None]({start: None}), [start], list[int]()
    while ahead or later:
        atom = (ahead or later).pop(0)
        order.append(atom)
        for other in near[atom]:
            if other not in parents:
                parents[other] = atom
                (ahead if other in own else later).append(other)
    if len(order) < len(atoms):
        raise InputError(f"{_WHAT} needs a single molecule, whose atoms are connected by bonds")
    return order, parents


def _internal(positions: Floats, atom: int, parents: dict[int, int | None]) -> tuple[float, float, float]:
    """Return the distance (A), angle and torsion (degrees) of an atom to its ancestors in the tree; 0 if missing."""
    chain = [atom]
    while len(chain) < 4 and (parent := parents[chain[-1]]) is not None:
        chain.append(parent)
    points = positions[chain]
    r = float(np.linalg.norm(points[0] - points[1])) if len(chain) > 1 else 0.0
    theta = phi = 0.0
    if len(chain) > 2:
        one, two = points[0] - points[1], points[2] - points[1]
        cosine = one @ two / max(np.linalg.norm(one) * np.linalg.norm(two), 1e-12)
        theta = float(np.degrees(np.arccos(np.clip(cosine, -1, 1))))
    if len(chain) > 3:
        b1, b2, b3 = points[1] - points[0], points[2] - points[1], points[3] - points[2]
        n1, n2 = np.cross(b1, b2), np.cross(b2, b3)
        phi = float(np.degrees(np.arctan2(np.linalg.norm(b2) * (b1 @ n2), n1 @ n2)))
    return r, theta, phi
