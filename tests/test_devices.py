"""Finding and choosing devices, and what a device is told to do."""

from __future__ import annotations

import gc
import os
import pickle
import re
import subprocess
import sys
import warnings
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyopencl as cl
import pytest

from pele_ocl import DeviceError, InputError, list_devices
from pele_ocl.opencl import Device, Queue, get_cpu_device, get_device, runtimes
from pele_ocl.opencl import device as devices
from pele_ocl.opencl.device import install_hint
from pele_ocl.opencl.kernel import Kernel, Signature, parameters_of, types_of
from pele_ocl.potmap.slabs import Scratch
from pele_ocl.solvent.layout import SolventLayout


@dataclass
class FakeHandle:
    """Attributes of an OpenCL device that Device asks for."""

    name: str = "Test GPU"
    kind: str = "GPU"
    platform_name: str = "NVIDIA CUDA"
    platform_version: str = "OpenCL 3.0 CUDA 13.0"
    extensions: str = "cl_khr_fp64"
    max_compute_units: int = 8
    native_vector_width_float: int = 16
    native_vector_width_double: int = 8
    max_work_group_size: int = 1000
    max_work_item_sizes: tuple[int, ...] = (1024, 1024, 64)
    global_mem_size: int = 2**30
    max_mem_alloc_size: int = 2**28
    max_clock_frequency: int = 1000
    host_unified_memory: int = 0
    compute_capability_major_nv: int = 9

    @property
    def type(self):
        return {"GPU": cl.device_type.GPU, "CPU": cl.device_type.CPU}[self.kind]

    @property
    def platform(self):
        return SimpleNamespace(name=self.platform_name, version=self.platform_version)


def pocl(version: str) -> FakeHandle:
    return FakeHandle("cpu", "CPU", "Portable Computing Language", f"OpenCL 3.0 PoCL {version}  Linux")


def intel() -> FakeHandle:
    return FakeHandle("cpu", "CPU", "Intel(R) OpenCL", "OpenCL 3.1 LINUX")


def rank(handle: FakeHandle) -> tuple:
    return Device(0, handle).rank


@pytest.fixture
def some_devices(monkeypatch):
    some = [intel(), pocl("3.0-rc2"), FakeHandle(extensions="")]
    found = tuple(Device(i, handle) for i, handle in enumerate(sorted(some, key=rank)))
    monkeypatch.setattr(devices, "list_devices", lambda: found)
    monkeypatch.delenv("PELE_OCL_DEVICE", raising=False)
    return found


def test_this_machine_has_a_device():
    assert list_devices()
    assert [device.index for device in list_devices()] == list(range(len(list_devices())))


def test_order_is_gpu_then_fastest_cpu_runtime_then_simulators():
    grind = FakeHandle("sim", "CPU", "Oclgrind", "OpenCL 1.2 (Oclgrind 21.10)")
    small, large = FakeHandle("small"), FakeHandle("large", max_compute_units=132)
    integrated = FakeHandle("integrated", max_compute_units=512, host_unified_memory=1)
    some = [grind, pocl("3.0-rc2"), pocl("3.1+debian"), intel(), integrated, small, large]
    order = sorted(some, key=rank)
    assert [some.index(h) for h in order] == [6, 5, 4, 3, 2, 1, 0]


def test_versions_are_numbers():
    """PoCL 10 is newer than PoCL 7, although it comes first in the alphabet; more figures are no other version."""
    versions = ["10.0", "7.0", "6.0+debian", "3.1", "3.0-rc2"]
    some = [pocl(version) for version in versions]
    assert sorted(reversed(some), key=rank) == some
    assert [Device(0, handle).runtime_version[:2] for handle in some] == [(10, 0), (7, 0), (6, 0), (3, 1), (3, 0)]
    assert rank(pocl("7.0")) == rank(pocl("7.0.0"))
    assert Device(0, pocl("10.0")).vector_width("float32") == 16


@pytest.mark.parametrize(
    ("choice", "index"),
    [(None, 0), (0, 0), ("1", 1), (2, 2), ("pocl", 2), ("NVIDIA", 0), ("test gpu", 0), ("Intel", 1)],
)
def test_choice_by_index_or_part_of_a_name(some_devices, choice, index):
    assert get_device(choice) is some_devices[index]


def test_titles_tell_devices_of_one_name_apart(monkeypatch):
    """A title is a choice, so that a pickle finds the device of the same platform."""
    found = tuple(Device(k, handle) for k, handle in enumerate([pocl("3.0"), intel(), pocl("3.1"), FakeHandle()]))
    monkeypatch.setattr(devices, "list_devices", lambda: found)
    assert len({device.name for device in found}) == 2
    for device in found:
        assert get_device(str(device)) is device
        assert get_device(str(device).upper()) is device
        assert pickle.loads(pickle.dumps(device)) is device
    with pytest.raises(DeviceError, match=r"no OpenCL device fits 'cpu \(PoCL 4.0\)'; the devices are 0: cpu"):
        get_device("cpu (PoCL 4.0)")


def test_devices_of_one_title_pickle_by_their_place(monkeypatch):
    found = tuple(Device(k, FakeHandle(global_mem_size=2**30 + k)) for k in range(3))
    monkeypatch.setattr(devices, "list_devices", lambda: found)
    pickles = [pickle.dumps(device) for device in found]
    assert [pickle.loads(of) for of in pickles] == list(found)
    monkeypatch.setattr(devices, "list_devices", lambda: found[:2])  # a machine with fewer
    assert [pickle.loads(of).index for of in pickles] == [0, 1, 1]
    monkeypatch.setattr(devices, "list_devices", lambda: (Device(0, intel()),))
    with pytest.raises(DeviceError, match=r"no OpenCL device fits 'Test GPU \(NVIDIA CUDA\)'; the devices are 0: cpu"):
        pickle.loads(pickles[0])


def test_a_number_may_be_part_of_a_name(monkeypatch):
    found = (Device(0, FakeHandle("Radeon RX 7900")), Device(1, FakeHandle("GeForce RTX 4090")))
    monkeypatch.setattr(devices, "list_devices", lambda: found)
    assert get_device("4090") is found[1]


def test_environment_variable_chooses(some_devices, monkeypatch):
    monkeypatch.setenv("PELE_OCL_DEVICE", "pocl")
    assert get_device() is some_devices[2]
    assert get_device("intel") is some_devices[1]


@pytest.mark.parametrize("choice", ["Radeon", 3, "17", "²", "4090"])
def test_bad_choice_lists_what_there_is(some_devices, choice):
    with pytest.raises(
        DeviceError, match=rf"no OpenCL device fits '{choice}'; the devices are 0: Test GPU \(NVIDIA CUDA\), 1: cpu"
    ):
        get_device(choice)


def test_no_device_says_what_to_install(monkeypatch):
    monkeypatch.setattr(devices, "list_devices", lambda: ())
    with pytest.raises(DeviceError) as refused:
        get_device()
    assert str(refused.value) == f"no OpenCL device found; {install_hint()}"


@pytest.mark.parametrize(
    ("system", "machine", "what"),
    [
        ("linux", "x86_64", "pip install 'pyopencl[pocl]'"),
        ("linux", "aarch64", "apt-get install pocl-opencl-icd"),
        ("win32", "AMD64", "pip install 'pele-ocl[intel]'"),
        ("win32", "ARM64", "OpenGL Compatibility Pack from the Microsoft Store"),
        ("darwin", "arm64", "conda install -c conda-forge pyopencl pocl"),
        ("darwin", "x86_64", "conda install -c conda-forge pyopencl pocl"),
        ("linux", "ppc64le", "portablecl.org"),
        ("freebsd14", "amd64", "portablecl.org"),
    ],
)
def test_what_to_install_goes_by_the_platform(system, machine, what):
    """PyOpenCL's extra `pocl` has a wheel for Linux on x86-64 alone, Intel's runtime for that and for Windows."""
    hint = install_hint(system, machine)
    assert what in hint
    assert ("pyopencl[pocl]" in hint) == ((system, machine) == ("linux", "x86_64"))


@pytest.mark.parametrize(
    ("system", "machine", "wanted"),
    [
        ("linux", "x86_64", True), ("win32", "AMD64", True), ("linux", "aarch64", False), ("win32", "ARM64", False),
        ("darwin", "x86_64", False), ("darwin", "arm64", False),
    ],
)  # fmt: skip
def test_the_extra_intel_is_asked_for_where_it_has_wheels(system, machine, wanted):
    requirements = pytest.importorskip("packaging.requirements")
    text = (Path(__file__).parent.parent / "pyproject.toml").read_text()
    lines = re.findall(r'^ +"(intel-[^"]+)",$', text, re.MULTILINE)
    here = {"sys_platform": system, "platform_machine": machine}
    asked = [each.name for each in map(requirements.Requirement, lines) if each.marker.evaluate(here)]
    assert sorted(asked) == (["intel-cmplr-lib-rt", "intel-opencl-rt"] if wanted else [])


class BrokenHandle(FakeHandle):
    """A device that answers with an error."""

    @property
    def available(self):
        raise cl.RuntimeError("clGetDeviceInfo failed: OUT_OF_HOST_MEMORY")


def refusing(status: int):
    """A function that raises PyOpenCL's error with this status."""

    def get_devices():
        raise cl.RuntimeError(SimpleNamespace(code=lambda: status, routine=lambda: "clGetDeviceIDs", what=lambda: ""))

    return get_devices


def test_a_broken_runtime_is_left_out_with_a_word(monkeypatch):
    good = FakeHandle()
    good.available = good.compiler_available = True
    there = [
        SimpleNamespace(name="Good", get_devices=lambda: [good, BrokenHandle()]),
        SimpleNamespace(name="Torn", get_devices=refusing(cl.status_code.OUT_OF_HOST_MEMORY)),
        SimpleNamespace(name="Empty", get_devices=refusing(cl.status_code.DEVICE_NOT_FOUND)),
    ]
    monkeypatch.setattr(devices, "find_platforms", lambda: there)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        found = devices.list_devices.__wrapped__()
    assert [device.handle for device in found] == [good]
    assert [each.category.__name__ for each in said] == ["DeviceWarning"] * 2
    device, runtime = (str(each.message) for each in said)
    assert device.startswith("an OpenCL device of the runtime 'Good' is left out, because it answers clGetDeviceInfo")
    assert runtime.startswith("an OpenCL runtime 'Torn' is left out, because it answers clGetDeviceIDs failed: OUT")


@pytest.mark.parametrize(("kind", "name"), [("CPU", "Intel(R) OpenCL"), ("GPU", "NVIDIA CUDA")])
def test_a_device_that_reports_no_clock(kind, name):
    """Intel's runtime reports 0 on some processors: a rate of 0 divides what goes by it."""
    silent, known = (Device(0, FakeHandle("it", kind, name, max_clock_frequency=megahertz)) for megahertz in (0, 2500))
    assert known.clock == 2.5e9
    assert 1e9 < silent.clock < 5e9
    assert silent.rank > rank(FakeHandle("large", "GPU", max_compute_units=132))


def test_a_map_chooses_its_method_without_a_clock(device, monkeypatch):
    """Maps of a peptide are chosen on a device that reports a clock of 0."""
    from pele_ocl import Grid, potmap, read
    from pele_ocl.common.installation import shipped

    class Silent:
        max_clock_frequency = 0

        def __getattr__(self, name):
            return getattr(device.handle, name)

    asked, clock = [], Device.clock.fget
    monkeypatch.setattr(Device, "clock", property(lambda self: asked.append(self) or clock(Device(0, Silent()))))
    atoms = read(shipped("data") / "structures" / "hexapeptide.pdb")
    found = potmap(atoms, Grid.around(atoms, 3, 2.1), method="auto", device=device)
    assert asked
    assert np.isfinite(found.map.values).all()


def test_float64_on_a_device_without_it(some_devices):
    with pytest.raises(
        DeviceError, match="Test GPU has no float64; choose `precision='float32'`, or choose `device='cpu'`"
    ):
        some_devices[0].require_precision("float64")


def test_sequential_goes_to_a_cpu(some_devices):
    assert get_cpu_device(some_devices[0]) is some_devices[1]
    assert get_cpu_device(some_devices[2]) is some_devices[2]


def test_memory_is_asked_for_before_it_is_used(some_devices):
    some_devices[0].require_memory(2**30, 2**28)
    with pytest.raises(DeviceError, match=r"needs 2048 MiB on Test GPU .* which has 1024 MiB"):
        some_devices[0].require_memory(2**31, 2**20)
    with pytest.raises(DeviceError, match="largest buffer 512 MiB"):
        some_devices[0].require_memory(2**29, 2**29)


def test_vector_widths():
    assert Device(0, FakeHandle()).vector_width("float32") == 1
    assert Device(0, intel()).vector_width("float32") == 16
    assert Device(0, intel()).vector_width("float64") == 8
    assert Device(0, pocl("3.0-rc2")).vector_width("float32") == 8  # its compiler crashes beyond 256 bits
    assert Device(0, pocl("3.0-rc2")).vector_width("float64") == 4
    assert Device(0, pocl("3.1+debian")).vector_width("float32") == 16


def test_largest_group_is_a_power_of_two():
    assert Device(0, FakeHandle()).largest_group == 512


def test_float_atomics_are_asked_for_by_precision(monkeypatch):
    """0b111 is load and store, addition, minimum and maximum in global memory; one precision may have less."""
    answers = {0x4231: 0b111, 0x4232: 0b101}
    monkeypatch.setattr(devices, "capabilities", lambda handle, query: answers[query])
    device = Device(0, FakeHandle(platform_name="Intel(R) OpenCL", extensions="cl_khr_fp64 cl_ext_float_atomics"))
    assert device.has_float_atomics("float32")
    assert not device.has_float_atomics("float64")
    with pytest.raises(DeviceError, match="no atomic addition of float64 numbers; choose `variant='atomic'`"):
        device.require_float_atomics("float64")
    without = Device(0, FakeHandle(platform_name="Intel(R) OpenCL"))
    assert not without.has_float_atomics("float32")


@pytest.mark.parametrize(("capability", "float64"), [(5, False), (6, True), (9, True)])
def test_float_atomics_of_nvidia_go_by_generation(capability, float64):
    device = Device(0, FakeHandle(compute_capability_major_nv=capability))
    assert device.generation == capability
    assert device.has_float_atomics("float32")
    assert device.has_float_atomics("float64") == float64


def test_capabilities_are_the_runtimes_own(device):
    """A query that PyOpenCL knows, too, has the same answer; one that no runtime knows has none."""
    known = cl.device_info.DOUBLE_FP_CONFIG
    assert devices.capabilities(device.handle, known) == device.handle.get_info(known)
    assert devices.capabilities(device.handle, 0x7FFF) == 0


def test_no_capabilities_without_a_loader_to_ask(device, monkeypatch):
    monkeypatch.setattr(devices, "find_loader", lambda: None)
    assert devices.capabilities(device.handle, cl.device_info.DOUBLE_FP_CONFIG) == 0


@pytest.mark.parametrize("kind", ["GPU", "CPU", "accelerator", "simulator"])
@pytest.mark.parametrize("width", [1, 2, 4, 8, 16])
@pytest.mark.parametrize("n_atoms", [1, 5000, 10**6])
def test_layouts_fit_their_tiles(kind, width, n_atoms):
    layout = SolventLayout.of(kind, width, n_atoms)
    assert layout.tile % (layout.width * layout.vectors) == 0
    for n_tiles in (1, 2, 15, 16, 17, 64, 65, 1000):
        n_chunks, tiles_per_chunk = layout.chunks(n_tiles)
        assert (n_chunks - 1) * tiles_per_chunk < n_tiles <= n_chunks * tiles_per_chunk
        assert n_chunks <= layout.most_chunks


# Runtimes that pip installed


def test_nothing_found_changes_nothing(monkeypatch):
    monkeypatch.delenv("OCL_ICD_VENDORS", raising=False)
    monkeypatch.setattr(runtimes, "_unnamed_runtimes", dict)
    with runtimes.announced_runtimes():
        assert "OCL_ICD_VENDORS" not in os.environ


def test_found_runtimes_stand_beside_the_systems(monkeypatch, tmp_path):
    (tmp_path / "mesa.icd").write_text("libMesaOpenCL.so.1\n")
    monkeypatch.delenv("OCL_ICD_VENDORS", raising=False)
    monkeypatch.setattr(runtimes, "SYSTEM_VENDORS", tmp_path)
    monkeypatch.setattr(runtimes, "_unnamed_runtimes", lambda: {"intel-pip.icd": "/venv/lib/libintelocl.so"})
    with runtimes.announced_runtimes():
        folder = Path(os.environ["OCL_ICD_VENDORS"])
        assert {icd.name: icd.read_text() for icd in folder.iterdir()} == {
            "mesa.icd": "libMesaOpenCL.so.1\n",
            "intel-pip.icd": "/venv/lib/libintelocl.so\n",
        }
    assert "OCL_ICD_VENDORS" not in os.environ
    assert not folder.exists()


def test_on_windows_intels_runtime_of_pip_is_named_beside_the_registry(monkeypatch, tmp_path):
    library = tmp_path / "Library" / "bin" / "intelocl64.dll"
    monkeypatch.setattr(runtimes.sys, "platform", "win32")
    monkeypatch.setattr(runtimes, "_pip_intel", {"intelocl64.dll": library}.get)
    monkeypatch.delenv("OCL_ICD_FILENAMES", raising=False)
    before = os.environ["PATH"]
    with runtimes.announced_runtimes():
        assert os.environ["OCL_ICD_FILENAMES"] == str(library)
        assert os.environ["PATH"].split(os.pathsep)[0] == str(library.parent)
    assert "OCL_ICD_FILENAMES" not in os.environ
    assert os.environ["PATH"] == before
    monkeypatch.setenv("OCL_ICD_FILENAMES", "mine.dll")
    with runtimes.announced_runtimes():
        assert os.environ["OCL_ICD_FILENAMES"] == "mine.dll"


def test_the_users_own_choice_stands(monkeypatch):
    monkeypatch.setenv("OCL_ICD_VENDORS", "/opt/vendors")
    with runtimes.announced_runtimes():
        assert os.environ["OCL_ICD_VENDORS"] == "/opt/vendors"


def test_no_runtime_at_all_is_no_crash():
    code = "from pele_ocl.opencl.device import list_devices; print(len(list_devices()))"
    env = os.environ | {"OCL_ICD_VENDORS": "/nowhere"}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "0"


def test_a_device_counts_the_bytes_of_its_buffers(device):
    queue = Queue(device, "float32")
    device.buffers.start()
    before = device.buffers.now
    kept = queue.empty(1000)
    dropped = queue.upload(np.zeros(500))
    assert device.buffers.now - before == 4000 + 2000
    del dropped
    queue.zeros(250)
    assert (device.buffers.now - before, device.buffers.most - before) == (4000, 6000)
    del kept
    assert device.buffers.now == before


def test_spare_buffers_are_not_in_use_and_freed_when_memory_is_short(device, monkeypatch):
    queue, spare = Queue(device, "float32"), device.spare_buffers
    for kept in (device.cached, device.tables, device.staging, spare):  # which make room when memory is short
        kept.clear()
    gc.collect()
    before = device.buffers.now
    scratch = Scratch.kept(device, "test")
    made = scratch(queue, "a", 1000).int_ptr
    scratch(queue, "b", 10)
    scratch(queue, "b", 2000)
    del scratch
    assert (device.buffers.now - before, spare.now) == (0, 4000 + 8000)
    again = Scratch.kept(device, "test")
    assert again(queue, "a", 900).int_ptr == made
    assert (device.buffers.now - before, spare.now) == (4000, 8000), "whole buffers are in use or unused"
    again(queue, "a", 1000)
    assert device.buffers.now - before == 4000
    with monkeypatch.context() as short:
        short.setattr(Device, "memory", device.held_bytes + 1000)
        device.require_memory(5000, 1000)
    assert not spare.now, "also with a scratch that could have reused them"
    del again
    assert spare.now == 4000
    small = Scratch.kept(device, "test")
    small(queue, "a", 100)
    assert device.buffers.now - before == 4000
    del small
    assert not spare.now, "it was much larger than needed"
    spare.leave("test", {"c": queue.empty(5000)}, 30_000)
    assert spare.now == 20_000
    spare.leave("test", {"c": queue.empty(5000)}, 10_000)
    assert spare.now == 20_000
    spare.clear()


def test_memory_of_deleted_buffers_is_reused_in_the_queue(device, monkeypatch):
    before = device.buffers.now
    with Queue(device, "float32").independent_queue(reuses_memory=True) as queue:
        first, second = queue.empty(1000), queue.zeros(1000)
        assert first.int_ptr != second.int_ptr
        np.testing.assert_array_equal(queue.download(second, 1000), 0)
        where = second.int_ptr
        del second
        longer = queue.empty(1020, np.int32)
        assert (longer.int_ptr, longer.dtype) == (where, np.int32)
        assert longer.size >= 4 * 1020
        assert queue.empty(1000).int_ptr not in (where, first.int_ptr), "in use"
        assert queue.empty(500).int_ptr not in (where, first.int_ptr), "far too long"
        held = device.buffers.now - before
        with monkeypatch.context() as short:
            short.setattr(Device, "memory", device.held_bytes + 1000)
            device.require_memory(5000, 1000)
        assert device.buffers.now - before < held, "unused memory is freed if memory is short"
        assert queue.zeros(1000).int_ptr not in (longer.int_ptr, first.int_ptr)
    assert not device.pools
    del first, longer, queue
    assert device.buffers.now == before


def test_memory_in_reference_cycles_is_freed_if_memory_is_short(device, monkeypatch):
    """Also that of queues and computations that keep it for reuse."""
    gc.collect()
    before = device.held_bytes
    with Queue(device, "float32").independent_queue(reuses_memory=True) as queue:
        cycle = [queue.empty(5000), Scratch.kept(device, "test")]
        cycle[1](queue.new_queue(True), "a", 5000)
        cycle.append(cycle)
        with monkeypatch.context() as short:
            short.setattr(Device, "memory", device.held_bytes + 1000)
            del cycle
            device.require_memory(5000, 1000)
        assert device.held_bytes <= before


def test_more_pieces_than_before_are_moved(device):
    """Places that need a larger buffer, for a launch that was already bound."""
    queue, n, size = Queue(device, "float32"), 3000, 8
    values = np.arange(n, dtype=np.uint64)
    source, target = queue.empty(n, np.uint64), queue.zeros(n, np.uint64)
    queue.write(source, values)
    for count in (2, n, 3):
        queue.clear(target)
        begin = (np.arange(count, dtype=np.uint64) * np.uint64(size))[::-1].copy()
        queue.move_pieces(source, target, begin, begin[::-1].copy(), np.full(count, size))
        np.testing.assert_array_equal(queue.download(target, count, np.uint64), values[:count][::-1])


def test_a_part_keeps_the_memory_of_its_buffer_in_use(device):
    with Queue(device, "float32").independent_queue(reuses_memory=True) as queue:
        whole = queue.zeros(1000)
        where, part = whole.int_ptr, queue.part(whole, 0, 400)
        del whole
        assert queue.empty(1000).int_ptr != where
        np.testing.assert_array_equal(queue.download(part, 100), 0)
        del part
        assert queue.empty(1000).int_ptr == where


def test_values_go_through_reused_memory_and_parts(device):
    """As through other buffers, by copies, since only whole buffers are mapped."""
    with Queue(device, "float32").independent_queue(reuses_memory=True) as queue:
        values, found = np.arange(10, dtype=np.float32)[None], np.empty(10, np.float32)
        whole = queue.empty(1000)
        for buffer in (whole, queue.part(whole, 0, 40)):
            queue.write_launch_read(buffer, values, [], buffer, found)
            queue.finish()
            np.testing.assert_array_equal(found, values[0])


def test_memory_is_freed_where_several_queues_use_it(device):
    before = device.buffers.now
    with Queue(device, "float32").independent_queue() as queue:
        assert not device.pools
        buffer = queue.empty(1000)
        assert device.buffers.now == before + buffer.size
        del buffer
        assert device.buffers.now == before


@pytest.mark.parametrize("kind", ["CPU", "GPU"])
def test_arrays_in_fortran_order_arrive_in_c_order(device, kind, monkeypatch):
    queue, values = Queue(device, "float32"), np.arange(6.0, dtype=np.float32).reshape(2, 3)
    turned = np.asfortranarray(values)
    with monkeypatch.context() as other:
        other.setattr(Device, "kind", kind)
        buffers = [queue.upload(turned), queue.send(turned), queue.empty(6), queue.empty(6)]
    queue.write(buffers[2], turned)
    queue.enqueue_write(buffers[3], turned)
    for buffer in buffers:
        np.testing.assert_array_equal(queue.download(buffer, 6), values.ravel())


NUMBERS = dict(a=-5, b=250, c=-30_000, d=60_000, e=-(2**31), f=2**32 - 1, g=-(2**62) - 1, h=2**63 + 1, i=0.1)
NUMBERS_KERNEL = """
kernel void numbers(
    char a, uchar b, short c, ushort d, int e, uint f, long g, ulong h, float i, int4 j,
    global long *to, global float *i_to)
{
    to[0] = a, to[1] = b, to[2] = c, to[3] = d, to[4] = e, to[5] = f, to[6] = g, to[7] = (long)(h >> 1), to[8] = j.w;
    *i_to = i;
}
"""


@pytest.mark.filterwarnings("ignore::pyopencl.CompilerWarning")  # NVIDIA's compiler has a remark
def test_numbers_of_all_types_arrive_in_kernels(device):
    queue = Queue(device, "float32")
    program = cl.Program(device.context, NUMBERS_KERNEL).build(["-cl-kernel-arg-info"])
    signature = Signature("numbers", parameters_of(program, "numbers"), types_of("float32"))
    kernel = Kernel(program, "numbers", device.handle, device.vendor, signature)
    for sign in (1, -1):  # an object of a kernel is used again
        to, i_to = queue.zeros(9, np.int64), queue.zeros(1)
        numbers = NUMBERS | dict(a=sign * NUMBERS["a"], i=sign * NUMBERS["i"])
        queue.launch(kernel, (1,), (1,), {**numbers, "j": queue.int4(1, 2, 3, sign * 4), "to": to, "i_to": i_to})
        *found, half, last = queue.download(to, 9, np.int64).tolist()
        assert (found, half, last) == ([numbers[name] for name in "abcdefg"], 2**62, sign * 4)
        assert queue.download(i_to, 1) == np.float32(sign * 0.1)
    with pytest.raises(InputError, match="a of kernel numbers is a char, not 300"):
        queue.launch(kernel, (1,), (1,), {**NUMBERS, "a": 300, "j": queue.int4(1), "to": to, "i_to": i_to})
