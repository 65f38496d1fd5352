"""Errors of approximate Born radii, measured on a sample of atoms with all pairs in float64; and errors of input."""

from __future__ import annotations

import threading
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..atoms import Atoms, Floats
from ..common.errors import InputError, ParameterError
from ..common.threads import in_parts
from ..gb_models import Spheres
from ..gb_models.solvent_model import SolventModel
from ..tiles.tables import NeckTables, packed_reaches, series_macros

if TYPE_CHECKING:
    from ..opencl.device import Device

SAMPLE = 512  # atoms: half of them with the most sensitive radii, the others random
SEED = 1
RUN = 64  # radii per run in the search for the largest; parts of an array are divided into whole runs
PRECISION = "float64"
GROUP = {"GPU": 256}  # work-items per atom; 1 on other devices


@dataclass(frozen=True)
class RadiusError:
    """Measured error of Born radii, relative to sums over all pairs in float64.

    largest, rms : over the atoms of the sample
    n_sample : number of atoms in the sample; half of them have the radii most sensitive to their integrals
    n_atoms : number of atoms of the molecule
    """

    largest: float
    rms: float
    n_sample: int
    n_atoms: int

    @property
    def about(self) -> str:
        """Sentence about which atoms were compared."""
        if self.n_sample == self.n_atoms:
            return "all atoms were compared"
        return (
            f"{self.n_sample:,} of {self.n_atoms:,} atoms were compared, those with the most sensitive radii and "
            "others at random; errors outside the sample may be larger, usually by up to a factor of three"
        )


def sample_of(sensitivities: Floats) -> NDArray[np.intp]:
    """Choose atoms (n_sample,) to compare, sorted: half have the largest values (n,), the others are random."""
    n = len(sensitivities)
    if n <= SAMPLE:
        return np.arange(n)
    largest = _largest(sensitivities, SAMPLE // 2)
    drawn = np.random.default_rng(SEED).choice(n - len(largest), SAMPLE - len(largest), replace=False)
    # An index among the other atoms becomes an atom index by adding the number of largest ones before it.
    others = drawn + np.searchsorted(largest - np.arange(len(largest)), drawn, side="right")
    return np.sort(np.concatenate([largest, others]))


def _largest(values: Floats, count: int) -> NDArray[np.intp]:
    """Return the sorted indices of the `count` largest values (n,).

    They are all in the `count` runs with the largest maxima, so that few values have to be sorted.
    """

    def largest_of_runs(part: slice) -> Floats:
        largest: Floats = np.maximum.reduceat(values[part], np.arange(0, part.stop - part.start, RUN))
        return largest

    runs = np.concatenate(in_parts(len(values), largest_of_runs))
    best = np.argpartition(runs, -count)[-count:] if count < len(runs) else np.arange(len(runs))
    few = (RUN * best[:, None] + np.arange(RUN)).ravel()
    few = few[few < len(values)]
    return np.sort(few[np.argpartition(values[few], -count)[-count:]])


class RadiusCheck:
    """Measures the error of a molecule's Born radii at any positions; its tables stay on the device. Thread-safe."""

    def __init__(self, atoms: Atoms, model: SolventModel, device: Device) -> None:
        self._atoms, self._model, self._device = atoms, model, device
        self._lock = threading.Lock()
        self._exact: SampledRadii | None = None

    @cached_property
    def _spheres(self) -> Spheres:
        return self._model.spheres(self._atoms)

    def error(self, positions: Floats, born_radii: Floats) -> RadiusError | None:
        """Measure the error of Born radii (n,) A at positions (n, 3) A; None if the device has no float64."""
        if not self._device.has_float64:
            return None
        sample = sample_of(self.sensitivities(born_radii))
        with self._lock:
            if self._exact is None:
                self._exact = SampledRadii(self._atoms, len(sample), self._model, self._device)
            exact = self._exact.at(positions, sample)
        apart = born_radii[sample] / exact - 1
        return RadiusError(
            float(np.abs(apart).max()), float(np.sqrt((apart**2).mean())), len(sample), len(self._atoms)
        )  # fmt: skip

    def sensitivities(self, born_radii: Floats) -> Floats:
        """Relative derivative of each Born radius (n,) with respect to its integral, B (1 - tanh^2).

        The errors of a tree's integrals are similar for all atoms. Radii without an upper bound, 1/B = 1/rho - I,
        change by B times the error, so that large radii have the largest errors. With a tanh radius function, radii
        close to their largest value change little.
        """
        if self._model.gb_model.is_unbounded:
            return born_radii
        found, radii, rho = np.empty(len(born_radii)), self._spheres.radii, self._spheres.rho

        def fill(part: slice) -> None:
            left = 1.0 - radii[part] * (1.0 / rho[part] - 1.0 / born_radii[part])  # 1 - tanh
            np.abs(born_radii[part] * left * (2.0 - left), out=found[part])

        in_parts(len(found), fill)
        return found

    def first_error(
        self, conformations: Floats, born_radii: Floats, failed: Collection[int], seconds: Mapping[str, float]
    ) -> tuple[RadiusError | None, Mapping[str, float]]:
        """Measure the error of radii (m, n) A for the first valid conformation (m, n, 3) A; None if all failed.

        Also returns the seconds of the evaluation with those of the measurement.
        """
        start = time.perf_counter()
        good = next((k for k in range(len(conformations)) if k not in failed), None)
        if good is None:
            return None, seconds
        error = self.error(conformations[good], born_radii[good])
        taken = time.perf_counter() - start
        return error, {**seconds, "error": taken, "total": seconds["total"] + taken}


class SampledRadii:
    """Born radii of a sample of atoms from all pairs in float64, with the molecule's tables on the device."""

    def __init__(self, atoms: Atoms, n_sample: int, model: SolventModel, device: Device) -> None:
        from ..opencl.queue import Queue

        self._queue = queue = Queue(device, PRECISION, profile=False)
        width, group = device.vector_width(PRECISION), GROUP.get(device.kind, 1)
        n, spheres = len(atoms), model.spheres(atoms)
        n_vectors = -(-n // width)
        spare = n_vectors * width - n  # padding of the last vector: spheres of zero radius at the last atom
        columns = {axis: queue.empty(n + spare) for axis in "xyz"}
        self._staged, self._positions = queue.host_array((3 * n,)), queue.empty(3 * n)
        self._sample, self._born = queue.empty(n_sample, np.int32), queue.empty(n_sample)
        necks = NeckTables.of(queue, spheres.necks, *_slots(n, spare), width).arguments if spheres.necks else {}
        constants = (
            queue.vector4(*model.radius_constants) if spheres.constants is None else queue.upload(spheres.constants)
        )
        macros = {"GROUP": group, **series_macros(PRECISION), **model.integral_definitions, **model.radius_definitions}
        self._launches = [
            queue.bind(
                "solvent/sample.cl", "position_columns", (n + spare, 1), (group, 1),
                dict(n_atoms=n, n_places=n + spare, positions=self._positions, **columns), width=width, **macros,
            ),
            queue.bind(
                "solvent/sample.cl", "sampled_radii", (group * n_sample, 1), (group, 1),
                dict(
                    n_vectors=n_vectors, reaches=packed_reaches(queue, spheres, model),
                    s=queue.upload(np.append(spheres.scaled, np.zeros(spare))),
                    rho=queue.upload(_padded(spheres.rho, spare)), sample=self._sample, radius_constants=constants,
                    radii=queue.upload(spheres.radii), born=self._born, **necks, **columns,
                ),
                width=width, divisible=0, **macros,
            ),
        ]  # fmt: skip

    def at(self, positions: Floats, sample: NDArray[np.intp]) -> Floats:
        """Compute the radii (n_sample,) A of a sample of atoms at positions (n, 3) A."""
        given = np.ascontiguousarray(positions).reshape(-1)

        def stage(part: slice) -> None:
            self._staged[part] = given[part]

        in_parts(len(given), stage)
        self._queue.write(self._positions, self._staged)
        self._queue.write(self._sample, sample.astype(np.int32))
        self._queue.launch_bound(self._launches, 1)
        return self._queue.download(self._born, len(sample)).astype(np.float64)


def _slots(n: int, spare: int) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """Atom of each slot, (n + spare,), and a mask of slots without padding."""
    slots = np.arange(n + spare)
    return np.minimum(slots, n - 1), slots < n


def _padded(values: Floats, spare: int) -> Floats:
    """Pad values (..., n) with the last one, (..., n + spare)."""
    padded: Floats = np.concatenate([values, np.repeat(values[..., -1:], spare, axis=-1)], axis=-1)
    return padded


def check_radii(atoms: Atoms, model: SolventModel) -> None:
    """Raise ParameterError or InputError for atoms that lack parameters of the model, or radii above the offset."""
    if model.gb_model.vacuum:
        return
    if "gb_radii" not in model.gb_model.parameters:
        model.spheres(atoms)
        return
    assert atoms.gb_radii is not None
    small = atoms.gb_radii <= model.offset
    if small.any():
        i = int(np.argmax(small))
        raise ParameterError(
            f"the GB radius of {atoms.describe(i)} is {atoms.gb_radii[i]:g} A, at or below the offset of "
            f"{model.offset:g} A; give it a larger radius"
        )
    model.spheres(atoms)


def born_radius_error(atoms: Atoms, i: int, born_radii: Floats, model: SolventModel) -> InputError:
    """Return the error of an atom whose Born radius (n,) A is negative or not finite.

    It also names the atom whose sphere covers this atom most, since its scale or position may be the cause.
    """
    r = np.linalg.norm(atoms.positions - atoms.positions[i], axis=1)
    r[i] = np.inf
    spheres = model.spheres(atoms)
    other = int(np.argmax(spheres.scaled / r))
    if len(atoms) < 2 or spheres.scaled[other] <= 0:
        return InputError(f"the Born radius of {atoms.describe(i)} is {born_radii[i]}; check its radius and scale")
    return InputError(
        f"the Born radius of {atoms.describe(i)} is {born_radii[i]:g} A; check its radius and scale, and those of "
        f"{atoms.describe(other)}, whose scaled sphere of {spheres.scaled[other]:.3g} A overlaps it most, at a "
        f"distance of {r[other]:.3g} A"
    )
