"""The terms across bonds between residues, in PELE's layout of `inter_residue_bonds`; a part of make_amber99sb.py."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from itertools import combinations

from openmm_terms import Atom, Figures, Graph, TermFigures

from pele_ocl.forcefield import Template

_LABELS = {"BOND": "BOND", "THET": "ANGL", "PHI": "TORS", "IPHI": "ITOR"}
_HEAD = """\
# Bonded terms across a bond between two residues, from OpenMM's amber99sb.xml (data/make_amber99sb.py).
# * marks atoms of the second residue; N:N3 is an atom N of type N3; impropers by index, as OpenMM has them.
NAME {}
"""

Rows = tuple[Figures, ...]
Atoms = tuple[Atom, ...]


def links_text(
    name: str, residues: Sequence[tuple[Template, Graph]], ends: tuple[str, str], figures: TermFigures,
    text: Callable[[Figures], str],
) -> str:  # fmt: skip
    """The file of one kind of bond.

    residues : all that may have it; ends : the attributes of Template that give its two atoms
    """
    found: dict[str, dict[Atoms, Rows]] = defaultdict(dict)
    for first, left in _ends(residues, ends[0]):
        for second, right in _ends(residues, ends[1]):
            for section, atoms, rows in _crossing(first, left, second, right, figures):
                found[section].setdefault(atoms, rows)
    lines = []
    for section, label in _LABELS.items():
        for names, rows in sorted(_by_name(found[section]).items()):
            lines += [f"{label} {' '.join(names)} {text(row)}" for row in rows]
    return _HEAD.format(name) + "\n".join(lines) + "\n"


def _ends(residues: Sequence[tuple[Template, Graph]], end: str) -> list[tuple[Graph, int]]:
    """The atoms within two bonds of such an end, with the end among them, each neighbourhood once."""
    found: dict[tuple[object, ...], tuple[Graph, int]] = {}
    for template, graph in residues:
        atom = getattr(template, end)
        if atom >= 0:
            near = {atom}
            for _ in range(2):
                near |= {j for i in near for j in graph.neighbours[i]}
            kept = sorted(near)
            bonds = [(kept.index(i), kept.index(j)) for i, j in graph.bonds if {i, j} <= near]
            part = Graph([graph.atoms[i] for i in kept], bonds)
            named = sorted((part.atoms[i], part.atoms[j]) for i, j in bonds)
            found.setdefault((graph.atoms[atom], *named), (part, kept.index(atom)))
    return list(found.values())


def _crossing(
    first: Graph, left: int, second: Graph, right: int, figures: TermFigures
) -> list[tuple[str, Atoms, Rows]]:
    """Every bond, angle, torsion and improper with atoms of both residues, those without rows too."""
    n = len(first.atoms)
    bonds = [*first.bonds, *((i + n, j + n) for i, j in second.bonds), (left, right + n)]
    bond = first.atoms[left].class_, second.atoms[right].class_
    if not figures.bond(*bond)[0]:
        return []
    graph = Graph([*first.atoms, *(atom._replace(second=True) for atom in second.atoms)], bonds)
    rows = {(section, atoms): rows for section, terms in graph.terms(figures).items() for atoms, rows in terms}
    places = {"PHI": graph.torsions(), "THET": graph.angles(), "BOND": graph.bonds}
    empty: dict[tuple[str, tuple[int, ...]], list[Figures]] = {
        (section, tuple(atoms)): [] for section, all_ in places.items() for atoms in all_
    }
    return [
        (section, tuple(graph.atoms[i] for i in atoms), tuple(map(tuple, found)))
        for (section, atoms), found in {**empty, **rows}.items()
        if 0 < sum(i >= n for i in atoms) < len(atoms)
    ]


def _by_name(found: dict[Atoms, Rows]) -> dict[tuple[str, ...], Rows]:
    """Rows by the names of their atoms; with types where equal names have different rows."""
    same_names: dict[tuple[str, ...], dict[Atoms, Rows]] = defaultdict(dict)
    for atoms, rows in found.items():
        same_names[_names(atoms, ())][atoms] = rows
    result: dict[tuple[str, ...], Rows] = {}
    for terms in same_names.values():
        typed = next(
            places for count in range(5) for places in combinations(range(len(next(iter(terms)))), count)
            if _settles(terms, places)
        )  # fmt: skip
        result |= {_names(atoms, typed): rows for atoms, rows in terms.items() if rows}
    return result


def _settles(terms: dict[Atoms, Rows], typed: Sequence[int]) -> bool:
    """Whether names, with types at some places, tell terms of different rows apart."""
    rows_of: dict[tuple[str, ...], set[Rows]] = defaultdict(set)
    for atoms, rows in terms.items():
        rows_of[_names(atoms, typed)].add(rows)
    return all(len(rows) == 1 for rows in rows_of.values())


def _names(atoms: Atoms, typed: Sequence[int]) -> tuple[str, ...]:
    return tuple(
        f"{atom.name}{f':{atom.class_}' if k in typed else ''}{' *' if atom.second else ''}"
        for k, atom in enumerate(atoms)
    )
