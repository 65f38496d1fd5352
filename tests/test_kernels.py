"""Building kernels, and the vendors' lines of real.clh against their portable twins."""

import numpy as np
import pytest
from conftest import random_atoms
from tolerance import BORN_RADIUS, TWIN

from pele_ocl import KernelBuildError, SolventModel
from pele_ocl.opencl import kernels
from pele_ocl.opencl.kernels import Run, get_kernel
from pele_ocl.solvent.layout import Layout
from pele_ocl.solvent.variants import VARIANTS, System

PROBE = """
#include "real.clh"
kernel void probe(global const real *x, global real *inverses, global real *roots) {
    const int i = get_global_id(0) * WIDTH;
    STORE(inverse(LOAD(i, x)), i, inverses);
    STORE(inverse_sqrt(LOAD(i, x)), i, roots);
}
"""


def test_kernels_are_kept(device):
    first, second = (get_kernel(device, "solvent_radii.cl", "born_radii", "float32") for _ in range(2))
    assert first is second


def test_a_missing_macro_is_a_sentence(device):
    with pytest.raises(KernelBuildError, match=r"cl/solvent_pair.cl does not compile on .*(?s:.*)GROUP: work-items in"):
        get_kernel(device, "solvent_pair.cl", "born_sums_pair", "float32")


def probe_widths(device, precision):
    return sorted({1, 4, device.vector_width(precision)})


def test_reciprocals_are_exact_and_equal_their_portable_twin(device, precision, tmp_path, monkeypatch):
    (tmp_path / "probe.cl").write_text(PROBE)
    monkeypatch.setattr(
        kernels, "_source", lambda file: (tmp_path / file).read_text() if file == "probe.cl" else pytest.fail(file)
    )
    x = np.geomspace(1e-6, 1e8, 4096)
    for width in probe_widths(device, precision):
        for portable in (False, True):
            run = Run(device, precision, portable=portable)
            kernel = run.kernel("probe.cl", "probe", width, PROBE=id(tmp_path))
            inverses, roots = run.empty(len(x)), run.empty(len(x))
            run.launch(kernel, (len(x) // width,), None, run.upload(x), inverses, roots)
            rounded = x.astype(precision).astype(float)
            np.testing.assert_allclose(run.download(inverses, len(x)), 1 / rounded, rtol=TWIN[precision])
            np.testing.assert_allclose(run.download(roots, len(x)), 1 / np.sqrt(rounded), rtol=TWIN[precision])


def test_tiled_is_the_same_with_portable_mathematics(device, precision):
    atoms = random_atoms(500)
    layout = Layout.of(device.kind, device.vector_width(precision), precision, len(atoms))
    system = System.of(atoms, SolventModel(), layout)
    (_, own), (_, portable) = (
        VARIANTS["tiled"].run(Run(device, precision, portable=portable), system) for portable in (False, True)
    )
    np.testing.assert_allclose(own, portable, rtol=BORN_RADIUS[precision])
