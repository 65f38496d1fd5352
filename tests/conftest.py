"""Fixtures: the devices to test on, the systems with their references."""

from __future__ import annotations

import gc
import json
import math
import os
import re
import sys
from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

# The tests start hundreds of programs, and each would compile all modules that it imports where the environment forbids
# Python to keep their bytecode. Pytest's own folder has it then.
if sys.dont_write_bytecode:
    sys.pycache_prefix = str(Path(__file__).resolve().parents[1] / ".pytest_cache" / "bytecode")
    sys.dont_write_bytecode = False
    os.environ["PYTHONPYCACHEPREFIX"] = sys.pycache_prefix
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# Pytest's processes fill the cores by themselves; threads of NumPy's BLAS would take their time from them.
if "OPENBLAS_NUM_THREADS" not in os.environ:
    os.environ["OPENBLAS_NUM_THREADS"] = "1"

import numpy as np
import pyopencl as cl
import pytest

from pele_ocl import Atoms, list_devices
from pele_ocl.atoms import Labels
from pele_ocl.common.installation import copy_installed
from pele_ocl.common.variant import PRECISIONS
from pele_ocl.opencl import Device, building, get_device, notices
from pele_ocl.pairs import PairList

DATA = Path(__file__).parent / "data"
sys.path.append(str(Path(__file__).parent / "benchmarks"))

if _copy := copy_installed(Path(__file__).resolve().parents[1]):
    pytest.exit(_copy, returncode=4)

notices.COMPILED_SECONDS = math.inf  # that kernels are compiled is told to users, and to the test of that alone
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # JAX would take three quarters of a GPU's memory
os.environ.setdefault("PELE_OCL_NAME_PROCESSOR", "1")  # so that tests run on processors newer than PoCL's compiler
os.environ.setdefault("OPENMM_DEFAULT_PLATFORM", "CPU")  # its OpenCL platform crashes with some runtimes for CPUs
os.environ["PELE_OCL_TUNING"] = "off"  # what was measured for the user's own work decides nothing here


WANTED = os.environ.get("PELE_OCL_TEST_DEVICES", "wheel").lower()

# Kernels for which a CPU's compiler takes long: those of GPUs, 5 to 30 seconds with its optimiser and 3 without, and
# in float64 those whose time grows with the atoms alone, so that the optimiser takes longer than it saves. The tests of
# named devices, and those with the slow cases, have every kernel as users have it.
COMPILED_PLAINLY = ("energy/squares/",)
PLAIN_IN_FLOAT64 = ("dynamics/", "energy/finish.cl", "energy/radii.cl", "energy/terms/", "explore/", "minimize/")

# Files of tests that run many kernels a few times, of small molecules: built with the optimiser, an energy takes 4
# seconds until its first value, without it 2, and gives the same bits.
FEW_EVALUATIONS = {
    f"test_{name}.py"
    for name in (
        "amber_samples", "bonded", "energy", "energy_gradient", "energy_terms", "energy_wide", "gb_necks", "gb_radius",
        "interop_fields", "interop_files", "interop_openmm", "like_amber", "lj_pairs", "openmm_reference", "sgb",
        "surface", "virtual_sites",
    )
}  # fmt: skip


# What PoCL says of vectors wider than the device's own, which tests alone ask for.
ABOUT_WIDTH = "changes the ABI"


def build_plainly(build: Callable[..., Any]) -> Callable[..., Any]:
    """building._build, without the optimiser for COMPILED_PLAINLY, PLAIN_IN_FLOAT64 and FEW_EVALUATIONS."""

    def built(device: Device, file: str, source: str, options: list[str]) -> Any:
        files = COMPILED_PLAINLY + PLAIN_IN_FLOAT64 * ("-DREAL_BITS=64" in options)
        running = Path(os.environ.get("PYTEST_CURRENT_TEST", "").partition("::")[0]).name
        is_plain = file.startswith(files) or running in FEW_EVALUATIONS
        return build(device, file, source, [*options, "-cl-opt-disable"] if is_plain else options)

    return built


def build_in_silence(build: Callable[..., Any]) -> Callable[..., Any]:
    """building._build, which fails where PoCL warns, as it then prints a line on the user's terminal."""

    def built(device: Device, file: str, source: str, options: list[str]) -> Any:
        program = build(device, file, source, options)
        if device.vendor == "POCL":
            lines = program.handle.get_build_info(device.handle, cl.program_build_info.LOG).splitlines()
            warned = [line for line in lines if "warning:" in line and ABOUT_WIDTH not in line]
            assert not warned, f"cl/{file} with {' '.join(options)}: {warned[0]}"
        return program

    return built


def chosen_devices() -> list[Device]:
    """List the devices that PELE_OCL_TEST_DEVICES names: `wheel`, the PoCL that comes with the package; `all`; or parts
    of names.
    """
    devices = [device for device in list_devices() if device.kind != "simulator"]
    if WANTED == "all":
        return devices
    if WANTED == "wheel":
        return [d for d in devices if d.vendor == "POCL"][-1:] or devices[:1]
    return [d for d in devices if any(part in f"{d} {d.platform} {d.version}".lower() for part in WANTED.split(","))]


DEVICES = chosen_devices()

# Files and tests that take longest, most of them in processes of their own.
LONG = (
    "test_oclgrind.py", "test_site.py", "test_docs_extend.py", "test_every_command.py", "test_package.py",
    "test_course.py::test_hand_ins_are_graded_in_a_table", "test_extend_kernel.py",
    "test_screen.py::test_workers_give_the_same", "test_interrupts.py",
    "test_screen.py::test_good_molecules_do_not_notice_hostile_ones",
)  # fmt: skip

# Cases whose kernels a CPU's compiler takes ten seconds and more for. `make test-all` has them, and so have GPUs; the
# same code runs in float32, or under oclgrind.
COMPILED_LONG = re.compile(
    r"squares.*float64|float64.*squares|test_bonded.*squares-\(128, 1, 0\)|test_gb_necks.*squares-gbn2-float32"
    r"|openmm_energy_and_forces.*src3-squares|groups of three tiles|gbn within 20 A|every_choice.*solvent-GPU"
    r"|chosen\[squares\]"
    r"|test_(surface|energy_terms|gb_necks|solvent_model|energy_gradient)\.py.*squares|test_solvent_tree.*pocl\d-groups"
    r"|test_groups_of_several_devices|test_terms_alone_and_in_batches.*float64|test_devices_of_small_groups.*-1\]"
    r"|keeps_to_the_accuracy\[pocl\d-(src3|line)\]|test_rows_where_groups_must_be_small|net_torque.*squares"
    r"|test_every_variant_takes_radii_of_the_tree.*squares|test_chosen_terms_are_the_whole.*squares"
)


def pytest_configure(config: pytest.Config) -> None:
    if config.option.markexpr and WANTED == "wheel":
        building._build = build_plainly(building._build)
    building._build = build_in_silence(building._build)


@pytest.hookimpl(tryfirst=True)
def pytest_itemcollected(item: pytest.Item) -> None:
    """On CPUs these cases are slow ones."""
    if COMPILED_LONG.search(item.nodeid) and all(device.kind == "CPU" for device in DEVICES):
        item.add_marker("slow")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Long tests come first, so that none of them is left to one process when the others are done.

    Each of xdist's processes begins with a share of consecutive tests, and each share with a part of the long ones.
    """
    rank = {
        item: next((k for k, name in enumerate(LONG) if item.nodeid.removeprefix("tests/").startswith(name)), None)
        for item in items
    }
    others = iter([item for item in items if rank[item] is None])
    long = sorted((item for item in items if rank[item] is not None), key=rank.__getitem__)
    n_items, n_shares = len(items), getattr(config, "workerinput", {}).get("workercount", 1)
    items.clear()
    for k in range(n_shares):
        size, own = (n_items - len(items)) // (n_shares - k), [item for item in long if rank[item] % n_shares == k]
        items += [*own, *islice(others, max(size - len(own), 0))]
    items += others


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Leave what is collected, which stays, out of Python's search for garbage, which would go through it often."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.fixture(scope="session", params=DEVICES, ids=lambda d: d.vendor.lower() + str(d.index))
def device(request: pytest.FixtureRequest) -> Device:
    return request.param


@pytest.fixture
def launches_of_gpus(pytestconfig: pytest.Config) -> Callable[[], AbstractContextManager[None]]:
    """Return a context for launches as on GPUs. Its kernels are built without PoCL's optimiser, which is slow for them.

    The optimiser is used if devices are named or slow cases are selected.
    """
    return partial(built_for_launches_of_gpus, bool(pytestconfig.option.markexpr) and WANTED == "wheel")


@pytest.fixture(autouse=True, scope="module")
def kernels_of_few_evaluations(request: pytest.FixtureRequest) -> Iterator[None]:
    """Keep kernels of FEW_EVALUATIONS, built without the optimiser, from the files that run later."""
    is_plain = request.config.option.markexpr and WANTED == "wheel" and request.path.name in FEW_EVALUATIONS
    with kept_apart(OF_FEW_EVALUATIONS) if is_plain else nullcontext():
        yield


Built = dict[tuple[Device, str], dict[Any, Any]]  # programs and kernels, by their keys
OF_FEW_EVALUATIONS: Built = {}


@contextmanager
def kept_apart(built: Built) -> Iterator[None]:
    """Within the block, use programs and kernels of earlier blocks too; those built in it are removed at its end."""
    stores = {(device, name): getattr(device, name) for device in DEVICES for name in ("programs", "kernels")}
    before = {place: set(store) for place, store in stores.items()}
    for place, store in stores.items():
        store |= {key: one for key, one in built.get(place, {}).items() if key not in store}
    try:
        yield
    finally:
        for place, store in stores.items():
            built[place] = {key: store.pop(key) for key in set(store) - before[place]}


@contextmanager
def built_for_launches_of_gpus(plainly: bool) -> Iterator[None]:
    """Use separate kernels within the block, built without the optimiser if `plainly`."""
    device, build = get_device(), building._build
    if not plainly:
        yield
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(building, "_build", lambda *given: build(*given[:3], [*given[3], "-cl-opt-disable"]))
        kept = dict(device.programs), dict(device.kernels)
        for each in (device.programs, device.kernels):
            each.clear()
        try:
            yield
        finally:
            for each, before in zip((device.programs, device.kernels), kept, strict=True):
                each.clear()
                each.update(before)


def require(device: Device, precision: str) -> None:
    """Skip the test where the device lacks the precision."""
    if precision == "float64" and not device.has_float64:
        pytest.skip(f"{device} has no float64")


@pytest.fixture(scope="session", params=PRECISIONS)
def precision(request: pytest.FixtureRequest, device: Device) -> str:
    require(device, request.param)
    return request.param


def has_native_atomics(device: Device) -> bool:
    """Tell if the device has the variant atomic-native in every precision."""
    return all(device.has_float_atomics(precision) for precision in PRECISIONS)


@dataclass(frozen=True)
class System:
    """A structure with the values that other programs computed for it; tests/data/README.md."""

    name: str
    atoms: Atoms
    arrays: dict[str, np.ndarray]
    energies: dict[str, float]


def load_system(name: str) -> System:
    with np.load(DATA / f"{name}.npz") as file:
        arrays = dict(file)
    atoms = Atoms(
        positions=arrays["coordinates"],
        charges=arrays["charge"],
        lj_sigma=arrays["sigma"],
        lj_epsilon=arrays["epsilon"],
        gb_radii=arrays["obc_radius"],
        gb_scales=arrays["obc_scale"],
        bonds=arrays["bonds"],
    )
    return System(name, atoms, arrays, json.loads((DATA / f"{name}.json").read_text()))


@pytest.fixture(scope="session")
def system(request: pytest.FixtureRequest) -> System:
    """Parametrised indirectly with a name."""
    return load_system(request.param)


def random_atoms(n: int, seed: int = 0, density: float = 0.1) -> Atoms:
    """n atoms at a protein's density (1/A^3), none closer than about 0.9 A, with parameters of every kind."""
    rng = np.random.default_rng(seed)
    edge = int(np.ceil(n ** (1 / 3)))
    step = density ** (-1 / 3)
    corners = np.stack(np.meshgrid(*[np.arange(edge)] * 3), axis=-1).reshape(-1, 3)
    positions = step * corners[rng.permutation(len(corners))[:n]] + rng.uniform(-0.3, 0.3, (n, 3)) * step
    return Atoms(
        positions=positions,
        charges=rng.normal(0, 0.3, n),
        gb_radii=rng.uniform(1.0, 2.1, n),
        gb_scales=rng.uniform(0.7, 0.96, n),
        lj_sigma=rng.uniform(0.8, 2.0, n),
        lj_epsilon=rng.uniform(0.01, 0.2, n),
    )


def labels_of_elements(elements: list[str]) -> Labels:
    """Labels of atoms of one residue that are nothing but elements."""
    n, blank, numbers = len(elements), np.array([""] * len(elements)), np.zeros(len(elements), int)
    return Labels(np.array(elements), np.array(elements), np.array(["MOL"] * n), numbers, blank, blank, numbers)


def random_pairs(n_atoms: int, n_pairs: int, seed: int = 0) -> PairList:
    """n_pairs different pairs in any order, a fifth of them 1-4, with own values of their own."""
    rng = np.random.default_rng(seed)
    low, high = np.triu_indices(n_atoms, 1)
    chosen = rng.choice(len(low), n_pairs, replace=False)
    first, second = low[chosen], high[chosen]
    exchange = rng.random(n_pairs) < 0.5
    return PairList(
        n_atoms,
        np.where(exchange, second, first),
        np.where(exchange, first, second),
        one_four=rng.random(n_pairs) < 0.2,
        sigma2=rng.uniform(0.7, 4.0, n_pairs),
        charge_products=rng.normal(0, 0.1, n_pairs),
    )


def without(pairs: PairList, *names: str) -> PairList:
    """Take some of one_four, sigma2 and charge_products from the list."""
    return replace(pairs, labels=None, **dict.fromkeys(names))
