"""Devices: what one is asked once, what it refuses, what its memory holds, and what a fork leaves."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyopencl as cl
import pytest
from conftest import DEVICES, random_atoms

from pele_ocl import DeviceError, Energy, KernelBuildError, Solvent
from pele_ocl.opencl import Device, Queue, building
from pele_ocl.opencl.building import GroupTooLargeError, is_about_the_group

ROOT = Path(__file__).parent.parent
LIMIT = 180  # seconds after which a process hangs; others may build kernels meanwhile
PROBE = """
#include "common/real.clh"
{}
kernel void probe(global const real *x, global real *y) {{
    y[get_global_id(0)] = 2 * x[get_global_id(0)];
}}
"""


@pytest.fixture
def fresh(device) -> Device:
    """Return the device with nothing on it: no programs, no buffers."""
    return Device(device.index, device.handle)


@pytest.fixture
def builds(monkeypatch) -> list[object]:
    """List the compilers' runs."""
    made: list[object] = []
    build = cl.Program.build

    def counted(program, *arguments, **options):
        made.append(program)
        return build(program, *arguments, **options)

    monkeypatch.setattr(cl.Program, "build", counted)
    return made


def probe(monkeypatch, more: str = "") -> None:
    """Have a kernel file probe.cl, with more lines."""
    shipped_source, text = building.source_of, PROBE.format(more)
    monkeypatch.setattr(building, "source_of", lambda file: text if file == "probe.cl" else shipped_source(file))


# Building


def test_a_typo_is_built_once(fresh, monkeypatch, builds):
    """No smaller group mends it."""
    probe(monkeypatch, "int f(void) { return undeclared; }")
    with pytest.raises(KernelBuildError, match=r"cl/probe.cl does not compile on (?s:.*)undeclared") as caught:
        Queue(fresh, "float32").group_kernel("probe.cl", "probe", local_reals=1)
    assert not isinstance(caught.value, GroupTooLargeError)
    assert len(builds) == 1


def test_a_group_that_is_too_large_is_halved(fresh, monkeypatch, builds):
    """A compiler's own word, here the probe's line, tells it."""
    limit = fresh.largest_group // 4
    probe(monkeypatch, f"#if GROUP > {limit}\n#error too many resources requested\n#endif")
    _, group = Queue(fresh, "float32").group_kernel("probe.cl", "probe", local_reals=1)
    assert group == limit
    assert len(builds) == 3


def test_a_group_of_one_that_is_too_large_is_an_error(fresh, monkeypatch, builds):
    probe(monkeypatch, "#error too many resources requested")
    with pytest.raises(GroupTooLargeError):
        Queue(fresh, "float32").group_kernel("probe.cl", "probe", local_reals=1, most=4)
    assert len(builds) == 3


def opencl_error(code: int, text: str = "clBuildProgram failed") -> cl.Error:
    return cl.RuntimeError(cl._cl._ErrorRecord(msg=text, code=code, routine="clBuildProgram"))


@pytest.mark.parametrize(
    ("code", "text", "expected"),
    [
        ("OUT_OF_RESOURCES", "", True),
        ("INVALID_WORK_GROUP_SIZE", "", True),
        ("BUILD_PROGRAM_FAILURE", "ptxas error   : Entry function 'a' uses too much shared data (0x1 bytes)", True),
        ("BUILD_PROGRAM_FAILURE", "error: use of undeclared identifier 'group_size'", False),
        ("BUILD_PROGRAM_FAILURE", "warning: local memory of the work-group size is large", False),
        ("OUT_OF_HOST_MEMORY", "", False),
    ],
)
def test_errors_that_a_smaller_group_may_mend(code, text, expected):
    assert is_about_the_group(opencl_error(getattr(cl.status_code, code), text)) is expected


# Refusals


class Refusing:
    """Stand-in for a queue, an event or a kernel object that refuses everything."""

    def __getattr__(self, name):
        def refuse(*arguments):
            raise opencl_error(cl.status_code.OUT_OF_RESOURCES, f"{name} failed")

        return refuse


def test_waits_that_fail_are_sentences(fresh, monkeypatch):
    queue = Queue(fresh, "float32")
    with pytest.raises(DeviceError, match="reports an error"):
        queue.wait(Refusing())
    monkeypatch.setattr(Queue, "command_queue", Refusing())
    for wait in (queue.finish, queue.submit):
        with pytest.raises(DeviceError, match="reports an error"):
            wait()


def test_arguments_that_fail_are_sentences(fresh, monkeypatch):
    probe(monkeypatch)
    queue = Queue(fresh, "float32")
    kernel = queue.kernel("probe.cl", "probe")
    x, _ = queue.zeros(4), kernel.most_items
    for source in ("borrow", "lend"):
        monkeypatch.setattr(kernel, source, lambda *owner: Refusing())
    for launch in (queue.launch, queue.bind_kernel):
        with pytest.raises(DeviceError, match="reports an error"):
            launch(kernel, (4, 1), (1, 1), dict(x=x, y=x))


def test_memory_that_is_not_there_is_a_sentence(fresh, monkeypatch):
    queue = Queue(fresh, "float32")

    def lacking(*arguments, **options):
        raise cl.MemoryError(cl._cl._ErrorRecord(msg="", code=cl.status_code.MEM_OBJECT_ALLOCATION_FAILURE, routine=""))

    monkeypatch.setattr("pele_ocl.opencl.queue.Buffer", lacking)
    with pytest.raises(DeviceError, match="has not enough free memory for this; choose another device"):
        queue.empty(4)


# Memory


def limit_memory(monkeypatch, size: int) -> None:
    monkeypatch.setattr(Device, "memory", property(lambda self: size))


@pytest.mark.parametrize("kind", [Solvent, Energy])
def test_plans_that_fit_singly_and_not_together(fresh, monkeypatch, kind):
    atoms, others = random_atoms(600), random_atoms(610, seed=1)
    first = kind(atoms, device=fresh)
    expected = first.evaluate()
    room = fresh.held_bytes
    assert room > 0
    limit_memory(monkeypatch, room * 3 // 2)
    with pytest.raises(
        DeviceError, match=r"this needs .* in use \(.*; delete plans that are no longer needed, or"
    ) as told:
        kind(others, device=fresh).evaluate()
    assert "\n" not in str(told.value)
    del told  # its frames have the plan that did not fit, and what it had of the memory
    again = first.evaluate()
    np.testing.assert_array_equal(again.born_radii, expected.born_radii)
    assert again.total == expected.total
    del first
    assert np.isfinite(kind(others, device=fresh).evaluate().total)


def test_a_plan_that_nobody_can_reach_gives_way(fresh, monkeypatch):
    """Although a circle of references holds it until Python looks for such circles."""
    plan = Solvent(random_atoms(600), device=fresh)
    plan.evaluate()
    limit_memory(monkeypatch, fresh.held_bytes * 3 // 2)
    vars(plan)["itself"] = plan
    gc.disable()
    try:
        del plan
        Solvent(random_atoms(610, seed=1), device=fresh).evaluate()
    finally:
        gc.enable()


def test_mapped_memory_of_the_host_counts(fresh, monkeypatch):
    queue, before = Queue(fresh, "float32"), fresh.held_bytes
    array = queue.host_array((1000, 10))
    assert fresh.mapped.now == 40_000
    assert fresh.held_bytes - before == 40_000
    limit_memory(monkeypatch, before + 60_000)
    for refused in (lambda: queue.host_array((1000, 10)), lambda: queue.empty(10_000)):
        with pytest.raises(DeviceError, match="in use"):
            refused()
    part = array[:5]
    del array
    assert fresh.mapped.now == 40_000  # of which a part is still in use
    del part
    assert fresh.mapped.now == 0
    assert queue.empty(10_000).size == 40_000


# Forks


FORKS = """
import os, signal, sys, time, traceback
sys.path[:0] = [{tests!r}, {root!r}]
import numpy as np
import pele_ocl
from pele_ocl import Atoms, DeviceError, Energy, Solvent

def atoms():
    grid = np.stack(np.meshgrid(*[np.arange(4.0)] * 3), axis=-1).reshape(-1, 3) * 2.2
    n = len(grid)
    return Atoms(grid, np.linspace(-0.3, 0.3, n), gb_radii=np.full(n, 1.5), gb_scales=np.full(n, 0.8),
                 lj_sigma=np.full(n, 2.0), lj_epsilon=np.full(n, 0.1))

def in_a_child(function):
    child = os.fork()
    if not child:
        signal.alarm({limit} // 3)  # ends a child that hangs, which would keep its parent's output open
        code = 1
        try:
            function()
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status)

def refused(function):
    start = time.monotonic()
    try:
        function()
    except DeviceError as error:
        assert "cannot be used after a fork" in str(error) and chr(10) not in str(error), error
        assert time.monotonic() - start < 5
    else:
        raise AssertionError("not refused")

def evaluated():
    return Solvent(atoms(), device={device}).evaluate().total

def in_the_child():
    refused(solvent.evaluate)
    refused(energy.evaluate)
    refused(lambda: energy.evaluate_batch(np.stack([atoms().positions] * 8)))
    refused(lambda: solvent.repeat(2))
    refused(evaluated)
    refused(lambda: pele_ocl.potmap(atoms(), pele_ocl.Grid.around(atoms(), 4, 2.0), device={device}))
    assert len(pele_ocl.list_devices()) > {device}

assert in_a_child(evaluated) == 0, "unused before the fork"
solvent, energy = Solvent(atoms(), device={device}), Energy(atoms(), device={device})
before = solvent.evaluate().total, energy.evaluate().total
assert in_a_child(in_the_child) == 0, "used before the fork"
assert (solvent.evaluate().total, energy.evaluate().total) == before, "in the parent, after the fork"
print("as promised")
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_child_after_a_fork_is_told_at_once():
    """PoCL hung for ever. If the parent has not used OpenCL, a child may."""
    code = FORKS.format(tests=str(ROOT / "tests"), root=str(ROOT), device=DEVICES[0].index, limit=LIMIT)
    done = subprocess.run(
        [sys.executable, "-W", "ignore:This process:DeprecationWarning", "-c", code],
        capture_output=True,
        text=True,
        timeout=LIMIT,
    )
    assert done.stdout == "as promised\n", done.stderr
