"""Systems of a run: their atoms, frames and parts, from the input files of MMPBSA.py or gmx_MMPBSA."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ...atoms import Atoms, Labels, correspondence
from ...atoms.charmm import charmm_radii
from ...atoms.corresponding import OTHER_ATOMS
from ...atoms.labels import labels_of
from ...atoms.selection import NO_ATOMS
from ...common.errors import FormatError, InputError, printable, worded
from ...common.inputfile import read_file
from ...common.textfiles import lines, quoted
from ...contract import FrameContract
from ...formats import is_structure, is_topology, read_structure_or_atoms, read_topology
from ...formats.amber.topology import read_names
from ...trajectories import Trajectory
from ...trajectories.files import open_frames
from ..parts import counted_names, left_out_notes, names_of, solutes
from .namelists import CHARMM_RADII, MmpbsaInput


def layout_of(
    own: Labels, chosen: NDArray[np.intp], n: int, reference: Path | None, structure: Path | None
) -> tuple[Labels | None, tuple[str, ...]]:
    """Return the labels of receptor and ligand with the chains and residue numbers of a structure, and notes.

    own : labels of receptor and ligand; chosen : (k,) their indices among the n atoms of the frames
    reference : a structure of receptor and ligand
    structure : a structure of all atoms of the frames, used without a reference; unsupported formats such as .tpr, and
        structures without chains and residue numbers, are ignored

    The labels are None without a usable structure. Raises InputError if the residues of the structure differ from those
    of receptor and ligand.
    """
    if reference is not None:
        found = read_structure_or_atoms(reference).labels
        assert found is not None
        return _with_names_of(own, found, reference)
    if structure is None or not is_structure(structure) or is_topology(structure):
        return None, ()
    try:
        found = read_structure_or_atoms(structure).labels
    except (FormatError, InputError) as error:
        return None, (f"{error}; chains and residue numbers are those of the topology",)
    if found is None or not (found.chains != "").any():
        return None, ()
    if len(found) != n:
        return None, (f"{structure}: has {len(found):,} atoms, the frames {n:,}; chains and residue numbers are those "
                      "of the topology",)  # fmt: skip
    return _with_names_of(own, labels_of(found, chosen), structure)


def _with_names_of(own: Labels, found: Labels, path: Path) -> tuple[Labels, tuple[str, ...]]:
    """Take chains and residue numbers from the matching residues of a structure; their atoms may differ."""
    matched = correspondence(_residues(own), _residues(found), str(path), "the topology",
                             advice="expected the residues of receptor and ligand, in their order")  # fmt: skip
    first = found.residue_starts[matched.order][_residue_places(own)]
    layout = replace(own, chains=found.chains[first], residue_numbers=found.residue_numbers[first],
                     insertion_codes=found.insertion_codes[first])  # fmt: skip
    return layout, ()


def _residue_places(labels: Labels) -> NDArray[np.intp]:
    """Return the residue index of each atom, (n,), in the order of `residue_starts`."""
    starts = labels.residue_starts
    return np.repeat(np.arange(len(starts)), np.diff(starts, append=len(labels)))


def _residues(labels: Labels) -> Labels:
    """Return labels with one generic atom per residue."""
    first = np.asarray(labels.residue_starts, np.intp)
    each = labels_of(labels, first)
    n = len(first)
    return replace(each, names=np.full(n, "CA"), elements=np.full(n, "X"), residue_index=np.arange(n, dtype=np.int32))


_CHECKED = ("charges", "lj_sigma", "lj_epsilon", "gb_radii", "gb_scales")
_SAME = 2e-4  # tolerance for charges and radii of matching topologies


_QUOTES = "'\""
_TOPOLOGIES = (
    "give the topology of all their atoms (`solvated_complex`, `solvated_receptor` and `solvated_ligand`, or "
    "`complex_topology` with `groups`)"
)


def _in_our_words(error: FormatError | InputError) -> FormatError | InputError:
    """Rephrase an error with advice for a run of MMPBSA.py."""
    if error.code == OTHER_ATOMS:
        return type(error)(f"{error.fields['what']}; {_TOPOLOGIES}")
    if error.code == "no_frames":
        return type(error)(f"{error.fields['what']}; expected frames")
    return type(error)(worded(str(error), _spelled))


def _spelled(name: str, value: str | None) -> str | None:
    """Convert keywords for frames to variables of &general."""
    if name != "frames" or value is None:
        return None
    return f"endframe={value.strip(_QUOTES).partition(':')[2]}"


@dataclass(frozen=True, eq=False)
class Source:
    """A system and the source of its frames.

    atoms : atoms of the system; paths : trajectories; whole : atoms of a frame; chosen : (k,) the system's indices
        among these
    """

    atoms: Atoms
    paths: tuple[Path, ...]
    whole: Atoms
    chosen: NDArray[np.intp]

    def trajectory(self, frames: str, anchors: NDArray[np.intp] | None = None) -> Trajectory:
        """Return the frames, imaged by the bonds of the system if they have a unit cell. frames : counted from 0"""
        atoms = replace(self.atoms, cell_angles=self.whole.cell_angles)
        over = self._opened(frames)
        if over.n_file_atoms != len(self.whole):
            raise InputError(
                f"{self.paths[0]}: its frames have {over.n_file_atoms:,} atoms, the topology {len(self.whole):,}; "
                f"{_TOPOLOGIES}"
            )
        return over.of(FrameContract(atoms, "auto", None if anchors is None else np.arange(len(atoms)), anchors))

    def _opened(self, frames: str) -> Trajectory:
        """Open the files; errors are phrased for MMPBSA.py."""
        try:
            return Trajectory(self.paths, self.whole, frames, self.chosen)
        except FormatError as error:
            raise _in_our_words(error) from None
        except InputError as error:
            start, total = int(frames.split(":")[0]), self._n_frames()
            if start < total:
                raise _in_our_words(error) from None
            raise InputError(
                f"startframe={start + 1} is after the last frame, {total:,}, of {self.paths[-1]}"
            ) from None

    def _n_frames(self) -> int:
        """Return the total number of frames; errors are phrased for MMPBSA.py."""
        try:
            return sum(Trajectory(self.paths, self.whole).counts)
        except FormatError as error:
            raise _in_our_words(error) from None

    def at_first_frame(self, frames: str) -> Atoms:
        """Return the atoms of the system at the first frame."""
        over = self.trajectory(frames)
        first = over.piece(over.frames[:1]).usable()[0]
        over.close()
        return self.atoms.moved(first)


def parts_by_topologies(complex_: Atoms, receptor: Atoms, ligand: Atoms) -> NDArray[np.bool_]:
    """Return a mask (n,) of the ligand, which must be contiguous in the complex. Raises InputError if it is missing."""
    names, n, own = _keys(complex_), len(complex_), len(ligand)
    wanted, rest = _keys(ligand), _keys(receptor)
    if len(receptor) + own != n:
        raise InputError(
            f"the complex has {n:,} atoms, receptor and ligand {len(receptor):,} and {own:,}; these numbers do not add "
            "up. A topology with water is `solvated_complex`, and its parts are `receptor_topology` and "
            "`ligand_topology`"
        )
    starts = [n - own, 0, *range(1, n - own)]
    for start in starts:
        inside = slice(start, start + own)
        if names[inside] == wanted and names[:start] + names[start + own :] == rest:
            is_ligand = np.zeros(n, bool)
            is_ligand[inside] = True
            return is_ligand
    raise InputError(
        "the atoms of receptor and ligand are not those of the complex; set receptor_mask and ligand_mask in &general"
    )


def _keys(atoms: Atoms) -> list[tuple[str, str]]:
    labels = atoms.labels
    assert labels is not None
    return [*zip(labels.residue_names.tolist(), labels.names.tolist(), strict=True)]


def require_alike(complex_: Atoms, chosen: NDArray[np.bool_], part: Atoms, name: str, with_parameters: bool) -> None:
    """Raise InputError if the atoms or parameters of a part's topology differ from those in the complex."""
    own = complex_[chosen]
    n_atoms = len(own), len(part)
    order = correspondence(own.labels, part.labels, f"the {name}'s topology", "the complex", n_atoms).order
    for parameter in _CHECKED if with_parameters else ():
        ours, theirs = getattr(own, parameter), getattr(part, parameter)
        if ours is None or theirs is None:
            continue
        theirs = theirs[order]
        far = np.flatnonzero(np.abs(ours - theirs) > _SAME)
        if len(far):
            k = int(far[0])
            raise InputError(
                f"the {name}'s topology has {parameter} {theirs[k]:g} for {part.describe(int(order[k]))}, the "
                f"complex's {ours[k]:g}; create both from one topology, as with ante-MMPBSA.py"
            )


def masked(atoms: Atoms, mask: str) -> NDArray[np.bool_]:
    """Return the boolean mask (n,) of an AMBER mask, which may select no atoms."""
    try:
        return atoms.selected(mask)
    except InputError as error:
        if error.code == NO_ATOMS:
            return np.zeros(len(atoms), bool)
        raise


Group = tuple[str, NDArray[np.intp]]  # group of an index file: its name and its atoms, from 0


@dataclass(frozen=True, eq=False)
class Systems:
    """Systems of a run.

    sources : "complex", and "receptor" and "ligand" for separate trajectories
    is_ligand : mask (n,) of the complex's atoms; None if only the energy of the complex is computed
    layout : labels of the complex's atoms from a reference structure, if there is one
    left_out : number of residues by name, in the complex's topology, that have atoms in neither part
    notes : messages about these atoms, about frames without them, and about names in the reference
    """

    sources: dict[str, Source]
    is_ligand: NDArray[np.bool_] | None
    layout: Labels | None = None
    left_out: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def _of_everything(systems: Systems, everything: Atoms, complex_: NDArray[np.intp]) -> Systems:
    """Add the residues that are left out. everything : atoms of the topology; complex_ : indices of those in a part"""
    mask = np.ones(len(everything), bool)
    mask[complex_] = False
    notes = (*systems.notes, *left_out_notes(everything, mask))
    return replace(systems, left_out=names_of(everything, mask), notes=notes)


def amber_systems(
    wanted: MmpbsaInput, topologies: dict[str, Path], solvated: dict[str, Path], paths: dict[str, tuple[Path, ...]],
) -> Systems:  # fmt: skip
    """Build the systems of an MMPBSA.py run.

    topologies, solvated, paths : topologies, solvated topologies and trajectories, by "complex", "receptor", "ligand"

    Raises FormatError if a file cannot be read, and InputError if topologies do not belong together.
    """
    atoms = {name: read_topology(path).parameters for name, path in topologies.items()}
    if len(paths) > 1 and len(atoms) < 3:
        raise InputError(
            "frames of a part need topologies of both: give `receptor_topology` and `ligand_topology` in addition to "
            "`receptor_trajectory` or `ligand_trajectory`"
        )
    is_ligand = None
    if wanted.masks is not None:
        is_receptor, is_ligand = (masked(atoms["complex"], mask) for mask in wanted.masks)
        for mask, chosen in zip(wanted.masks, (is_receptor, is_ligand), strict=True):
            if not chosen.any():
                raise InputError(f"the mask {mask!r} selects no atoms of {topologies['complex']}")
        if (is_receptor == is_ligand).any():
            raise InputError(
                f"the masks {wanted.masks[0]!r} and {wanted.masks[1]!r} do not divide the atoms of "
                f"{topologies['complex']} between them; each atom must be in exactly one mask"
            )
    elif len(atoms) == 3:
        is_ligand = parts_by_topologies(atoms["complex"], atoms["receptor"], atoms["ligand"])
    elif len(atoms) == 2:
        raise InputError(
            "receptor and ligand must be given together: give `receptor_topology` and `ligand_topology`, or "
            "neither for the complex alone"
        )
    if is_ligand is not None:
        for name, chosen in (("receptor", ~is_ligand), ("ligand", is_ligand)):
            if name in atoms:
                require_alike(atoms["complex"], chosen, atoms[name], name, with_parameters=len(paths) == 1)
    sources = {name: _source(wanted, atoms[name], topologies[name], solvated.get(name), of)
               for name, of in paths.items()}  # fmt: skip
    of = sources["complex"]
    return _of_everything(Systems(_with_parts(sources, atoms, is_ligand), is_ligand), of.whole, of.chosen)


def _with_parts(
    sources: dict[str, Source], atoms: Mapping[str, Atoms], is_ligand: NDArray[np.bool_] | None
) -> dict[str, Source]:  # fmt: skip
    """Complete the sources if one part has a separate trajectory: the other part is taken from the complex's frames.

    atoms : atoms of the parts that have their own topologies
    """
    if len(sources) == 1 or is_ligand is None:
        return sources
    whole = sources["complex"]
    for name, chosen in (("receptor", ~is_ligand), ("ligand", is_ligand)):
        if name not in sources:
            own = atoms.get(name, whole.atoms[chosen])
            sources[name] = replace(whole, atoms=own, chosen=whole.chosen[chosen])
    return {name: sources[name] for name in ("complex", "receptor", "ligand")}


def _source(
    wanted: MmpbsaInput, atoms: Atoms, topology: Path, solvated: Path | None, paths: tuple[Path, ...]
) -> Source:  # fmt: skip
    if solvated is None:
        return Source(atoms, paths, atoms, np.arange(len(atoms)))
    whole = read_names(solvated)
    chosen = np.flatnonzero(~masked(whole, wanted.strip_mask))
    if len(chosen) != len(atoms):
        raise InputError(
            f"{solvated} has {len(chosen):,} atoms without {wanted.strip_mask!r}, {topology} {len(atoms):,}; set "
            "strip_mask in &general to the atoms that are not in the topology"
        )
    assert whole.labels is not None
    assert atoms.labels is not None
    kept = labels_of(whole.labels, chosen)
    same = correspondence(atoms.labels, kept, str(solvated), str(topology), advice="set strip_mask in &general")
    return Source(atoms, paths, whole, chosen[same.order])


@dataclass(frozen=True)
class FrameFiles:
    """GROMACS files of a system's frames.

    paths : trajectories; topology : topology of all atoms of a frame, None to use that of the complex
    index, number : index file and group of the system, None for all atoms
    """

    paths: tuple[Path, ...]
    topology: Path | None = None
    index: Path | None = None
    number: int | None = None


def gromacs_systems(
    wanted: MmpbsaInput, topology: Path, index: Path, groups: Sequence[int], paths: tuple[Path, ...],
    reference: Path | None, parts: Mapping[str, FrameFiles], structure: Path | None = None,
) -> Systems:  # fmt: skip
    """Build the systems of a gmx_MMPBSA run from a topology and two groups of an index file.

    The frames may lack water and ions of the topology.

    reference : structure of receptor and ligand with chains and residue numbers
    structure : structure of all atoms of the frames, which defines chains and residue numbers without a reference
    parts : files of "receptor" and "ligand" with separate trajectories
    """
    everything = read_topology(topology).parameters
    found = read_index(index)
    named = [_group(index, found, number) for number in groups]
    taken = _taken_by_frames(everything, paths, np.concatenate([of for _, of in named]))
    named = _renumbered(named, taken)
    whole = everything if taken is None else everything[taken]
    receptor, ligand = (_among(index, number, of, len(whole), topology)
                        for number, of in zip(groups, named, strict=True))  # fmt: skip
    if len(np.intersect1d(receptor, ligand)):
        raise InputError(f"{index}: the groups {groups[0]} and {groups[1]} share atoms; each atom must be in one group")
    complex_ = np.union1d(receptor, ligand)
    atoms = _with_radii(whole[complex_], wanted.gb_radii)
    assert atoms.labels is not None
    layout, notes = layout_of(atoms.labels, complex_, len(whole), reference, structure)
    if layout is not None:
        atoms = replace(atoms, labels=layout)
    if taken is not None:
        absent = np.ones(len(everything), bool)
        absent[taken] = False
        notes = (
            *notes,
            f"{paths[0]}: its frames do not contain {counted_names(names_of(everything, absent))} of {topology}",
        )
    is_ligand = np.isin(complex_, ligand)
    sources = {"complex": Source(atoms, paths, whole, complex_)}
    for name, chosen in (("receptor", ~is_ligand), ("ligand", is_ligand)):
        if name in parts:
            sources[name] = _of_group(wanted, name, atoms[chosen], parts[name])
    systems = Systems(_with_parts(sources, {}, is_ligand), is_ligand, layout, notes=notes)
    return _of_everything(systems, everything, complex_ if taken is None else taken[complex_])


def _with_radii(atoms: Atoms, name: str) -> Atoms:
    """Assign a radii set of gmx_MMPBSA."""
    if name != CHARMM_RADII:
        return atoms.with_radii(name)
    return replace(atoms, gb_radii=charmm_radii(atoms), gb_radii_set=name, default_radii=None)


def _taken_by_frames(whole: Atoms, paths: tuple[Path, ...], group: NDArray[np.intp]) -> NDArray[np.intp] | None:
    """Return the atoms (k,) of a topology that are in the frames; None if all are, or if it cannot be determined.

    Programs remove water from frames, possibly with counter-ions or all ions, or everything except the two groups.

    group : atoms of the two groups, with their numbers in the index file
    """
    n = _n_atoms(paths)
    if n is None or n == len(whole):
        return None
    for kept in solutes(whole):
        if int(kept.sum()) == n and group.max() < n:
            return np.flatnonzero(kept)
    chosen = np.unique(group)  # as indices in the topology
    return chosen if len(chosen) == n and chosen[-1] < len(whole) else None


def _renumbered(named: Sequence[Group], taken: NDArray[np.intp] | None) -> list[Group]:
    """Convert groups with indices in the topology to indices in the frames."""
    if taken is None or max(int(group.max()) for _, group in named) < len(taken):
        return list(named)
    return [(name, np.searchsorted(taken, group)) for name, group in named]


def _n_atoms(paths: tuple[Path, ...]) -> int | None:
    """Return the number of atoms of the frames; None if the files do not contain it."""
    try:
        with open_frames(paths[0]) as file:
            return file.n_atoms
    except (FormatError, InputError):
        return None


def _of_group(wanted: MmpbsaInput, name: str, own: Atoms, group: FrameFiles) -> Source:
    """Build the source of a part with a separate trajectory. own : its atoms in the complex"""
    if group.topology is None:
        return Source(own, group.paths, own, np.arange(len(own)))
    whole = read_topology(group.topology).parameters
    chosen = np.arange(len(whole))
    if group.index is not None and group.number is not None:
        named = _group(group.index, read_index(group.index), group.number)
        taken = _taken_by_frames(whole, group.paths, named[1])
        named = _renumbered([named], taken)[0]
        whole = whole if taken is None else whole[taken]
        chosen = _among(group.index, group.number, named, len(whole), group.topology)
    atoms = _with_radii(whole[chosen], wanted.gb_radii)
    assert atoms.labels is not None
    assert own.labels is not None
    advice = f"choose its group by `{name}_index` and `{name}_group`"
    same = correspondence(own.labels, atoms.labels, str(group.topology), f"the {name} of the complex", advice=advice)
    return Source(replace(atoms[same.order], labels=own.labels), group.paths, whole, chosen[same.order])


def _group(
    index: Path, found: Sequence[Group], number: int
) -> Group:  # fmt: skip
    """Return name and atoms of a group of an index file. Raises InputError if it does not exist or is empty."""
    if not 0 <= number < len(found):
        raise InputError(f"{index}: has no group {number}; its groups are 0 to {len(found) - 1}")
    name, group = found[number]
    if not len(group):
        raise InputError(f"{index}: the group {number}, {name}, contains no atom")
    return name, group


def _among(index: Path, number: int, named: Group, n: int, topology: Path) -> NDArray[np.intp]:
    """Return the sorted atoms of a group. Raises InputError if they are not among the n atoms of the frames."""
    name, group = named
    if group.min() < 0 or group.max() >= n:
        raise InputError(f"{index}: the group {number}, {name}, is not of the {n:,} atoms of {topology}")
    return np.unique(group)


def read_index(path: Path) -> list[Group]:
    """Read a GROMACS index file (.ndx): names and atoms, from 0. Raises FormatError for invalid lines."""
    found, values = list[Group](), list[list[int]]()
    names = list[str]()
    for number, line in enumerate(lines(read_file(path), "GROMACS index"), 1):
        words = line.split(";")[0].strip()
        if words.startswith("["):
            names.append(printable(words.strip("[] ")))
            values.append([])
        elif words:
            if not names:
                raise FormatError(f"{path}:{number}: {quoted(words)}; an index file begins with [ a name ]")
            wrong = [word for word in words.split() if not (word.isascii() and word.isdigit() and len(word) < 10)]
            if wrong or 0 in (of := [int(word) for word in words.split()]):
                raise FormatError(f"{path}:{number}: {quoted(words)}; expected numbers of atoms, from 1")
            values[-1] += [atom - 1 for atom in of]
    for name, of in zip(names, values, strict=True):
        found.append((name, np.array(of, np.intp)))
    return found
