"""Building kernels, and the vendors' lines of common/real.clh against their portable twins."""

import re
import time
from contextlib import nullcontext
from functools import partial

import numpy as np
import pyopencl as cl
import pytest
from conftest import DEVICES, kept_apart, random_atoms
from tolerance import BORN_RADIUS, SOFT_ROOT, TWIN

from pele_ocl import DeviceError, KernelBuildError, Solvent
from pele_ocl.common.installation import shipped
from pele_ocl.opencl import Queue, building
from pele_ocl.opencl import queue as queues
from pele_ocl.opencl.building import get_kernel

PROBE = """
#include "common/real.clh"
kernel void probe(
    global const real *x, global real *inverses, global real *roots, global real *bare_roots, global real *powers,
    global real *sums) {
    const int i = get_global_id(0) * WIDTH;
    STORE(inverse(LOAD(i, x)), i, inverses);
    STORE(inverse_sqrt(LOAD(i, x)), i, roots);
    STORE(bare_root(LOAD(i, x)) * ROOT_UNIT, i, bare_roots);
    STORE(power_of_two(-LOAD(i, x)), i, powers);
    sums[get_global_id(0)] = lane_sum(LOAD(i, x));
}
"""
SOFT_PROBE = """
#include "common/real.clh"
#include "common/soft_root.clh"
kernel void probe(global const float *x, global float *roots) {
    const int i = get_global_id(0);
    roots[i] = soft_root(x[i]);
}
"""

UNROLLED = """
    #pragma unroll
    for (int k = 0; k < (int)x[0]; ++k) {
        barrier(CLK_LOCAL_MEM_FENCE);
        x[k] = k;
    }
"""


def test_kernels_are_kept(device):
    asked = device, "solvent/ladder/radii.cl", "born_radii", "float32"
    first, second = (get_kernel(*asked, GB_RADIUS_OBC=1) for _ in range(2))
    assert first is second


def test_headers_stand_in_place_once_and_lines_keep_their_numbers():
    files = {"k.cl": 'a\n#include "h.clh"\nb\n#include "h.clh"\nc', "h.clh": "x\ny"}
    assert building.expanded_source("k.cl", files.__getitem__).splitlines() == [
        '#line 1 "k.cl"', "a", '#line 1 "h.clh"', "x", "y", '#line 3 "k.cl"', "b", "", "c",
    ]  # fmt: skip


def test_a_file_without_headers_is_as_it_is():
    """A mark would shift the lines that NVIDIA's compiler tells."""
    assert building.expanded_source("k.cl", {"k.cl": "a\nb\n"}.__getitem__) == "a\nb\n"


def test_lines_keep_their_numbers_behind_a_header_that_is_left_out():
    files = {"k.cl": '#if A\n#include "h.clh"\n#else\nb\n#endif\nc', "h.clh": "x"}
    assert building.expanded_source("k.cl", files.__getitem__).splitlines() == [
        '#line 1 "k.cl"', "#if A", '#line 1 "h.clh"', "x", '#line 3 "k.cl"', "#else", '#line 4 "k.cl"', "b", "#endif",
        '#line 6 "k.cl"', "c",
    ]  # fmt: skip


@pytest.mark.skipif(DEVICES[0].vendor != "POCL", reason="others print nothing")
@pytest.mark.parametrize(
    ("code", "warns"),
    [("int n = x[0]; for (int k = 0; n && 2; ++k) x[k] = 0;", True), (UNROLLED, False)],
    ids=["a constant operand", "a loop that stays as it is"],
)
def test_what_compilers_warn_of(monkeypatch, code, warns):
    """PoCL prints to the terminal how many warnings there were; conftest.build_in_silence lets none of ours pass."""
    read = building.source_of
    probe = f'#include "common/real.clh"\nkernel void probe(global real *x) {{ {code} }}'
    monkeypatch.setattr(building, "source_of", lambda file: probe if file == "probe.cl" else read(file))
    options = building._options(DEVICES[0], "float32", 1, False, {})
    with pytest.raises(AssertionError, match=r"warning: probe\.cl") if warns else nullcontext():
        building._build(DEVICES[0], "probe.cl", building.expanded_source("probe.cl", building.source_of), options)


def test_kernels_built_plainly_are_kept_from_other_files(device, monkeypatch):
    builds, build, apart = list[str](), building._build, {}
    monkeypatch.setattr(building, "_build", lambda *given: builds.append(given[1]) or build(*given))
    device.kernels.clear()
    device.programs.clear()
    kernel = partial(Queue(device, "float32").kernel, "nonbond/scan.cl", GROUP=4)
    with kept_apart(apart):
        first = kernel("scan_blocks")
    other = kernel("scan_blocks")
    assert other is not first
    with kept_apart(apart):
        assert kernel("scan_blocks") is other, "built as users have it"
        added = kernel("add_totals")
    device.kernels.clear()
    device.programs.clear()
    with kept_apart(apart):
        assert kernel("add_totals") is added
    assert builds == ["nonbond/scan.cl"] * 2


def test_group_size_is_what_device_and_kernel_allow(device, monkeypatch):
    queue = Queue(device, "float32")
    asked = "solvent/pair.cl", "born_sums_pair", 1, None
    _, group = queue.group_kernel(*asked, GB_RADIUS_OBC=1)
    assert group <= device.largest_group
    monkeypatch.setattr(Queue, "_most_items", lambda self, kernel: 32)
    assert queue.group_kernel(*asked, GB_RADIUS_OBC=1)[1] == 32


def test_what_opencl_refuses_is_a_device_error(device):
    queue = Queue(device, "float32")
    buffer = queue.empty(4)
    with pytest.raises(DeviceError, match="reports an error"):
        queue.read(np.empty(1000, np.float32), buffer)


def test_building_does_not_count_as_running(device, monkeypatch):
    build = building._build
    monkeypatch.setattr(building, "_build", lambda *arguments: (time.sleep(0.3), build(*arguments))[1])
    device.kernels.clear()
    device.programs.clear()
    queue = Queue(device, "float32")

    def launch(name, group):
        kernel = queue.kernel("nonbond/scan.cl", name, GROUP=group)
        queue.launch(
            kernel, (2,), (group,), dict(n=4, values=queue.zeros(4, np.int32), totals=queue.zeros(2, np.int32))
        )
        device.queue.finish()

    assert queue.elapsed_seconds == 0
    for name, group in (("scan_blocks", 1), ("add_totals", 2), ("add_totals", 2)):
        launch(name, group)
    first, second, third = (event.profile for event in queue.events)
    assert second.start - first.end > 0.3e9
    assert queue.elapsed_seconds == pytest.approx((first.end - first.start + third.end - second.start) * 1e-9)


def test_building_of_bound_launches_does_not_count_either(device):
    """A runtime may build as late as at the launch: time before a kernel's first one is left out."""
    device.kernels.clear()
    device.programs.clear()
    bound, queue = [], Queue(device, "float32")
    for name, group in (("scan_blocks", 1), ("add_totals", 2), ("add_totals", 2)):
        arguments = dict(n=4, values=queue.zeros(4, np.int32), totals=queue.zeros(2, np.int32))
        bound.append(queue.bind("nonbond/scan.cl", name, (2, 1), (group, 1), arguments, GROUP=group))
    for firsts in ({0, 1}, set()):
        queue = Queue(device, "float32")
        for launch in bound:
            queue.launch_bound([launch], 1)
            device.queue.finish()
            time.sleep(0.1)
        assert queue.firsts == firsts
        first, second, third = (event.profile for event in queue.events)
        left_out = second.start - first.end if firsts else 0
        assert queue.elapsed_seconds == pytest.approx((third.end - first.start - left_out) * 1e-9)


def test_a_missing_macro_is_a_sentence(device):
    with pytest.raises(KernelBuildError, match=r"cl/solvent/pair.cl does not compile on .*(?s:.*)GROUP: work-items in"):
        get_kernel(device, "solvent/pair.cl", "born_sums_pair", "float32", GB_RADIUS_OBC=1)


def probe_widths(device, precision):
    return sorted({1, 4, device.vector_width(precision)})


def test_short_functions_are_exact_and_equal_their_portable_twin(device, precision, monkeypatch):
    shipped_source = building.source_of
    monkeypatch.setattr(building, "source_of", lambda file: PROBE if file == "probe.cl" else shipped_source(file))
    x = np.geomspace(1e-6, 1e8, 4096)
    for width in probe_widths(device, precision):
        for portable in (False, True):
            queue = Queue(device, precision, portable=portable)
            kernel = queue.kernel("probe.cl", "probe", width, PROBE=len(PROBE))
            inverses, roots, bare, powers, sums = (queue.empty(len(x)) for _ in range(5))
            arguments = dict(
                x=queue.upload(x), inverses=inverses, roots=roots, bare_roots=bare, powers=powers, sums=sums
            )
            queue.launch(kernel, (len(x) // width,), (1,), arguments)
            rounded = x.astype(precision).astype(float)
            np.testing.assert_allclose(queue.download(inverses, len(x)), 1 / rounded, rtol=TWIN[precision])
            for values in (roots, bare):
                np.testing.assert_allclose(queue.download(values, len(x)), 1 / np.sqrt(rounded), rtol=TWIN[precision])
            # An error of x's last digit is one of 2^x's by as much times x.
            small = rounded < 100
            found = queue.download(powers, len(x))
            np.testing.assert_allclose(found[small], 2 ** -rounded[small], rtol=30 * TWIN[precision])
            assert np.abs(found[~small]).max() < 1e-30
            by_vector = rounded.reshape(-1, width).sum(axis=1)
            np.testing.assert_allclose(queue.download(sums, len(x) // width), by_vector, rtol=TWIN[precision])


def test_soft_roots_are_as_good_as_they_say(device, monkeypatch):
    shipped_source = building.source_of
    monkeypatch.setattr(building, "source_of", lambda file: SOFT_PROBE if file == "probe.cl" else shipped_source(file))
    x = np.geomspace(1e-3, 1e6, 100_000).astype(np.float32)
    queue = Queue(device, "float32")
    roots = queue.empty(len(x))
    queue.launch(queue.kernel("probe.cl", "probe", SOFT=1), (len(x),), (1,), dict(x=queue.upload(x), roots=roots))
    np.testing.assert_allclose(queue.download(roots, len(x)), 1 / np.sqrt(x.astype(float)), rtol=SOFT_ROOT)


def test_tiled_is_the_same_with_portable_mathematics(device, precision, monkeypatch):
    atoms = random_atoms(500)
    plan = Solvent(atoms, variant="tiled", precision=precision, device=device)
    own = plan.evaluate().born_radii
    portably = []
    monkeypatch.setattr(queues, "Queue", partial(Queue, portable=True))
    get = lambda *args, **macros: portably.append(args[5]) or get_kernel(*args, **macros)  # noqa: E731
    monkeypatch.setattr(queues, "get_kernel", get)
    portable = Solvent(atoms, variant="tiled", precision=precision, device=device).evaluate().born_radii
    assert portably
    assert all(portably)
    assert (own != portable).any() or precision == "float64" or device.vendor == "NVIDIA"  # which compiles both alike
    np.testing.assert_allclose(own, portable, rtol=BORN_RADIUS[precision])


# What headers must be told, where 1 is not a fit answer.
TOLD = {"REAL_BITS": 32, "TILE": 8, "GROUP": 4, "BLOCK": 4, "BLOCK_X": 8, "BLOCK_Y": 2, "BLOCK_Z": 2, "VECTORS": 2}
FENCING = {"common/hand_over.clh", "common/tickets.clh", "energy/squares/born.clh"}  # of OpenCL C 3.0, but on NVIDIA
LAW = dict.fromkeys(("DISTANCE_DEPENDENT", "SCREENED", "CLAMPED", "CUTOFF", "FIELD", "RUN"), 1)  # all or none
HEADERS = sorted(str(path.relative_to(shipped("cl"))) for path in shipped("cl").rglob("*.clh"))


@pytest.mark.filterwarnings("ignore:Pre-build attribute")  # nothing is linked or run, which takes longer
@pytest.mark.parametrize("header", HEADERS)
def test_a_header_can_be_read_alone(header, monkeypatch):
    """Headers build with nothing but their own includes and the macros that they ask for."""
    shipped_source = building.source_of
    text = f'#include "{header}"\nkernel void probe(global int *x) {{ x[0] = 1; }}'
    monkeypatch.setattr(building, "source_of", lambda file: text if file == "probe.cl" else shipped_source(file))
    asked = re.findall(r"#ifndef (\w+)\n#error", building.expanded_source("probe.cl", building.source_of))
    macros = {name: TOLD.get(name, 1) for name in asked if name not in ("WIDTH", "REAL_BITS")}
    fences = header in FENCING
    if fences and not DEVICES[0].has_device_fence:
        pytest.skip("no fence over the device")
    macros |= {"FUSED": int(fences), "NATIVE_ATOMICS": 0, "SOFT": 0, "GB_RADIUS_OBC": 1}
    macros |= LAW | {"INNER_TERMS": int(header == "potmap/near.clh")}
    options = building._options(DEVICES[0], "float32", 1, False, macros)
    cl.Program(DEVICES[0].context, building.expanded_source("probe.cl", building.source_of)).compile(options)


@pytest.mark.parametrize("page", sorted(shipped("cl").rglob("README.md")), ids=lambda page: page.parent.name)
def test_readmes_are_short(page):
    """They say in which order to read; docs/kernels.md lists every file."""
    assert len(page.read_text().splitlines()) <= 20


def test_the_readme_of_all_kernels_names_every_folder():
    text = (shipped("cl") / "README.md").read_text()
    missing = [folder.name for folder in shipped("cl").iterdir() if folder.is_dir() and f"`{folder.name}`" not in text]
    assert not missing
