"""Arguments of kernels by name: what does not fit the signature is refused when a launch is made, and only then."""

from __future__ import annotations

import functools
from dataclasses import replace

import numpy as np
import pytest
from conftest import random_atoms, random_pairs

from pele_ocl import Energy, Ensemble, InputError, KernelBuildError, Nonbond, PositionalRestraint, Solvent, minimize
from pele_ocl.opencl import Device, Queue, building
from pele_ocl.opencl.binding import BoundLaunch
from pele_ocl.opencl.building import get_kernel
from pele_ocl.opencl.interface import PAIR_MODEL, REACHES
from pele_ocl.opencl.kernel import Kernel, Parameter, Signature
from pele_ocl.opencl.recording import Recorder

KERNEL = "energy/terms/restraint.cl", "restrain"
MACROS = {"FIXED_BITS": 0, "GRADIENT": 1}
FAR = "binding/far.cl", "far_groups"
FAR_MACROS = {"TILE": 1, "GRADIENT": 0, "COULOMB": 1, "SCREENED": 1, "CUTOFF": 0, "GEOMETRIC": 0}


@pytest.fixture
def queue(device, precision):
    if not device.has_float64:
        pytest.skip("no float64")
    return Queue(device, precision)


def arguments(queue: Queue) -> dict[str, object]:
    """What the kernel of a restraint takes."""
    return dict(
        n_atoms=4, n_energies=4, n_results=100, term=0, step=1.0, positions=queue.zeros(12, np.float64),
        references=queue.upload(np.zeros(12), np.float64), constants=queue.upload(np.ones(4)), flat=0.0,
        results=queue.zeros(100),
    )  # fmt: skip


def swapped(of: dict[str, object], first: str, second: str) -> dict[str, object]:
    """Arguments of which two are at each other's name."""
    return {**of, first: of[second], second: of[first]}


WRONG = {
    "missing": (
        lambda queue, of: {k: v for k, v in of.items() if k != "flat"},
        "kernel restrain lacks flat; its arguments are n_a",
    ),
    "extra": (
        lambda queue, of: {**of, "sigma": 1.0},
        "kernel restrain has no sigma; its arguments are n_atoms, n_energies",
    ),
    "another name": (
        lambda queue, of: {("reference" if k == "references" else k): v for k, v in of.items()},
        "lacks references and has no reference",
    ),
    "read where it is written": (
        lambda queue, of: {**of, "results": queue.upload(np.zeros(100))},
        "results of kernel restrain is written, but the array is read-only",
    ),
    "swapped, and one is written": (
        lambda queue, of: swapped(of, "constants", "results"),
        "results .* read-only",
    ),
    "another type": (
        lambda queue, of: {**of, "constants": queue.upload(np.ones(4), np.int32)},
        "constants of kernel restrain is an array of real, not of int32",
    ),
    "swapped, of two types": (
        lambda queue, of: swapped(of, "positions", "results"),
        "is an array of coordinate, not of float32",
    ),
    "a number for an array": (
        lambda queue, of: {**of, "references": 1.0},
        "references of kernel restrain is an array on",
    ),
    "an array for a number": (
        lambda queue, of: {**of, "n_atoms": of["constants"]},
        "n_atoms .* is a int, not an array",
    ),
    "no whole number": (lambda queue, of: {**of, "n_atoms": 4.5}, "n_atoms of kernel restrain is a int, not 4.5"),
    "text": (lambda queue, of: {**of, "flat": "wide"}, "flat of kernel restrain is a real, not 'wide'"),
}


@pytest.mark.parametrize(("change", "words"), WRONG.values(), ids=WRONG)
def test_what_does_not_fit_is_refused(change, words, queue):
    if queue.precision == "float64" and change is WRONG["swapped, of two types"][0]:
        pytest.skip("positions and results are of one type then")
    kernel, given = queue.kernel(*KERNEL, **MACROS), change(queue, arguments(queue))
    for made in (queue.bind_kernel, queue.launch):
        with pytest.raises(InputError, match=words):
            made(kernel, (4, 1), (4, 1), given)


@pytest.mark.parametrize("name", ["references", "constants", "results"])
def test_recorded_launches_refuse_alike(name, device):
    recorder = Recorder(device, "float32")
    given = arguments(recorder)
    recorder.bind(*KERNEL, (4, 1), (4, 1), given, **MACROS)
    with pytest.raises(InputError, match=f"kernel restrain lacks {name}"):
        recorder.bind(*KERNEL, (4, 1), (4, 1), {k: v for k, v in given.items() if k != name}, **MACROS)
    with pytest.raises(InputError, match="results of kernel restrain is written"):
        recorder.bind(*KERNEL, (4, 1), (4, 1), {**given, "results": recorder.upload(np.zeros(100))}, **MACROS)


def test_structs_are_told_apart(queue):
    kernel = queue.kernel(*FAR, **FAR_MACROS)
    types = {of.name: np.int32 if of.type == "int" else None for of in kernel.signature.parameters}
    given = {of.name: queue.empty(8, types[of.name]) if of.is_array else 1 for of in kernel.signature.parameters}
    model = PAIR_MODEL.pack(queue.precision, outside=1, kappa=0, cutoff2=0)
    queue.bind_kernel(kernel, (1, 1), (1, 1), {**given, "model": model})
    reaches = REACHES.pack(queue.precision, **dict.fromkeys(REACHES.members, 1.0))
    for other in (reaches, queue.vector4(1, 2, 3), 1.0):
        with pytest.raises(InputError, match="model of kernel far_groups is a PairModel"):
            queue.bind_kernel(kernel, (1, 1), (1, 1), {**given, "model": other})


def test_numbers_are_of_the_types_that_the_kernel_takes(queue):
    signature = queue.kernel(*KERNEL, **MACROS).signature
    given = {**arguments(queue), "n_atoms": np.int64(4), "step": 1, "flat": np.float64(0.5)}
    by_name = dict(zip([of.name for of in signature.parameters], signature.arguments(given), strict=True))
    assert by_name["n_atoms"].dtype == by_name["n_energies"].dtype == np.int32
    assert by_name["step"].dtype == by_name["flat"].dtype == queue.dtype


def test_a_bound_launch_takes_other_numbers(queue):
    launch = queue.bind(*KERNEL, (4, 1), (4, 1), arguments(queue), **MACROS)
    launch.change(dict(flat=2.0))
    assert launch.args[[of.name for of in launch.kernel.signature.parameters].index("flat")] == 2.0
    with pytest.raises(InputError, match="has no width"):
        launch.change(dict(width=2.0))


def test_cached_signatures_are_those_of_the_compiler(device, monkeypatch, tmp_path):
    """PoCL caches its programs itself; here they go by our cache."""
    monkeypatch.setattr(building, "KEEPING_VENDORS", ())
    monkeypatch.setattr(building.platformdirs, "user_cache_dir", lambda name: str(tmp_path))
    plain, of_rows = [], []
    for _ in range(2):
        fresh = Device(device.index, device.handle)
        plain.append(get_kernel(fresh, *KERNEL, "float32", **MACROS).signature.parameters)
        of_rows.append(get_kernel(fresh, *KERNEL, "float32", of_rows=True, **MACROS).signature.parameters)
        programs = list(fresh.programs.values())
    assert programs[0].signatures is not None  # of the cache
    assert plain[0] == plain[1] == of_rows[0] == of_rows[1]
    assert [of.name for of in plain[0]][:5] == ["n_atoms", "n_energies", "n_results", "term", "step"]
    assert {of.name for of in plain[0] if of.is_array and not of.is_const} == {"results"}


def test_names_are_resolved_when_launches_are_made_alone(device, monkeypatch):
    atoms = random_atoms(200)
    plans = [Energy(atoms, terms=[PositionalRestraint(1.0)], device=device), Solvent(atoms, device=device)]
    for plan in plans:
        plan.evaluate()
    monkeypatch.setattr(Signature, "arguments", lambda *_: pytest.fail("names were resolved anew"))
    for plan in plans:
        plan.evaluate(atoms.positions + 0.1)


DECLARED = """
#include "common/real.clh"
#include "engine/arguments.clh"
#define SIZES(Q) const int n, /* all, of (1, 2) */ \\
    global const real4 *Q points
// void add(int wrong) {
kernel void add(
    SIZES(restrict),
    global  unsigned int *counters,  // of what, and how many
    const real2 shift, global uchar* restrict to)
{
    SERVES_ROWS(add)
    local real sums[4];
    sums[0] = points[get_global_id(2) * n].x + shift.y;
    to[0] = (uchar)(sums[0] + counters[0]);
}
kernel void other(global int *a) {
    local int sums[4];
    sums[0] = 1;
    a[get_global_id(2)] = sums[0];
}
"""
ADDED = (
    Parameter("n", "int", False, False, False), Parameter("points", "real4", True, True, True),
    Parameter("counters", "uint", True, False, False), Parameter("shift", "real2", False, False, False),
    Parameter("to", "uchar", True, False, True),
)  # fmt: skip


def test_a_kernel_that_serves_rows_is_declared_once(device, monkeypatch, tmp_path):
    """Another kernel of the file stays as it is; a warm start compiles nothing to know the parameters."""
    monkeypatch.setattr(building.platformdirs, "user_cache_dir", lambda name: str(tmp_path))
    file, built, build = building.named_source(DECLARED), list[str](), building._build
    monkeypatch.setattr(building, "_build", lambda *given: (built.append(given[3][-1]), build(*given))[1])
    for asked in (["-DDECLARED_ALONE=1", "-DOF_ROWS=1"], ["-DOF_ROWS=1"]):
        fresh = replace(device, programs={}, kernels={})
        assert get_kernel(fresh, file, "add", "float32", of_rows=True).signature.parameters == ADDED
        assert built == asked
        built.clear()
    assert get_kernel(fresh, file, "add", "float32", of_rows=False).signature.parameters == ADDED


def test_rows_take_their_arguments_from_a_table(device):
    """A kernel that says that it serves rows, and one that does not, give each row its own arguments."""
    head = '#include "common/real.clh"\n#include "engine/arguments.clh"\n'
    text = "kernel void add(const unsigned n, const real2 by, global real *restrict c, global const int *d) {{ {} {} }}"
    body = "const int i = get_global_id(0); if (i < n) c[i + get_global_id(2)] = d[i] + by.y;"
    for says in ("SERVES_ROWS(add)", ""):
        queue, n = Queue(device, "float32"), 3
        kernel = get_kernel(
            device, building.named_source(head + text.format(says, body)), "add", "float32", of_rows=True
        )
        rows, values = [], np.arange(3, dtype=np.int32)
        for k in range(2):
            slots = [np.int32([n, 1]), np.uint32([2 + k]), np.float32([0, 10 * k]), np.uint64([64 * k]), np.uint64([0])]
            rows += [b"".join(of.tobytes().ljust(16, b"\0") for of in slots)]
        table, to = queue.upload(np.frombuffer(b"".join(rows), np.uint8), np.uint8), queue.zeros(32)
        args = (table, np.int32(80), np.int32(0), queue.upload([1, 0], np.int32), to, queue.upload(values, np.int32))
        queue.launch_bound([BoundLaunch(device, kernel, (n, 1), (1, 1, 1), args)], 2)
        found = queue.download(to, 32)
        np.testing.assert_array_equal(found[:3], [0, 1, 0])
        np.testing.assert_array_equal(found[16:19], [10, 11, 12])


def test_a_kernel_of_a_user_may_be_written_in_any_way(device):
    """Ensembles have rows by it; its parameters are those of its own writing."""
    own = """#include "common/real.clh"
kernel void add(const  unsigned   int n, const unsigned first, global float c[]) { c[first] += n; }
"""
    file = building.named_source(own)
    kernel = get_kernel(replace(device, programs={}, kernels={}), file, "add", "float32", of_rows=True)
    assert kernel.signature.parameters == (
        Parameter("n", "uint", False, False, False), Parameter("first", "uint", False, False, False),
        Parameter("c", "float", True, False, False),
    )  # fmt: skip


def test_local_memory_needs_a_kernel_that_says_so(device):
    own = """#include "common/real.clh"
kernel void add(global float *c) { local float kept[4]; kept[0] = 1; c[0] = kept[0]; }
"""
    with pytest.raises(KernelBuildError, match=r"begin its statements with SERVES_ROWS\(add\)"):
        get_kernel(device, building.named_source(own), "add", "float32", of_rows=True)


@functools.cache
def kernels_of_plans(device: Device) -> dict[tuple[object, ...], Kernel]:
    """Kernels of energies, radii, listed pairs, minimization and rows, by their keys; and no others of the device."""
    atoms, fresh = random_atoms(60), replace(device, programs={}, kernels={})
    Energy(atoms, terms=[PositionalRestraint(1.0)], device=fresh).evaluate()
    Solvent(atoms, device=fresh).evaluate()
    Nonbond(atoms, random_pairs(60, 300), device=fresh).evaluate()
    minimize(atoms, max_iterations=1, device=fresh)
    Ensemble(atoms, 2, terms=[PositionalRestraint(1.0)], device=fresh).minimize(method="newton", max_iterations=1)
    assert len(fresh.kernels) > 10
    return fresh.kernels


def test_kernels_of_rows_say_so(device):
    """Those of cl/ are no functions that a kernel calls, and none is changed."""
    served = [key for key in kernels_of_plans(device) if key[5]]
    assert served
    for file, name, *_ in served:
        assert f"SERVES_ROWS({name})" in building.source_of(file), f"cl/{file} lacks SERVES_ROWS({name})"


def test_every_type_of_a_parameter_is_known(device):
    """An array of a type that nobody knows could be of any."""
    unknown = [
        (kernel.name, of.parameter)
        for kernel in kernels_of_plans(device).values()
        for of in kernel.signature.places
        if of.kind is None
    ]
    assert not unknown
