"""Kernels of the ladders by name, with a small run of each to determine how it is built."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from ..atoms import Atoms
from ..common.errors import DeviceError
from ..common.installation import shipped
from ..common.variant import Variant
from ..energy import VARIANTS as ENERGY
from ..energy import Energy
from ..grid import Grid
from ..ladder import FFT_VARIANTS, NONBOND, POTMAP, SOLVENT, NonbondLadder, SolventLadder
from ..ladder.fft import fft
from ..opencl import Device
from ..opencl.building import source_of
from ..pairs import pairs_within
from ..potmap import potmap
from ..potmap.methods import MAP_METHODS, SPLIT_METHODS
from ..reading import read

FEW, MORE = 48, 256  # atoms; more for radii, with many work-items per atom


@dataclass(frozen=True)
class LadderKernel:
    """A kernel of a ladder. name : such as "potmap/gather"; file : in cl/; run : function that runs it once"""

    name: str
    file: str
    kernel: str
    summary: str
    run: Callable[[Device], object]

    def build(self, device: Device) -> Build:
        """Return how the kernel is built on a device for a few atoms. Raises DeviceError if this fails."""
        fresh: Device = replace(device, programs={}, kernels={})
        self.run(fresh)
        builds = [Build.of(key, device) for key in fresh.programs]
        own = [each for each in builds if each.file == self.file]
        # On CPUs, a variant may use a different file for vectors, whose kernel has a longer name.
        named = re.compile(rf"\b{self.kernel}\w*\(")
        alike = [each for each in builds if named.search(source_of(each.file))]
        for each in own + alike:
            return each
        raise DeviceError(f"{device} cannot compile {self.file} for so few atoms; choose another with `device`")


@dataclass(frozen=True)
class Build:
    """Build options of a program. file : in cl/; width : vector width; defines : macros defined by the host"""

    file: str
    precision: str
    width: int
    defines: dict[str, int]
    device: Device

    @classmethod
    def of(cls, key: Any, device: Device) -> Build:
        """Create from a key of a device's programs."""
        file, precision, width, _, _, defines = key
        return cls(file, precision, width, dict(defines), device)

    @property
    def macros(self) -> dict[str, int]:
        """All macros, without vendor-specific ones, except on NVIDIA, where atomic additions need PTX."""
        is_nvidia = self.device.vendor == "NVIDIA"
        vendor = {"VENDOR_NVIDIA": self.device.generation} if is_nvidia else {}
        return {"REAL_BITS": int(self.precision[-2:]), "WIDTH": self.width, "PORTABLE": 1, **vendor, **self.defines}


@cache
def _atoms(n: int = FEW) -> Atoms:
    return read(shipped("data") / "structures" / ("hexapeptide.pdb" if n == FEW else "ubiquitin.pdb"))[:n]


def _grid(atoms: Atoms) -> Grid:
    """Return a grid divisible into blocks for all variants, without padding."""
    return Grid(atoms.positions.min(axis=0) - 3, 0.5, (32, 8, 8))


def _map(name: str, method: str) -> Callable[[Device], object]:
    def run(device: Device) -> None:
        atoms = _atoms()
        options: dict[str, Any] = dict(accuracy=1e-3) if method in SPLIT_METHODS else {}
        options |= dict(cutoff=8.0) if MAP_METHODS[method].within_cutoff else {}
        potmap(
            atoms,
            _grid(atoms),
            method=method,
            variant=name,
            precision="float32",
            device=device,
            min_distance=0,
            **options,
        )

    return run


def _solvent(name: str) -> Callable[[Device], object]:
    return lambda device: SolventLadder(_atoms(MORE), variant=name, precision="float32", device=device).evaluate()


def _nonbond(name: str) -> Callable[[Device], object]:
    def run(device: Device) -> None:
        atoms = _atoms()
        pairs = pairs_within(atoms, 6.0)
        plan = NonbondLadder(atoms, pairs, variant=name, precision="float32", device=device)
        plan.evaluate(born_radii=atoms.gb_radii)

    return run


def _energy(name: str) -> Callable[[Device], object]:
    return lambda device: Energy(_atoms(), variant=name, precision="float32", device=device).evaluate()


def _fft(name: str) -> Callable[[Device], object]:
    return lambda device: fft(np.ones((4, 4, 12)), variant=name, precision="float32", device=device)


def _listed(folder: str, name: str, variant: Variant[Any], run: Callable[[Device], object]) -> LadderKernel:
    return LadderKernel(f"{folder}/{name}", variant.file, variant.kernel, variant.summary, run)


KERNELS = {
    each.name: each
    for each in (
        *(_listed("potmap", name, variant, _map(name, variant.method)) for name, variant in POTMAP.items()),
        *(_listed("fft", name, variant, _fft(name)) for name, variant in FFT_VARIANTS.items()),
        *(_listed("solvent", name, variant, _solvent(name)) for name, variant in SOLVENT.items()),
        *(_listed("nonbond", name, variant, _nonbond(name)) for name, variant in NONBOND.items()),
        *(_listed("energy", name, variant, _energy(name)) for name, variant in ENERGY.items()),
    )
}


def evaluations_of(name: str) -> int:
    """Return the number of evaluations in the small run of a rung: atoms times points, atoms squared, or pairs."""
    atoms = _atoms()
    if name.startswith("potmap/"):
        return len(atoms) * len(_grid(atoms))
    return len(pairs_within(atoms, 6.0)) if name.startswith("nonbond/") else MORE**2
