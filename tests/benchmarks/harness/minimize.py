"""Minimization as a work of `tests/benchmarks/peers.py`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from timing_tables.minimize import Timing, measure
from timing_tables.openmm import PLATFORMS

from pele_ocl.bench.systems import load
from pele_ocl.opencl import Device

from .comparison import Contender, Measured, Work
from .peers import AbsentError, version_of


def minimize_work(
    name: str, precision: str, devices: Sequence[Device], tolerance: float = 10.0, noise: float = 0.1
) -> Work:  # fmt: skip
    """Return the work of minimizing an included structure with its complete force field from one noisy start.

    The error is the energy difference from OpenMM's CPU platform; 0 if the energy is lower.
    """
    rows: dict[str, Timing] = {}

    def all_rows() -> dict[str, Timing]:
        if not rows:
            rows.update({row.code: row for row in measure(name, tolerance, noise, 1, devices[0], precision)})
        return rows

    def of(code: str) -> Measured:
        if code not in all_rows():
            raise AbsentError("is not there")
        row = all_rows()[code]
        label = f"OpenMM {version_of('openmm')} {code.split()[1]}" if code.startswith("OpenMM") else f"pele-ocl {code}"
        errors = {} if row.above is None else {"minimum": max(0.0, row.above)}
        return Measured(label, row.device, row.seconds, errors)

    n_atoms = len(load(name))
    contenders = [Contender("pele-ocl", partial(of, "lbfgs"), ours=True)]
    contenders += [Contender(f"OpenMM {key}", partial(of, f"OpenMM {key}")) for key in PLATFORMS if key != "Reference"]
    described = f"{name}, from {noise:g} A of noise to {tolerance:g} kJ/mol/nm"
    return Work("minimize", described, n_atoms, n_atoms**2, precision, contenders)
