"""Programs of tests/benchmarks: they load with this version, and two checkouts are compared."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from conftest import DEVICES

ROOT = Path(__file__).parent.parent
SCRIPTS = ROOT / "tests" / "benchmarks"


@pytest.mark.parametrize(
    "name",
    [
        "calls",
        "ceiling",
        "designs",
        "evaluations",
        "frozen",
        "iteration",
        "launches",
        "map_walls",
        "million",
        "minimize",
        "mixed",
        "shared_launches",
        "pair_energy",
        "pb",
        "preconditioner",
        "prepare",
        "tree_energy",
        "tree_wall",
        "thesis",
        "beside_mmpbsa",
    ],
)
def test_scripts_load(name, monkeypatch):
    monkeypatch.syspath_prepend(SCRIPTS)
    __import__(name)


def test_the_c_program_beside_the_kernels_is_right(monkeypatch, tmp_path):
    """Built without optimization, with it and with OpenMP: Born radii, gradients and maps of NumPy's definitions."""
    monkeypatch.syspath_prepend(SCRIPTS)
    import ctypes

    import thesis

    from pele_ocl import SolventModel
    from pele_ocl.bench.systems import load
    from pele_ocl.pairs import pairs_within
    from pele_ocl.reference import nonbond, solvent

    if shutil.which("cc") is None:
        pytest.skip("no C compiler is installed")
    atoms = load("hexapeptide")
    _, alpha = solvent.born_radii(atoms.positions, atoms.gb_radii, atoms.gb_scales, SolventModel())
    listed = pairs_within(atoms, 12.0)
    exact = nonbond.nonbond(atoms, listed.first, listed.second, born_radii=alpha)
    charges = thesis.charges_in(8)
    points = np.stack(np.meshgrid(*[np.arange(8.0)] * 3, indexing="ij"), axis=-1)[..., ::-1]
    distances = np.linalg.norm(points[..., None, :] - charges[:, :3], axis=-1)
    map_ = (charges[:, 3] / distances).sum(axis=-1)
    built = list(thesis.builds(tmp_path))
    assert [name for name, _ in built] == ["C, -O0", "C, -O3", "C, -O3 -fopenmp"]
    for _, library in built:
        _, sampled, radii = thesis.born_in_c(library, atoms, 1, 10.0)
        assert not sampled
        np.testing.assert_allclose(radii, alpha, rtol=1e-5)
        _, energy, gradient = thesis.pairs_in_c(library, atoms, listed, alpha, True, 1)
        np.testing.assert_allclose(energy, [exact.lennard_jones, exact.coulomb, exact.gb_pair], rtol=1e-4)
        assert thesis.norm_error(gradient, exact.gradient) < 1e-5
        phi = np.zeros((8, 8, 8), np.float32)
        library.map(len(charges), thesis.pointer(charges), 8, 8, 8, ctypes.c_float(1), thesis.pointer(phi))
        assert thesis.norm_error(phi, map_) < 1e-5


def test_parts_take_away_what_is_there(monkeypatch):
    monkeypatch.syspath_prepend(SCRIPTS)
    import parts

    for without in (*parts.SOLVENT_PARTS.values(), *parts.MAP_PARTS.values()):
        with without():
            pass


def test_a_checkout_is_as_fast_as_itself():
    command = ROOT, ROOT, "--quick", "--quantity", "solvent", "--system", "hexapeptide", "--precision", "float32"
    options = "--variant", "tiled", "--calls", "--bound", "3", "--device", DEVICES[0].index
    script = SCRIPTS / "before_after.py"
    done = subprocess.run(
        [sys.executable, script, *map(str, (*command, *options))], capture_output=True, text=True, check=True
    )
    rows = [line.split() for line in done.stdout.splitlines() if line.startswith("solvent")]
    assert [row[4] for row in rows] == ["kernels", "call"]
    assert all(0.3 < float(row[7]) < 3 for row in rows)
    assert re.search(r"; 0 slower than 3;", done.stdout)
