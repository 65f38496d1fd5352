"""Time of solvers of the Poisson-Boltzmann equation, and of APBS on the same problem."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np

from pele_ocl.atoms import Atoms
from pele_ocl.bench.bounds import bounded
from pele_ocl.bench.roofline import INK, PAPER
from pele_ocl.common.errors import PeleError
from pele_ocl.common.extras import extra
from pele_ocl.grid import Grid
from pele_ocl.pb import PBIon, PBModel, PoissonBoltzmann, centre_of, grid_at
from pele_ocl.pb.plan import FINEST
from pele_ocl.pb_model import LIKE_APBS

if TYPE_CHECKING:
    from pele_ocl.opencl.device import Device

PEER = "apbs"
RESIDUALS = (1e-2, 1e-4, 1e-6)
WIDTH = 10.0  # A from the largest sphere to the border
SALT = 0.15  # mol/L
REFERENCE = 1e-8  # residual of the energy that others are compared with
# Bounds of an energy's relative error: a share of the residual, as self energies are most of it, and APBS's.
ERROR_OF_RESIDUAL, ERROR_OF_PEER = 0.1, 1e-6
MODEL = PBModel(ions=(PBIon(1, SALT), PBIon(-1, SALT)), **LIKE_APBS)
INPUT = """\
read
 mol pqr molecule.pqr
end
elec
 mg-manual
 dime {n} {n} {n}
 grid {h} {h} {h}
 gcent mol 1
 mol 1
 lpbe
 bcfl {model.boundary}
 ion charge 1 conc {salt} radius 2.0
 ion charge -1 conc {salt} radius 2.0
 pdie {model.solute_dielectric}
 sdie {model.solvent_dielectric}
 srfm {model.surface}
 chgm {model.charges}
 srad {model.probe}
 swin {model.window}
 sdens {model.density}
 temp {model.temperature}
 etol {etol}
 calcenergy total
end
quit
"""


@dataclass(frozen=True)
class Timing:
    """One row of the table.

    points : along each edge; solver : a key of pb.SOLVERS, or PEER; device : "one thread" for PEER
    tolerance : requested residual, by norm; residual : final one, None for PEER
    iterations : None for PEER
    seconds : wall time of the solver; for PEER processor time, as it reports
    energy : kJ/mol, including self energies; error : relative to `mgcg` at a smaller residual
    over_apbs : seconds relative to PEER, None if it is not installed
    bounds, exact : as in bounds.Timing
    """

    system: str
    n_atoms: int
    points: int
    solver: str
    device: str
    tolerance: float
    residual: float | None
    iterations: int | None
    seconds: float
    energy: float
    error: float
    over_apbs: float | None
    bounds: dict[str, float] = field(default_factory=dict)
    exact: bool = True


def grid_for(atoms: Atoms, points: int) -> Grid:
    """Return a cube of `points` per edge that extends 10 A beyond the molecule."""
    assert atoms.gb_radii is not None
    reach = float(np.ptp(atoms.positions, axis=0).max() + 2 * atoms.gb_radii.max() + 2 * WIDTH)
    return grid_at(centre_of(_as_written(atoms)), round(reach / (points - 1), 4), [points] * 3)


def measure(
    name: str, atoms: Atoms, points: int, solvers: Sequence[str], residuals: Sequence[float], device: Device, runs: int
) -> Iterator[Timing]:
    """Solve one problem with APBS, if installed, and with each solver to each residual; the fastest run is reported."""
    atoms, least = _as_written(atoms), min(residuals)
    grid = grid_for(atoms, points)

    def plan(solver: str, tolerance: float) -> PoissonBoltzmann:
        return PoissonBoltzmann(
            atoms, MODEL, grids=grid, reaction=False, solver=solver, tolerance=tolerance, device=device
        )

    exact = plan("mgcg", max(REFERENCE, FINEST[device.has_float64])).solve(keep_map=False).energy_kj
    peer_seconds = None
    if shutil.which(PEER) is not None:
        peer_seconds, energy = apbs(atoms, grid, least)
        yield Timing(
            name, len(atoms), points, PEER, "one thread", least, None, None, peer_seconds, energy,
            abs(energy / exact - 1), 1.0, bounded(error=max(ERROR_OF_PEER, ERROR_OF_RESIDUAL * least)),
        )  # fmt: skip
    for solver in solvers:
        plan(solver, 0.1).solve(keep_map=False)  # builds the kernels
        for tolerance in residuals:
            found = [plan(solver, tolerance).solve(keep_map=False) for _ in range(runs)]
            seconds, result = min(each.seconds["solver"] for each in found), found[0]
            yield Timing(
                name, len(atoms), points, solver, str(device), tolerance, result.levels[-1].residual,
                result.iterations, seconds, result.energy_kj, abs(result.energy_kj / exact - 1),
                seconds / peer_seconds if peer_seconds and tolerance == least else None,
                bounded(error=ERROR_OF_RESIDUAL * tolerance),
            )  # fmt: skip


def apbs(atoms: Atoms, grid: Grid, etol: float) -> tuple[float, float]:
    """Run APBS on a problem; return the time of its solver, and the energy, kJ/mol. Raises PeleError if it fails."""
    with TemporaryDirectory() as folder:
        write_input(Path(folder), atoms, grid, etol)
        done = subprocess.run([PEER, "molecule.in"], cwd=folder, capture_output=True, text=True)
        energies = re.findall(r"Total electrostatic energy = (\S+) kJ", done.stdout)
        log = Path(folder) / "io.mc"
        timers = re.findall(r"Solver timer\)\.\s+CPU TIME = (\S+)", log.read_text() if log.exists() else "")
        if not energies or not timers:
            raise PeleError(f"{PEER} ended with code {done.returncode} and printed no energy")
        return float(timers[-1]), float(energies[-1])


def write_input(folder: Path, atoms: Atoms, grid: Grid, etol: float) -> None:
    """Write the input files of a problem for APBS: molecule.in and molecule.pqr."""
    text = INPUT.format(n=grid.shape[0], h=grid.spacing[0], model=MODEL, salt=SALT, etol=etol)
    (folder / "molecule.pqr").write_text("".join(_pqr_lines(atoms)))
    (folder / "molecule.in").write_text(text)


def _as_written(atoms: Atoms) -> Atoms:
    """Round atoms as in the PQR file for APBS, so that both programs solve the same problem."""
    return Atoms(
        np.round(atoms.positions, 4), np.round(atoms.charges, 5),
        gb_radii=None if atoms.gb_radii is None else np.round(atoms.gb_radii, 4),
    )  # fmt: skip


def _pqr_lines(atoms: Atoms) -> Iterator[str]:
    assert atoms.gb_radii is not None
    for k, ((x, y, z), q, r) in enumerate(zip(atoms.positions, atoms.charges, atoms.gb_radii, strict=True), 1):
        yield f"ATOM {k} X MOL 1 {x:.4f} {y:.4f} {z:.4f} {q:.5f} {r:.4f}\n"


def draw(path: Path, timings: Sequence[Timing]) -> Any:
    """Draw residuals against seconds, one curve per solver, and APBS as a star; return the matplotlib figure.

    path : .png, .svg or .pdf

    Raises InputError if matplotlib is not installed.
    """
    figure = extra("matplotlib.figure", "a chart").Figure(figsize=(6.4, 4.2), facecolor=PAPER[False])
    axes = figure.subplots()
    for solver in dict.fromkeys(timing.solver for timing in timings):
        own = [timing for timing in timings if timing.solver == solver]
        reached = [timing.residual or timing.tolerance for timing in own]
        mark = {"marker": "*", "markersize": 12, "linestyle": ""} if solver == PEER else {"marker": "o"}
        axes.plot([timing.seconds for timing in own], reached, label=solver, **mark)
    axes.set(xscale="log", yscale="log", ylabel="relative residual")
    axes.set_xlabel(f"seconds of the solver, {timings[0].system}, {timings[0].points}³ points")
    axes.set_title(timings[-1].device, fontsize=8, color=INK[False])
    axes.legend()
    figure.savefig(path, dpi=150)
    return figure
