"""Runs of an mmpbsa.in: the wild type and its mutants, over their frames, here or by workers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np

from ...binding.alanine import Mutant, to_alanine
from ...binding.mmpbsa.files import Systems
from ...binding.mmpbsa.mutants import mutant_label, mutant_of, mutated_residue, residue_named, with_dielectric
from ...binding.mmpbsa.namelists import MmpbsaInput
from ...binding.mmpbsa.residues import printed_residues, starts_of
from ...binding.mmpbsa.runs import ComputedFrames, OpenedWork, Results, TrajectoryWork, results_of
from ...common.errors import InputError
from ...formats import read_topology
from ...trajectories.energies import recorded
from ..frames import FramesSpec, OpenedFrames, shared_frames
from ..frames.run import FrameLine
from ..report import software


@dataclass
class EnergyFiles:
    """Intermediate files with the energies of frames.

    prefix : first letters of their names; resume : whether there are any; keeps : whether they stay after the run
    written : files that this run wrote or went on with
    """

    prefix: str
    resume: bool
    keeps: bool
    written: list[Path] = field(default_factory=list)

    def path(self, wanted: MmpbsaInput, label: str, system: str) -> Path | None:
        """File of a system; None where none is wanted."""
        if not self.resume:
            return None
        method = "" if wanted.pb is None else "pb_"
        self.written.append(Path(f"{self.prefix}{method}{f'{label}_' if label else ''}{system}.h5"))
        return self.written[-1]

    def clean(self) -> None:
        """Remove the files where keep_files=0 asks for it."""
        for path in () if self.keeps else self.written:
            path.unlink(missing_ok=True)


@dataclass(frozen=True, eq=False)
class _Mutation:
    """A mutant: of each system that has the residue, its name, and the input with its dielectric constant."""

    of: Mapping[str, Mutant]
    label: str
    wanted: MmpbsaInput


def computed_runs(
    systems: Systems, wanted: MmpbsaInput, topologies: Mapping[str, Path], device: str | None, precision: str,
    records: EnergyFiles, by_frame: bool,
) -> list[Results]:  # fmt: skip
    """Wild type, unless mutants alone are wanted, and each mutant of an alanine scan, by one method after the other.

    topologies : of the mutant, by system; by_frame : whether shares of pairs of residues are kept by frame
    """
    runs = list[Results]()
    for method in wanted.methods:
        runs += _runs_of(systems, method, topologies, device, precision, records, by_frame)
    return runs


def _runs_of(
    systems: Systems, wanted: MmpbsaInput, topologies: Mapping[str, Path], device: str | None, precision: str,
    records: EnergyFiles, by_frame: bool,
) -> list[Results]:  # fmt: skip
    mutations = _mutations(systems, wanted, topologies)
    runs = list[Results]()
    own = mutations[0].wanted if mutations else wanted  # with cas_intdiel the wild type has the mutant's constant
    if not (mutations and wanted.alanine is not None and wanted.alanine.mutant_only):
        runs.append(_run(systems, own, device, precision, records, None, by_frame))
    runs += [_run(systems, of.wanted, device, precision, records, of, False) for of in mutations]
    return runs


def _run(
    systems: Systems, wanted: MmpbsaInput, device: str | None, precision: str, records: EnergyFiles,
    mutation: _Mutation | None, by_frame: bool,
) -> Results:  # fmt: skip
    label = "" if mutation is None else mutation.label
    printed = None if mutation is not None or wanted.decomp is None else _printed(systems, wanted)
    is_single = systems.is_ligand is not None and len(systems.sources) == 1
    found = list[ComputedFrames]()
    for name, source in systems.sources.items():
        work = TrajectoryWork(
            name, source, wanted, device, precision, systems.is_ligand if is_single else None,
            None if mutation is None else mutation.of.get(name),
            None if printed is None else _own(printed, systems, name), by_frame,
        )  # fmt: skip
        what = "Binding energy" if is_single else f"Energy of the {name}"
        found.append(_computed(work, records.path(wanted, label, name), f"{label}: {what}" if label else what))
    return results_of(found, wanted, label)


def _printed(systems: Systems, wanted: MmpbsaInput) -> np.ndarray[tuple[int], np.dtype[np.intp]]:
    """Residues of the complex that print_res names, at its first frame."""
    assert wanted.decomp is not None
    whole = systems.sources["complex"]
    return printed_residues(wanted.decomp, whole.at_first_frame(wanted.frames), systems.is_ligand, systems.layout)


def _own(
    printed: np.ndarray[tuple[int], np.dtype[np.intp]], systems: Systems, name: str
) -> np.ndarray[tuple[int], np.dtype[np.intp]]:  # fmt: skip
    """Printed residues by their numbers in a system with frames of its own."""
    if name == "complex" or systems.is_ligand is None:
        return printed
    side = systems.is_ligand[starts_of(systems.sources["complex"].atoms)] == (name == "ligand")
    return np.array([int(side[:r].sum()) for r in printed if side[r]], np.intp)


def _computed(work: TrajectoryWork, record: Path | None, what: str) -> ComputedFrames:
    """Results of all frames of a work, which go into a record where one is wanted."""
    opened = work.opened()
    spec = FramesSpec(partial(_frames, work), _frames(work, opened))
    with shared_frames(spec, record, resume=record is not None) as shared, FrameLine(what, len(shared.frames)) as line:
        parts = recorded(
            shared.frames, opened.evaluate, output=shared.output, resume=record is not None, settings=shared.record,
            tell=lambda done: line(done / len(shared.frames)), over=shared.stream,
        )  # fmt: skip
        return ComputedFrames.of(opened, [part.results for part in parts])


def _frames(work: TrajectoryWork, opened: OpenedWork | None = None) -> OpenedFrames:
    """Frames of a work, in this process or in another one, which opens it first."""
    opened = opened or work.opened()
    return OpenedFrames(opened.frames, opened.evaluate, {"record": {"software": software(), **opened.settings}})


def _mutations(systems: Systems, wanted: MmpbsaInput, topologies: Mapping[str, Path]) -> list[_Mutation]:
    """Mutants of an alanine scan, by -mc, -mr and -ml or by mutant_res."""
    if wanted.alanine is None:
        if topologies:
            raise InputError("-mc, -mr and -ml are of an alanine scan; mmpbsa.in has no &alanine_scanning")
        return []
    whole = systems.sources["complex"]
    labels = whole.atoms.labels
    assert labels is not None
    if topologies and "complex" not in topologies:
        raise InputError("-mr and -ml go with -mc, the topology of the whole mutant")
    if topologies:
        residue, found = _by_topologies(systems, topologies)
        return [_mutation(systems, wanted, residue, found)]
    if not wanted.alanine.residues:
        raise InputError("&alanine_scanning needs the mutant: -mc and -mr or -ml, or mutant_res with gmx_MMPBSA")
    if len(systems.sources) > 1:
        raise InputError("an alanine scan of separate trajectories needs topologies of the mutant: -mc, -mr, -ml")
    residues = [residue_named(word, labels) for word in wanted.alanine.residues]
    if len(set(residues)) < len(residues):
        raise InputError(f"mutant_res={','.join(wanted.alanine.residues)} names a residue twice")
    atoms = whole.at_first_frame(wanted.frames)
    names = labels.residue_names[labels.residue_starts[residues]].tolist()
    if len({with_dielectric(wanted, wanted.alanine, str(name)).model.solute_dielectric for name in names}) > 1:
        raise InputError("cas_intdiel=1 gives these residues several dielectric constants; name one in mutant_res")
    return [_mutation(systems, wanted, residue, {"complex": to_alanine(atoms, residue)}) for residue in residues]


def _by_topologies(systems: Systems, topologies: Mapping[str, Path]) -> tuple[int, dict[str, Mutant]]:
    """Residue, from 0, and the mutants of topologies of their own."""
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
        raise InputError("separate trajectories need the mutant's part, too: give -mr or -ml")
    return residue, found


def _mutation(systems: Systems, wanted: MmpbsaInput, residue: int, found: Mapping[str, Mutant]) -> _Mutation:
    atoms = systems.sources["complex"].atoms
    assert atoms.labels is not None
    assert wanted.alanine is not None
    name = str(atoms.labels.residue_names[atoms.labels.residue_starts[residue]])
    return _Mutation(found, mutant_label(atoms, residue), with_dielectric(wanted, wanted.alanine, name))
