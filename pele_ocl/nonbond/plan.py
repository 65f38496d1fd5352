"""A pair list made ready for a device, to be evaluated for as many conformations as it stands for."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from ..atoms import Atoms, Floats, require_atoms
from ..errors import InputError
from ..opencl.shared import ONE_FOUR
from ..pairs import PairList, Pairs, require_pairs
from ..solvent import Solvent
from ..solvent_model import SolventModel
from ..tuning import remembered
from ..variant import PRECISIONS, Progress
from .records import Mirror, Records, Traits, differ, places_of, step_of
from .result import NonbondResult
from .task import Evaluate, Task
from .variants import INEXACT, VARIANTS, choose_variant

if TYPE_CHECKING:
    from ..opencl.device import Device
    from ..opencl.kernels import Run

# Pairs on the device at a time. Longer lists are walked in chunks, prepared anew each time.
CHUNK = 1 << 24
BYTES_A_PAIR = 24  # of the largest buffer: three float64 of a stored gradient
LARGEST_SPAN_FLOAT32 = 4000.0  # A; a fixed-point step is then 2e-6 A


class Nonbond:
    """Nonbonded energy and gradient of one pair list, prepared once; parameters as in `nonbond`."""

    def __init__(
        self,
        atoms: Atoms,
        pairs: Pairs,
        *,
        solvent: Literal["gb", "vacuum"] = "gb",
        gradient: bool = True,
        variant: str = "auto",
        precision: str = "float32",
        device: Device | int | str | None = None,
        model: SolventModel | None = None,
        internal_dielectrics: Floats | None = None,
        progress: Progress | None = None,
    ) -> None:
        # OpenCL is loaded when it is first needed: reading files and the command's help do without.
        from ..opencl.device import get_cpu_device, get_device

        self.atoms, self.pairs = atoms, pairs
        self.gradient, self.precision, self.progress = gradient, precision, progress
        self.model = SolventModel.or_default(model)
        self.gb = solvent == "gb"
        _check(atoms, pairs, solvent, variant, precision)
        atoms.require_apart()
        self.dielectrics = _dielectrics(atoms, self.model, internal_dielectrics)
        device = get_device(device)
        if variant == "auto":
            choice = remembered("nonbond", device, precision, len(pairs))
            variant = choice.variant or choose_variant(device.kind, len(pairs))
        self.variant = variant
        self.device = get_cpu_device(device) if self.variant == "sequential" else device
        self.device.require_precision(precision)
        self.prepare_seconds = 0.0
        self._kept: list[Evaluate] | None = None
        self._solvent: Solvent | None = None
        self._traits: Traits | None = None
        self._mirrors = Mirror(), Mirror()

    def evaluate(self, positions: Floats | None = None, born_radii: Floats | None = None) -> NonbondResult:
        """Energy and gradient at `positions` (n, 3) A, by default the atoms' own; born_radii (n,) A as in `nonbond`."""
        with self.device.lock:
            return self._evaluate(positions, born_radii)

    def _evaluate(self, positions: Floats | None, born_radii: Floats | None) -> NonbondResult:
        start = time.perf_counter()
        atoms = self.atoms if positions is None else self.atoms.moved(positions)
        records = self._records(atoms, self._born_radii(atoms, born_radii))
        energies = np.zeros(3)
        gradient: Floats | None = None
        kernel_seconds, done = 0.0, 0
        for n_pairs, evaluate in self._evaluations():
            part = self._run()
            part_energies, part_gradient = evaluate(part, records)
            energies += part_energies
            if part_gradient is not None:
                gradient = part_gradient if gradient is None else gradient + part_gradient
            del evaluate
            kernel_seconds += part.elapsed_seconds
            done += n_pairs
            if self.progress is not None:
                self.progress(done / max(1, len(self.pairs)))
        if self.gradient and gradient is None:  # of no pairs
            gradient = np.zeros((len(atoms), 3))
        _require_finite(atoms, energies, gradient, self.precision)
        seconds = {"prepare": self.prepare_seconds, "kernel": kernel_seconds, "total": time.perf_counter() - start}
        return NonbondResult(
            atoms=atoms,
            n_pairs=len(self.pairs),
            lennard_jones=float(energies[0]),
            coulomb=float(energies[1]),
            gb_pair=float(energies[2]),
            gradient=gradient,
            exact=self.variant not in INEXACT or not self.gradient,
            device=str(self.device),
            variant=self.variant,
            precision=self.precision,
            seconds=seconds,
        )

    def _run(self) -> Run:
        from ..opencl.kernels import Run

        return Run(self.device, self.precision)

    def _born_radii(self, atoms: Atoms, given: Floats | None) -> Floats | None:
        if given is None:
            if not self.gb:
                return None
            if self._solvent is None:
                self._solvent = Solvent(self.atoms, precision=self.precision, device=self.device, model=self.model)
            return self._solvent.evaluate(None if atoms is self.atoms else atoms.positions).born_radii
        kept = None if self._traits is None else self._traits.born_radii
        if kept is not None and np.array_equal(kept, given):  # and so good ones
            return kept
        radii = _one_an_atom("born_radii", given, len(atoms))
        return radii if self.gb else None

    def _records(self, atoms: Atoms, born_radii: Floats | None) -> Records:
        columns = np.ascontiguousarray(atoms.positions.T)  # ten times faster to look through
        lowest, highest = columns.min(axis=1), columns.max(axis=1)
        if self.precision == "float32":
            _check_span(float((highest - lowest).max()))
        middle = (lowest + highest) / 2
        traits = self._traits_of(step_of(float((highest - middle).max()), self.precision), born_radii)
        return Records(places_of(columns - middle[:, None], traits), traits, self._mirrors)

    def _traits_of(self, step: float, born_radii: Floats | None) -> Traits:
        """The traits of the atoms; those of the last evaluation, as far as they still are right."""
        if self._traits is None or self._traits.step != step:
            self._traits = Traits.of(self.atoms, self.dielectrics, self.model, self.precision, step)
        if self._traits.born_radii is not born_radii:
            assert born_radii is not None
            self._traits = self._traits.with_born_radii(born_radii)
        return self._traits

    @property
    def _switches(self) -> dict[str, int]:
        """The macros of the kernels."""
        return {
            "GB": int(self.gb),
            "SCREENED": int(self.gb and self.model.kappa > 0),
            "GEOMETRIC": int(self.atoms.combining == "geometric"),
            "VARIABLE_DIELECTRIC": int(differ(self.dielectrics)),
            "GRADIENT": int(self.gradient),
        }

    def _evaluations(self) -> Iterator[tuple[int, Evaluate]]:
        """Each chunk of the list with the function that evaluates it; a list of one chunk is prepared only once."""
        if self._kept is not None:
            yield len(self.pairs), self._kept[0]
            return
        self.prepare_seconds = 0.0
        most = min(CHUNK, self.device.largest_buffer // BYTES_A_PAIR)
        for chunk in self.pairs.chunks(most):
            evaluate = self._prepare(chunk)
            if len(self.pairs) <= most:
                self._kept = [evaluate]
            yield len(chunk), evaluate
            del evaluate  # and what it holds on the device, before the next chunk comes

    def _prepare(self, chunk: PairList) -> Evaluate:
        run = self._run()
        second = chunk.second.astype(np.uint32)
        if chunk.one_four is not None:
            second |= np.where(chunk.one_four, np.uint32(ONE_FOUR), np.uint32(0))
        pairs = run.upload(np.column_stack([chunk.first.astype(np.uint32), second]), np.uint32)
        own = self._own_values(run, chunk)
        task = Task(self.atoms.positions, len(chunk), pairs, own, {**self._switches, "OWN_VALUES": int(bool(own))})
        evaluate: Evaluate = VARIANTS[self.variant].run(run, task)
        self.prepare_seconds += run.elapsed_seconds
        return evaluate

    def _own_values(self, run: Run, chunk: PairList) -> tuple[Any, ...]:
        """Buffers of what the list brings itself; what it lacks of the two is filled in from the atoms."""
        if chunk.sigma2 is None and chunk.charge_products is None:
            return ()
        i, j = chunk.first, chunk.second
        sigma2, charges = chunk.sigma2, chunk.charge_products
        if sigma2 is None:
            assert self.atoms.lj_sigma is not None
            a, b = self.atoms.lj_sigma[i], self.atoms.lj_sigma[j]
            sigma2 = a * b if self.atoms.combining == "geometric" else ((a + b) / 2) ** 2
        if charges is None:
            charges = self.atoms.charges[i] * self.atoms.charges[j]
        return run.upload(sigma2), run.upload(charges)


def _check_span(span: float) -> None:
    """Raise InputError where fixed-point coordinates of 32 bits would be too coarse for close pairs."""
    if span > LARGEST_SPAN_FLOAT32:
        raise InputError(
            f"the atoms span {span:,.0f} A, more than the {LARGEST_SPAN_FLOAT32:,.0f} A that float32 holds; "
            "use --precision float64"
        )


def _dielectrics(atoms: Atoms, model: SolventModel, given: Floats | None) -> Floats:
    if given is None:
        return np.full(len(atoms), model.solute_dielectric)
    return _one_an_atom("internal_dielectrics", given, len(atoms))


def _one_an_atom(name: str, given: Floats, n_atoms: int) -> Floats:
    """(n,) positive numbers, or InputError."""
    try:
        values = np.array(given, np.float64)
    except (TypeError, ValueError):
        values = np.empty(0)
    if values.shape != (n_atoms,) or not np.isfinite(values).all() or (values <= 0).any():
        raise InputError(f"{name} must be {n_atoms} positive numbers, one an atom")
    return values


def _require_finite(atoms: Atoms, energies: Floats, gradient: Floats | None, precision: str) -> None:
    if np.isfinite(energies).all() and (gradient is None or np.isfinite(gradient).all()):
        return
    atoms.require_apart()
    wrong = np.zeros(1, bool) if gradient is None else ~np.isfinite(gradient).all(axis=1)
    where = f" of {atoms.describe(int(np.argmax(wrong)))}" if wrong.any() else ""
    raise InputError(f"the energy{where} is not finite in {precision}; check charges and distances to other atoms")


def _check(atoms: Atoms, pairs: Pairs, solvent: str, variant: str, precision: str) -> None:
    if solvent not in ("gb", "vacuum"):
        raise InputError(f"there is no solvent {solvent!r}; choose gb or vacuum")
    if variant != "auto" and variant not in VARIANTS:
        raise InputError(f"there is no variant {variant!r}; choose auto, {', '.join(VARIANTS)}")
    if precision not in PRECISIONS:
        raise InputError(f"there is no precision {precision!r}; choose {' or '.join(PRECISIONS)}")
    require_atoms(atoms)
    require_pairs(pairs)
    atoms.require(("charges", "lj_sigma", "lj_epsilon"), "the nonbonded energy")
    if pairs.n_atoms != len(atoms):
        raise InputError(f"the pair list is for {pairs.n_atoms} atoms; there are {len(atoms)}")
