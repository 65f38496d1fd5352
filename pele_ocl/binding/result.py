"""Results of binding energies: numbers, JSON, tables, files and plots."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any

import numpy as np

from ..atoms import Floats
from ..common.errors import InputError, Suggests
from ..common.notes import with_notes
from ..contract import Finding
from ..formats import write_table
from ..jobs import Record
from ..jobs.facts import composition_as_json, settings
from ..jobs.provenance import origin_of
from ..jobs.records import Kind, entries
from ..jobs.texts import UNIT, counted, duration, headline, lines_of
from ..reading import MoleculeRead
from ..report import Column, Framed, Report, Reported
from ..results import Terms
from ..trajectories import Trajectory
from ..trajectories.recording import Settings, recorder_for
from ..trajectories.streaming import FrameResults
from ..trajectories.tally import imaged
from .alanine import AlanineScan
from .decomposition import GROUPS, Decomposition, Shares, write_decomposition
from .energies import DELTA, SYSTEMS, BindingEnergies, is_large
from .naming import Naming, amber_terms
from .pictures import draw_pairs, draw_residues, draw_running_mean, write_coloured
from .plan import Binding
from .separate import SeparateEnergies
from .statistics import Difference, Entropy, Spread, spread_of, why_no_error
from .texts import (
    alanine_lines,
    comparison_lines,
    energy_lines,
    entropy_lines,
    independence,
    pose_lines,
    residue_lines,
)

Statistics = Mapping[str, Mapping[str, Spread]]


@dataclass(frozen=True, eq=False, repr=False)
class BindingResult(Reported, Suggests):
    """Binding energy of a ligand, for a structure, its models, poses, or the frames of trajectories.

    binding : Binding, the plan; energies : BindingEnergies, or SeparateEnergies of three trajectories
    ligand, receptor, like : as given; naming : names of terms in files
    entropy, scan, comparison : further results, None if not requested
    kind : kind of conformations, None for a single structure
    grid_errors : grid errors of Poisson-Boltzmann energies by system, kcal/mol; None with GB and for frames
    molecule : molecule as read; findings : findings about structure and energies, as JSON data
    record, frames : settings of the output file of frames, and their trajectory
    heard : reported notes; call : facts about the call, for files; seconds : total time, s

    >>> result = pele_ocl.binding("data/structures/trialanine.pdb", "resid 3")
    >>> round(result.total), result.table()["term"][:2].tolist()
    (-2, ['bond', 'angle'])
    >>> round(result.delta["coulomb"]), round(sum(result.delta.values()) - 2 * result.total)
    (-92, 0)
    >>> result.save("binding.csv")
    """

    binding: Binding
    energies: BindingEnergies | SeparateEnergies
    ligand: object
    receptor: object
    like: str | None
    naming: Naming
    molecule: MoleculeRead
    entropy: Entropy | None = None
    scan: AlanineScan | None = None
    comparison: Mapping[str, Difference] | None = None
    kind: Kind | None = None
    grid_errors: Mapping[str, float] | None = None
    findings: Sequence[dict[str, object]] = ()
    record: Settings | None = None
    frames: Trajectory | None = None
    heard: tuple[str, ...] = ()
    call: Mapping[str, object] | None = None
    seconds: float = 0.0

    def imaged(self) -> list[Finding]:
        """Return the finding about imaged frames."""
        of = self.energies
        systems = [of] if isinstance(of, BindingEnergies) else [*of.systems.values()]
        return imaged(sum(each.n_imaged for each in systems), sum(len(each) for each in systems))

    @property
    def poses(self) -> BindingEnergies | None:
        """Energies of poses; None for frames and models, for which means are reported."""
        return self.energies if isinstance(self.energies, BindingEnergies) and self.energies.rmsd is not None else None

    @property
    def n_frames(self) -> int:
        """Number of frames of the complex."""
        of = self.energies
        return len(of) if isinstance(of, BindingEnergies) else len(of.systems["complex"])

    @property
    def n_failed(self) -> int:
        """Number of failed frames, summed over the systems for separate trajectories."""
        of = self.energies
        return len(of.errors) if isinstance(of, BindingEnergies) else sum(len(s.errors) for s in of.systems.values())

    @property
    def decomposition(self) -> Decomposition | None:
        """Contributions of residues to the energies; None if not requested."""
        return self.energies.decomposition if isinstance(self.energies, BindingEnergies) else None

    @property
    def total(self) -> float | Floats:
        """Binding energy of the structure, or mean over frames or models, kcal/mol; for poses (m,)."""
        if self.poses is not None:
            return self.poses.total
        return self.energies.statistics()[DELTA]["total"].mean

    @property
    def delta(self) -> dict[str, float] | dict[str, Floats]:
        """Terms of the binding energy by name, complex minus receptor minus ligand, kcal/mol: means, or (m,) for poses.

        They include "total". `statistics["delta"]` has their spread, and `energies.delta` the terms of each frame.
        """
        if self.poses is not None:
            return self.poses.delta.columns()
        return {name: of.mean for name, of in self.energies.statistics()[DELTA].items()}

    @property
    def statistics(self) -> Statistics:
        """Spread of each term, by "complex", "receptor", "ligand" and "delta".

        Terms have AMBER's names if `like` is one of its programs, as in files.
        """
        return amber_statistics(self.energies) if self.naming.is_amber else self.energies.statistics()

    def differing_terms(self) -> dict[str, Floats]:
        """Return the nonzero terms of poses, (m,) kcal/mol, with names as in `statistics`."""
        assert self.poses is not None
        terms = Terms.of(amber_terms(self.poses.delta)) if self.naming.is_amber else self.poses.delta
        return {name: values for name, values in terms.columns().items() if np.nanmax(np.abs(values), initial=0) > 5e-4}

    @property
    def notes(self) -> list[str]:
        """Messages about the energies."""
        return notes_about(self)

    @property
    def failures(self) -> list[str]:
        """Messages about failed frames, by system for separate trajectories."""
        energies = self.energies
        if isinstance(energies, SeparateEnergies):
            return [
                f"{name}: {_failed('frame', len(of.errors), str(frame), reason)}"
                for name, of in energies.systems.items()
                for frame, reason in list(of.errors.items())[:1]
            ]
        found = list[str]()
        for place, reason in list(energies.errors.items())[:1]:
            is_pose = self.poses is not None
            frame = place + 1 if is_pose else place if energies.frames is None else int(energies.frames[place])
            kind = "pose" if is_pose else self.kind or "frame"
            title = f" ({energies.titles[place]})" if energies.titles and energies.titles[place] else ""
            found.append(_failed(kind, len(energies.errors), f"{frame}{title}", reason))
        return found

    def save(self, path: str | PathLike[str]) -> None:
        """Write the energies of every frame, model or pose.

        Suffixes are .h5, .csv or .jsonl for a trajectory, otherwise .h5, .csv or .json.
        """
        energies, naming = self.energies, self.naming
        if isinstance(energies, SeparateEnergies):
            units = dict.fromkeys(naming.of(energies.systems["complex"].terms), UNIT)
            write_table(path, _rows(energies, naming), units, self.provenance)
            return
        if self.record is not None and self.frames is not None:
            with recorder_for(path, self.record, self.frames.frames, self.frames.inputs) as recorder:
                recorder.append(FrameResults(naming.columns(energies.systems()), energies.errors))
            return
        columns: Mapping[str, Any] = naming.columns(energies.systems())
        assert energies.frames is not None
        errors = np.array([energies.errors.get(k, "") for k in range(len(energies))])
        rmsd = {} if energies.rmsd is None else {"rmsd": energies.rmsd}
        pose = {} if energies.rmsd is None else {"pose": energies.frames + 1}
        table = {"frame": energies.frames, **pose, **columns, **rmsd, "error": errors}
        units = dict.fromkeys(columns, UNIT) | dict.fromkeys(rmsd, "angstrom")
        write_table(path, table, units, self.provenance)

    @property
    def is_recorded(self) -> bool:
        """True if results were written to a file while computing."""
        return self.frames is not None

    @property
    def provenance(self) -> dict[str, object]:
        """Attributes for files: input and program."""
        return origin_of(self.molecule.source, self.molecule.coordinates, self.call)

    def save_decomposition(self, path: str | PathLike[str]) -> None:
        """Write the decomposition as .csv in the format of gmx_MMPBSA, or as .h5."""
        write_decomposition(path, self._decomposed(), self.provenance)

    def draw_residues(self, path: str | PathLike[str]) -> None:
        """Plot the residues with the largest contributions (PNG)."""
        draw_residues(path, self._decomposed())

    def draw_pairs(self, path: str | PathLike[str]) -> None:
        """Plot a heat map of the contributions of residue pairs, receptor against ligand (PNG)."""
        draw_pairs(path, self._decomposed())

    def draw_running_mean(self, path: str | PathLike[str]) -> None:
        """Plot the running mean of the binding energy (PNG)."""
        if not isinstance(self.energies, BindingEnergies):
            raise InputError("a running mean needs receptor and ligand from the frames of the complex")
        draw_running_mean(path, self.energies.total)

    def save_bfactor_pdb(self, path: str | PathLike[str]) -> None:
        """Write the complex as a PDB file with the contributions of residues as B-factors."""
        write_coloured(path, self.binding.atoms, self._decomposed())

    def _decomposed(self) -> Decomposition:
        if self.decomposition is None:
            raise InputError("no decomposition was computed; request one with `idecomp`")
        return self.decomposition

    def table(self) -> Report:
        """Return a table of the terms of all systems, or with a row for each pose."""
        columns: dict[str, Any]
        if self.poses is not None:
            of_files = self.naming.of(self.poses.delta)
            numbers = {name: Column(values, UNIT) for name, values in of_files.items()}
            errors = np.array([self.poses.errors.get(k, "") for k in range(len(self.poses))])
            rmsd = Column(np.array(self.poses.rmsd), "A", ".2f")
            titles = {"title": np.array(self.poses.titles)} if any(self.poses.titles) else {}
            columns = {"pose": 1 + np.arange(len(errors)), **titles, **numbers, "rmsd": rmsd, "error": errors}
            return Report("Binding energy of poses", columns, self._facts(), about=self._physics())
        statistics = self.statistics
        delta = statistics[DELTA]
        n = delta["total" if "total" in delta else "TOTAL"].n
        spread = ("sd", "sem", "sem_blocked") if n > 1 else ()
        columns = {
            "term": Column(np.array([*delta]), names=True),
            **{name: Column([of.mean for of in statistics[name].values()], UNIT) for name in SYSTEMS},
            **{name: Column([getattr(of, name) for of in delta.values()], UNIT) for name in spread},
        }
        title = "Binding energy" + (f", means of {n:,} frames" if n > 1 else "")
        return Report(title, columns, self._facts(), self._empty_errors(), self._physics())

    def _physics(self) -> list[str]:
        """Return lines with the force field and the solvent."""
        binding = self.binding
        facts = {**settings(binding.model, binding.atoms), "cutoff": binding.options.cutoff, "pb": binding.pb}
        return lines_of(facts, binding.names)

    def _empty_errors(self) -> list[str]:
        """Say why a column of errors is empty, if it is."""
        if self.poses is not None:
            return []
        try:
            total = self.energies.statistics()[DELTA]["total"]
        except InputError:  # no frame has energies; the frames have their errors
            return []
        return why_no_error(total)

    def _facts(self) -> dict[str, object]:
        binding = self.binding
        return {
            **self.provenance, **_settings(self), "device": str(binding.device), "variant": binding.variant,
            "precision": binding.precision,
        }  # fmt: skip

    def text(self, verbose: bool = False, total: float | None = None) -> str:
        """Return a text summary. total : total time to report, s"""
        binding = self.binding
        sizes = f"receptor {len(binding.parts.receptor):,} atoms, ligand {len(binding.parts.ligand):,}: {self.ligand}"
        lines = [headline(self.molecule.source.path.name, binding.atoms), sizes, *self._physics(), ""]
        lines += self._terms_text() if self.poses is None else pose_lines(self.poses, self.differing_terms())
        seconds = self.seconds if total is None else total
        how = f"{binding.variant}, {binding.precision}, on {binding.device}: total {duration(seconds)}"
        return "\n".join([*lines, "", how])

    def _terms_text(self) -> list[str]:
        """Return lines with the means and all other requested results."""
        energies, total = self.energies, self.energies.statistics()[DELTA]["total"]
        lines = energy_lines(self.statistics, total.n)
        if self.grid_errors is not None:
            of = self.grid_errors
            lines += [f"Twice the spacing changes the Poisson-Boltzmann energy of the complex by {of['complex']:,.3f}, "
                      f"the difference by {of[DELTA]:,.3f} kcal/mol (first positions)"]  # fmt: skip
        lines += [finding.text for finding in self.imaged()]
        if isinstance(energies, BindingEnergies) and len(energies) > 1:
            lines += ["", independence(total, len(energies), len(energies.errors))]
        if self.entropy is not None:
            lines += ["", *entropy_lines(self.entropy, total.mean)]
        if self.decomposition is not None:
            lines += ["", residue_lines(self.decomposition)]
        if self.scan is not None:
            lines += ["", alanine_lines(self.scan)]
        if self.comparison is not None:
            lines += ["", *comparison_lines(self.comparison)]
        return lines

    def to_json(self) -> dict[str, Any]:
        """Return the record as JSON data, without the time of the command."""
        return record_of(self.molecule, self.facts(), self.heard)

    def facts(self) -> dict[str, object]:
        """Return the result part of the record."""
        found = as_json(self)
        kept = list(self.binding.given.notes)
        own = [sentence for sentence in found["notes"] if sentence not in kept]  # type: ignore[attr-defined]
        return {**found, "notes": [*kept, *own], "findings": list(self.findings)}

    def __repr__(self) -> str:
        parts = self.binding.parts
        head = f"BindingResult: receptor of {len(parts.receptor):,} atoms, ligand of {len(parts.ligand):,}"
        told = [str(self.table())]
        if self.entropy is not None:
            told.append(
                f"-T dS {self.entropy.interaction:,.3f} (interaction entropy), {self.entropy.c2:,.3f} (C2) {UNIT}"
            )
        return "\n".join([head, *told, *self.failures, repr(self.binding)])


@dataclass(frozen=True, eq=False, repr=False)
class BindingResults(Sequence[BindingResult], Framed):
    """Binding energies of several ligands of a complex, in input order."""

    ligands: tuple[BindingResult, ...]
    molecule: MoleculeRead
    heard: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.ligands)

    def __getitem__(self, k: Any) -> Any:
        return self.ligands[k]

    def table(self) -> Report:
        """Return a table of the terms of the binding energy, with a row for each ligand."""
        means = [{term: of.mean for term, of in each.statistics[DELTA].items()} for each in self.ligands]
        columns = {term: Column([of.get(term, np.nan) for of in means], UNIT) for term in means[0]}
        return Report("Binding energies", {"ligand": np.array([str(of.ligand) for of in self.ligands]), **columns})

    def to_json(self) -> dict[str, Any]:
        """Return the record as JSON data, without the time of the command."""
        return record_of(self.molecule, {"ligands": [of.facts() for of in self.ligands]}, self.heard)

    @property
    def n_failed(self) -> int:
        """Number of failed frames of all ligands."""
        return sum(of.n_failed for of in self.ligands)

    def text(self, verbose: bool = False, total: float | None = None) -> str:
        """Return a text summary of all ligands. total : total time to report, s"""
        return "\n\n".join(of.text(verbose, total) for of in self.ligands)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the table as .h5, .csv or .json."""
        self.table().save(path)

    def __repr__(self) -> str:
        return str(self.table())


def record_of(molecule: MoleculeRead, result: Mapping[str, Any], heard: Sequence[str]) -> dict[str, Any]:
    """Return a record with the reported notes as JSON data."""
    return Record(str(molecule.source), molecule.source.sha256, with_notes(result, heard)).to_dict()


def _rows(energies: SeparateEnergies, naming: Naming) -> dict[str, Any]:
    """Return columns with a row for each frame of each system; the numbers of frames may differ."""
    columns = [naming.of(of.terms) for of in energies.systems.values()]
    errors = [of.errors.get(int(k), "") for of in energies.systems.values() for k in of.frames]
    return {
        "system": np.repeat(list(energies.systems), [len(of) for of in energies.systems.values()]),
        "frame": np.concatenate([of.frames for of in energies.systems.values()]),
        **{name: np.concatenate([of[name] for of in columns]) for name in columns[0]},
        "error": np.array(errors),
    }


def amber_statistics(energies: BindingEnergies | SeparateEnergies) -> Statistics:
    """Return the Spread of each term by AMBER's names."""
    if isinstance(energies, SeparateEnergies):
        return energies.statistics(amber_terms)
    return {
        name: {term: spread_of(np.atleast_1d(values)) for term, values in amber_terms(terms).items()}
        for name, terms in energies.systems().items()
    }


def as_json(found: BindingResult) -> dict[str, object]:
    """Build the complete report."""
    binding, energies = found.binding, found.energies
    report: dict[str, object] = {
        "n_atoms": len(binding.atoms),
        "n_receptor": len(binding.parts.receptor),
        "n_ligand": len(binding.parts.ligand),
        "left_out": dict(binding.parts.left_out),
        "composition": composition_as_json(binding.atoms),
    }
    if found.poses is None:
        statistics = energies.statistics()
        report |= {name: _of_system(statistics[name]) for name in SYSTEMS}
        report["energy"] = {term: of.mean for term, of in statistics["delta"].items()}
        report["amber"] = {name: _of_system(of) for name, of in amber_statistics(energies).items()}
    if isinstance(energies, SeparateEnergies):
        counts = {name: {"n_frames": len(of), "n_failed": len(of.errors)} for name, of in energies.systems.items()}
        report |= {"n_frames": found.n_frames, "n_failed": found.n_failed, "trajectories": counts}
    elif found.kind is not None:
        report |= entries(found.kind, _conformations(energies))
    report |= {} if found.grid_errors is None else {"grid_errors": dict(found.grid_errors)}
    report |= {} if found.decomposition is None else _residues(found.decomposition)
    report |= {} if found.entropy is None else {"entropy": found.entropy.as_json()}
    if found.scan is not None:
        report["alanine"] = alanine_as_json(found.scan)
        report["alanine_left_out"] = [
            {"residue": str(residue), "reason": reason} for residue, reason in found.scan.left_out
        ]
    if found.comparison is not None:
        report["compare"] = {
            term: {"difference": of.difference, "error": of.error, "p_value": of.p_value}
            for term, of in found.comparison.items()
        }
    return {
        **report,
        "device": str(binding.device),
        "variant": binding.variant,
        "precision": binding.precision,
        "notes": [*binding.notes, *notes_about(found)],
        "settings": _settings(found),
    }


def notes_about(found: BindingResult) -> list[str]:
    """Return messages about the energies."""
    energies = found.energies
    notes = [*([] if found.scan is None else found.scan.notes), *found._empty_errors()]
    if isinstance(energies, SeparateEnergies):
        return notes
    if found.like == "mmpbsa.py" and found.binding.idecomp is not None:
        notes.append(
            "MMPBSA.py uses sander for decompositions, with a dielectric constant of water of 80 "
            "instead of 78.3; `like='sander'` selects these constants"
        )
    n = int(np.count_nonzero(is_large(energies.complex)))
    if not n:
        return notes
    kind = "frame" if found.poses is None else "pose"
    how = "; they were computed in float64" if found.binding.precision == "float32" else ""
    return [*notes, f"atoms overlap in {counted(n, kind)}, with very large energies{how}"]


def _of_system(terms: Mapping[str, Spread]) -> dict[str, dict[str, float | None]]:
    return {term: of.as_json() for term, of in terms.items()}


def _conformations(energies: BindingEnergies) -> Iterator[tuple[int, Mapping[str, object] | str]]:
    """Yield the number of each frame or model, with the terms of the difference or an error message."""
    columns = {term: values.tolist() for term, values in energies.delta.columns().items()}
    numbers = range(len(energies)) if energies.frames is None else energies.frames.tolist()
    for k, number in enumerate(numbers):
        reason = energies.errors.get(k)
        rmsd = None if energies.rmsd is None else float(energies.rmsd[k])
        more = {} if rmsd is None else {"pose": k + 1, "rmsd": rmsd if np.isfinite(rmsd) else None}
        of = {"energy": {term: values[k] for term, values in columns.items()}, **more}
        yield number, of if reason is None else reason


def _residues(of: Decomposition) -> dict[str, object]:
    """Return the contributions of residues to the difference and, if computed, of pairs that are not 0."""
    shares = of.per_residue["delta"]
    found: dict[str, object] = {"residues": [_shares(shares, (k,), {"residue": n}) for k, n in enumerate(of.names)]}
    if of.pairs is not None:
        pairs = of.pairs["delta"]
        places = np.argwhere(np.triu(np.abs(pairs.mean).max(axis=-1) > 1e-6)).tolist()
        found["pairs"] = [_shares(pairs, (i, j), {"residues": [of.names[i], of.names[j]]}) for i, j in places]
    return found


def _shares(shares: Shares, place: tuple[int, ...], names: Mapping[str, object]) -> dict[str, object]:
    groups = dict(zip(GROUPS, shares.mean[place].tolist(), strict=True))
    return {**names, **groups, "total": float(shares.total[place]), "sd": float(shares.sd_total[place])}


def alanine_as_json(scan: AlanineScan) -> list[dict[str, object]]:
    """Return the change of the binding energy for each site, with that of each frame."""
    return [
        {"residue": str(residue), **of.as_json(), "changes": _plain(changes.tolist())}
        for residue, of, changes in zip(scan.residues, scan.statistics(), scan.changes, strict=True)
    ]


def _plain(values: Sequence[float]) -> list[float | None]:
    return [None if value != value else value for value in values]


def _settings(found: BindingResult) -> dict[str, object]:
    binding = found.binding
    constants = settings(binding.model, binding.atoms)
    of_pb = {} if binding.pb is None else {"gb": None, "pb": vars(binding.pb)}
    return {
        **constants,
        **of_pb,
        "ligand": named(found.ligand),
        "receptor": named(found.receptor),
        "like": found.like,
        "one_four": binding.options.one_four,
        "cutoff": binding.options.cutoff,
        "idecomp": binding.idecomp,
    }


def named(chosen: object) -> object:
    """Convert a choice of atoms to JSON data: a selection is unchanged, a mask is converted to indices."""
    if chosen is None or isinstance(chosen, str):
        return chosen
    given = np.asarray(chosen)
    return (np.flatnonzero(given) if given.dtype == bool else given).tolist()


def _failed(kind: str, n: int, first: str, reason: str) -> str:
    """Describe failures. kind : "frame", "model" or "pose"; first, reason : the first one, and its error message"""
    if n == 1:
        return f"{kind} {first} failed: {reason}"
    return f"{counted(n, kind)} failed, the first is {kind} {first}: {reason}"
