"""Alanine scanning: replace side chains by that of alanine (docs/theory/binding.md, section 5)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..atoms import Atoms, Bonded, Floats, Ints, Labels, LennardJonesPairs, Residue
from ..atoms.selection import residue_kinds
from ..common.arguments import number
from ..common.errors import InputError, ParameterError
from ..common.installation import shipped
from ..common.variant import Progress
from ..forcefield import ForceField
from ..forcefield.sources import embedded_templates
from ..formats import read_structure
from ..pairs import nonbonded_pairs, own_lj_pairs
from ..plan.conformations import as_conformations
from ..trajectories import Trajectory
from ..trajectories.files import Positions
from .naming import interaction
from .plan import Binding, binding_like, binding_trajectory
from .statistics import Spread, spread_of

CH = 1.09  # A, length of bonds to new hydrogens
_PARAMETERS = ("charges", "lj_sigma", "lj_epsilon")
_SHARED = ("N", "C", "O")  # atoms whose charges identify the backbone of Amber99SB
_LINKS = ("N", "C")  # atoms of bonds between residues of a chain
_CHARGE_DIGITS = 2e-3  # e, tolerance for topologies with few decimals


@dataclass(frozen=True, eq=False)
class Mutant:
    """Atoms of a complex with one residue mutated to alanine.

    atoms : k atoms without bonded terms, which cancel for a single trajectory; kept : (k,) their indices in the complex
    beta : index of CB among the k; placed : (j,) indices of atoms that become hydrogens of CB
    """

    atoms: Atoms
    kept: NDArray[np.intp]
    beta: int
    placed: NDArray[np.intp]

    def positions(self, conformations: Positions) -> Floats:
        """Return the positions (m, k, 3) of the mutant from those of the complex, (m, n, 3)."""
        return _placed(np.asarray(conformations[:, self.kept], np.float64), self.beta, self.placed)


_STAY = {"ALA": "is already alanine", "GLY": "has no side chain", "PRO": "has a ring that includes its backbone"}


def reasons_to_stay(atoms: Atoms) -> list[str]:
    """Return for each residue why it cannot be mutated to alanine, e.g. `is already alanine`; "" if it can.

    Side chains bonded to another residue, as in disulphides, cannot be mutated.
    """
    labels = atoms.labels
    assert labels is not None
    kinds, linked, found = residue_kinds(labels), _linked(atoms), list[str]()
    for k, own in enumerate(_atoms_of_residues(labels)):
        names, name = set(labels.names[own].tolist()), str(labels.residue_names[own[0]])[-3:]
        missing = [atom for atom in ("N", "CA", "C", "CB") if atom not in names]
        if kinds[k] != "protein":
            found.append(f"is not an amino acid ({kinds[k]})")
        elif name in _STAY:
            found.append(_STAY[name])
        elif k in linked or name == "CYX":
            found.append("has a side chain that is bonded to another residue")
        else:
            found.append(f"has no atom {' and '.join(missing)}" if missing else "")
    return found


def _linked(atoms: Atoms) -> set[int]:
    """Return the residues whose side chains are bonded to other residues."""
    assert atoms.labels is not None
    ends, residues = atoms.bond_pairs, atoms.labels.residue_index
    across = ends[residues[ends[:, 0]] != residues[ends[:, 1]]].ravel()
    return set(residues[across[~np.isin(atoms.labels.names[across], _LINKS)]].tolist())


def alanines_of(forcefield: ForceField) -> Atoms | None:
    """Return trialanine with the parameters of a force field; None if it has no alanine.

    Its residues are alanine at the N-terminus, within a chain and at the C-terminus.
    """
    try:
        return forcefield.assign(read_structure(shipped("data") / "structures" / "trialanine.pdb"))
    except ParameterError:
        return None


def to_alanine(atoms: Atoms, residue: int, alanines: Atoms | None = None) -> Mutant:
    """Mutate a residue, by index, to alanine.

    The side chain beyond CB is removed. Hydrogens of CB are kept, and other atoms bonded to CB are replaced by
    hydrogens in the same direction. Charges and Lennard-Jones parameters are those of an ALA with the same backbone
    atoms in this topology or in `alanines`, which have the same force field (see `alanines_of`). If there is none and
    the backbone has the charges of Amber99SB, its ALA is used. New hydrogens have the GB radius of HA.

    Raises InputError for a residue without CB, with a side chain bonded to another residue, or without suitable
    parameters.
    """
    site = cut_at(atoms, residue)
    assert atoms.labels is not None
    where = atoms.labels.residue(int(site.own[0]))
    changed = _with_parameters(
        unbonded(atoms), site.own, site.beta, np.concatenate([site.hydrogens, site.gamma]), site.gamma, where, alanines
    )
    mutant = changed[site.kept]
    beta, placed = int(np.searchsorted(site.kept, site.beta)), np.searchsorted(site.kept, site.gamma)
    there = _placed(mutant.positions[np.newaxis], beta, placed)[0]
    return Mutant(mutant.moved(there), site.kept, beta, placed)


@dataclass(frozen=True, eq=False)
class Cut:
    """Truncation of a side chain, as atom indices of the molecule.

    own : atoms of the residue; kept : all remaining atoms; beta : CB; hydrogens : hydrogens of CB; gamma : atoms that
        become hydrogens
    """

    own: NDArray[np.intp]
    kept: NDArray[np.intp]
    beta: int
    hydrogens: NDArray[np.intp]
    gamma: NDArray[np.intp]


def cut_at(atoms: Atoms, residue: int) -> Cut:
    """Find the atoms that remain if a residue, by index, is mutated to alanine; errors as in `to_alanine`."""
    assert atoms.labels is not None
    own = list(_atoms_of_residues(atoms.labels))[residue]
    names = {str(atoms.labels.names[i]): int(i) for i in own}
    where = atoms.labels.residue(int(own[0]))
    if not {"CA", "CB"} <= names.keys():
        raise InputError(f"{where} has no CB, so it cannot be mutated to alanine")
    if residue in _linked(atoms):
        raise InputError(f"the side chain of {where} is bonded to another residue, so it cannot be mutated to alanine")
    ends = atoms.bond_pairs
    beside = np.concatenate([ends[ends[:, 0] == names["CB"], 1], ends[ends[:, 1] == names["CB"], 0]])
    gamma = np.array([i for i in beside if i != names["CA"] and atoms.labels.elements[i] != "H"], np.intp)
    hydrogens = np.array([i for i in beside if atoms.labels.elements[i] == "H"], np.intp)
    removed = np.setdiff1d(_beyond(names["CB"], names["CA"], ends, own), [*gamma, *hydrogens, names["CB"]])
    if len(gamma) + len(hydrogens) != 3 or not len(gamma):
        reason = reasons_to_stay(atoms)[residue] or "has no side chain beyond CB"
        raise InputError(f"{where} {reason}, so it cannot be mutated to alanine")
    return Cut(own, np.setdiff1d(np.arange(len(atoms)), removed), names["CB"], hydrogens, gamma)


def _placed(positions: Floats, beta: int, placed: NDArray[np.intp]) -> Floats:
    """Return the positions (m, k, 3) with the new hydrogens moved to the C-H bond length."""
    positions = positions.copy()
    away = positions[:, placed] - positions[:, [beta]]
    positions[:, placed] = positions[:, [beta]] + CH * away / np.linalg.norm(away, axis=-1, keepdims=True)
    return positions


def _atoms_of_residues(labels: Labels) -> Iterator[NDArray[np.intp]]:
    starts = [*labels.residue_starts.tolist(), len(labels)]
    return (np.arange(*pair) for pair in pairwise(starts))


def _beyond(start: int, barred: int, bonds: Ints, within: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return the atoms within a residue that are connected to `start` without passing `barred`."""
    inside, reached, fresh = set(within.tolist()), {start}, {start}
    ends = [(int(i), int(j)) for i, j in bonds if i in inside and j in inside and barred not in (i, j)]
    while fresh:
        fresh = {b for pair in ends for a, b in (pair, pair[::-1]) if a in fresh} - reached
        reached |= fresh
    return np.array(sorted(reached), np.intp)


def unbonded(atoms: Atoms) -> Atoms:
    """Remove bonded terms and 1-4 interactions; the pairs remain excluded."""
    excluded = nonbonded_pairs(atoms).excluded
    return replace(atoms, bonds=atoms.bond_pairs, bonded=Bonded(excluded=excluded, lj_pairs=own_lj_pairs(atoms)))


def _with_parameters(
    atoms: Atoms, own: NDArray[np.intp], beta: int, hydrogens: NDArray[np.intp], new: NDArray[np.intp], where: str,
    alanines: Atoms | None,
) -> Atoms:  # fmt: skip
    """Assign the parameters of ALA to a residue. hydrogens : hydrogens of CB, including the `new` ones"""
    assert atoms.labels is not None
    labels = atoms.labels
    backbone = [int(i) for i in own if str(labels.names[i]) in _BACKBONE]
    roles = {**{str(labels.names[i]): i for i in backbone}, "CB": beta}
    ala = _alanine(atoms, roles, where, alanines)
    values = {name: np.array(getattr(atoms, name)) for name in (*_PARAMETERS, "gb_radii", "gb_scales", "sgb")
              if getattr(atoms, name) is not None}  # fmt: skip
    for role, i in [*roles.items(), *(("HB", int(i)) for i in hydrogens)]:
        for name, value in ala[role].items():
            values[name][i] = value
    like = roles.get("HA", int(hydrogens[0]))
    for name in ("gb_radii", "gb_scales", "sgb"):
        if name in values:
            values[name][new] = values[name][like]
    elements, names, residues = labels.elements.copy(), labels.names.copy(), labels.residue_names.copy()
    elements[new] = "H"
    assert atoms.bonded is not None
    pairs = atoms.bonded.lj_pairs  # pairs with atoms that become hydrogens are removed
    kept = ~np.isin(pairs.atoms, new).any(axis=1)
    bonded = replace(atoms.bonded, lj_pairs=LennardJonesPairs(pairs.atoms[kept], pairs.parameters[kept]))
    residues[own] = "ALA"
    alike = np.arange(len(atoms))
    alike[new] = like
    return replace(
        atoms,
        default_radii=None if atoms.default_radii is None else atoms.default_radii.of_atoms(alike),
        charges=values["charges"],
        lj_sigma=values.get("lj_sigma"),
        lj_epsilon=values.get("lj_epsilon"),
        gb_radii=values.get("gb_radii"),
        gb_scales=values.get("gb_scales"),
        sgb=values.get("sgb"),
        bonded=bonded,
        labels=replace(labels, elements=elements, names=names, residue_names=residues),
        types=None if atoms.types is None else _types(atoms.types, new, like),
    )


_BACKBONE = ("N", "H", "HN", "H1", "H2", "H3", "CA", "HA", "C", "O", "OXT")


def _types(types: NDArray[np.str_], new: NDArray[np.intp], like: int) -> NDArray[np.str_]:
    changed = types.copy()
    changed[new] = types[like]
    return changed


def _has_amber_backbone(atoms: Atoms, roles: Mapping[str, int]) -> bool:
    """Return whether any residue of Amber99SB has the same backbone charges."""
    own = [float(atoms.charges[roles[name]]) for name in _SHARED if name in roles]
    templates = [of for of in embedded_templates().values() if all(name in of.index for name in _SHARED)]
    known = np.array([[of.charges[of.index[name]] for name in _SHARED if name in roles] for of in templates])
    return bool((np.abs(known - own) <= _CHARGE_DIGITS).all(axis=1).any())


def _alanine(
    atoms: Atoms, roles: Mapping[str, int], where: str, alanines: Atoms | None
) -> dict[str, dict[str, float]]:  # fmt: skip
    """Return charge and Lennard-Jones parameters of an ALA with these backbone atoms, by atom name.

    "HB" stands for all three hydrogens of CB.
    """
    for source in (atoms, alanines):
        found = None if source is None else _alanine_in(source, roles)
        if found is not None:
            return found
    if atoms.combining == "geometric" or not _has_amber_backbone(atoms, roles):
        raise InputError(
            f"{where} cannot become alanine: neither this molecule nor its force field has an ALA with its backbone to "
            "take parameters of, and it has not the backbone of Amber99SB, whose alanine is built in; give a structure "
            "that has one"
        )
    template = embedded_templates()["ALAB" if "H2" in roles else "ALAE" if "OXT" in roles else "ALA"]
    names = {"HN": "H", **({"H": "H1"} if "H" not in template.names else {})}
    missing = {names.get(role, role) for role in roles} - set(template.names)
    if missing:
        raise InputError(f"{where} has {', '.join(sorted(missing))}, which Amber99SB's alanine does not have")
    table = {"charges": template.charges, "lj_sigma": template.lj_sigma, "lj_epsilon": template.lj_epsilon}
    places = {role: template.index["HB1" if role == "HB" else names.get(role, role)] for role in (*roles, "HB")}
    return {role: {name: float(of[place]) for name, of in table.items()} for role, place in places.items()}


# Alternative names of the amide hydrogen.
_ALIASES = {"H": ("HN", "H1"), "HN": ("H", "H1")}


def _alanine_in(atoms: Atoms, roles: Mapping[str, int]) -> dict[str, dict[str, float]] | None:
    """Return the parameters of the first ALA with these backbone atoms; None if there is none."""
    labels = atoms.labels
    assert labels is not None
    for of in _atoms_of_residues(labels):
        found = {str(labels.names[i]): int(i) for i in of}
        if str(labels.residue_names[of[0]])[-3:] != "ALA" or "HB1" not in found:
            continue
        names = {role: next((n for n in (role, *_ALIASES.get(role, ())) if n in found), role) for role in roles}
        if set(names.values()) == set(found) - {"HB1", "HB2", "HB3"}:
            places = {role: found[name] for role, name in names.items()} | {"HB": found["HB1"]}
            return {
                role: {name: float(getattr(atoms, name)[place])
                       for name in _PARAMETERS if getattr(atoms, name) is not None}
                for role, place in places.items()
            }  # fmt: skip
    return None


INTERFACE = 5.0  # A, maximum distance between atoms of the two parts
_SHOWN = 20  # number of residues in a message


@dataclass(frozen=True, eq=False)
class AlanineScan:
    """Changes of the binding energy per frame, mutant minus wild type (MMPBSA.py uses the opposite sign).

    residues : the mutated sites
    changes : (n_sites, m) kcal/mol, NaN for failed frames; gas_phase : (n_sites, m) their gas-phase part
    frames : (m,) numbers of the frames
    left_out : selected residues that cannot be mutated to alanine, with reasons; none by default
    """

    residues: tuple[Residue, ...]
    changes: Floats
    gas_phase: Floats
    frames: NDArray[np.int64]
    left_out: tuple[tuple[Residue, str], ...] = ()

    @property
    def notes(self) -> list[str]:
        """Messages about selected residues that were not mutated."""
        told = [f"{residue} {reason}" for residue, reason in self.left_out]
        more = f", and {len(told) - _SHOWN} more" if len(told) > _SHOWN else ""
        return [f"not mutated to alanine: {', '.join(told[:_SHOWN])}{more}"] if told else []

    def statistics(self) -> list[Spread]:
        """Return the Spread of the changes over the frames for each site."""
        return [spread_of(of_site) for of_site in self.changes]


def interface_residues(binding: Binding, distance: float = INTERFACE) -> list[int]:
    """Return the indices of residues with an atom within a distance (A) of the other part, in the given structure."""
    atoms, parts = binding.atoms, binding.parts
    if atoms.labels is None:
        raise InputError("an alanine scan needs residues, which these atoms do not have")
    number("distance", distance, "a positive distance in A", above=0)
    near = np.zeros(len(atoms), bool)
    for own, other in ((parts.receptor, parts.ligand), (parts.ligand, parts.receptor)):
        for i in own.tolist():
            r2 = ((atoms.positions[other] - atoms.positions[i]) ** 2).sum(axis=1)
            near[i] = r2.min() <= distance**2
    found: NDArray[np.intp] = np.flatnonzero(np.logical_or.reduceat(near, atoms.labels.residue_starts))
    return [int(k) for k in found]


def sites_of(binding: Binding, sites: str | Sequence[int] | None) -> tuple[list[int], dict[int, str]]:
    """Return the residues to mutate, and the reasons why other selected residues cannot be mutated.

    sites : a selection, residue indices, or None for the interface, for which no reasons are returned
    """
    labels = binding.atoms.labels
    if labels is None:
        raise InputError("an alanine scan needs residues, which these atoms do not have")
    if sites is None:
        wanted = interface_residues(binding)
    elif isinstance(sites, str):
        mask = binding.atoms.selected(sites)
        wanted = np.flatnonzero(np.logical_or.reduceat(mask, labels.residue_starts)).tolist()
    else:
        wanted = list(sites)
    reasons = reasons_to_stay(binding.atoms)
    strange = [k for k in wanted if not 0 <= k < len(reasons)]
    if strange:
        raise InputError(f"sites name residue {strange[0]}; the residues of the complex are 0 to {len(reasons) - 1}")
    chosen = [k for k in wanted if not reasons[k]]
    left_out = {} if sites is None else {k: reasons[k] for k in wanted if reasons[k]}
    if not chosen:
        told = [f"{labels.residues[k]} {reason}" for k, reason in left_out.items()]
        raise InputError(
            f"no selected residue can be mutated to alanine{': ' if told else ''}{', '.join(told[:_SHOWN])} (those of "
            "proteins can, but ALA, GLY, PRO and those whose side chains are bonded to others, such as half cystines)"
        )
    return chosen, left_out


def alanine_scan(
    binding: Binding, trajectory: Trajectory | ArrayLike | None = None, sites: str | Sequence[int] | None = None,
    progress: Progress | None = None, *, forcefield: ForceField | None = None,
) -> AlanineScan:  # fmt: skip
    """Compute the changes of the binding energy on mutation to alanine, for a trajectory or for the structure.

    trajectory : a Trajectory, or conformations (m, n, 3) A, of the atoms given to `binding`
    sites : a selection, or residue indices in the complex; by default the interface
    forcefield : force field of the atoms, used if the complex has no alanine; None for parameters from a topology

    Raises InputError if no site can be mutated to alanine, and as Binding does.
    """
    chosen, left_out = sites_of(binding, sites)
    assert binding.atoms.labels is not None
    each = binding.atoms.labels.residues
    residues = tuple(each[k] for k in chosen)
    frames, pieces = _frames(binding, trajectory)
    everyone = Mutant(unbonded(binding.atoms), np.arange(len(binding.atoms)), 0, np.arange(0))
    alanines = None if forcefield is None else alanines_of(forcefield)
    found = list[tuple[Floats, Floats]]()
    # Sites are computed one by one, so that only one plan is in memory.
    for k in [None, *chosen]:
        mutant = everyone if k is None else to_alanine(binding.atoms, k, alanines)
        found.append(_energies(binding, mutant, pieces))
        if progress is not None:
            progress(len(found) / (1 + len(chosen)))
    (wild, wild_gas), *mutants = found
    changes = np.stack([total - wild for total, _ in mutants])
    gas_phase = np.stack([gas - wild_gas for _, gas in mutants])
    return AlanineScan(residues, changes, gas_phase, frames, tuple((each[k], why) for k, why in left_out.items()))


def _frames(
    binding: Binding, trajectory: Trajectory | ArrayLike | None
) -> tuple[NDArray[np.int64], Iterable[Positions]]:
    """Return the numbers of the frames (m,), and an iterable of their positions in pieces."""
    if isinstance(trajectory, Trajectory):
        return np.array(trajectory.frames, np.int64), _Usable(binding_trajectory(binding, trajectory))
    given = binding.given.positions[np.newaxis] if trajectory is None else trajectory
    positions = as_conformations(given, binding.n_atoms)
    return np.arange(len(positions), dtype=np.int64), [positions]


@dataclass(frozen=True)
class _Usable:
    """Re-iterable positions of frames in pieces, with NaN in unusable frames."""

    frames: Trajectory

    def __iter__(self) -> Iterator[Positions]:
        return (piece.usable() for piece in self.frames.pieces())


def _energies(binding: Binding, mutant: Mutant, pieces: Iterable[Positions]) -> tuple[Floats, Floats]:
    """Compute the binding energy of a mutant for each frame, (m,), and its gas-phase part."""
    side = np.zeros(len(binding.atoms), bool)
    side[binding.parts.ligand] = True
    plan = binding_like(binding, mutant.atoms, side[mutant.kept], ~side[mutant.kept])
    each = [
        plan.evaluate_batch(mutant.positions(binding.parts.of_complex(piece)), errors="record").delta
        for piece in pieces
    ]
    return np.concatenate([of.total for of in each]), np.concatenate([interaction(of) for of in each])
