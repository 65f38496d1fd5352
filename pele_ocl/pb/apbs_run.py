"""Run APBS input files, with output in APBS's format."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..atoms import Atoms
from ..common.inputfile import InputFile
from ..common.notes import heard_notes, note, with_notes
from ..common.variant import Progress
from ..common.writing import replacing
from ..formats import write_map
from ..grid import Grid
from ..jobs.provenance import record_head
from ..reading import read
from ..report import Framed, Report
from .apbs import NEED_POTENTIAL, WRITTEN, ApbsCalculation, ApbsInput, read_apbs
from .apbs_maps import ACCESS, OF_POTENTIAL, access_maps, maps_of_potential
from .plan import PoissonBoltzmann
from .result import PBParts, PBResult, model_facts

if TYPE_CHECKING:
    from ..opencl.device import Device

RULE = "-" * 40
PrintLine = Callable[[str], None]


@dataclass(frozen=True, eq=False)
class ApbsResult(Framed):
    """Result of an APBS input file.

    results : PBResult of each calculation, None for mg-dummy; energies : kJ/mol, as printed by APBS
    prints : result of each PRINT statement, kJ/mol
    lines : output in APBS's format, which `text()` joins
    """

    source: InputFile
    wanted: ApbsInput
    results: tuple[PBResult | None, ...]
    prints: tuple[float, ...]
    lines: tuple[str, ...]
    notes: tuple[str, ...] = ()
    heard: tuple[str, ...] = ()

    @property
    def energies(self) -> NDArray[np.float64]:
        """Energy of each calculation, (m,) kJ/mol; NaN for mg-dummy."""
        return np.array([np.nan if result is None else result.energy_kj for result in self.results])

    def __repr__(self) -> str:
        energies = ", ".join(
            f"{calculation.name} {energy:.3f}"
            for calculation, energy in zip(self.wanted.calculations, self.energies, strict=True)
        )
        prints = "".join(f"; print {total:.3f}" for total in self.prints)
        return f"ApbsResult({self.source}: {energies}{prints} kJ/mol)"

    def table(self) -> Report:
        """Return a table of the energies of all calculations."""
        names = [calculation.name for calculation in self.wanted.calculations]
        return Report(f"Energies of {self.source}, kJ/mol", {"calculation": names, "energy": self.energies})

    def text(self, verbose: bool = False, total: float | None = None) -> str:
        """Return the output in APBS's format."""
        return "\n".join(self.lines)

    def save(self, path: str | Path) -> None:
        """Write the energies as a table, .csv, .h5 or .json; maps are written as specified in the input file."""
        self.table().save(path, [self.source])

    def to_json(self) -> dict[str, Any]:
        """Return a JSON record of all calculations."""
        of_all = zip(self.wanted.calculations, self.results, strict=True)
        record = {
            **record_head(self.source),
            "calculations": [_as_json(calculation, self.wanted, result) for calculation, result in of_all],
            "prints": list(self.prints),
            "notes": list(self.notes),
        }
        return with_notes(record, self.heard)


@dataclass(frozen=True)
class _Lines:
    """Output lines, stored and passed to `show` as they are produced."""

    show: PrintLine | None
    kept: list[str] = field(default_factory=list)

    def __call__(self, text: str) -> None:
        self.kept.append(text)
        if self.show is not None:
            self.show(text)


def run_apbs(
    source: InputFile, device: Device | int | str | None = None, show: PrintLine | None = None,
    progress: Progress | None = None,
) -> ApbsResult:  # fmt: skip
    """Run an APBS input file: compute its calculations and write its files.

    show : called with each output line when it is known; progress : called with the fraction of a calculation done

    Raises FormatError for invalid files, and the errors of PoissonBoltzmann.
    """
    print_line = _Lines(show)
    with heard_notes() as heard:
        wanted, molecules = read_apbs(source, _read_pqr)
        of_molecules = [sentence for molecule in molecules for sentence in molecule.notes]
        for sentence in [*of_molecules, *(f"{source}: {sentence}" for sentence in wanted.notes)]:
            note(f"Note: {sentence}")
        results = []
        for number, calculation in enumerate(wanted.calculations, 1):
            for sentence in calculation.notes:
                note(f"Note: {source}: ELEC {calculation.name}: {sentence}")
            atoms = molecules[calculation.molecule]
            results.append(_calculate(source, number, calculation, atoms, device, print_line, progress))
        energies = [np.nan if result is None else result.energy_kj for result in results]
        printed = _printed(wanted, energies, print_line)
    return ApbsResult(
        source, wanted, tuple(results), tuple(printed), tuple(print_line.kept), (*of_molecules, *wanted.notes),
        tuple(heard),
    )  # fmt: skip


def _read_pqr(path: Path) -> Atoms:
    return read(path)


def _calculate(
    source: InputFile, number: int, calculation: ApbsCalculation, atoms: Atoms, device: Device | int | str | None,
    print_line: PrintLine, progress: Progress | None,
) -> PBResult | None:  # fmt: skip
    """Run an ELEC block and write its files. Returns None for mg-dummy."""
    print_line(f"{RULE}\nCALCULATION #{number} ({calculation.name}): MULTIGRID")
    for path in calculation.map_files:
        print_line(f"  Using map {path}")
    plan = PoissonBoltzmann(
        atoms, calculation.model, grids=calculation.grids, reaction=False, tolerance=calculation.tolerance,
        given=calculation.given, device=device,
    )  # fmt: skip
    result = None
    if calculation.solves:
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
                    f"Note: {source}: ELEC {calculation.name}: {level.atoms_off:,} atoms are outside of a "
                    "grid, so it lacks their charges"
                )
    else:
        _print_level(plan.grids[-1], print_line)
    _write(calculation, plan, result, print_line)
    return result


def _at_atoms(result: PBResult) -> NDArray[np.float64]:
    """Interpolate the potential linearly at the atoms, as APBS does for all charge models."""
    return np.nan_to_num(result.potential_at(result.atoms.positions))


def _of_parts(parts: PBParts, kj_per_kt: float) -> str:
    """Return the output lines with the parts of the energy and the contributions of the atoms."""
    shares = kj_per_kt * parts.per_atom_kt + 0.0  # avoids -0
    return "\n".join(
        [
            f"  Fixed charge energy = {parts.charges_kt * kj_per_kt:g} kJ/mol",
            f"  Mobile charge energy = {parts.ions_kt * kj_per_kt:g} kJ/mol",
            f"  Dielectric energy = {parts.field_kt * kj_per_kt:g} kJ/mol",
            "  Per-atom energies:",
            *(f"      Atom {k}:  {share:1.12E} kJ/mol" for k, share in enumerate(shares)),
        ]
    )


def _print_level(grid: Grid, print_line: PrintLine) -> None:
    shape, spacing = (
        " x ".join(form(x) for x in of) for of, form in ((grid.shape, str), (grid.spacing, "{:.3f}".format))
    )
    lengths = " x ".join(f"{(n - 1) * h:.3f}" for n, h in zip(grid.shape, grid.spacing, strict=True))
    centre = ", ".join(f"{x:.3f}" for x in (grid.origin + grid.last) / 2)
    print_line(
        f"  Grid dimensions: {shape}\n  Grid spacings: {spacing}\n  Grid lengths: {lengths}\n  Grid center: ({centre})"
    )


def _write(
    calculation: ApbsCalculation, plan: PoissonBoltzmann, result: PBResult | None, print_line: PrintLine
) -> None:
    """Write the files of an ELEC block."""
    wanted, model = {each.quantity for each in calculation.writes}, calculation.model
    made = access_maps(plan, wanted & ACCESS)
    if wanted & {"kappa", "charge", "dielx", "diely", "dielz"}:
        made |= plan.maps()
        made["kappa"] = made["access"]  # as in APBS: 1 if accessible to ions
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


def _printed(wanted: ApbsInput, energies: Sequence[float], print_line: PrintLine) -> list[float]:
    """Print the PRINT statements and return their energies, kJ/mol. energies : of all calculations, NaN for mg-dummy"""
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


def _as_json(calculation: ApbsCalculation, wanted: ApbsInput, result: PBResult | None) -> dict[str, Any]:
    report: dict[str, Any] = {
        "name": calculation.name,
        "molecule": str(wanted.molecules[calculation.molecule]),
        "settings": model_facts(calculation.model),
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
