"""Findings about structures and energies: problems that are repaired, refused or noted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..atoms import Atoms, Floats, Ints, TermTable
from ..atoms.bond_paths import exclusions
from ..atoms.chemistry import covalent_radius
from ..atoms.close_pairs import close_pair, close_pairs
from ..common.errors import InputError

Action = Literal["repaired", "refused", "noted"]

TOO_LONG = 3.0  # A, largest stretching of a bond in an unbroken structure
USUAL_BOND = 1.5  # A, length of bonds not defined by a force field
_MOST_LONGER, _SHORTEST = 0.6, 0.5  # A, and as a fraction; limits for bonds if the order of atoms is correct
_SAME_PLACE = 1e-4  # A, below which energies are not defined
ON_TOP = 0.5  # A, smallest distance of atoms in a molecule
_OFF_RULE = 0.05  # A, displacement of a virtual site larger than rounding in files
_DISULPHIDE = 2.5  # A, largest distance of bonded SG atoms
# Mean energies of strained structures, kcal/mol. Thermal motion at 300 K is 0.3 per bond or angle.
MOST_A_BOND, MOST_AN_ANGLE, MOST_LJ_AN_ATOM = 1.25, 1.5, 1.0
MOST_ONE_BOND = 50.0  # kcal/mol, about 0.4 A for a bond between heavy atoms
_STRAINED = 3.0  # kcal/mol, for a single bond


@dataclass(frozen=True)
class Finding:
    """A finding about the input.

    action : "repaired", "refused" or "noted"; text : a sentence; atoms : indices of the atoms concerned
    code : code for programs: docs/records.md
    """

    action: Action
    text: str
    atoms: tuple[int, ...] = ()
    code: str = "finding"

    def as_json(self) -> dict[str, object]:
        """Return the finding in JSON form."""
        return {"action": self.action, "code": self.code, "text": self.text, "atoms": list(self.atoms)}


def require(findings: Iterable[Finding], strict: bool = False, file: Path | None = None) -> None:
    """Raise InputError for the first refused finding. strict : also for noted ones; file : name in the message"""
    for finding in findings:
        if finding.action == "refused" or (strict and finding.action == "noted"):
            raise InputError(finding.text if file is None else f"{file}: {finding.text}", code=finding.code)


def of_structure(atoms: Atoms, torn: Action = "refused", *, places_sites: bool = False) -> list[Finding]:
    """Return findings about a structure, before an energy is computed.

    torn : action for impossibly long bonds, which a minimization may repair
    places_sites : whether virtual sites are first recomputed, as in minimizations and simulations
    """
    return [*_torn(atoms, torn), *_on_top(atoms), *_open_disulphides(atoms), *_displaced_sites(atoms, places_sites)]


def of_energy(
    atoms: Atoms, energy: Mapping[str, float], positions: ArrayLike | None = None, *, is_minimized: bool = False
) -> list[Finding]:
    """Return findings about unreasonably high energy terms, with their causes.

    energy : kcal/mol by term; positions : (n, 3) A of this energy; None for a mean over many, without causes
    is_minimized : whether the structure will be minimized, so that no advice to do so is needed
    """
    there = None if positions is None else np.asarray(positions, np.float64)
    advice = " at the start of the minimization" if is_minimized else f": {_remedy(atoms)}"
    found = [
        _of_bonds(atoms, energy, there, advice),
        _of_angles(atoms, energy, advice),
        _of_lennard_jones(atoms, energy, there, advice),
    ]
    return [finding for finding in found if finding is not None]


class HasFindings:
    """Mixin for results with atoms and an energy, which adds findings and notes."""

    if TYPE_CHECKING:

        @property
        def atoms(self) -> Atoms: ...

        @property
        def energy(self) -> dict[str, float]: ...

        @property
        def terms(self) -> Any: ...

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Findings about the structure and its energy: broken bonds, clashes, strain."""
        energy = self.energy if self.terms.names else {}  # empty if energies were not requested
        return (*of_structure(self.atoms), *of_energy(self.atoms, energy, self.atoms.positions))

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes about the atoms and their parameters, and the findings, as sentences."""
        return (*self.atoms.notes, *(finding.text for finding in self.findings))


def limits_of(atoms: Atoms, bonds: Ints) -> Floats:
    """Return the maximum possible lengths (m,) A of bonds (m, 2): 3 A more than in the force field, or than 1.5 A."""
    return _usual_lengths(atoms, bonds, np.full(len(bonds), USUAL_BOND)) + TOO_LONG


def _usual_lengths(atoms: Atoms, bonds: Ints, others: Floats) -> Floats:
    """Return bond lengths (m,) A in the force field. others : (m,) lengths for bonds without parameters"""
    lengths = others.copy()
    if atoms.bonded is not None and len(atoms.bonded.bonds) and len(bonds):
        codes, known = _codes(bonds, len(atoms)), _codes(atoms.bonded.bonds.atoms, len(atoms))
        order = np.argsort(known, kind="stable")
        places = np.searchsorted(known[order], codes).clip(max=len(known) - 1)
        has = known[order][places] == codes
        lengths[has] = atoms.bonded.bonds.parameters[order[places], 1][has]
    return lengths


def of_order(atoms: Atoms, bonds: Ints, positions: Floats) -> list[Finding]:
    """Return findings about positions (n, 3) A with impossible bond lengths, which suggest a different order of atoms.

    A bond is impossible if it is more than 0.6 A longer than both the force field's length and the sum of covalent
    radii, or shorter than half of both. Such bonds do not occur in simulations and crystals.

    bonds : (m, 2) bonds to check; bonds of virtual sites are ignored
    """
    bonds = bonds[~atoms.is_site[bonds].any(axis=1)]
    elements = ["X"] * len(atoms) if atoms.labels is None else atoms.labels.elements.tolist()
    radii = np.array([covalent_radius(element) if element not in ("", "X") else np.nan for element in elements])
    sums = radii[bonds].sum(axis=1)
    sums = np.where(np.isfinite(sums), sums, USUAL_BOND)
    usual, lengths = _usual_lengths(atoms, bonds, sums), _lengths(positions, bonds)
    is_long, is_short = lengths > np.maximum(usual, sums) + _MOST_LONGER, lengths < _SHORTEST * np.minimum(usual, sums)
    wrong = np.flatnonzero(is_long | is_short)
    if not len(wrong):
        return []
    worst = int(wrong[np.abs(lengths - usual)[wrong].argmax()])
    i, j = bonds[worst].tolist()
    more = f", and {len(wrong) - 1:,} more of {len(lengths):,} cannot be" if len(wrong) > 1 else ""
    text = (
        f"the bond of {atoms.describe(i)} and {atoms.describe(j)} is {lengths[worst]:,.2f} A long{more}; are the atoms "
        "in another order there?"
    )
    return [Finding("noted", text, tuple(np.unique(bonds[wrong]).tolist()))]


def impossible_bonds(atoms: Atoms) -> NDArray[np.intp]:
    """Return the indices of bonds that are more than 3 A too long."""
    return np.flatnonzero(_lengths(atoms.positions, atoms.bonds) > limits_of(atoms, atoms.bonds))


def bond_text(atoms: Atoms, i: int, j: int, length: float) -> str:
    """Describe an impossible bond."""
    return f"the bond of {atoms.describe(i)} and {atoms.describe(j)} is {length:,.1f} A long"


def _torn(atoms: Atoms, action: Action) -> list[Finding]:
    wrong = impossible_bonds(atoms)
    if not len(wrong):
        return []
    lengths = _lengths(atoms.positions, atoms.bonds[wrong])
    i, j = atoms.bonds[wrong[int(lengths.argmax())]].tolist()
    more = f", and {len(wrong) - 1:,} more cannot be" if len(wrong) > 1 else ""
    remedy = (
        "correct the structure, or make its molecules whole in their cell (gmx trjconv -pbc whole, cpptraj autoimage)"
    )
    text = f"{bond_text(atoms, i, j, float(lengths.max()))}{more}; {remedy}"
    return [Finding(action, text, tuple(np.unique(atoms.bonds[wrong]).tolist()), "torn")]


def _on_top(atoms: Atoms) -> list[Finding]:
    pair = close_pair(atoms.positions, _SAME_PLACE)
    if pair is not None:
        i, j = sorted(pair)
        text = f"{atoms.describe(i)} and {atoms.describe(j)} are at the same position; remove one of them"
        return [Finding("refused", text, (i, j), "same_place")]
    there, is_site = np.arange(len(atoms)), atoms.is_site
    if is_site.any():  # virtual sites may be inside other atoms
        there = np.flatnonzero(~is_site)
    pair = close_pair(atoms.positions[there], ON_TOP)
    if pair is None:
        return []
    i, j = sorted(int(there[k]) for k in pair)
    apart = float(np.linalg.norm(atoms.positions[i] - atoms.positions[j]))
    text = f"{atoms.describe(i)} and {atoms.describe(j)} are {apart:.2g} A apart, so they overlap; {_remedy(atoms)}"
    return [Finding("noted", text, (i, j), "on_top")]


def _displaced_sites(atoms: Atoms, places: bool) -> list[Finding]:
    """Return a finding about displaced virtual sites. places : whether they are recomputed"""
    sites = atoms.virtual_sites
    if sites is None or not np.isfinite(atoms.positions).all():
        return []
    own = sites.atoms
    apart = np.linalg.norm(sites.placed(atoms.positions)[own] - atoms.positions[own], axis=1)
    off = own[apart > _OFF_RULE]
    if not len(off):
        return []
    worst = atoms.describe(int(own[int(apart.argmax())]))
    what = "1 virtual site was" if len(off) == 1 else f"{len(off):,} virtual sites were"
    text = f"{what} up to {apart.max():.2f} A from the positions defined by their rules ({worst})"
    done = "their positions were recomputed" if places else "the energy is that of the given positions"
    return [Finding("repaired" if places else "noted", f"{text}; {done}", tuple(off.tolist()))]


def _open_disulphides(atoms: Atoms) -> list[Finding]:
    """Return findings about SG atoms at bonding distance without a bond, and CYX residues without a partner."""
    labels = atoms.labels
    if labels is None or not len(atoms.bonds):
        return []
    sulphurs = np.flatnonzero(labels.names == "SG")
    if not len(sulphurs):
        return []
    bonded = atoms.bonds[np.isin(atoms.bonds, sulphurs).all(axis=1)]
    found = list[Finding]()
    if len(sulphurs) > 1:
        points = atoms.positions[sulphurs]
        apart = np.linalg.norm(points[:, np.newaxis] - points, axis=2)
        known = set(map(tuple, np.sort(bonded, axis=1).tolist()))
        for a, b in np.argwhere(np.triu(apart < _DISULPHIDE, 1)).tolist():
            i, j = sorted((int(sulphurs[a]), int(sulphurs[b])))
            if (i, j) not in known:
                text = f"{atoms.describe(i)} and {atoms.describe(j)} are {apart[a, b]:.2f} A apart and not bonded"
                taken = [k for k in (i, j) if k in bonded]
                remedy = "name both residues as half cystines (CYX)"
                if taken:
                    remedy = f"{atoms.describe(taken[0])} forms a disulphide bond with a closer SG"
                found.append(Finding("noted", f"{text}; {remedy}", (i, j), "disulphide"))
    if any(getattr(note, "code", "") == "disulphide" for note in atoms.notes):  # already reported by the force field
        return found
    for i in sulphurs[(labels.residue_names[sulphurs] == "CYX") & ~np.isin(sulphurs, bonded)].tolist():
        text = (
            f"{atoms.describe(i)} is half of a disulphide without a partner; rename the residue to CYS or add the bond"
        )
        found.append(Finding("noted", text, (i,), "disulphide"))
    return found


def _of_bonds(atoms: Atoms, energy: Mapping[str, float], positions: Floats | None, advice: str) -> Finding | None:
    table = None if atoms.bonded is None else atoms.bonded.bonds
    if table is None or "bond" not in energy:
        return None
    is_beyond = _is_beyond(energy["bond"], MOST_A_BOND, len(table))
    if positions is None:
        none = np.empty((0, 2), np.int32)
        return _beyond(atoms, "bond", energy["bond"], table, "", none, advice) if is_beyond else None
    lengths = _lengths(positions, table.atoms)
    energies = table.parameters[:, 0] * (lengths - table.parameters[:, 1]) ** 2
    if not is_beyond:
        return _of_one_bond(atoms, table, lengths, energies, advice)
    strained = np.flatnonzero(energies > _STRAINED)
    with_hydrogen = strained[_is_hydrogen(atoms)[table.atoms[strained]].any(axis=1)]
    if len(with_hydrogen) > 1 and energies[with_hydrogen].sum() > energies.sum() / 2:
        cause = f"hydrogens at {np.median(lengths[with_hydrogen]):.2f} A"
        own = table.atoms[with_hydrogen]
    else:
        worst = int(energies.argmax())
        own = table.atoms[[worst]]
        i, j = own[0].tolist()
        cause = f"{atoms.describe(i)} and {atoms.describe(j)} at {lengths[worst]:.2f} A"
    return _beyond(atoms, "bond", energy["bond"], table, cause, own, advice)


def _of_one_bond(atoms: Atoms, table: TermTable, lengths: Floats, energies: Floats, advice: str) -> Finding | None:
    """Return a finding about a single bond with an unreasonable energy."""
    worst = int(energies.argmax()) if len(energies) else -1
    if worst < 0 or not energies[worst] > MOST_ONE_BOND:
        return None
    i, j = table.atoms[worst].tolist()
    more = np.count_nonzero(energies > MOST_ONE_BOND) - 1
    others = f", and {more:,} more such bonds" if more else ""
    text = f"bond energy of {energies[worst]:,.0f} kcal/mol from {atoms.describe(i)} and {atoms.describe(j)} at"
    return Finding("noted", f"{text} {lengths[worst]:.2f} A{others}{advice}", (i, j), "long_bond")


def _of_angles(atoms: Atoms, energy: Mapping[str, float], advice: str) -> Finding | None:
    table = None if atoms.bonded is None else atoms.bonded.angles
    if table is None or not _is_beyond(energy.get("angle"), MOST_AN_ANGLE, len(table)):
        return None
    return _beyond(atoms, "angle", energy["angle"], table, "", np.empty((0, 2), np.int32), advice)


def _of_lennard_jones(
    atoms: Atoms, energy: Mapping[str, float], positions: Floats | None, advice: str
) -> Finding | None:
    value = energy.get("lennard_jones")
    if not _is_beyond(value, MOST_LJ_AN_ATOM, len(atoms)) or value is None:
        return None
    pair = None if positions is None else _clash(atoms, positions)
    if positions is not None and pair is not None:
        i, j = pair
        apart = float(np.linalg.norm(positions[i] - positions[j]))
        text = f", from {atoms.describe(i)} and {atoms.describe(j)} {apart:.2f} A apart"
        return Finding("noted", f"Lennard-Jones energy of {value:+,.0f} kcal/mol{text}{advice}", pair, "clashes")
    return Finding(
        "noted", f"Lennard-Jones energy of {value:+,.0f} kcal/mol, which clashes make{advice}", code="clashes"
    )


def _clash(atoms: Atoms, positions: Floats) -> tuple[int, int] | None:
    """Return the closest atoms less than 2 A apart that are separated by more than three bonds, or None."""
    near = np.concatenate(exclusions(atoms.bonds, len(atoms)))
    bonded = _codes(near, len(atoms))
    for distance in (0.5, 1.0, 1.5, 2.0):
        pairs = close_pairs(positions, distance)
        pairs = pairs[~np.isin(_codes(pairs, len(atoms)), bonded)]
        if len(pairs):
            i, j = sorted(pairs[int(_lengths(positions, pairs).argmin())].tolist())
            return i, j
    return None


def _remedy(atoms: Atoms) -> str:
    """Return advice for a strained structure: a minimization, if possible."""
    cannot = len(atoms.rigid_pairs) or (atoms.virtual_sites is not None and len(atoms.virtual_sites.unknown))
    return "correct the structure" if cannot else "run pele-ocl minimize"


def _is_beyond(value: float | None, most: float, n: int) -> bool:
    return value is not None and n > 0 and value > most * n


def _beyond(atoms: Atoms, term: str, value: float, table: TermTable, cause: str, own: Ints, advice: str) -> Finding:
    """Return the finding about a bonded term. own : (k, 2) atoms that cause it"""
    n = 0 if atoms.labels is None else len(atoms.labels.residue_starts)
    unit, mean = ("residue", value / n) if n > 1 else (table.kind.removesuffix("s"), value / len(table))
    source = f", from {cause}" if cause else ""
    return Finding(
        "noted",
        f"{term} energy of {mean:,.0f} kcal/mol per {unit}{source}{advice}",
        tuple(np.unique(own).tolist()),
        "strained",
    )


def _is_hydrogen(atoms: Atoms) -> NDArray[np.bool_]:
    if atoms.labels is None:
        return np.zeros(len(atoms), np.bool_)
    return np.isin(atoms.labels.elements, ("H", "D"))


def _lengths(positions: Floats, bonds: Ints) -> Floats:
    apart = positions[bonds[:, 0]] - positions[bonds[:, 1]]
    lengths: Floats = np.sqrt(np.einsum("ki,ki->k", apart, apart))
    return lengths


def _codes(pairs: Ints, n: int) -> NDArray[np.int64]:
    low, high = np.sort(np.asarray(pairs, np.int64), axis=1).T
    codes: NDArray[np.int64] = low * n + high
    return codes
