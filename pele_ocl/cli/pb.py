"""`pele-ocl pb`: Poisson-Boltzmann electrostatics of a structure, or of an input file of APBS."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray

from ..atoms import Atoms
from ..common.errors import FormatError, InputError
from ..common.inputfile import InputFile, read_file
from ..common.writing import refuse_target, replacing
from ..formats import require_map_suffix, write_map, write_pqr
from ..gb_models.radii_of_models import radii_words
from ..grid import Grid
from ..jobs.checks import Checks
from ..jobs.facts import names_of_residues, notes_of
from ..pb import SOLVERS, PBIon, PBModel, PBParts, PBResult, PoissonBoltzmann
from ..pb.apbs import NEED_POTENTIAL, WRITTEN, ApbsCalculation, ApbsInput, read_apbs
from ..pb.apbs_maps import ACCESS, OF_POTENTIAL, access_maps, maps_of_potential
from ..pb_model import BOUNDARIES, LIKE_APBS, SPREADINGS, SURFACES, salt_of
from .clock import elapsed
from .command import INPUT, OUTPUT, EachOnce
from .json_lines import failing_as_record, say_record
from .options import (
    ReadAtoms,
    device_option,
    dielectric_options,
    report_options,
    spacing_options,
    strict_option,
    structure_options,
)
from .physics import forcefield_line
from .progress import ProgressLine
from .report import composition_as_json, duration, headline, provenance
from .tables import table
from .terminal import note, say

APBS = "apbs"
DEFAULTS = PBModel()
RULE = "-" * 40


def _ions(_: click.Context, __: click.Parameter, given: tuple[str, ...]) -> tuple[PBIon, ...]:
    """CHARGE:CONCENTRATION[:RADIUS] of every --ion."""
    ions = []
    for text in given:
        parts = text.split(":")
        try:
            numbers = [float(part) for part in parts]
        except ValueError:
            numbers = []
        if len(numbers) not in (2, 3):
            raise click.BadParameter(f"{text!r} is not CHARGE:CONC or CHARGE:CONC:RADIUS, as 1:0.15:2.0 is")
        ions.append(PBIon(*numbers))
    return tuple(ions)


@click.command(cls=EachOnce)
@click.argument("path", metavar="IN", type=INPUT)
@click.option(
    "-o", "--output", type=OUTPUT, metavar="MAP", help="Write the potential, kT/e: .dx, .mrc, .cube, .h5, ..."
)
@click.option(
    "--pqr", type=OUTPUT, metavar="FILE", help="Write the atoms with the charges and radii that count, as a .pqr file."
)
@spacing_options
@dielectric_options(DEFAULTS.solute_dielectric, DEFAULTS.solvent_dielectric)
@click.option(
    "--ionic-strength",
    type=float,
    default=0.0,
    show_default=True,
    help="Concentration of a 1:1 salt with ions of 2 Angstrom, mol/L.",
)
@click.option(
    "--ion",
    "ions",
    multiple=True,
    callback=_ions,
    metavar="CHARGE:CONC[:RADIUS]",
    help="An ion species: e, mol/L, Angstrom; in place of --ionic-strength.",
)
@click.option("--temperature", type=float, default=DEFAULTS.temperature, show_default=True, help="Temperature, K.")
@click.option("--nonlinear", is_flag=True, help="Solve the nonlinear equation, for highly charged molecules in salt.")
@click.option(
    "--surface",
    type=click.Choice(list(SURFACES)),
    default=DEFAULTS.surface,
    show_default=True,
    help="Border of solute and solvent: edges (the share of each edge that is solvent), or one of APBS's.",
)
@click.option(
    "--probe", type=float, default=DEFAULTS.probe, show_default=True, help="Radius of a solvent molecule, Angstrom."
)
@click.option(
    "--charges",
    type=click.Choice(SPREADINGS),
    default=DEFAULTS.charges,
    show_default=True,
    help="Put a charge on 8 (spl0), 27 (spl2) or 125 (spl4) nodes.",
)
@click.option(
    "--boundary",
    type=click.Choice(BOUNDARIES),
    default=DEFAULTS.boundary,
    show_default=True,
    help="Potential at the border: of each atom, of the molecule's moments, or 0.",
)
@click.option(
    "--like",
    type=click.Choice([APBS]),
    help="Compute as APBS: surface smol, charges spl2, border sdh, and the difference of two solutions.",
)
@click.option(
    "--solver",
    type=click.Choice(list(SOLVERS)),
    default="mgcg",
    show_default=True,
    help="; ".join(f"{name}: {about}" for name, (about, _) in SOLVERS.items()) + ".",
)
@click.option(
    "--tolerance", type=float, default=1e-6, show_default=True, help="Relative residual at which the solver stops."
)
@click.option("--extrapolate", is_flag=True, help="Extrapolate the energy to a spacing of 0 from three spacings.")
@click.option(
    "--shifts",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="Also compute the energy on so many shifted grids.",
)
@click.option("--per-residue", is_flag=True, help="Also report each residue's share of the energy.")
@device_option()
@strict_option
@structure_options
@report_options
def pb(
    path: Path, output: Path | None, pqr: Path | None, spacing: float, padding: float, nonlinear: bool,
    ionic_strength: float, ions: tuple[PBIon, ...], like: str | None, solver: str, tolerance: float, extrapolate: bool,
    shifts: int, per_residue: bool, device: str | None, read_atoms: ReadAtoms, strict: bool,
    as_json: bool, verbose: bool, **constants: Any,
) -> None:  # fmt: skip
    """Compute the Poisson-Boltzmann energy of solvation and potential of the molecule in IN.

    IN is a structure, best a .pqr file, whose radii are taken, or an input file of APBS (.in). The latter is computed
    as APBS computes it: its lines are printed, its maps written. Energies in kcal/mol, of APBS's files in kJ/mol.
    """
    context = click.get_current_context()
    with failing_as_record(path, as_json):
        source = read_file(path)
    if source.suffix == ".in":
        _refuse_for_apbs(context)
        run_apbs(source, device, as_json)
        return
    if output is not None:
        require_map_suffix(output)
    if pqr is not None and pqr.suffix.lower() != ".pqr":
        raise FormatError(f"{pqr}: --pqr writes .pqr files; name it so")
    if ions and ionic_strength:
        raise click.UsageError("choose one of --ionic-strength and --ion")
    if like and (extrapolate or shifts):
        raise click.UsageError("--extrapolate and --shifts belong to energies without --like apbs")
    if like:
        given = {
            name for name in LIKE_APBS if context.get_parameter_source(name) == click.core.ParameterSource.COMMANDLINE
        }
        constants |= {name: value for name, value in LIKE_APBS.items() if name not in given}
    if ionic_strength:
        ions = salt_of(ionic_strength)
    model = PBModel(ions=ions, equation="nonlinear" if nonlinear else "linear", **constants)
    with failing_as_record(path, as_json), ProgressLine("Poisson-Boltzmann") as progress:
        checks = Checks(path, strict)
        read = read_atoms.one(source)
        atoms = read.atoms
        checks.add(*_findings(atoms))
        if pqr is not None:
            refuse_target(pqr, [path])
        plan = PoissonBoltzmann(
            atoms, model, spacing=spacing, padding=padding, wide=output is not None, reaction=like is None,
            solver=solver, tolerance=tolerance, device=device,
        )  # fmt: skip
        result = plan.solve(
            keep_map=output is not None, extrapolate=extrapolate, shifts=shifts, grid_error=like is None,
            progress=progress,
        )  # fmt: skip
        alone = None if like is None else _in_the_solute(plan, result).solve(keep_map=False)
    if pqr is not None:
        write_pqr(pqr, plan.atoms)
    if output is not None and result.map is not None:
        with ProgressLine(f"Writing {output}") as progress:
            write_map(output, result.map, atoms=atoms, attributes=provenance(read), progress=progress)
    if as_json:
        say_record(source, {**_as_json(result, alone, per_residue), **notes_of(atoms), "findings": checks.as_json()})
    else:
        say(_as_text(source, result, alone, per_residue, verbose))


def _refuse_for_apbs(context: click.Context) -> None:
    """Raise UsageError for options beside an input file of APBS, which has its own."""
    able = ("path", "device", "as_json", "verbose", "debug")
    given = [
        max(option.opts, key=len) for option in context.command.params
        if context.get_parameter_source(option.name or "") == click.core.ParameterSource.COMMANDLINE
        and option.name not in able
    ]  # fmt: skip
    if given:
        raise click.UsageError(f"an input file of APBS says all of it; leave out {', '.join(given)}")


def _findings(atoms: Atoms) -> list[Any]:
    """Look at a structure as all commands do."""
    from ..contract import of_structure

    return list(of_structure(atoms))


def _in_the_solute(plan: PoissonBoltzmann, result: PBResult) -> PoissonBoltzmann:
    """Put the same charges on the same grids, with the solute's dielectric everywhere and no salt."""
    model = replace(plan.model, solvent_dielectric=plan.model.solute_dielectric, ions=(), equation="linear")
    return PoissonBoltzmann(
        plan.atoms, model, grids=[level.grid for level in result.levels], reaction=False, solver=plan.solver,
        tolerance=plan.tolerance, device=plan.device,
    )  # fmt: skip


def _energies(result: PBResult, alone: PBResult | None) -> tuple[float, NDArray[np.float64]]:
    """Energy of solvation, kcal/mol, and each atom's share."""
    if alone is None:
        return result.energy, result.per_atom
    return result.energy - alone.energy, result.per_atom - alone.per_atom


def _residues(result: PBResult, per_atom: NDArray[np.float64]) -> list[tuple[str, float]]:
    labels = result.atoms.labels
    if labels is None:
        raise InputError("--per-residue needs residues; these atoms have no labels")
    return list(
        zip(names_of_residues(result.atoms), np.add.reduceat(per_atom, labels.residue_starts).tolist(), strict=True)
    )


def _as_json(result: PBResult, alone: PBResult | None, per_residue: bool) -> dict[str, Any]:
    grid, model, errors, atoms = result.levels[-1].grid, result.model, result.errors, result.atoms
    energy, per_atom = _energies(result, alone)
    report = {
        "n_atoms": len(atoms),
        "composition": composition_as_json(atoms),
        "energy": {"solvation": energy, "total": energy},
        "errors": {name: value for name, value in vars(errors).items() if value is not None},
        "shape": list(grid.shape),
        "origin": grid.origin.tolist(),
        "spacing": grid.spacing.tolist(),
        "iterations": result.iterations,
        "residual": result.levels[-1].residual,
        "debye_length": model.debye_length if model.has_salt else None,
        "settings": _settings(model) | {"forcefield": atoms.forcefield, "radii_set": atoms.gb_radii_set},
        "device": result.device,
        "variant": result.solver,
        "seconds": dict(result.seconds),
    }
    if per_residue:
        shares = _residues(result, per_atom)
        report["residues"] = [{"residue": name, "total": share} for name, share in shares]
    return report


def _settings(model: PBModel) -> dict[str, Any]:
    """Constants of the model by name."""
    return {**vars(model), "ions": [vars(ion) for ion in model.ions]}


def _as_text(source: InputFile, result: PBResult, alone: PBResult | None, per_residue: bool, verbose: bool) -> str:
    grid, model, errors = result.levels[-1].grid, result.model, result.errors
    energy, per_atom = _energies(result, alone)
    shape, spacing = (
        " x ".join(map(str, grid.shape)),
        " x ".join(f"{h:.3g}" for h in dict.fromkeys(grid.spacing.tolist())),
    )
    salt = (
        f"{model.ionic_strength:g} mol/L salt, Debye length {model.debye_length:.2f} A" if model.has_salt else "no salt"
    )
    lines = [
        headline(source, result.atoms),
        *([forcefield_line(result.atoms.forcefield)] if result.atoms.forcefield else []),
        f"Grid of {shape} points, {spacing} A; surface {model.surface}, "
        f"radii {radii_words(result.atoms.gb_radii_set)}, dielectrics {model.solute_dielectric:g} and "
        f"{model.solvent_dielectric:g}, {salt}, {'nonlinear' if model.is_nonlinear else 'linear'} equation",
        "",
        f"Energy of solvation {energy:14,.3f} kcal/mol",
    ]
    about = [("solver", errors.solver, "what the last correction changed")]
    if errors.grid is not None:
        about.append(("grid", errors.grid, "an upper estimate, from the change on coarser grids"))
    if errors.extrapolated is not None and errors.extrapolation is not None:
        about.append(("extrapolated", errors.extrapolated, f"to a spacing of 0, +- {errors.extrapolation:.3f}"))
    if errors.shifted is not None:
        spread = "" if errors.shifts is None else f", +- {errors.shifts:.3f}, which says nothing of the grid's error"
        about.append(("shifted grids", errors.shifted, f"mean{spread}"))
    lines += [
        f"  {name:<17} {value:14,.3g} {text}" if name == "solver" else f"  {name:<17} {value:14,.3f} {text}"
        for name, value, text in about
    ]
    if alone is not None:
        lines.append(
            f"  as APBS computes it: {result.energy_kj:,.3f} less {alone.energy_kj:,.3f} kJ/mol; no error is known"
        )
    if per_residue:
        rows = [(name, f"{share:.3f}") for name, share in _residues(result, per_atom)]
        lines += ["", table(("residue", "kcal/mol"), rows, "<>")]
    seconds = result.seconds
    lines += [
        "",
        f"{result.solver}, {result.iterations} iterations to a residual of {result.levels[-1].residual:.1e}, "
        f"on {result.device}: "
        f"surface {duration(seconds['surface'])}, solver {duration(seconds['solver'])}, in all {duration(elapsed())}",
    ]
    if verbose:
        low, high = (", ".join(f"{x:.3f}" for x in end) for end in (grid.origin, grid.last))
        lines += [
            "",
            f"Grid from ({low}) to ({high}) A; boundary {model.boundary}, charges {model.charges}, "
            f"probe {model.probe:g} A",
        ]
    return "\n".join(lines)


def run_apbs(source: InputFile, device: str | None, as_json: bool) -> None:
    """Do what an input file of APBS asks for, and print its lines."""
    with failing_as_record(source.path, as_json):
        wanted, molecules = read_apbs(source, _read_pqr)
        of_molecules = [sentence for molecule in molecules for sentence in molecule.notes]
        for sentence in [*of_molecules, *(f"{source}: {sentence}" for sentence in wanted.notes)]:
            note(f"Note: {sentence}")
        energies, reports = [], []
        print_line: Callable[[str], None] = (lambda text: None) if as_json else say
        for number, calculation in enumerate(wanted.calculations, 1):
            for sentence in calculation.notes:
                note(f"Note: {source}: ELEC {calculation.name}: {sentence}")
            result = _calculate(source, number, calculation, molecules[calculation.molecule], device, print_line)
            energies.append(np.nan if result is None else result.energy_kj)
            reports.append(_apbs_json(calculation, wanted, result))
        printed = _printed(wanted, energies, print_line)
    if as_json:
        say_record(source, {"calculations": reports, "prints": printed, "notes": [*of_molecules, *wanted.notes]})


def _read_pqr(path: Path) -> Atoms:
    from ..reading import read

    return read(path)


def _calculate(
    source: InputFile, number: int, calculation: ApbsCalculation, atoms: Atoms, device: str | None,
    print_line: Callable[[str], None],
) -> PBResult | None:  # fmt: skip
    """Compute an ELEC block and write its files; None for mg-dummy."""
    print_line(f"{RULE}\nCALCULATION #{number} ({calculation.name}): MULTIGRID")
    for path in calculation.map_files:
        print_line(f"  Using map {path}")
    plan = PoissonBoltzmann(
        atoms, calculation.model, grids=calculation.grids, reaction=False, tolerance=calculation.tolerance,
        given=calculation.given, device=device,
    )  # fmt: skip
    result = None
    if calculation.solves:
        with ProgressLine(f"ELEC {calculation.name}") as progress:
            written = {each.quantity for each in calculation.writes}
            needs_map = bool(written & NEED_POTENTIAL)
            result = plan.solve(keep_map=needs_map, parts=calculation.prints_parts, progress=progress)
        for level in result.levels[calculation.n_before :]:
            _print_level(level.grid, print_line)
            if calculation.prints_energy:
                print_line(f"  Total electrostatic energy = {level.energy_kt * result.model.kj_per_kt:1.12E} kJ/mol")
            if level.parts is not None:
                print_line(_of_parts(level.parts, result.model.kj_per_kt))
            if level.atoms_off:
                note(
                    f"Note: {source}: ELEC {calculation.name}: {level.atoms_off:,} atoms are off a grid, "
                    "and have no charge on it"
                )
    else:
        _print_level(plan.grids[-1], print_line)
    _write(calculation, plan, result, print_line)
    return result


def _at_atoms(result: PBResult) -> NDArray[np.float64]:
    """Interpolate the potential at the atoms between the eight nodes around each, as APBS does for any charges."""
    return np.nan_to_num(result.potential_at(result.atoms.positions))


def _of_parts(parts: PBParts, kj_per_kt: float) -> str:
    """Lines of the energy's parts, and of the atoms' shares."""
    shares = kj_per_kt * parts.per_atom_kt + 0.0  # no -0
    return "\n".join(
        [
            f"  Fixed charge energy = {parts.charges_kt * kj_per_kt:g} kJ/mol",
            f"  Mobile charge energy = {parts.ions_kt * kj_per_kt:g} kJ/mol",
            f"  Dielectric energy = {parts.field_kt * kj_per_kt:g} kJ/mol",
            "  Per-atom energies:",
            *(f"      Atom {k}:  {share:1.12E} kJ/mol" for k, share in enumerate(shares)),
        ]
    )


def _print_level(grid: Grid, print_line: Callable[[str], None]) -> None:
    shape, spacing = (
        " x ".join(form(x) for x in of) for of, form in ((grid.shape, str), (grid.spacing, "{:.3f}".format))
    )
    lengths = " x ".join(f"{(n - 1) * h:.3f}" for n, h in zip(grid.shape, grid.spacing, strict=True))
    centre = ", ".join(f"{x:.3f}" for x in (grid.origin + grid.last) / 2)
    print_line(
        f"  Grid dimensions: {shape}\n  Grid spacings: {spacing}\n  Grid lengths: {lengths}\n  Grid center: ({centre})"
    )


def _write(
    calculation: ApbsCalculation, plan: PoissonBoltzmann, result: PBResult | None, print_line: Callable[[str], None]
) -> None:
    """Write the files of an ELEC block."""
    wanted, model = {each.quantity for each in calculation.writes}, calculation.model
    made = access_maps(plan, wanted & ACCESS)
    if wanted & {"kappa", "charge", "dielx", "diely", "dielz"}:
        made |= plan.maps()
        made["kappa"] = made["access"]  # as APBS writes it: 1 if ions can be there
        charge, volume = made["charge"], float(np.prod(plan.grids[-1].spacing))
        made["charge"] = replace(charge, values=charge.values / volume)
    if result is not None and result.map is not None:
        made |= {"pot": result.map, **maps_of_potential(plan, result.map, wanted & OF_POTENTIAL)}
    for each in calculation.writes:
        print_line(f"  Writing {each.quantity} to {each.path}")
        if each.quantity == "atompot":
            assert result is not None
            with replacing(each.path) as temporary, open(temporary, "w", encoding="utf-8") as file:
                file.write(f"# {WRITTEN[each.quantity]}\n" + "".join(f"{value:.6e}\n" for value in _at_atoms(result)))
            continue
        title = WRITTEN[each.quantity].format(
            probe=model.probe, window=model.window, ion_radius=model.ion_radius
        )  # fmt: skip
        write_map(each.path, replace(made[each.quantity], title=title))


def _printed(wanted: ApbsInput, energies: Sequence[float], print_line: Callable[[str], None]) -> list[float]:
    """Print the PRINT statements; the energies of each, kJ/mol. energies : of all calculations, NaN of mg-dummy"""
    found = []
    if wanted.prints:
        print_line(f"{RULE}\nPRINT STATEMENTS\n")
    for statement in wanted.prints:
        total, words = 0.0, []
        for place, (sign, index) in enumerate(statement.terms):
            total += sign * energies[index]
            words += ([] if not place else ["+" if sign > 0 else "-"]) + [
                f"{index + 1} ({wanted.calculations[index].name})"
            ]
        print_line(f"print energy {' '.join(words)} end")
        print_line(f"  Local net energy (PE 0) = {total:1.12E} kJ/mol\n  Global net ELEC energy = {total:1.12E} kJ/mol")
        found.append(total)
    return found


def _apbs_json(calculation: ApbsCalculation, wanted: ApbsInput, result: PBResult | None) -> dict[str, Any]:
    report: dict[str, Any] = {
        "name": calculation.name,
        "molecule": str(wanted.molecules[calculation.molecule]),
        "settings": _settings(calculation.model),
        "maps": [str(path) for path in calculation.map_files],
        "files": [str(each.path) for each in calculation.writes],
        "notes": list(calculation.notes),
    }
    if result is not None:
        report["levels"] = [
            {
                "shape": list(level.grid.shape), "spacing": level.grid.spacing.tolist(),
                "origin": level.grid.origin.tolist(),
                "energy_kj": level.energy_kt * result.model.kj_per_kt, "iterations": level.iterations,
                "residual": level.residual, "atoms_off": level.atoms_off,
            }
            for level in result.levels[calculation.n_before :]
        ]  # fmt: skip
        if (parts := result.levels[-1].parts) is not None:
            unit = result.model.kj_per_kt
            report["parts_kj"] = {
                "charges": parts.charges_kt * unit, "ions": parts.ions_kt * unit, "field": parts.field_kt * unit
            }  # fmt: skip
            report["per_atom_kj"] = (parts.per_atom_kt * unit).tolist()
        report |= {"energy_kj": result.energy_kj, "device": result.device, "seconds": dict(result.seconds)}
    return report
