"""Kernels as one plain file: each compiles as it stands, has its comments, and computes the same."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pyopencl as cl
import pytest
from click.testing import CliRunner
from conftest import DEVICES

from pele_ocl import DeviceError, InputError, read, solvent
from pele_ocl.cli import main
from pele_ocl.common.installation import shipped
from pele_ocl.kernels import KERNELS, plain_kernel
from pele_ocl.kernels.declarations import needed
from pele_ocl.kernels.folding import folded
from pele_ocl.kernels.listing import Build
from pele_ocl.kernels.preprocessing import Preprocessor
from pele_ocl.opencl import Device
from pele_ocl.opencl.kernel import Program

DEVICE = DEVICES[0]
# Kernels that CPUs' compilers take longest for.
SLOW = [
    "energy/squares", "energy/blocks", "energy/rows", "fft/fft_registers", "potmap/msm", "potmap/mesh", "solvent/tree",
    "nonbond/tiled",
]  # fmt: skip


def built(name: str) -> cl.Program:
    """Build a plain kernel, with no option but the version of the language."""
    text = plain_kernel(name, DEVICE)
    directives = [line for line in text.splitlines() if line.startswith("#") and not line.startswith("#pragma")]
    assert not directives
    assert text.startswith("// ")
    assert f"void {KERNELS[name].kernel}" in text
    standard = "CL3.0" if "atomic_fetch_add" in text else "CL1.2"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cl.CompilerWarning)  # of conditions that are constants now
        return cl.Program(DEVICE.context, text).build([f"-cl-std={standard}"], cache_dir=False)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] if name in SLOW else []) for name in KERNELS]
)
def test_every_kernel_compiles_as_one_plain_file(name):
    try:
        program = built(name)
    except DeviceError as error:
        pytest.skip(str(error))
    assert program.get_info(cl.program_info.KERNEL_NAMES)


def test_a_plain_kernel_computes_the_same():
    """Radii by `pair`, whose program in the device's table is exchanged for the plain one."""
    atoms = read(shipped("data") / "structures" / "hexapeptide.pdb")
    device = replace(DEVICE, programs={}, kernels={})
    options = dict(variant="pair", precision="float32", device=device, energy=False)
    wanted = solvent(atoms, **options).born_radii
    (key,) = [key for key in device.programs if key[0] == KERNELS["solvent/pair"].file]
    device.programs[key] = Program(built("solvent/pair"), device.programs[key].all_signatures())
    device.kernels.clear()
    found = solvent(atoms, **options).born_radii
    assert np.abs(found / wanted - 1).max() < 2e-6


SOURCE = """// Sum of what has the mark.
#define TWO 2  // a number
#define CAT_(a, b) a##b
#define CAT(a, b) CAT_(a, b)
#define REAL float
#define ADD(a, \\
            b) ((a) + (b))  // of any
typedef CAT(REAL, TWO) pair;
#if defined(WIDTH) && WIDTH == 4 || (TWO > 3)
#error "never"
#elif !defined(WIDTH) && TWO * 3 / 2 == 3
// Kept.
float helper(pair x) { return ADD(x.x, x.y); }
#else
float helper(pair x) { return 0; }
#endif
float unused(float x) { float y[TWO] = {x, x}; return y[0]; }
kernel void sum(global float *to /* ADD stays */) { to[0] = helper((pair)(1, TWO)); }
"""


def test_macros_and_conditions_are_resolved():
    text = needed(Preprocessor().resolve(SOURCE), None)
    assert "typedef float2 pair;" in text
    assert "// Kept." in text
    assert "float helper(pair x) { return ((x.x) + (x.y)); }" in text
    assert "unused" not in text
    assert "/* ADD stays */" in text
    with pytest.raises(ValueError, match="never"):
        Preprocessor.with_values({"WIDTH": 4}).resolve(SOURCE)


@pytest.mark.parametrize(
    ("source", "left"),
    [
        ("a;\n    if (0) b;\n    c;", "a;\n    c;"),
        ("a;\n    // of b\n    if (0 == 2) {\n        b;\n    }  // of b, too\n    c;", "a;\n    c;"),
        ("if (1 && !0) b; else c;", "b;"),
        ("if (0) b; else { c; }", "{ c; }"),
        ("if (x) a;\nelse if (0) b;\nc;", "if (x) a;\nc;"),
        ("if (0) a;\nelse if (x) b;\nelse if (1) c;", "if (x) b;\nelse c;"),
        ("for (;;) if (0) a;\nb;", "for (;;) ;\nb;"),
        ("if (0) for (;;) if (x) a; else b;\nc;", "c;"),
        ("x = 0 ? f(a, b) : 1 ? c : d;", "x = c;"),
        ("f(1 ? a : b, 10 ? c : d);", "f(a, 10 ? c : d);"),
        ("return 0 || x == 0 ? 1 : 2;", "return 0 || x == 0 ? 1 : 2;"),
        ("if (2 * n) a;", "if (2 * n) a;"),
    ],
)
def test_branches_that_constants_decide_are_resolved(source, left):
    assert folded(source).strip() == left


def test_comments_stay_with_what_they_are_about():
    text = plain_kernel("potmap/gather", DEVICE)
    assert "// Potential of a point charge and its slope: docs/theory/potmap.md" in text  # a header's introduction
    assert "// square of the cutoff [A^2]" in text
    assert "Helpers must be inlined" not in text  # of a macro
    assert "this header" not in text
    assert "if (0" not in text
    assert "0 ?" not in text
    assert "pragma file" not in text


def test_nvidias_gpus_have_their_own_atomic_additions(monkeypatch):
    """Their compiler has no OpenCL C 3.0 for numbers that are no integers."""
    monkeypatch.setattr(Device, "vendor", "NVIDIA")
    monkeypatch.setattr(Device, "generation", 9)
    build = Build("potmap/ladder/scatter.cl", "float32", 1, {"NATIVE_ATOMICS": 1}, replace(DEVICE))
    source = (shipped("cl") / "common" / "atomics.clh").read_text()
    text = Preprocessor.with_values(build.macros).resolve(source)
    assert "red.global.add.f32" in text
    assert "atomic_fetch_add_explicit" not in text


def test_the_command_lists_and_prints():
    listed = CliRunner().invoke(main, ["kernel", "--list"])
    assert [line.split()[0] for line in listed.output.splitlines()] == list(KERNELS)
    printed = CliRunner().invoke(main, ["kernel", "gather", "--plain", "--device", str(DEVICE.index)])
    assert printed.output == plain_kernel("potmap/gather", DEVICE)
    assert '#include "potmap/law.clh"' in CliRunner().invoke(main, ["kernel", "potmap/gather"]).output
    both = CliRunner().invoke(main, ["kernel", "sequential"])
    assert both.exit_code == 2
    assert "potmap/sequential or solvent/sequential" in both.output


def test_unknown_names_are_refused():
    with pytest.raises(InputError, match="potmap/gather"):
        plain_kernel("potmap/nothing")
