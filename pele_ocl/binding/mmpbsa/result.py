"""Result of an MMPBSA.py or gmx_MMPBSA run, and its output files."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...common.errors import InputError
from ...common.inputfile import InputFile
from ...common.installation import installed_version
from ...common.notes import with_notes
from ...common.writing import replacing
from ...jobs import Record
from ...jobs.texts import counted
from ...report import Column, Report, Reported
from .decomposition import decomposition_text, frame_shares_csv
from .namelists import MmpbsaInput
from .systems import Systems
from .tables import (
    Heading,
    c2_entropy_of,
    difference,
    frames_csv,
    interaction_entropy_of,
    results_text,
    scan_change,
    wild_of,
)
from .work import Results

_RULE = "-" * 62


@dataclass(frozen=True)
class OutputFiles:
    """Output files: tables, decomposition, energies per frame, decomposition per frame; None for files not written."""

    results: Path | None
    decomposition: Path | None
    frames: Path | None
    shares: Path | None

    @classmethod
    def of(
        cls, wanted: MmpbsaInput, output: str | PathLike[str] | None, decomposition: str | PathLike[str] | None,
        frames_output: str | PathLike[str] | None, frame_shares: str | PathLike[str] | None,
    ) -> OutputFiles:  # fmt: skip
        """Return the requested files. Raises InputError for `frame_shares` without a decomposition."""
        if frame_shares is not None and wanted.decomp is None:
            raise InputError("`frame_shares` needs a decomposition, but mmpbsa.in has no &decomp")
        given = (output, decomposition if wanted.decomp else None, frames_output, frame_shares)
        return cls(*(None if path is None else Path(path) for path in given))

    def check(self, overwrite: bool) -> None:
        """Raise InputError if two files have the same name, or a file already exists."""
        named = {"output": self.results, "decomposition": self.decomposition, "frames_output": self.frames,
                 "frame_shares": self.shares}  # fmt: skip
        given = {name: path for name, path in named.items() if path is not None}
        if len(set(given.values())) < len(given):
            raise InputError(f"{', '.join(f'`{name}`' for name in given)} need different names")
        for path in given.values():
            if path.exists() and not overwrite:
                raise InputError(f"{path} already exists; `overwrite` replaces it")


@dataclass(frozen=True, eq=False, repr=False)
class MmpbsaResult(Reported):
    """Result of an MMPBSA.py or gmx_MMPBSA run.

    source : the input file; wanted : its settings; systems : atoms and frames
    runs : Results of the wild type and of mutants, ordered by method
    notes : messages about the run; of_gromacs : True for gmx_MMPBSA's formats
    topology, trajectory : files of the complex; files : written files; heard : reported notes

    >>> result = pele_ocl.mmpbsa(
    ...     "mmpbsa.in", complex_topology="complex.parm7", trajectory="frames.nc", output="again.dat", overwrite=True
    ... )
    >>> result.save("tables.dat")
    >>> result.to_json()["runs"][0]["method"]
    'gb'
    """

    source: InputFile
    wanted: MmpbsaInput
    systems: Systems
    runs: Sequence[Results]
    notes: tuple[str, ...]
    of_gromacs: bool
    topology: Path
    trajectory: tuple[Path, ...]
    files: tuple[Path, ...] = ()
    heard: tuple[str, ...] = ()

    @property
    def total(self) -> float:
        """Mean binding energy of the first run, or mean energy of the complex without parts, kcal/mol."""
        return _rows(self.runs[0])["TOTAL"][0]

    def save(self, path: str | PathLike[str]) -> None:
        """Write the tables in the format of FINAL_RESULTS_MMPBSA.dat."""
        self.written(OutputFiles(Path(path), None, None, None))

    def save_decomposition(self, path: str | PathLike[str]) -> None:
        """Write the decomposition in the format of FINAL_DECOMP_MMPBSA.dat. Raises InputError if the run has none."""
        self._require_shares()
        self.written(OutputFiles(None, Path(path), None, None))

    def save_frames(self, path: str | PathLike[str]) -> None:
        """Write the energies of each frame as CSV."""
        self.written(OutputFiles(None, None, Path(path), None))

    def _require_shares(self) -> None:
        if not any(run.shares is not None for run in self.runs):
            raise InputError(f"{self.source}: the run has no decomposition; request one with &decomp in the input file")

    def written(self, outputs: OutputFiles) -> MmpbsaResult:
        """Write all files, or none if one cannot be written; return the result with the names of the files."""
        wanted, systems = self.wanted, self.systems
        texts = dict[Path, str]()
        if outputs.results is not None:
            texts[outputs.results] = results_text(
                self._heading(), self.runs, wanted.verbose, self.of_gromacs, wanted.entropies
            )
        decomp, atoms = wanted.decomp, systems.sources["complex"].atoms
        decomposed = [run for run in self.runs if run.shares is not None and not run.label]
        if decomp is not None and decomposed:
            if outputs.decomposition is not None:
                now = f" Run on {time.strftime('%a %b %d %H:%M:%S %Y')}"
                texts[outputs.decomposition] = "".join(
                    decomposition_text(run, decomp, atoms, systems.is_ligand, self.of_gromacs, now)
                    for run in decomposed
                )
            if outputs.shares is not None:
                texts[outputs.shares] = "".join(
                    frame_shares_csv(run, decomp, atoms, systems.is_ligand, self.of_gromacs) for run in decomposed
                )
        if outputs.frames is not None:
            texts[outputs.frames] = frames_csv(self.runs, wanted.verbose, self.of_gromacs)
        with ExitStack() as stack:  # files get their final names when all are complete
            for path, text in texts.items():
                Path(stack.enter_context(replacing(path))).write_text(text, encoding="utf-8")
        return replace(self, files=(*self.files, *texts))

    def _heading(self) -> Heading:
        """Return the header of the tables: input, files, parts and model."""
        program = "gmx_MMPBSA" if self.of_gromacs else "MMPBSA.py"
        n = len(next(iter(self.runs[0].energies["complex"].values())))
        lines = [
            f" Run on {time.strftime('%a %b %d %H:%M:%S %Y')}", "", "Input file:", _RULE, *self.wanted.text, _RULE,
            f"pele-ocl Version={installed_version()}, in the layout of {program}",
            f"Complex topology file:           {self.topology}",
            *(f"Initial trajectory:              {path}" for path in self.trajectory), "",
        ]  # fmt: skip
        systems = self.systems
        if systems.is_ligand is not None:
            starts = systems.sources["complex"].atoms.labels.residue_starts  # type: ignore[union-attr]
            side = systems.is_ligand[starts]
            lines += [f'{name} mask: ":{_ranges(np.flatnonzero(side == (name == "Ligand")) + 1)}"'
                      for name in ("Receptor", "Ligand")]  # fmt: skip
            lines.append("")
        lines += [
            f"Calculations performed using {n} complex frames.",
            *(_method_line(of) for of in self.wanted.methods),
            *(f"Note: {sentence}" for sentence in self.notes), "", "All units are reported in kcal/mole.",
        ]  # fmt: skip
        return Heading(tuple(lines))

    def text(self, verbose: bool = False, total: float | None = None) -> str:
        """Return a text summary: totals and written files."""
        files = [f"Written: {', '.join(map(str, self.files))}"] if self.files else []
        return "\n".join([*self.lines(), *files])

    def table(self) -> Report:
        """Return a table with mean and standard deviation of each term, for all runs."""
        rows = [(run, name, *of) for run in self.runs for name, of in _rows(run).items()]
        runs, names, means, spreads = zip(*rows, strict=True)
        columns: dict[str, Any] = {
            "method": np.array([run.method for run in runs]),
            "mutant": np.array([run.label for run in runs]),
            "term": np.array(names),
            "delta" if self.runs[0].has_parts else "complex": Column(means, "kcal/mol", ",.4f"),
            "sd": Column(spreads, "kcal/mol", ",.4f"),
        }
        return Report(f"Run of {self.source}", columns, {"notes": list(self.notes)})

    def to_json(self) -> dict[str, Any]:
        """Return the result as JSON data, without times."""
        result = {
            "runs": [_as_json(run, self.runs, self.wanted) for run in self.runs],
            "files": [str(path) for path in self.files],
            "left_out": dict(self.systems.left_out),
            "notes": list(self.notes),
        }
        return Record(str(self.source), self.source.sha256, with_notes(result, self.heard)).to_dict()

    def __repr__(self) -> str:
        return "\n".join(self.lines())

    def lines(self) -> list[str]:
        """Return lines with the total and the entropies of each run."""
        texts = list[str]()
        for run in self.runs:
            n = len(run.energies["complex"]["TOTAL"])
            mean, sd = _rows(run)["TOTAL"]
            what = "binding energy" if run.has_parts else "energy of the complex"
            which = f"{run.method.upper()}: " if len(self.wanted.methods) > 1 else ""
            texts.append(
                f"{which}{f'{run.label}: ' if run.label else ''}{what} {mean:.4f} +- {sd:.4f} kcal/mol over "
                f"{counted(n, 'frame')}"
            )
            texts += [
                f"{name}: -T dS {of['mean']:.4f} +- {of['sd']:.4f} kcal/mol"
                for name, of in _entropies(run, self.wanted)
            ]
        return texts


def _method_line(wanted: MmpbsaInput) -> str:
    """Describe the solvent model of a method with the variables of its namelist."""
    model, pb = wanted.model, wanted.pb
    if pb is None:
        return (
            f"GB model {model.gb}, extdiel {model.solvent_dielectric:g}, intdiel {model.solute_dielectric:g}, saltcon "
            f"{model.ionic_strength:g} M, surften {model.surface_tension:g}, LCPO areas"
        )
    area = f"cavity_surften {model.surface_tension:g}, LCPO areas" if model.surface == "lcpo" else "no surface"
    return (
        f"Poisson-Boltzmann, {pb.equation}, exdi {model.solvent_dielectric:g}, indi {model.solute_dielectric:g}, "
        f"istrng {model.ionic_strength:g} M, scale {1 / pb.spacing:g}, surface {pb.surface}, {area}"
    )


def _ranges(numbers: NDArray[np.intp]) -> str:
    """Format ascending numbers as ranges, e.g. `1-240,242`."""
    runs = np.split(numbers, np.flatnonzero(np.diff(numbers) != 1) + 1)
    return ",".join(f"{run[0]}" if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)


def _rows(run: Results) -> dict[str, tuple[float, float]]:
    """Return mean and standard deviation of each term of the difference, or of a complex without parts."""
    if run.has_parts:
        return difference(run)
    return {name: (float(of.mean()), float(of.std())) for name, of in run.energies["complex"].items()}


def _entropies(run: Results, wanted: MmpbsaInput) -> list[tuple[str, dict[str, float]]]:
    """Return -T dS of a run by the names of the variables in the input file."""
    if wanted.entropies is None:
        return []
    found, gas = list[tuple[str, dict[str, float]]](), run.delta()["GGAS"]
    if wanted.entropies.interaction:
        of = interaction_entropy_of(gas, wanted.entropies)
        found.append(("interaction_entropy", {"mean": of.mean, "sd": of.sd, "sigma": of.sigma}))
    if wanted.entropies.c2:
        c2 = c2_entropy_of(gas, wanted.entropies)
        found.append(("c2_entropy", {"mean": c2.value, "sd": c2.sd, "sigma": c2.sigma}))
    return found


def _as_json(run: Results, runs: Sequence[Results], wanted: MmpbsaInput) -> dict[str, object]:
    """Return the results of a run as JSON data; `change` is wild type minus mutant, as in MMPBSA.py."""
    wild = wild_of(run, runs)
    report: dict[str, object] = {
        "method": run.method,
        "mutant": run.label or None,
        "of": "delta" if run.has_parts else "complex",
        "n_frames": len(run.energies["complex"]["TOTAL"]),
        "energy": {name: {"mean": mean, "sd": sd} for name, (mean, sd) in _rows(run).items()},
    }
    if run.label and wild is not None and run.has_parts:
        mean, sd = scan_change(wild, run)
        report["change"] = {"mean": mean, "sd": sd}
    if wanted.entropies is not None:
        report["entropy"] = dict(_entropies(run, wanted))
    return report
