"""Files of a run, and what is said of it."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np

from ...binding.mmpbsa.decomposition import decomposition_text, frame_shares_csv
from ...binding.mmpbsa.entropies import c2_entropy_of, interaction_entropy_of
from ...binding.mmpbsa.files import Systems
from ...binding.mmpbsa.frames import frames_csv
from ...binding.mmpbsa.namelists import MmpbsaInput
from ...binding.mmpbsa.runs import Results
from ...binding.mmpbsa.tables import Heading, difference, results_text, scan_change, wild_of
from ...common.inputfile import InputFile
from ...common.installation import installed_version
from ...common.writing import replacing
from ..json_lines import say_record
from ..report import counted
from ..terminal import say


@dataclass(frozen=True)
class OutputFiles:
    """Files of a run: tables, decomposition, energies of frames, shares of frames; None if not wanted."""

    results: Path
    decomposition: Path | None
    frames: Path | None
    shares: Path | None

    def check(self, overwrite: bool) -> None:
        """Raise UsageError where two have one name, one is there already, or its content was not asked for."""
        if self.shares is not None and self.decomposition is None:
            raise click.UsageError("-deo is of a decomposition, and mmpbsa.in has no &decomp")
        named = {"-o": self.results, "-do": self.decomposition, "-eo": self.frames, "-deo": self.shares}
        given = {option: path for option, path in named.items() if path is not None}
        if len(set(given.values())) < len(given):
            raise click.UsageError(f"{', '.join(given)} need names of their own")
        for path in given.values():
            if path.exists() and not overwrite:
                raise click.UsageError(f"{path} is there already; -O writes over it")


def headed(
    file: InputFile, wanted: MmpbsaInput, systems: Systems, runs: Sequence[Results], notes: Sequence[str],
    of_gromacs: bool, topology: Path, paths: Sequence[Path],
) -> Heading:  # fmt: skip
    """Lines above the tables: the input, the files, the parts and the model."""
    program = "gmx_MMPBSA" if of_gromacs else "MMPBSA.py"
    n = len(next(iter(runs[0].energies["complex"].values())))
    lines = [
        f" Run on {time.strftime('%a %b %d %H:%M:%S %Y')}", "", "Input file:", "-" * 62, *wanted.text, "-" * 62,
        f"pele-ocl Version={installed_version()}, in the layout of {program}",
        f"Complex topology file:           {topology}",
        *(f"Initial trajectory:              {path}" for path in paths), "",
    ]  # fmt: skip
    if systems.is_ligand is not None:
        starts = systems.sources["complex"].atoms.labels.residue_starts  # type: ignore[union-attr]
        side = systems.is_ligand[starts]
        lines += [f'{name} mask: ":{_ranges(np.flatnonzero(side == (name == "Ligand")) + 1)}"'
                  for name in ("Receptor", "Ligand")]  # fmt: skip
        lines.append("")
    lines += [
        f"Calculations performed using {n} complex frames.",
        *(_method_line(of) for of in wanted.methods),
        *(f"Note: {sentence}" for sentence in notes), "", "All units are reported in kcal/mole.",
    ]  # fmt: skip
    return Heading(tuple(lines))


def _method_line(wanted: MmpbsaInput) -> str:
    """Say the model of a method, by the names of its namelist."""
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


def _ranges(numbers: np.ndarray[Any, np.dtype[np.intp]]) -> str:
    """`1-240,242` of rising numbers."""
    runs = np.split(numbers, np.flatnonzero(np.diff(numbers) != 1) + 1)
    return ",".join(f"{run[0]}" if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)


def write_outputs(
    outputs: OutputFiles, systems: Systems, wanted: MmpbsaInput, runs: Sequence[Results], heading: Heading,
    of_gromacs: bool,
) -> list[Path]:  # fmt: skip
    """Write the files, all of them or none where one cannot be written."""
    texts = {outputs.results: results_text(heading, runs, wanted.verbose, of_gromacs, wanted.entropies)}
    decomp, atoms = wanted.decomp, systems.sources["complex"].atoms
    decomposed = [run for run in runs if run.shares is not None and not run.label]
    if decomp is not None and decomposed:
        if outputs.decomposition is not None:
            now = f" Run on {time.strftime('%a %b %d %H:%M:%S %Y')}"
            texts[outputs.decomposition] = "".join(
                decomposition_text(run, decomp, atoms, systems.is_ligand, of_gromacs, now) for run in decomposed
            )
        if outputs.shares is not None:
            texts[outputs.shares] = "".join(
                frame_shares_csv(run, decomp, atoms, systems.is_ligand, of_gromacs) for run in decomposed
            )
    if outputs.frames is not None:
        texts[outputs.frames] = frames_csv(runs, wanted.verbose, of_gromacs)
    with ExitStack() as stack:  # names are given when all are whole
        for path, text in texts.items():
            Path(stack.enter_context(replacing(path))).write_text(text, encoding="utf-8")
    return list(texts)


def say_runs(
    file: InputFile, runs: Sequence[Results], wanted: MmpbsaInput, written: Sequence[Path], notes: Sequence[str],
    left_out: Mapping[str, int], as_json: bool,
) -> None:  # fmt: skip
    """Print the total of each run, entropies, changes of a scan and the files, or all terms as JSON."""
    if as_json:
        files = [str(path) for path in written]
        report = [_as_json(run, runs, wanted) for run in runs]
        say_record(file, {"runs": report, "files": files, "left_out": dict(left_out), "notes": list(notes)})
        return
    texts = list[str]()
    for run in runs:
        n = len(run.energies["complex"]["TOTAL"])
        mean, sd = _rows(run)["TOTAL"]
        what = "binding energy" if run.has_parts else "energy of the complex"
        which = f"{run.method.upper()}: " if len(wanted.methods) > 1 else ""
        texts.append(
            f"{which}{f'{run.label}: ' if run.label else ''}{what} {mean:.4f} +- {sd:.4f} kcal/mol over "
            f"{counted(n, 'frame')}"
        )
        texts += [f"{name}: -T dS {of['mean']:.4f} +- {of['sd']:.4f} kcal/mol" for name, of in _entropies(run, wanted)]
    say("\n".join([*texts, f"Written: {', '.join(map(str, written))}"]))


def _rows(run: Results) -> dict[str, tuple[float, float]]:
    """Mean and standard deviation of each term: of the difference, or of a complex alone."""
    if run.has_parts:
        return difference(run)
    return {name: (float(of.mean()), float(of.std())) for name, of in run.energies["complex"].items()}


def _entropies(run: Results, wanted: MmpbsaInput) -> list[tuple[str, dict[str, float]]]:
    """-T dS of a run by the name of its variable."""
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
    """A run's terms; `change` : of a mutant, wild type less mutant as MMPBSA.py has it."""
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
