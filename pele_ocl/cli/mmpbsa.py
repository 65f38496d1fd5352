"""`pele-ocl binding --mmpbsa mmpbsa.in`: a run of MMPBSA.py or gmx_MMPBSA by its own input file and options."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import numpy as np

from .. import __version__
from ..binding.alanine import Mutant, to_alanine
from ..binding.mmpbsa.files import Systems, amber_systems, gromacs_systems
from ..binding.mmpbsa.namelists import MmpbsaInput, read_input
from ..binding.mmpbsa.runs import (
    Results,
    mutant_label,
    mutant_of,
    mutated_residue,
    residue_named,
    run_single,
    run_systems,
    with_dielectric,
)
from ..binding.mmpbsa.tables import Heading, decomposition_text, difference, frames_csv, results_text
from ..errors import InputError
from ..formats import read_topology, replacing
from ..inputfile import InputFile, read_file
from .command import INPUT, OUTPUT, EachOnce
from .options import report_options, run_options
from .progress import ProgressLine
from .records import say_record
from .terminal import note, say

MMPBSA = "--mmpbsa"
_SEVERAL = ("-y", "-yr", "-yl", "-ct")  # options of MMPBSA.py that take several files behind one another
_NOTED = {
    "-deo": "the shares of residues in each frame are not written",
}  # fmt: skip


class MmpbsaCommand(EachOnce):
    """Command that takes several files after -y, as MMPBSA.py does."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        if sum(word.partition("=")[0] == MMPBSA for word in args) > 1:
            raise click.UsageError(f"{MMPBSA} is given twice; give it once")
        spread, several = list[str](), ""
        for word in args:
            if word in _SEVERAL:
                several = word
            elif several and not word.startswith("-"):
                spread += [several, word]
                continue
            else:
                several = ""
            if word not in _SEVERAL:
                spread.append(word)
        return super().make_context(info_name, spread, parent, **extra)


def _file(option: str, name: str, text: str, *, several: bool = False) -> Callable[..., Callable[..., object]]:
    return click.option(option, name, type=INPUT, metavar="FILE", multiple=several, help=text)


@click.command(cls=MmpbsaCommand, name="binding")
@click.option(MMPBSA, "source", type=INPUT, metavar="FILE", required=True, help="The input file, mmpbsa.in.")
@click.option("-O", "overwrite", is_flag=True, help="Write over files that are there, as MMPBSA.py asks for.")
@_file("-cp", "complex_topology", "Topology of the complex: AMBER's, or GROMACS' of all atoms with -cg.")
@_file("-rp", "receptor_topology", "Topology of the receptor; with neither -rp nor -lp the complex alone.")
@_file("-lp", "ligand_topology", "Topology of the ligand.")
@_file("-sp", "solvated_complex", "Solvated topology of the complex, which the frames of -y are of.")
@_file("-srp", "solvated_receptor", "Solvated topology of the receptor, for -yr.")
@_file("-slp", "solvated_ligand", "Solvated topology of the ligand, for -yl.")
@_file("-y", "trajectories", "Frames of the complex; several files may follow.", several=True)
@_file("-yr", "receptor_trajectories", "Frames of the receptor alone.", several=True)
@_file("-yl", "ligand_trajectories", "Frames of the ligand alone.", several=True)
@_file("-mc", "mutant_complex", "Topology of the complex with a residue turned into ALA.")
@_file("-mr", "mutant_receptor", "Of the receptor, where the mutated residue is there.")
@_file("-ml", "mutant_ligand", "Of the ligand, where the mutated residue is there.")
@_file("-cs", "structure", "gmx_MMPBSA's structure of the complex; not needed here, and not read.")
@_file("-ci", "index", "gmx_MMPBSA's index file.")
@click.option("-cg", "groups", type=int, nargs=2, metavar="R L", help="Numbers of receptor and ligand in -ci, from 0.")
@click.option("-cm", "masks", nargs=2, metavar="R L", help="Masks of receptor and ligand, of amber_MMPBSA.")
@_file("-ct", "gromacs_trajectories", "Frames of all atoms of -cp.", several=True)
@_file("-cr", "reference", "Structure of receptor and ligand that has chains and residue numbers.")
@click.option(
    "-o", "output", type=OUTPUT, metavar="FILE", default="FINAL_RESULTS_MMPBSA.dat", show_default=True,
    help="The tables.",
)  # fmt: skip
@click.option(
    "-do", "decomposition", type=OUTPUT, metavar="FILE", default="FINAL_DECOMP_MMPBSA.dat", show_default=True,
    help="The decomposition, where &decomp asks for one.",
)  # fmt: skip
@click.option("-eo", "frames_output", type=OUTPUT, metavar="FILE", help="The energies of each frame, as CSV.")
@click.option("-deo", "frame_shares", metavar="FILE", help="Accepted; shares of residues by frame are not written.")
@click.option("-prefix", "prefix", metavar="TEXT", help="Accepted; there are no intermediate files.")
@click.option("-nogui", "no_gui", is_flag=True, help="Accepted; there is no window.")
@run_options
@report_options
def mmpbsa(
    source: Path, overwrite: bool, complex_topology: Path | None, receptor_topology: Path | None,
    ligand_topology: Path | None, solvated_complex: Path | None, solvated_receptor: Path | None,
    solvated_ligand: Path | None, trajectories: tuple[Path, ...], receptor_trajectories: tuple[Path, ...],
    ligand_trajectories: tuple[Path, ...], mutant_complex: Path | None, mutant_receptor: Path | None,
    mutant_ligand: Path | None, structure: Path | None, index: Path | None, groups: tuple[int, int] | None,
    masks: tuple[str, str] | None, gromacs_trajectories: tuple[Path, ...], reference: Path | None, output: Path,
    decomposition: Path, frames_output: Path | None, frame_shares: str | None, prefix: str | None, no_gui: bool,
    precision: str, device: str | None, as_json: bool, verbose: bool,
) -> None:  # fmt: skip
    """A run of MMPBSA.py or gmx_MMPBSA from its mmpbsa.in, with the options of these programs.

    Energies are of MM/GBSA: &general, &gb, &decomp and &alanine_scanning; other namelists beside &gb are left out, with
    a note. FINAL_RESULTS_MMPBSA.dat and FINAL_DECOMP_MMPBSA.dat are written in their layouts. docs/coming-from-amber.md
    """
    paths = gromacs_trajectories or trajectories
    if complex_topology is None:
        raise click.UsageError("-cp is missing: the topology of the complex")
    if not paths:
        raise click.UsageError("frames are missing: -y FILE with AMBER's files, -ct FILE with GROMACS'")
    if (groups is None) != (index is None):
        raise click.UsageError("-ci and -cg go together: an index file and two of its groups")
    if output == decomposition or frames_output in (output, decomposition):
        raise click.UsageError("-o, -do and -eo need names of their own")
    file = read_file(source)
    wanted = read_input(file, of_gromacs := groups is not None or masks is not None)
    there = [path for path in (output, frames_output, wanted.decomp and decomposition) if path and path.exists()]
    if there and not overwrite:
        raise click.UsageError(f"{there[0]} is there already; -O writes over it")
    if masks is not None:
        wanted = replace(wanted, masks=masks)
    if groups is not None and index is not None:
        systems = gromacs_systems(wanted, complex_topology, index, groups, paths, reference)
    else:
        systems = amber_systems(
            wanted,
            _given(complex=complex_topology, receptor=receptor_topology, ligand=ligand_topology),
            _given(complex=solvated_complex, receptor=solvated_receptor, ligand=solvated_ligand),
            _given(complex=paths, receptor=receptor_trajectories, ligand=ligand_trajectories),
        )
    notes = [*wanted.notes, *(text for option, text in _NOTED.items() if option == "-deo" and frame_shares)]
    mutants = _given(complex=mutant_complex, receptor=mutant_receptor, ligand=mutant_ligand)
    runs = _runs(systems, wanted, mutants, device, precision)
    n_imaged = sum(run.n_imaged for run in runs)
    if n_imaged:
        notes.append(f"{n_imaged:,} frames were imaged: molecules made whole and put beside the receptor")
    for sentence in notes:
        note(f"Note: {sentence}")
    heading = _heading(file, wanted, systems, runs, notes, of_gromacs, complex_topology, paths)
    written = _write(systems, wanted, runs, heading, of_gromacs, output, decomposition, frames_output)
    _say(file, runs, written, notes, as_json)


def _given(**named: Any) -> dict[str, Any]:
    """Give the options that were given, by name."""
    return {name: value for name, value in named.items() if value}


def _runs(
    systems: Systems, wanted: MmpbsaInput, topologies: dict[str, Path], device: str | None, precision: str
) -> list[Results]:  # fmt: skip
    """Compute the wild type, unless mutants alone are wanted, and the mutant of an alanine scan."""
    mutants, label, cluster = _mutants(systems, wanted, topologies)
    if mutants:
        wanted = cluster
    with ProgressLine("Binding energy") as progress:
        runs = list[Results]()
        if not (mutants and wanted.alanine is not None and wanted.alanine.mutant_only):
            runs.append(_run(systems, wanted, device, precision, progress, None, ""))
        if mutants:
            runs.append(_run(systems, wanted, device, precision, progress, mutants, label))
    return runs


def _run(
    systems: Systems, wanted: MmpbsaInput, device: str | None, precision: str, progress: ProgressLine,
    mutants: dict[str, Mutant] | None, label: str,
) -> Results:  # fmt: skip
    if systems.is_ligand is not None and len(systems.sources) == 1:
        mutant = None if mutants is None else mutants["complex"]
        return run_single(
            systems.sources["complex"], systems.is_ligand, wanted, device, precision, progress, mutant, label,
            systems.layout,
        )  # fmt: skip
    return run_systems(systems.sources, wanted, device, precision, systems.is_ligand, progress, mutants, label)


def _mutants(
    systems: Systems, wanted: MmpbsaInput, topologies: dict[str, Path]
) -> tuple[dict[str, Mutant], str, MmpbsaInput]:  # fmt: skip
    """Find the mutants of systems that have the residue, by -mc, -mr and -ml or mutant_res, and their name."""
    if wanted.alanine is None:
        return {}, "", wanted
    whole = systems.sources["complex"]
    assert whole.atoms.labels is not None
    if "complex" in topologies:
        of = {name: read_topology(path).parameters for name, path in topologies.items()}
        residue = mutated_residue(whole.atoms, of["complex"])
        if residue is None:
            raise InputError(f"{topologies['complex']}: has no residue that differs from the complex's")
        found = {"complex": mutant_of(whole.atoms, of["complex"], residue)}
        for name, source in systems.sources.items():
            if name != "complex" and name in of:
                place = mutated_residue(source.atoms, of[name])
                if place is not None:
                    found[name] = mutant_of(source.atoms, of[name], place)
        if len(systems.sources) > 1 and len(found) == 1:
            raise InputError("separate trajectories need the mutant's part, too: give -mr or -ml")
    elif wanted.alanine.residue is not None:
        if len(systems.sources) > 1:
            raise InputError("an alanine scan of separate trajectories needs topologies of the mutant: -mc, -mr, -ml")
        residue = residue_named(wanted.alanine.residue, whole.atoms.labels)
        frames = whole.trajectory(wanted.frames)
        first = frames.positions(frames.frames[:1])[0]
        frames.close()
        found = {"complex": to_alanine(whole.atoms.moved(first), residue)}
    else:
        raise InputError("&alanine_scanning needs the mutant: -mc and -mr or -ml, or mutant_res with gmx_MMPBSA")
    name = str(whole.atoms.labels.residue_names[whole.atoms.labels.residue_starts[residue]])
    return found, mutant_label(whole.atoms, residue), with_dielectric(wanted, wanted.alanine, name)


def _heading(
    file: InputFile, wanted: MmpbsaInput, systems: Systems, runs: Sequence[Results], notes: Sequence[str],
    of_gromacs: bool, topology: Path, paths: Sequence[Path],
) -> Heading:  # fmt: skip
    program = "gmx_MMPBSA" if of_gromacs else "MMPBSA.py"
    n = len(next(iter(runs[0].energies["complex"].values())))
    model = wanted.model
    lines = [
        f" Run on {time.strftime('%a %b %d %H:%M:%S %Y')}", "", "Input file:", "-" * 62, *wanted.text, "-" * 62,
        f"pele-ocl Version={__version__}, in the layout of {program}",
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
        f"GB model {model.gb}, extdiel {model.solvent_dielectric:g}, intdiel {model.solute_dielectric:g}, saltcon "
        f"{model.ionic_strength:g} M, surften {model.surface_tension:g}, LCPO areas",
        *(f"Note: {sentence}" for sentence in notes), "", "All units are reported in kcal/mole.",
    ]  # fmt: skip
    return Heading(tuple(lines))


def _ranges(numbers: np.ndarray[Any, np.dtype[np.intp]]) -> str:
    """`1-240,242` of rising numbers."""
    runs = np.split(numbers, np.flatnonzero(np.diff(numbers) != 1) + 1)
    return ",".join(f"{run[0]}" if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)


def _write(
    systems: Systems, wanted: MmpbsaInput, runs: Sequence[Results], heading: Heading, of_gromacs: bool, output: Path,
    decomposition: Path, frames_output: Path | None,
) -> list[Path]:  # fmt: skip
    """Write the files, all of them or none where one cannot be made."""
    texts = {output: results_text(heading, runs, wanted.verbose, of_gromacs)}
    if wanted.decomp is not None and runs[0].shares is not None:
        texts[decomposition] = decomposition_text(
            runs[0], wanted.decomp, systems.sources["complex"].atoms, systems.is_ligand, of_gromacs,
            f" Run on {time.strftime('%a %b %d %H:%M:%S %Y')}",
        )  # fmt: skip
    if frames_output is not None:
        texts[frames_output] = frames_csv(runs, wanted.verbose, of_gromacs)
    for path, text in texts.items():
        with replacing(path) as temporary:
            Path(temporary).write_text(text, encoding="utf-8")
    return list(texts)


def _say(
    file: InputFile, runs: Sequence[Results], written: Sequence[Path], notes: Sequence[str], as_json: bool
) -> None:
    """Print the total of each run and the files, or all terms as JSON."""
    report, texts = list[dict[str, object]](), list[str]()
    for run in runs:
        has_parts, n = "receptor" in run.energies, len(run.energies["complex"]["TOTAL"])
        own = {name: (float(of.mean()), float(of.std())) for name, of in run.energies["complex"].items()}
        rows = difference(run) if has_parts else own
        report.append(
            {
                "mutant": run.label or None,
                "of": "delta" if has_parts else "complex",
                "n_frames": n,
                "energy": {name: {"mean": mean, "sd": sd} for name, (mean, sd) in rows.items()},
            }
        )
        what = "binding energy" if has_parts else "energy of the complex"
        mean, sd = rows["TOTAL"]
        texts.append(f"{f'{run.label}: ' if run.label else ''}{what} {mean:.4f} +- {sd:.4f} kcal/mol over {n} frames")
    if as_json:
        files = [str(path) for path in written]
        say_record(file, {"runs": report, "files": files, "notes": list(notes)})
    else:
        say("\n".join([*texts, f"Written: {', '.join(map(str, written))}"]))
