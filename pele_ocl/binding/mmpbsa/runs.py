"""Run an mmpbsa.in file: compute the frames of the wild type and its mutants, in this process or by workers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ...common.arguments import checked, file_path, file_paths
from ...common.errors import InputError, KeywordError
from ...common.inputfile import opened, read_file
from ...common.notes import heard_notes, note
from ...common.variant import Progress
from ...formats import read_topology
from ...jobs import Place
from ...jobs.texts import software
from ...trajectories.energies import recorded
from ...trajectories.sharing import FramesSpec, OpenedFrames, shared_frames
from ..alanine import Mutant, to_alanine
from .namelists import MmpbsaInput, read_input
from .residues import (
    mutant_label,
    mutant_of,
    mutated_residue,
    printed_residues,
    residue_named,
    starts_of,
    with_dielectric,
)
from .result import MmpbsaResult, OutputFiles
from .systems import FrameFiles, Systems, amber_systems, gromacs_systems
from .work import ComputedFrames, OpenedWork, Results, TrajectoryWork, results_of

if TYPE_CHECKING:
    from ...opencl.device import Device


Paths = str | PathLike[str] | Sequence[str | PathLike[str]]
Given = str | PathLike[str] | None


@checked
def mmpbsa(
    input_file: str | PathLike[str], complex_topology: str | PathLike[str], trajectory: Paths, *,
    receptor_topology: Given = None, ligand_topology: Given = None, solvated_complex: Given = None,
    solvated_receptor: Given = None, solvated_ligand: Given = None, receptor_trajectory: Paths = (),
    ligand_trajectory: Paths = (), mutant_complex: Given = None, mutant_receptor: Given = None,
    mutant_ligand: Given = None, index: Given = None, groups: Sequence[int] | None = None,
    masks: Sequence[str] | None = None, structure: Given = None, reference: Given = None,
    receptor_index: Given = None, receptor_group: int | None = None, ligand_index: Given = None,
    ligand_group: int | None = None, output: Given = None, decomposition: Given = None, frames_output: Given = None,
    frame_shares: Given = None, overwrite: bool = False, prefix: str = "_MMPBSA_", resume: bool = False,
    precision: str = "float32", device: Device | int | str | None = None, workers: int | None = None,
    scheduler: str | None = None, progress: Progress | None = None,
) -> MmpbsaResult:  # fmt: skip
    """Run an input file of MMPBSA.py or gmx_MMPBSA: MM/GBSA (&gb) and MM/PBSA (&pb), with their other namelists.

        parts = {"receptor_topology": "rec.top", "ligand_topology": "lig.top"}
        result = pele_ocl.mmpbsa("mmpbsa.in", "com.top", "prod.nc", **parts)
        print(result)
        result.save("FINAL_RESULTS_MMPBSA.dat")

    input_file : mmpbsa.in, with &general, &gb, &pb, &decomp and &alanine_scanning; other namelists cause a note
    complex_topology : AMBER topology of the complex, or with `groups` GROMACS topology of all atoms
    trajectory : trajectory of the complex, one or several files
    receptor_topology, ligand_topology : topologies of the parts; if both are missing, only the energy of the complex is
        computed
    solvated_complex, solvated_receptor, solvated_ligand : topologies of all atoms of the frames
    receptor_trajectory, ligand_trajectory : separate trajectories of the parts, one or several files each
    mutant_complex, mutant_receptor, mutant_ligand : topologies with a residue mutated to ALA
    index, groups : GROMACS index file, and the numbers of the groups of receptor and ligand, from 0
    masks : masks of receptor and ligand, instead of those in the input file
    structure, reference : as in gmx_MMPBSA, a structure of all atoms of the frames, and one of receptor and ligand that
        defines the chains and residue numbers used in the input file
    receptor_index, receptor_group, ligand_index, ligand_group : the same for separate trajectories of a part
    output, decomposition, frames_output, frame_shares : files to write: tables, decomposition, and energies and
        contributions of each frame as CSV; either all or none are written
    overwrite : True to overwrite existing files
    resume : True to store the energies of frames in `prefix`complex.h5 and similar files, and to continue from them
    prefix : prefix of these files
    precision, device : as in `energy`; workers, scheduler : as in `jobs.run`
    progress : called with the fraction of the frames done, 0 to 1

    Returns an MmpbsaResult. Raises FormatError for files that cannot be read, and InputError for unsupported variables
    of the input file and for files that do not belong together.

    >>> result = pele_ocl.mmpbsa(
    ...     "mmpbsa.in", complex_topology="complex.parm7", trajectory="frames.nc", output="results.dat", overwrite=True
    ... )
    >>> result.table()["method"][0].item(), result.table()["term"][-1].item()
    ('gb', 'TOTAL')
    >>> result.save_frames("frames.csv")
    """
    if complex_topology is None:
        raise KeywordError(
            "the topology of the complex is missing: give `complex_topology`. Creating it "
            "from structures with tleap, as gmx_MMPBSA does, is not supported"
        )
    paths = _files("trajectory", trajectory)
    if not paths:
        raise KeywordError("frames of the complex are missing: give `trajectory`")
    _require_pairs({"index": index, "groups": groups}, {"receptor_index": receptor_index, "receptor_group":
                   receptor_group}, {"ligand_index": ligand_index, "ligand_group": ligand_group})  # fmt: skip
    topologies = _given(complex=complex_topology, receptor=receptor_topology, ligand=ligand_topology)
    frames = {
        "complex": paths,
        **_with_files(
            receptor=_files("receptor_trajectory", receptor_trajectory),
            ligand=_files("ligand_trajectory", ligand_trajectory),
        ),
    }
    mutants = _given(complex=mutant_complex, receptor=mutant_receptor, ligand=mutant_ligand)
    place = Place(workers, scheduler, device if isinstance(device, str) else None)
    for path in (*topologies.values(), *mutants.values(), *_given(index=index, reference=reference).values(),
                 *chain.from_iterable(frames.values())):  # fmt: skip
        opened(path).close()
    with heard_notes() as heard:
        file = read_file(input_file)
        wanted = read_input(file, of_gromacs := groups is not None or masks is not None)
        outputs = OutputFiles.of(wanted, output, decomposition, frames_output, frame_shares)
        outputs.check(overwrite)
        records = EnergyFiles(prefix, resume, wanted.keeps_files)
        _refuse_sharing(wanted, resume, place)
        if masks is not None:
            receptor_mask, ligand_mask = masks
            wanted = replace(wanted, masks=(receptor_mask, ligand_mask))
        if groups is not None and index is not None:
            of_parts = {
                "receptor": FrameFiles(frames.get("receptor", ()), topologies.get("receptor"), _path(receptor_index),
                                       receptor_group),
                "ligand": FrameFiles(frames.get("ligand", ()), topologies.get("ligand"), _path(ligand_index),
                                     ligand_group),
            }  # fmt: skip
            systems = gromacs_systems(
                wanted, topologies["complex"], file_path(index, "index"), groups, paths, _path(reference),
                {name: of for name, of in of_parts.items() if of.paths}, _path(structure),
            )  # fmt: skip
        else:
            solvated = _given(complex=solvated_complex, receptor=solvated_receptor, ligand=solvated_ligand)
            systems = amber_systems(wanted, topologies, solvated, frames)
        wanted = _with_notes(wanted, systems)
        run = _Run(systems, mutants, device, precision, records, place, by_frame=outputs.shares is not None)
        runs = run.computed(wanted, progress)
        notes = [*wanted.notes]
        if n_imaged := sum(of.n_imaged for of in runs):
            notes.append(f"{n_imaged:,} frames were imaged: molecules were made whole and placed next to the receptor")
        for sentence in notes:
            note(f"Note: {sentence}")
    result = MmpbsaResult(file, wanted, systems, runs, tuple(notes), of_gromacs, topologies["complex"], paths,
                          heard=tuple(heard))  # fmt: skip
    result = result.written(outputs)
    records.clean()
    return result


def _files(name: str, given: Paths) -> tuple[Path, ...]:
    """Return the paths of one or several files."""
    several = (given,) if isinstance(given, str | PathLike) else file_paths(name, given)
    return tuple(file_path(each, name) for each in several)


def _path(given: Given) -> Path | None:
    return None if given is None else Path(given)


def _given(**named: Given) -> dict[str, Path]:
    """Return the given files by keyword."""
    return {name: file_path(value, name) for name, value in named.items() if value is not None}


def _with_files(**named: tuple[Path, ...]) -> dict[str, tuple[Path, ...]]:
    return {name: paths for name, paths in named.items() if paths}


def _require_pairs(*pairs: Mapping[str, object]) -> None:
    """Raise KeywordError for an index file without a group, or a group without an index file."""
    for pair in pairs:
        if len({value is None for value in pair.values()}) > 1:
            first, second = pair
            raise KeywordError(f"`{first}` and `{second}` must be given together: an index file and one of its groups")


def _refuse_sharing(wanted: MmpbsaInput, resume: bool, place: Place) -> None:
    """Raise KeywordError for `resume` or workers if the requested decomposition does not support them."""
    if wanted.decomp is not None and resume:
        raise KeywordError("a decomposition needs all frames in one run; leave out `resume`, or &decomp")
    if wanted.decomp is not None and wanted.decomp.idecomp > 2 and place.is_remote:
        raise KeywordError("pairs of residues are summed in one process; leave out `workers` and `scheduler`")


def _with_notes(wanted: MmpbsaInput, systems: Systems) -> MmpbsaInput:
    """Return the input with notes about the systems, and without entropies if the systems do not allow them.

    Raises InputError for entropies of separate trajectories.
    """
    of_frames = [note for source in systems.sources.values() for note in source.trajectory(wanted.frames).notes]
    notes, side = [*wanted.notes, *systems.notes, *dict.fromkeys(of_frames)], systems.is_ligand
    if side is not None and side.sum() > (~side).sum():
        notes.append(
            f"the ligand has {int(side.sum()):,} atoms, more than the {int((~side).sum()):,} of the receptor; if "
            "receptor and ligand were exchanged, the difference is the same"
        )
    if wanted.decomp is not None and wanted.alanine is not None and wanted.alanine.mutant_only:
        raise InputError("mutant_only=1 omits the wild type, which &decomp needs; leave out one of them")
    if wanted.entropies is not None and side is None:
        notes.append("entropies of binding are omitted, because there is no receptor and no ligand")
        return replace(wanted, notes=tuple(notes), entropies=None)
    if wanted.entropies is not None and len(systems.sources) > 1:
        raise InputError("interaction_entropy and c2_entropy need receptor and ligand from frames of the complex")
    return replace(wanted, notes=tuple(notes))


@dataclass
class EnergyFiles:
    """Intermediate files with the energies of the frames.

    prefix : prefix of their names; resume : whether they are used; keeps : whether they are kept after the run
    written : files that this run created or continued
    """

    prefix: str
    resume: bool
    keeps: bool
    written: list[Path] = field(default_factory=list)

    def path(self, wanted: MmpbsaInput, label: str, system: str) -> Path | None:
        """Return the file of a system; None if intermediate files are not used."""
        if not self.resume:
            return None
        method = "" if wanted.pb is None else "pb_"
        self.written.append(Path(f"{self.prefix}{method}{f'{label}_' if label else ''}{system}.h5"))
        return self.written[-1]

    def clean(self) -> None:
        """Remove the files if keep_files=0."""
        for path in () if self.keeps else self.written:
            path.unlink(missing_ok=True)


@dataclass(frozen=True, eq=False)
class _Mutation:
    """A mutant for each system that contains the residue, its label, and the input with its dielectric constant."""

    of: Mapping[str, Mutant]
    label: str
    wanted: MmpbsaInput


@dataclass(frozen=True, eq=False)
class _Run:
    """Computes the wild type, unless only mutants are requested, and the mutants of an alanine scan, by each method.

    topologies : mutant topologies by system; by_frame : whether contributions of residue pairs are stored per frame
    """

    systems: Systems
    topologies: Mapping[str, Path]
    device: Device | int | str | None
    precision: str
    records: EnergyFiles
    place: Place
    by_frame: bool

    def computed(self, wanted: MmpbsaInput, progress: Progress | None = None) -> list[Results]:
        """Compute the results of all methods and mutants."""
        works = [each for method in wanted.methods for each in self._works(method)]
        found, n_done, n = list[Results](), 0, len(works) * len(self.systems.sources)
        for own, mutation in works:
            computed = list[ComputedFrames]()
            for name in self.systems.sources:
                tell = None if progress is None else partial(_tell, progress, n_done, n)
                computed.append(self._computed(name, own, mutation, tell))
                n_done += 1
            found.append(results_of(computed, own, "" if mutation is None else mutation.label))
        return found

    def _works(self, wanted: MmpbsaInput) -> list[tuple[MmpbsaInput, _Mutation | None]]:
        """Return the calculations of a method: inputs with mutants, None for the wild type."""
        mutations = _mutations(self.systems, wanted, self.topologies)
        own = mutations[0].wanted if mutations else wanted  # cas_intdiel also applies to the wild type
        mutant_only = bool(mutations) and wanted.alanine is not None and wanted.alanine.mutant_only
        return [*([] if mutant_only else [(own, None)]), *((of.wanted, of) for of in mutations)]

    def _computed(
        self, name: str, wanted: MmpbsaInput, mutation: _Mutation | None, progress: Progress | None
    ) -> ComputedFrames:
        """Compute the frames of one system, and store them in an intermediate file if it is used."""
        systems = self.systems
        printed = None if mutation is not None or wanted.decomp is None else _printed(systems, wanted)
        is_single = systems.is_ligand is not None and len(systems.sources) == 1
        work = TrajectoryWork(
            name, systems.sources[name], wanted, self.device, self.precision, systems.is_ligand if is_single else None,
            None if mutation is None else mutation.of.get(name),
            None if printed is None else _own(printed, systems, name), self.by_frame and mutation is None,
        )  # fmt: skip
        record = self.records.path(wanted, "" if mutation is None else mutation.label, name)
        opened = work.opened()
        spec = FramesSpec(partial(_frames, work), _frames(work, opened))
        with shared_frames(spec, record, record is not None, self.place) as shared:
            n = len(shared.frames)
            parts = recorded(
                shared.frames, opened.evaluate, output=shared.output, resume=record is not None,
                settings=shared.record, tell=None if progress is None else lambda done: progress(done / n),
                over=shared.stream,
            )  # fmt: skip
            return ComputedFrames.of(opened, [part.results for part in parts])


def _tell(progress: Progress, n_done: int, n: int, share: float) -> None:
    progress((n_done + share) / n)


def _printed(systems: Systems, wanted: MmpbsaInput) -> NDArray[np.intp]:
    """Return the residues of the complex selected by print_res, at the first frame."""
    assert wanted.decomp is not None
    whole = systems.sources["complex"]
    return printed_residues(wanted.decomp, whole.at_first_frame(wanted.frames), systems.is_ligand, systems.layout)


def _own(
    printed: NDArray[np.intp], systems: Systems, name: str
) -> NDArray[np.intp]:  # fmt: skip
    """Return the indices of printed residues in a system with its own frames."""
    if name == "complex" or systems.is_ligand is None:
        return printed
    side = systems.is_ligand[starts_of(systems.sources["complex"].atoms)] == (name == "ligand")
    return np.array([int(side[:r].sum()) for r in printed if side[r]], np.intp)


def _frames(work: TrajectoryWork, opened: OpenedWork | None = None) -> OpenedFrames:
    """Return the opened frames of a work; workers open it themselves."""
    opened = opened or work.opened()
    return OpenedFrames(opened.frames, opened.evaluate, {"record": {"software": software(), **opened.settings}})


def _mutations(systems: Systems, wanted: MmpbsaInput, topologies: Mapping[str, Path]) -> list[_Mutation]:
    """Return the mutants of an alanine scan, from mutant topologies or from mutant_res."""
    if wanted.alanine is None:
        if topologies:
            raise InputError(
                "`mutant_complex`, `mutant_receptor` and `mutant_ligand` are only for an alanine scan, but "
                "mmpbsa.in has no &alanine_scanning"
            )
        return []
    whole = systems.sources["complex"]
    labels = whole.atoms.labels
    assert labels is not None
    if topologies and "complex" not in topologies:
        raise InputError(
            "`mutant_receptor` and `mutant_ligand` need `mutant_complex`, the topology of the complete mutant"
        )
    if topologies:
        residue, found = _by_topologies(systems, topologies)
        return [_mutation(systems, wanted, residue, found)]
    if not wanted.alanine.residues:
        raise InputError(
            "&alanine_scanning needs the mutant: `mutant_complex` and `mutant_receptor` or `mutant_ligand`, or "
            "mutant_res with gmx_MMPBSA"
        )
    if len(systems.sources) > 1:
        raise InputError(
            "an alanine scan with separate trajectories needs topologies of the mutant: `mutant_complex`, "
            "`mutant_receptor`, `mutant_ligand`"
        )
    residues = [residue_named(word, labels) for word in wanted.alanine.residues]
    if len(set(residues)) < len(residues):
        raise InputError(f"mutant_res={','.join(wanted.alanine.residues)} names a residue twice")
    atoms = whole.at_first_frame(wanted.frames)
    names = labels.residue_names[labels.residue_starts[residues]].tolist()
    if len({with_dielectric(wanted, wanted.alanine, str(name)).model.solute_dielectric for name in names}) > 1:
        raise InputError(
            "cas_intdiel=1 assigns several dielectric constants to these residues; give one residue in mutant_res"
        )
    return [_mutation(systems, wanted, residue, {"complex": to_alanine(atoms, residue)}) for residue in residues]


def _by_topologies(systems: Systems, topologies: Mapping[str, Path]) -> tuple[int, dict[str, Mutant]]:
    """Return the index of the mutated residue, and the mutants from mutant topologies."""
    atoms = {name: source.atoms for name, source in systems.sources.items()}
    of = {name: read_topology(path).parameters for name, path in topologies.items()}
    residue = mutated_residue(atoms["complex"], of["complex"])
    if residue is None:
        raise InputError(f"{topologies['complex']}: has no residue that differs from the complex's")
    found = {"complex": mutant_of(atoms["complex"], of["complex"], residue)}
    for name in atoms:
        if name != "complex" and name in of:
            place = mutated_residue(atoms[name], of[name])
            if place is not None:
                found[name] = mutant_of(atoms[name], of[name], place)
    if len(atoms) > 1 and len(found) == 1:
        raise InputError("separate trajectories also need the mutant's part: give `mutant_receptor` or `mutant_ligand`")
    return residue, found


def _mutation(systems: Systems, wanted: MmpbsaInput, residue: int, found: Mapping[str, Mutant]) -> _Mutation:
    atoms = systems.sources["complex"].atoms
    assert atoms.labels is not None
    assert wanted.alanine is not None
    name = str(atoms.labels.residue_names[atoms.labels.residue_starts[residue]])
    return _Mutation(found, mutant_label(atoms, residue), with_dielectric(wanted, wanted.alanine, name))
