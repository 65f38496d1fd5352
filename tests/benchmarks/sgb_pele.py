"""Comparison of energies and gradients of public PELE runs with the output of PELE.

python tests/benchmarks/sgb_pele.py RUN... [--ligand SELECTION] [--gb vdgbnp] [--salt 0.15] [--rows 2] [--device D]

RUN is a folder with report_N, trajectory_N.pdb, Data and DataLocal. Rows with equal output of PELE are used once.
Gradients are at constant radii, as in PELE's minimizer: root mean squares over all atoms and without the largest 2 %,
in kcal/mol/A, followed by those of the error from rounding coordinates to 0.001 A.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

import pele_ocl
from pele_ocl import Binding, Energy, ForceField, SolventModel
from pele_ocl.atoms import Floats
from pele_ocl.binding.pele import PoseEvaluator
from pele_ocl.common.inputfile import read_file
from pele_ocl.explore.reports import BINDING, TOTAL
from pele_ocl.formats import model_numbers
from pele_ocl.rescore import read_report

ROUNDING = 0.0005  # A, most that a coordinate of three decimals is off


def root_mean_squares(gradient: Floats) -> tuple[float, float]:
    """Return root mean squares of atomic gradients (n, 3), kcal/mol/A: of all, and without the largest 2 %."""
    squares = (gradient**2).sum(axis=1)
    most = np.sort(squares)[: int(0.98 * len(squares))]
    return float(np.sqrt(squares.mean())), float(np.sqrt(most.mean()))


def main() -> None:
    """Print one line per row of the runs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="+", type=Path)
    parser.add_argument("--ligand", default="chain L")
    parser.add_argument("--gb", default="vdgbnp")
    parser.add_argument("--salt", type=float, default=0.15, help="mol/L")
    parser.add_argument("--rows", type=int, default=2, help="of a run, at most")
    parser.add_argument("--device")
    options = parser.parse_args()
    model = SolventModel.like("pele", gb=options.gb, ionic_strength=options.salt)
    print("run report row | total: PELE, ours, difference | binding: alike | rms of all, of 98 % | rounding's")
    for run in options.runs:
        data = [run / name for name in ("Data", "DataLocal")]
        field = ForceField.load("OPLS2005", pele_data=data, allow_missing_terminals=True, guess_radii=True)
        seen = set[tuple[float, float]]()
        for report in sorted(run.glob("report_*")):
            totals, bindings = (read_report(report).numbers(*names) for names in (TOTAL, BINDING))
            trajectory = report.with_name(report.name.replace("report", "trajectory") + ".pdb")
            assert totals is not None
            assert bindings is not None
            for row, number in enumerate(model_numbers(read_file(trajectory))):
                pele = (float(totals[row]), float(bindings[row]))
                if pele in seen or len(seen) == options.rows:
                    continue
                seen.add(pele)
                atoms = pele_ocl.read(trajectory, field, model=number)
                rest = ~atoms.selected(options.ligand)
                choices = dict(model=model, precision="float64", device=options.device)
                poses = PoseEvaluator(Binding(atoms, options.ligand, rest, **choices))
                found = poses.evaluate(atoms.positions[np.newaxis])
                plan, positions = Energy(atoms, fixed_radii=True, **choices), np.asarray(atoms.positions, np.float64)
                shifts = np.random.default_rng(0).uniform(-ROUNDING, ROUNDING, positions.shape)
                gradient, shifted = (plan.evaluate(there).gradient for there in (positions, positions + shifts))
                assert gradient is not None
                assert shifted is not None
                energies = zip(pele, (found.total[0], found.binding[0]), strict=True)
                print(
                    run.name, report.name, row,
                    *(f"| {theirs:.2f} {ours:.2f} {ours - theirs:+.2f}" for theirs, ours in energies),
                    "| {:.2f} {:.2f} |".format(*root_mean_squares(gradient)),
                    "{:.2f} {:.2f}".format(*root_mean_squares(shifted - gradient)), flush=True,
                )  # fmt: skip


if __name__ == "__main__":
    main()
