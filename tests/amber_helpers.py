"""Write AMBER topologies and coordinates without the package's own code, and compute bonded energies in NumPy."""

from __future__ import annotations

import itertools
import re
import struct
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import gemmi
import numpy as np

import pele_ocl
from pele_ocl.atoms import Bonded

ROOT = Path(__file__).parent.parent
# Files of AMBER's own tests, which stand beside the checkout where there are any.
SAMPLES = next((p for p in (r / "shared" / "amber_samples" for r in ROOT.parents) if p.is_dir()), ROOT / "no samples")

Content = dict[str, tuple[str, list]]  # name of a section -> its format and its values
TORSIONS = [(1.4, 2, np.pi, 1.2, 2.0), (0.156, 3, 0.0, 1.2, 2.0), (0.8, 1, 1.25, 1.0, 1.4), (1.1, 2, np.pi, 1.2, 2.0)]
N_MAPS, MAP_SIZE = 2, 24


def rendered(content: Content) -> str:
    """Return a topology as text."""
    parts = [f"{'%VERSION  VERSION_STAMP = V0001.000  DATE = 01/02/26  03:04:05':<80}\n"]
    for name, (form, values) in content.items():
        parts += [f"{f'%FLAG {name}':<80}\n{f'%FORMAT({form})':<80}\n", *_lines(form, values)]
    return "".join(parts)


def _lines(form: str, values: Iterable[object]) -> Iterable[str]:
    count, letter, width = re.fullmatch(r"(\d+)\(?([aIEF])(\d+)(?:\.\d)?\)?", form).groups()
    write = {"a": f"{{:<{width}}}", "I": f"{{:{width}d}}", "E": f"{{:{width}.8E}}", "F": f"{{:{width}.5f}}"}[
        letter
    ].format
    cells = [*map(write, values)]
    step = int(count)
    return ["".join(cells[k : k + step]) + "\n" for k in range(0, len(cells), step)] or ["\n"]


@cache
def hexapeptide() -> pele_ocl.Atoms:
    return pele_ocl.read(ROOT / "data" / "structures" / "hexapeptide.pdb")


@cache
def _graph() -> dict[str, list[tuple[int, ...]]]:
    """Return bonds, angles, torsions, impropers, CMAP terms, 1-4 pairs and exclusions of the hexapeptide."""
    atoms = hexapeptide()
    near = [set() for _ in range(len(atoms))]
    for i, j in atoms.bonds.tolist():
        near[i].add(j), near[j].add(i)
    angles = [(i, j, k) for j in range(len(near)) for i, k in itertools.combinations(sorted(near[j]), 2)]
    torsions = [
        (i, j, k, m)
        for j, k in atoms.bonds.tolist() for i in sorted(near[j] - {k}) for m in sorted(near[k] - {j, i})
    ]  # fmt: skip
    impropers = [(a, b, c, d) for c, of in enumerate(near) if len(of) == 3 for a, b, d in [sorted(of)]]
    apart = [[{i}] for i in range(len(near))]
    for shells in apart:
        for _ in range(3):
            shells.append({j for k in shells[-1] for j in near[k]} - set().union(*shells))
    pairs = {n: [(i, j) for i, shells in enumerate(apart) for j in sorted(shells[n]) if j > i] for n in (1, 2, 3)}
    named = {str(atoms.labels.atom(i)).split(":", 1)[1]: i for i in range(len(near))}
    residues = [str(r).split(":")[1] for r in atoms.labels.residues]
    cmaps = [
        tuple(named[f"{r}:{name}"] for r, name in zip((a, b, b, b, c), ("C", "N", "CA", "C", "N"), strict=True))
        for a, b, c in zip(residues, residues[1:], residues[2:], strict=False)
    ]  # fmt: skip
    return {
        "bonds": atoms.bonds.tolist(), "angles": angles, "torsions": torsions, "impropers": impropers,
        "cmaps": cmaps, "one_four": pairs[3], "excluded": sorted(itertools.chain(*pairs.values())),
    }  # fmt: skip


def content(copies: int = 1) -> Content:
    """Return the sections of a topology of hexapeptides, with invented bonded parameters."""
    atoms, graph = hexapeptide(), _graph()
    n, n_all = len(atoms), copies * len(atoms)
    labels = atoms.labels
    kinds, types = np.unique(np.column_stack([atoms.lj_sigma, atoms.lj_epsilon]), axis=0, return_inverse=True)
    types = types.reshape(-1)
    of_type = [f"T{t}" for t in range(len(kinds))]
    one_four, rows = set(graph["one_four"]), []
    for number, (i, j, k, m) in enumerate(graph["torsions"]):
        if 0 in (k, m):
            i, j, k, m = m, k, j, i
        ends = (min(i, m), max(i, m))
        own = ends in one_four
        one_four.discard(ends)
        kind = number % len(TORSIONS)
        rows.append((3 * i, 3 * j, 3 * k if own else -3 * k, 3 * m, kind + 1))
        if number % 3 == 0:  # a second term of the same torsion
            rows.append((3 * i, 3 * j, -3 * k, 3 * m, (kind + 1) % len(TORSIONS) + 1))
    assert not one_four
    rows += [(3 * a, 3 * b, -3 * c, -3 * d, 4) for a, b, c, d in graph["impropers"]]
    light = {i for i in range(n) if labels.elements[i] == "H"}

    def both(terms: list[tuple[int, ...]]) -> list[list[tuple[int, ...]]]:
        """Return the terms with and without hydrogen, of all copies."""
        split = [[], []]
        for term in terms:
            split[not any(abs(p) // 3 in light for p in term[:-1])].append(term)
        return [
            [(*(p + (3 * n * c if p >= 0 else -3 * n * c) for p in t[:-1]), t[-1]) for c in range(copies) for t in half]
            for half in split
        ]

    bonds = both([(*(3 * i for i in of), k % 4 + 1) for k, of in enumerate(graph["bonds"])])
    angles = both([(*(3 * i for i in of), k % 5 + 1) for k, of in enumerate(graph["angles"])])
    torsions = both(rows)
    excluded = [[j for i, j in graph["excluded"] if i == k] or [-1] for k in range(n)]
    all_excluded = [j + 1 + (n * c if j >= 0 else 0) for c in range(copies) for of in excluded for j in of]
    a, b = _coefficients(*kinds.T)
    t = len(kinds)
    pointers = [0] * 31
    counts = {0: n_all, 1: t, 2: len(bonds[0]), 3: len(bonds[1]), 4: len(angles[0]), 5: len(angles[1]),
              6: len(torsions[0]), 7: len(torsions[1]), 10: len(all_excluded), 11: copies * len(labels.residue_starts),
              12: len(bonds[1]), 13: len(angles[1]), 14: len(torsions[1]), 15: 4, 16: 5, 17: len(TORSIONS), 18: t,
              28: 24}  # fmt: skip
    for k, value in counts.items():
        pointers[k] = value
    index = np.zeros((t, t), int)
    index[np.tril_indices(t)] = np.arange(1, t * (t + 1) // 2 + 1)
    index = np.maximum(index, index.T)
    starts = [int(s) + 1 + n * c for c in range(copies) for s in labels.residue_starts]
    numbers = [gemmi.Element(s).atomic_number for s in labels.elements.tolist()]
    masses = [gemmi.Element(s).weight for s in labels.elements.tolist()]
    residues = [r.name for r in labels.residues]
    parameter = zip(*TORSIONS, strict=True)
    return {
        "TITLE": ("20a4", ["hexa", "pept", "ides"]),
        "POINTERS": ("10I8", pointers),
        "ATOM_NAME": ("20a4", labels.names.tolist() * copies),
        "CHARGE": ("5E16.8", (atoms.charges * 18.2223).tolist() * copies),
        "ATOMIC_NUMBER": ("10I8", numbers * copies),
        "MASS": ("5E16.8", masses * copies),
        "ATOM_TYPE_INDEX": ("10I8", (types + 1).tolist() * copies),
        "NUMBER_EXCLUDED_ATOMS": ("10I8", [len(of) for of in excluded] * copies),
        "NONBONDED_PARM_INDEX": ("10I8", index.ravel().tolist()),
        "RESIDUE_LABEL": ("20a4", residues * copies),
        "RESIDUE_POINTER": ("10I8", starts),
        "BOND_FORCE_CONSTANT": ("5E16.8", [570.0, 490.0, 340.0, 310.0]),
        "BOND_EQUIL_VALUE": ("5E16.8", [1.229, 1.335, 1.09, 1.526]),
        "ANGLE_FORCE_CONSTANT": ("5E16.8", [80.0, 70.0, 63.0, 50.0, 35.0]),
        "ANGLE_EQUIL_VALUE": ("5E16.8", [2.1, 2.035, 1.939, 1.911, 1.92]),
        **{
            name: ("5E16.8", list(values))
            for name, values in zip(
                ("DIHEDRAL_FORCE_CONSTANT", "DIHEDRAL_PERIODICITY", "DIHEDRAL_PHASE", "SCEE_SCALE_FACTOR",
                 "SCNB_SCALE_FACTOR"), parameter, strict=True,
            )
        },
        "SOLTY": ("5E16.8", [0.0] * t),
        "LENNARD_JONES_ACOEF": ("5E16.8", a),
        "LENNARD_JONES_BCOEF": ("5E16.8", b),
        **{
            name + end: ("10I8", [*itertools.chain(*half)])
            for name, halves in (("BONDS", bonds), ("ANGLES", angles), ("DIHEDRALS", torsions))
            for end, half in zip(("_INC_HYDROGEN", "_WITHOUT_HYDROGEN"), halves, strict=True)
        },
        "EXCLUDED_ATOMS_LIST": ("10I8", all_excluded),
        "HBOND_ACOEF": ("5E16.8", []),
        "HBOND_BCOEF": ("5E16.8", []),
        "HBCUT": ("5E16.8", []),
        "AMBER_ATOM_TYPE": ("20a4", [of_type[t] for t in types.tolist()] * copies),
        "TREE_CHAIN_CLASSIFICATION": ("20a4", ["BLA"] * n_all),
        "JOIN_ARRAY": ("10I8", [0] * n_all),
        "IROTAT": ("10I8", [0] * n_all),
        "RADIUS_SET": ("1a80", ["H(N)-modified Bondi radii (mbondi2)"]),
        "RADII": ("5E16.8", atoms.gb_radii.tolist() * copies),
        "SCREEN": ("5E16.8", atoms.gb_scales.tolist() * copies),
        "IPOL": ("1I8", [0]),
    }  # fmt: skip


def _coefficients(sigma: np.ndarray, epsilon: np.ndarray) -> tuple[list[float], list[float]]:
    """Return the Lennard-Jones A and B of pairs of types, i >= j, by the Lorentz-Berthelot rules."""
    i, j = np.tril_indices(len(sigma))
    s, e = (sigma[i] + sigma[j]) / 2, np.sqrt(epsilon[i] * epsilon[j])
    return (4 * e * s**12).tolist(), (4 * e * s**6).tolist()


def with_cmap(made: Content, prefix: str = "") -> Content:
    """Add CMAP terms with two maps to the sections; the maps start at -180 degrees."""
    chains = _graph()["cmaps"]
    rows = [value for k, of in enumerate(chains) for value in (*(i + 1 for i in of), k % N_MAPS + 1)]
    return {
        **made,
        f"{prefix}CMAP_COUNT": ("2I8", [len(chains), N_MAPS]),
        f"{prefix}CMAP_RESOLUTION": ("20I4", [MAP_SIZE] * N_MAPS),
        **{f"{prefix}CMAP_PARAMETER_{k:02d}": ("8(F9.5)", map_values(k).ravel().tolist()) for k in (1, 2)},
        f"{prefix}CMAP_INDEX": ("6I8", rows),
    }


def map_values(k: int) -> np.ndarray:
    """Return map k (1 or 2), whose rows and columns start at -180 degrees."""
    angles = -np.pi + 2 * np.pi * np.arange(MAP_SIZE) / MAP_SIZE
    return np.round(k * np.cos(angles[:, None] - 0.5) + np.sin(2 * angles[None, :]) * np.cos(angles[:, None]), 5)


def with_charmm(made: Content) -> Content:
    """Return the sections in the format that ParmEd uses for a CHARMM force field."""
    a, b = (np.array(made[f"LENNARD_JONES_{of}COEF"][1]) for of in "AB")
    graph = _graph()
    bradley = [
        value for k, (i, _, m) in enumerate(graph["angles"]) if k % 4 == 0 for value in (i + 1, m + 1, k % 2 + 1)
    ]
    impropers = [value for k, of in enumerate(graph["impropers"]) for value in (*(i + 1 for i in of), k % 2 + 1)]
    first = {"CTITLE": ("20a4", ["CHAR", "MM"]), "FORCE_FIELD_TYPE": ("1a80", [" 1 CHARMM  31"])}
    torsions = {
        name: (form, [1.0] * len(values) if name.startswith("SC") else values)
        for name, (form, values) in made.items() if name != "TITLE"
    }  # fmt: skip
    return {
        **first,
        **torsions,
        "LENNARD_JONES_14_ACOEF": ("3E16.8", (0.7 * a).tolist()),
        "LENNARD_JONES_14_BCOEF": ("3E16.8", (0.8 * b).tolist()),
        "CHARMM_UREY_BRADLEY_COUNT": ("2I8", [len(bradley) // 3, 2]),
        "CHARMM_UREY_BRADLEY": ("10I8", bradley),
        "CHARMM_UREY_BRADLEY_FORCE_CONSTANT": ("5E16.8", [5.4, 22.53]),
        "CHARMM_UREY_BRADLEY_EQUIL_VALUE": ("5E16.8", [1.802, 2.179]),
        "CHARMM_NUM_IMPROPERS": ("10I8", [len(impropers) // 5]),
        "CHARMM_IMPROPERS": ("10I8", impropers),
        "CHARMM_NUM_IMPR_TYPES": ("1I8", [2]),
        "CHARMM_IMPROPER_FORCE_CONSTANT": ("5E16.8", [120.0, 20.0]),
        "CHARMM_IMPROPER_PHASE": ("5E16.8", [0.0, 0.6154]),
    }


def restart(positions: np.ndarray, velocities: bool = False, box: bool = False) -> str:
    """Return a restart file as text, format 6F12.7."""
    values = [f"{value:12.7f}" for value in positions.ravel().tolist()]
    lines = ["".join(values[k : k + 6]) + "\n" for k in range(0, len(values), 6)]
    end = ["".join(f"{value:12.7f}" for value in (50, 50, 50, 90, 90, 90)) + "\n"] if box else []
    return "".join(
        ["hexapeptide\n", f"{len(positions):6d}  0.1000000E+01\n", *lines, *(lines if velocities else []), *end]
    )


def netcdf(
    frames: np.ndarray, version: int = 2, trajectory: bool = True, units: str = "angstrom", scale: float | None = None
) -> bytes:
    """Return NetCDF bytes, version 1, 2 or 5: a trajectory of float32 frames (m, n, 3), or a restart of the first."""
    size = ">Q" if version == 5 else ">I"

    def number(value: int) -> bytes:
        return struct.pack(size, value)

    def name(text: str) -> bytes:
        return number(len(text)) + text.encode().ljust(-(-len(text) // 4) * 4, b"\0")

    def attributes(**texts: str) -> bytes:
        made = b"".join(name(key) + struct.pack(">I", 2) + name(value) for key, value in texts.items())
        return struct.pack(">I", 12) + number(len(texts)) + made

    n = frames.shape[1]
    dimensions = [("frame", 0), ("spatial", 3), ("atom", n)] if trajectory else [("spatial", 3), ("atom", n)]
    shape = [0, 2, 1] if trajectory else [1, 0]
    kind, itemsize = (5, 4) if trajectory else (6, 8)
    head = b"CDF" + bytes([version]) + number(len(frames) if trajectory else 0)
    head += struct.pack(">I", 10) + number(len(dimensions)) + b"".join(name(d) + number(s) for d, s in dimensions)
    head += attributes(Conventions="AMBER" if trajectory else "AMBERRESTART", ConventionVersion="1.0")
    variables = [("time", shape[:1] if trajectory else [], 4 if trajectory else 8, attributes(units="picosecond"))]
    factor = (
        b"" if scale is None else name("scale_factor") + struct.pack(">I", 6) + number(1) + struct.pack(">d", scale)
    )
    of_coordinates = struct.pack(">I", 12) + number(1 + bool(factor)) + attributes(units=units)[4 + len(number(0)) :]
    variables.append(("coordinates", shape, 3 * n * itemsize, of_coordinates + factor))
    offset_size = 4 if version == 1 else 8
    length = len(head) + 4 + len(number(0))
    length += sum(len(name(v)) + len(number(0)) * (2 + len(s)) + len(a) + 4 + offset_size for v, s, _, a in variables)
    head += struct.pack(">I", 11) + number(len(variables))
    for text, of, n_bytes, attribute in variables:
        head += name(text) + number(len(of)) + b"".join(map(number, of)) + attribute
        head += struct.pack(">I", kind) + number(n_bytes) + length.to_bytes(offset_size, "big")
        length += n_bytes
    dtype = ">f4" if trajectory else ">f8"
    body = [np.array([k], dtype).tobytes() + frame.astype(dtype).tobytes() for k, frame in enumerate(frames)]
    return head + b"".join(body if trajectory else body[:1])


def dihedrals(x: np.ndarray, atoms: np.ndarray) -> np.ndarray:
    """Return dihedral angles (m,) in rad, from the positions of four atoms each."""
    b1, b2, b3 = (x[atoms[:, k + 1]] - x[atoms[:, k]] for k in range(3))
    one, other = np.cross(b1, b2), np.cross(b2, b3)
    return np.arctan2((np.cross(one, other) * b2).sum(axis=1) / np.linalg.norm(b2, axis=1), (one * other).sum(axis=1))


def bonded_energies(bonded: Bonded, x: np.ndarray, coulomb: float) -> dict[str, float]:
    """Return the energies of the tables, kcal/mol, without CMAP, in plain NumPy. x : (n, 3) A"""

    def distances(atoms: np.ndarray) -> np.ndarray:
        return np.linalg.norm(x[atoms[:, 0]] - x[atoms[:, -1]], axis=1)

    def periodic(atoms: np.ndarray, parameters: np.ndarray) -> float:
        k, n, phase = parameters.T
        return float((k * (1 + np.cos(n * dihedrals(x, atoms) - phase))).sum())

    def harmonic(values: np.ndarray, parameters: np.ndarray) -> float:
        return float((parameters[:, 0] * (values - parameters[:, 1]) ** 2).sum())

    a = bonded.angles.atoms
    u, v = x[a[:, 0]] - x[a[:, 1]], x[a[:, 2]] - x[a[:, 1]]
    cosines = (u * v).sum(axis=1) / np.linalg.norm(u, axis=1) / np.linalg.norm(v, axis=1)
    out = bonded.harmonic_impropers
    off = dihedrals(x, out.atoms) - out.parameters[:, 1]
    charge, sigma, epsilon = bonded.one_four.parameters.T
    r = distances(bonded.one_four.atoms)
    return {
        "bond": harmonic(distances(bonded.bonds.atoms), bonded.bonds.parameters),
        "angle": harmonic(np.arccos(cosines), bonded.angles.parameters),
        "torsion": periodic(bonded.torsions.atoms, bonded.torsions.parameters)
        + periodic(bonded.impropers.atoms, bonded.impropers.parameters),
        "urey_bradley": harmonic(distances(bonded.urey_bradley.atoms), bonded.urey_bradley.parameters),
        "harmonic_improper": float((out.parameters[:, 0] * (off - 2 * np.pi * np.round(off / 2 / np.pi)) ** 2).sum()),
        "lennard_jones_14": float((4 * epsilon * ((sigma / r) ** 12 - (sigma / r) ** 6)).sum()),
        "coulomb_14": float(coulomb * (charge / r).sum()),
    }
