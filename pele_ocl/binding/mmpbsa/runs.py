"""A run as MMPBSA.py does it: systems, their frames, energies and shares of residues, all by frame."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ...atoms import Atoms, Floats, Labels
from ...atoms.selection import selection
from ...atoms.selection.nearby import near
from ...contract import FrameContract
from ...energy import Energy, EnergyBatch
from ...errors import InputError
from ...results import Terms
from ...trajectories import Trajectory
from ...variant import Progress
from ..alanine import Mutant, cut_at
from ..amber import amber_terms
from ..decomposition import Decomposition, grouping
from ..energies import PARTS
from ..plan import Binding
from .namelists import Alanine, Decomp, MmpbsaInput

# The atoms of a backbone by sander's rule; all others of these residues are of the side chain.
_BACKBONE = ("N", "H", "H1", "H2", "H3", "CA", "HA", "HA2", "HA3", "C", "O", "OXT")
_NUCLEIC_BACKBONE = (
    "P", "O1P", "O2P", "OP1", "OP2", "O5'", "C5'", "H5'", "H5''", "C4'", "H4'", "O3'", "C3'", "H3'",
)  # fmt: skip
SPLITS = ("total", "sidechain", "backbone")
_CHECKED = ("charges", "lj_sigma", "lj_epsilon", "gb_radii", "gb_scales")
_SAME = 2e-4  # of charges and radii of topologies that belong together
_LETTERS = {
    "ALA": "A", "ARG": "R", "ASN": "N", "ASP": "D", "ASH": "D", "CYS": "C", "CYX": "C", "CYM": "C", "GLN": "Q",
    "GLU": "E", "GLH": "E", "GLY": "G", "HIS": "H", "HID": "H", "HIE": "H", "HIP": "H", "ILE": "I", "LEU": "L",
    "LYS": "K", "LYN": "K", "MET": "M", "PHE": "F", "PRO": "P", "SER": "S", "THR": "T", "TRP": "W", "TYR": "Y",
    "VAL": "V",
}  # fmt: skip
_KINDS = {
    "positive": ("ARG", "LYS", "HIP"), "negative": ("ASP", "GLU"),
    "nonpolar": ("ALA", "GLY", "ILE", "LEU", "MET", "PHE", "PRO", "TRP", "VAL"),
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class Source:
    """A system and where its frames come from.

    atoms : of the system; paths : trajectories; whole : Atoms of a frame, chosen : (k,) which of them the system's are
    """

    atoms: Atoms
    paths: tuple[Path, ...]
    whole: Atoms
    chosen: NDArray[np.intp]

    def trajectory(self, frames: str, anchors: NDArray[np.intp] | None = None) -> Trajectory:
        """The frames, imaged by the bonds of the system where they have a cell."""
        atoms = replace(self.atoms, cell_angles=self.whole.cell_angles)
        over = Trajectory(self.paths, self.whole, frames, self.chosen)
        return over.of(FrameContract(atoms, "auto", None if anchors is None else np.arange(len(atoms)), anchors))


@dataclass(frozen=True, eq=False)
class Shares:
    """Shares of residues in the energy of a system, by frame.

    residues : (k,) which of the system's residues; of : (m, k, n_groups) kcal/mol for each of SPLITS
    """

    residues: NDArray[np.intp]
    of: Mapping[str, Floats]


@dataclass(frozen=True, eq=False)
class Results:
    """Energies of the systems by frame.

    energies : of "complex", "receptor", "ligand" the terms (m,) by AMBER's names; without parts the complex's alone
    is_single : whether the parts are cut from frames of the complex; shares : of residues by system, where asked for
    pairs : decompositions by pairs, of "single" trajectories one, else one for each system
    """

    energies: Mapping[str, Mapping[str, Floats]]
    is_single: bool
    shares: Mapping[str, Shares] | None
    pairs: Mapping[str, Decomposition] | None
    label: str = ""
    n_imaged: int = 0

    def delta(self) -> Mapping[str, Floats]:
        """The difference by frame (m,); of single trajectories alone."""
        return {
            name: of - self.energies["receptor"][name] - self.energies["ligand"][name]
            for name, of in self.energies["complex"].items()
        }


def parts_by_topologies(complex_: Atoms, receptor: Atoms, ligand: Atoms) -> NDArray[np.bool_]:
    """(n,) True for the ligand's atoms, which follow one another in the complex. Raises InputError where none do."""
    names, n, own = _keys(complex_), len(complex_), len(ligand)
    wanted, rest = _keys(ligand), _keys(receptor)
    if len(receptor) + own != n:
        raise InputError(
            f"the complex has {n:,} atoms, receptor and ligand {len(receptor):,} and {own:,}, which is not their sum"
        )
    starts = [n - own, 0, *range(1, n - own)]
    for start in starts:
        inside = slice(start, start + own)
        if names[inside] == wanted and names[:start] + names[start + own :] == rest:
            is_ligand = np.zeros(n, bool)
            is_ligand[inside] = True
            return is_ligand
    raise InputError(
        "the atoms of receptor and ligand are not those of the complex; name receptor_mask and ligand_mask in &general"
    )


def _keys(atoms: Atoms) -> list[tuple[str, str]]:
    labels = atoms.labels
    assert labels is not None
    return [*zip(labels.residue_names.tolist(), labels.names.tolist(), strict=True)]


def require_alike(complex_: Atoms, chosen: NDArray[np.bool_], part: Atoms, name: str) -> None:
    """Raise InputError where a part's topology has other parameters than its atoms in the complex."""
    own = complex_[chosen]
    for parameter in _CHECKED:
        ours, theirs = getattr(own, parameter), getattr(part, parameter)
        if ours is None or theirs is None or len(own) != len(part):
            continue
        far = np.flatnonzero(np.abs(ours - theirs) > _SAME)
        if len(far):
            k = int(far[0])
            raise InputError(
                f"the {name}'s topology has {parameter} {theirs[k]:g} for {part.describe(k)}, the complex's "
                f"{ours[k]:g}; make both from one (ante-MMPBSA.py does)"
            )


def run_single(
    source: Source, is_ligand: NDArray[np.bool_], wanted: MmpbsaInput, device: str | None, precision: str,
    progress: Progress | None = None, mutant: Mutant | None = None, label: str = "", layout: Labels | None = None,
) -> Results:  # fmt: skip
    """Energies of a complex and of its parts from the same frames.

    mutant : in place of the complex, at positions that follow from the complex's; layout : names for print_res
    """
    kept = np.arange(len(source.atoms)) if mutant is None else mutant.kept
    atoms = source.atoms if mutant is None else mutant.atoms
    frames = source.trajectory(wanted.frames, np.flatnonzero(~is_ligand))
    first = frames.piece(frames.frames[:1]).usable()
    atoms = atoms.moved(_placed(mutant, first)[0])
    frames.close()
    decomp = None if mutant is not None else wanted.decomp
    plan = Binding(
        atoms, is_ligand[kept], ~is_ligand[kept], model=wanted.model, device=device, precision=precision,
        idecomp=None if decomp is None else decomp.idecomp,
    )  # fmt: skip
    decomposer = plan._decomposer() if decomp is not None and decomp.idecomp > 2 else None
    chosen = None if decomp is None else printed_residues(decomp, atoms, is_ligand, layout)
    n_imaged = 0
    terms, parts = {name: list[Floats]() for name in PARTS}, {name: list[dict[str, Floats]]() for name in PARTS}
    done = 0
    for piece in frames.pieces():
        positions = _placed(mutant, piece.usable())
        batches = plan._batches(positions, errors="record")
        _refuse_failed(batches, piece.frames)
        if decomposer is not None:
            decomposer.add(batches, positions)
        for name, batch in batches.items():
            terms[name].append(plan._aligned(batch.terms))
            if chosen is not None and decomp is not None:
                own = {"complex": None, "receptor": plan.parts.receptor, "ligand": plan.parts.ligand}[name]
                parts[name].append(_shares(plan, batch, decomp, atoms, own))
        n_imaged += piece.n_imaged
        done += len(piece.frames)
        if progress is not None:
            progress(done / len(frames))
    energies = {
        name: _amber(plan.names, np.concatenate(of), wanted.surface_offset) for name, of in terms.items()
    }  # fmt: skip
    shares = None
    if chosen is not None:
        side = is_ligand[_starts(atoms)]
        of_system = {"complex": chosen, "receptor": chosen[~side[chosen]], "ligand": chosen[side[chosen]]}
        shares = {
            name: Shares(of_system[name], {s: np.concatenate([p[s] for p in parts[name]])[:, of_system[name]]
                                           for s in SPLITS})
            for name in PARTS
        }  # fmt: skip
    pairs = None if decomposer is None else {"single": decomposer.result()}
    return Results(energies, True, shares, pairs, label, n_imaged)


def run_systems(
    sources: Mapping[str, Source], wanted: MmpbsaInput, device: str | None, precision: str,
    is_ligand: NDArray[np.bool_] | None, progress: Progress | None = None, mutants: Mapping[str, Mutant] | None = None,
    label: str = "",
) -> Results:  # fmt: skip
    """Energies of systems each from frames of its own: a complex alone, or with its receptor and its ligand."""
    terms, names = dict[str, Floats](), dict[str, tuple[str, ...]]()
    shares, pairs = dict[str, Shares](), dict[str, Decomposition]()
    decomp, n_imaged = None if mutants is not None else wanted.decomp, 0
    complex_ = sources["complex"].atoms
    chosen = None if decomp is None else printed_residues(decomp, complex_, is_ligand, None)
    for k, (name, source) in enumerate(sources.items()):
        mutant = (mutants or {}).get(name)
        atoms = source.atoms if mutant is None else mutant.atoms
        frames = source.trajectory(wanted.frames)
        first = _placed(mutant, frames.piece(frames.frames[:1]).usable())
        frames.close()
        atoms = atoms.moved(first[0])
        plan = Energy(
            atoms, gradient=False, per_atom=decomp is not None, precision=precision, device=device, model=wanted.model,
            born="pairs",
        )  # fmt: skip
        of_pairs = None
        if decomp is not None and decomp.idecomp > 2:
            half = _starts(atoms)[-1] <= np.arange(len(atoms))  # any cut: the pairs of all atoms are wanted
            if not half.all() and half.any() and _starts(atoms)[-1]:
                of_pairs = Binding(
                    atoms, half, ~half, model=wanted.model, device=device, precision=precision, idecomp=decomp.idecomp
                )
        decomposer = None if of_pairs is None else of_pairs._decomposer()
        found, parts = list[Floats](), list[dict[str, Floats]]()
        done = 0
        for piece in frames.pieces():
            positions = _placed(mutant, piece.usable())
            batch = plan.evaluate_batch(positions, errors="record")
            _refuse_failed({name: batch}, piece.frames)
            found.append(batch.terms.values)
            if decomp is not None:
                parts.append(_shares(plan, batch, decomp, atoms, None))
            if of_pairs is not None and decomposer is not None:
                decomposer.add(of_pairs._batches(positions), positions)
            n_imaged += piece.n_imaged
            done += len(piece.frames)
            if progress is not None:
                progress((k + done / len(frames)) / len(sources))
        terms[name], names[name] = np.concatenate(found), plan.names
        if chosen is not None:
            own = chosen
            if name != "complex" and is_ligand is not None:
                side = is_ligand[_starts(complex_)] == (name == "ligand")
                own = np.array([int(side[:r].sum()) for r in chosen if side[r]], np.intp)
            shares[name] = Shares(own, {s: np.concatenate([p[s] for p in parts])[:, own] for s in SPLITS})
        if decomposer is not None:
            pairs[name] = decomposer.result()
    everything = names["complex"]
    energies = {name: _amber(names[name], of, wanted.surface_offset, everything) for name, of in terms.items()}
    return Results(energies, False, shares or None, pairs or None, label, n_imaged)


def _placed(mutant: Mutant | None, positions: NDArray[np.floating]) -> Floats:
    return np.asarray(positions, np.float64) if mutant is None else mutant.positions(positions)


def _refuse_failed(batches: Mapping[str, EnergyBatch], frames: range) -> None:
    """Raise InputError for the first frame that has no energies."""
    for name, batch in batches.items():
        for place, reason in batch.errors.items():
            raise InputError(f"frame {frames[place] + 1}, {name}: {reason}")


def _amber(
    names: Sequence[str], values: Floats, surface_offset: float, everything: Sequence[str] | None = None
) -> Mapping[str, Floats]:  # fmt: skip
    """The terms (m,) by AMBER's names; those of `everything` that a system lacks are 0."""
    order = tuple(everything or names)
    if strange := set(names) - set(order):
        raise InputError(f"a part has the term {sorted(strange)[0]}, which the complex lacks")
    aligned = np.zeros((len(values), len(order)))
    aligned[:, [order.index(name) for name in names]] = values
    if surface_offset and "nonpolar" in order:
        aligned[:, order.index("nonpolar")] += surface_offset
    return amber_terms(Terms(order, aligned))


def _starts(atoms: Atoms) -> NDArray[np.intp]:
    assert atoms.labels is not None
    return np.asarray(atoms.labels.residue_starts, np.intp)


def _shares(
    plan: Binding | Energy, batch: EnergyBatch, decomp: Decomp, atoms: Atoms, own: NDArray[np.intp] | None
) -> dict[str, Floats]:  # fmt: skip
    """(m, n_residues, n_groups) for each of SPLITS, of all residues of the atoms; own : the atoms of the batch"""
    assert batch.per_atom is not None
    assert atoms.labels is not None
    groups = grouping(plan.names, decomp.idecomp)
    values = plan._aligned(batch.per_atom) if isinstance(plan, Binding) else batch.per_atom.values
    of_atoms = np.zeros((len(values), len(atoms), groups.shape[1]))
    of_atoms[:, slice(None) if own is None else own] = values @ groups
    is_backbone = backbone(atoms.labels)[:, np.newaxis]
    starts = _starts(atoms)
    total = np.add.reduceat(of_atoms, starts, axis=1)
    of_backbone = np.add.reduceat(of_atoms * is_backbone, starts, axis=1)
    return {"total": total, "sidechain": total - of_backbone, "backbone": of_backbone}


def backbone(labels: Labels) -> NDArray[np.bool_]:
    """(n,) True for atoms of the backbone of amino acids and nucleotides, as sander's decomposition has it."""
    starts = labels.residue_starts
    has = {name: np.logical_or.reduceat(labels.names == name, starts) for name in ("CA", "N")}
    has_alpha = has["CA"] & has["N"]
    has_sugar = np.logical_or.reduceat(np.isin(labels.names, ("C1'", "C1*")), starts)
    index = labels.residue_index - labels.residue_index[0]
    names = np.char.replace(labels.names.astype(np.str_), "*", "'")
    of_amino_acids = has_alpha[index] & np.isin(names, _BACKBONE)
    of_nucleotides = has_sugar[index] & np.isin(names, _NUCLEIC_BACKBONE)
    return np.asarray(of_amino_acids | of_nucleotides, np.bool_)


def printed_residues(
    decomp: Decomp, atoms: Atoms, is_ligand: NDArray[np.bool_] | None, layout: Labels | None
) -> NDArray[np.intp]:  # fmt: skip
    """The residues (k,) from 0 that print_res names: all, within D, 1-10; 200-241, or A/5-10 by chains."""
    words, starts = decomp.print_res.strip(), _starts(atoms)
    n = len(starts)
    if words.lower() == "all":
        return np.arange(n)
    within = re.fullmatch(r"within\s+([\d.]+)", words, re.IGNORECASE)
    if within:
        if is_ligand is None:
            raise InputError(f"print_res={words} needs receptor and ligand; name residues by number")
        close = np.zeros(len(atoms), bool)
        for side in (is_ligand, ~is_ligand):
            close |= near(atoms.positions, side, float(within[1])) & ~side
        return np.flatnonzero(np.logical_or.reduceat(close, starts))
    labels, found, chain = layout or atoms.labels, set[int](), ""
    assert labels is not None
    first = labels.residue_starts
    for item in re.split(r"[\s,;]+", words):
        if not item:
            continue
        chain, _, item = item.rpartition("/") if "/" in item else (chain, "", item)
        numbers = re.fullmatch(r"(\d+)(?:-(\d+))?", item)
        if numbers is None:
            raise InputError(f"print_res: {item!r} is no number or range of residues")
        low, high = int(numbers[1]), int(numbers[2] or numbers[1])
        if chain:
            named = (labels.chains[first] == chain) & (labels.residue_numbers[first] >= low)
            found |= set(np.flatnonzero(named & (labels.residue_numbers[first] <= high)).tolist())
        elif not 1 <= low <= high <= n:
            raise InputError(f"print_res: {item} is not within the {n:,} residues of the complex")
        else:
            found |= set(range(low - 1, high))
    if not found:
        raise InputError(f"print_res={words} names no residue")
    return np.array(sorted(found), np.intp)


def mutated_residue(wild: Atoms, mutant: Atoms) -> int | None:
    """The residue, from 0, that is alanine in another topology; None where all are the same.

    Raises InputError where more than one differs.
    """
    assert wild.labels is not None
    assert mutant.labels is not None
    before, after = (of.residue_names[of.residue_starts] for of in (wild.labels, mutant.labels))
    if len(before) != len(after):
        raise InputError(f"the mutant has {len(after):,} residues, the complex {len(before):,}")
    differ = np.flatnonzero(before != after)
    if not len(differ):
        return None
    if len(differ) > 1 or str(after[differ[0]])[-3:] != "ALA":
        raise InputError(
            f"{len(differ)} residues of the mutant differ from the complex, the first of them {before[differ[0]]} "
            f"{differ[0] + 1} to {after[differ[0]]}; one that becomes ALA is done here"
        )
    return int(differ[0])


def mutant_of(wild: Atoms, topology: Atoms, residue: int) -> Mutant:
    """The mutant of a topology of its own, at positions that follow from the wild type's.

    Raises InputError where the topology has other atoms than the wild type with this residue cut behind CB.
    """
    site = cut_at(wild, residue)
    assert wild.labels is not None
    assert topology.labels is not None
    placed = np.sort(np.concatenate([site.hydrogens, site.gamma]))
    by_name = {str(wild.labels.names[i]): int(i) for i in np.intersect1d(site.own, site.kept) if i not in placed}
    free, order = [int(i) for i in placed], list[int]()
    starts = _starts(topology)
    end = starts[residue + 1] if residue + 1 < len(starts) else len(topology)
    for name in topology.labels.names[starts[residue] : end].tolist():
        if name in by_name:
            order.append(by_name.pop(name))
        elif name.lstrip("123").startswith("HB") and free:
            order.append(free.pop(0))
        else:
            raise InputError(f"the mutant's residue {residue + 1} has the atom {name}, which the cut residue lacks")
    before = np.arange(site.own[0])
    kept = np.concatenate([before, np.array(order, np.intp), np.arange(site.own[-1] + 1, len(wild))])
    rest = np.concatenate([np.arange(starts[residue]), np.arange(end, len(topology))])
    of_rest = np.concatenate([before, np.arange(site.own[-1] + 1, len(wild))])
    same = by_name == {} and not free and len(rest) == len(of_rest)
    if not same or (topology.labels.names[rest] != wild.labels.names[of_rest]).any():
        raise InputError("the atoms of the mutant's topology are not those of the complex with one alanine")
    position = {int(i): k for k, i in enumerate(kept)}
    return Mutant(topology, kept, position[site.beta], np.array([position[int(i)] for i in site.gamma], np.intp))


def mutant_label(atoms: Atoms, residue: int) -> str:
    """`D231A` of a residue from 0."""
    labels = atoms.labels
    assert labels is not None
    name = str(labels.residue_names[labels.residue_starts[residue]])
    return f"{_LETTERS.get(name[-3:], name)}{residue + 1}A"


def residue_named(word: str, labels: Labels) -> int:
    """The residue, from 0, of gmx_MMPBSA's CHAIN:NUMBER or CHAIN/NUMBER. Raises InputError where there is none."""
    found = re.fullmatch(r"\s*(\w*)[:/](-?\d+)\s*", word)
    if found is None:
        raise InputError(f"mutant_res={word}: CHAIN:NUMBER is needed there")
    first = labels.residue_starts
    named = np.flatnonzero((labels.chains[first] == found[1]) & (labels.residue_numbers[first] == int(found[2])))
    if not len(named):
        raise InputError(f"mutant_res={word}: there is no residue {found[2]} in a chain {found[1]}; give -cr FILE.pdb")
    return int(named[0])


def with_dielectric(wanted: MmpbsaInput, alanine: Alanine, name: str) -> MmpbsaInput:
    """The input with the dielectric constant that cas_intdiel gives a residue of this name."""
    if alanine.dielectrics is None:
        return wanted
    kind = next((kind for kind, names in _KINDS.items() if name[-3:] in names), "polar")
    return replace(wanted, model=replace(wanted.model, solute_dielectric=alanine.dielectrics[kind]))


def masked(atoms: Atoms, mask: str) -> NDArray[np.bool_]:
    """(n,) True for the atoms of a mask, none where it names none that is there."""
    try:
        return selection(atoms, mask)
    except InputError as error:
        if "takes no atom" in str(error):
            return np.zeros(len(atoms), bool)
        raise
