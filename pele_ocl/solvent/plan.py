"""Born radii and implicit-solvent energy of one molecule, prepared for repeated evaluation on a device."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ..atoms import Atoms, Floats
from ..common.arguments import flag
from ..common.errors import InputError
from ..common.variant import Variant
from ..gb_models.solvent_model import SolventModel
from ..opencl.interface import LEAF
from ..plan.conformations import Encoding, check_span
from ..plan.evaluator import Failures, Outputs
from ..plan.pipeline import Pipeline
from ..plan.plan import Plan
from ..plan.selection import IN_LADDER, Automatic, check_plan_options
from ..results import Terms
from ..tiles import Tiles
from ..tiles.surface import check_surface, crowding
from .accuracy import DEFAULT, checked_accuracy
from .error import RadiusCheck, RadiusError, born_radius_error, check_radii
from .layout import SolventLayout
from .passes import SolventPasses
from .result import TERMS, SolventBatch, SolventResult, terms_of
from .sharing import devices_of, others_like, shared_passes
from .variants import VARIANTS, choose_variant

if TYPE_CHECKING:
    from ..opencl.device import Device


class Solvent(Plan[SolventResult, SolventBatch]):
    """Born radii and implicit-solvent energy of one molecule, prepared once; parameters as in `solvent`.

    model : SolventModel; accuracy : of the Born radii; None if they are exact
    devices : Devices that divide the work; `device` is the first
    names : names of the terms, in the order of results; layout : how the work is divided on a device

    >>> atoms = pele_ocl.read("data/structures/trialanine.pdb")
    >>> plan = pele_ocl.Solvent(atoms, model=pele_ocl.SolventModel(gb="gbn2"))
    >>> plan.evaluate().born_radii.shape
    (33,)
    """

    quantity = "solvent"
    variants: ClassVar[Mapping[str, Variant[Callable[..., SolventPasses]]]] = VARIANTS
    _elsewhere: ClassVar[str] = IN_LADDER  # for errors about unknown variants

    def __init__(
        self,
        atoms: Atoms,
        *,
        variant: str = "auto",
        precision: str = "float32",
        device: Device | int | str | Sequence[Device | int | str] | None = None,
        model: SolventModel | None = None,
        accuracy: float | None = None,
        energy: bool = True,
    ) -> None:
        model = SolventModel.or_default(model)
        self._energies = flag("energy", energy)
        check_plan_options(precision, variant, self.variants, more=self._elsewhere)
        self._asked = self._asked_of(variant, accuracy)
        atoms = model.choose_radii(atoms)
        if model.gb_model.vacuum:
            raise InputError(f"gb is {model.gb}, so there is no solvent energy; choose another model")
        if not model.gb_model.is_pairwise:
            raise InputError(
                f"the model {model.gb} is only available for complete energies; use `energy` and its terms gb "
                "and nonpolar"
            )
        atoms.require(("charges", *model.gb_model.parameters), "the solvent energy")
        check_radii(atoms, model)
        if self._energies:
            check_surface(atoms, model)
        check_span(atoms.positions)
        atoms.require_apart()
        first, *others = devices_of(device)
        if others and variant == "auto":
            variant = next(name for name, each in self.variants.items() if each.shared)
        self.model = model
        super().__init__(atoms, precision=precision, variant=variant, device=first, size=len(atoms))
        self.devices = [self.device, *others_like(self.device, others, precision, self.variant, self.variants)]
        self.accuracy = (self._asked or DEFAULT) if self.variants[self.variant].approximates else None
        width, units = self.device.vector_width(precision), self.device.compute_units
        layout = SolventLayout.of(self.device.kind, width, len(atoms), units)
        self.layout = self._choice.applied(self.variant, layout if self.accuracy is None else layout.for_tree())
        self._tiles = self._sorted()
        self._check = RadiusCheck(atoms, model, self.device)
        self._encoding = Encoding.of(float(np.ptp(atoms.positions, axis=0).max()), self.device.has_float64)

    def _settings_of_results(self) -> dict[str, object]:
        accuracy = {} if self.accuracy is None else {"accuracy": self.accuracy}
        return {**super()._settings_of_results(), **accuracy}

    def _described(self) -> dict[str, Any]:
        return dict(
            variant=self.variant, precision=self.precision, device=self.devices, model=self.model,
            accuracy=self.accuracy, energy=self._energies,
        )  # fmt: skip

    def _asked_of(self, variant: str, accuracy: float | None) -> float | None:
        """Return the accuracy as a number. Raises InputError if it is out of range, or the variant is exact."""
        asked = checked_accuracy(accuracy)
        if asked is not None and variant in self.variants and not self.variants[variant].approximates:
            able = " or ".join(name for name, each in self.variants.items() if each.approximates)
            raise InputError(
                f"the variant {variant} does not have an accuracy option; choose the variant {able} or auto"
            )
        return asked

    def _sorted(self) -> Tiles:
        size = self.layout.tile
        if self.accuracy is None:
            return Tiles.of(self.atoms.positions, size)
        return Tiles.nested(self.atoms.positions, size, LEAF)

    def _automatic(self, per_atom: bool) -> Automatic:
        return partial(choose_variant, accuracy=self._asked or (DEFAULT if self.precision == "float32" else None))

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the terms, in the order of results; none without energies."""
        return terms_of(self.model) if self._energies else ()

    @cached_property
    def _devices_title(self) -> str:
        return " + ".join(map(str, self.devices))

    def radii_seconds(self) -> float:
        """Kernel time of the Born radii at the positions of the atoms, seconds; for benchmarks."""
        from ..opencl.queue import Queue

        with self._lent(1) as evaluator:
            assert isinstance(evaluator, Pipeline)
            assert isinstance(evaluator.passes, SolventPasses)
            passes = evaluator.passes
            encoded = np.empty((1, 3 * len(self.atoms)), passes.encoding.dtype)
            passes.encode(self.atoms.positions[np.newaxis], slice(0, 1), encoded, Failures(1))
            queue = Queue(passes.queue.device, self.precision)
            queue.write(passes.buffer("positions"), encoded)
            passes.launch_radii(queue, 1)
            return queue.kernel_seconds

    def _prepare(self, m: int) -> Pipeline:
        from ..opencl.queue import Queue

        each = []
        for device in self.devices:
            queue = Queue(device, self.precision)
            passes = self.variants[self.variant].run(
                queue, self.atoms, self._tiles, self.layout, self.model, self._encoding, self.accuracy or DEFAULT,
                self._energies,
            )  # fmt: skip
            passes.make(m)
            each.append(passes)
            queue.finish()  # evaluations may go to another queue
        return Pipeline(self.atoms, shared_passes(each), partial(_explain, self.model))

    def _outputs(self, m: int) -> Outputs:
        n, n_terms = len(self.atoms), len(TERMS) if self._energies else 0
        # By columns, as on the device.
        per_atom = np.empty((m, n_terms, n)).transpose(0, 2, 1) if self._energies else None
        return Outputs(np.empty((m, n_terms)), born_radii=np.empty((m, n)), psi=np.empty((m, n)), per_atom=per_atom)

    def _result(self, atoms: Atoms, found: Outputs, seconds: Mapping[str, float]) -> SolventResult:
        assert found.born_radii is not None
        assert found.psi is not None
        error, seconds = self._measured(atoms.positions[np.newaxis], found, (), seconds)
        names = self.names
        return SolventResult._unchecked(
            atoms=atoms,
            terms=Terms._unchecked(names, found.energies[0, : len(names)]),
            per_atom=None if found.per_atom is None else Terms._unchecked(names, found.per_atom[0, :, : len(names)]),
            model=self.model,
            born_radii=found.born_radii[0],
            psi=found.psi[0],
            device=self._devices_title,
            variant=self.variant,
            precision=self.precision,
            seconds=seconds,
            accuracy=self.accuracy,
            error=error,
            how=self._how,
        )

    def _batch(
        self, positions: Floats, found: Outputs, errors: Mapping[int, str], seconds: Mapping[str, float]
    ) -> SolventBatch:
        assert found.born_radii is not None
        assert found.psi is not None
        error, seconds = self._measured(positions, found, errors, seconds)
        names = self.names
        return SolventBatch(
            atoms=self.atoms,
            positions=positions,
            terms=Terms(names, found.energies[..., : len(names)]),
            per_atom=None if found.per_atom is None else Terms(names, found.per_atom[..., : len(names)]),
            model=self.model,
            born_radii=found.born_radii,
            psi=found.psi,
            errors=errors,
            device=self._devices_title,
            variant=self.variant,
            precision=self.precision,
            seconds=seconds,
            accuracy=self.accuracy,
            error=error,
            how=self._how,
        )

    def _measured(
        self, positions: Floats, found: Outputs, failed: Collection[int], seconds: Mapping[str, float]
    ) -> tuple[RadiusError | None, Mapping[str, float]]:
        """Measure the error of approximate radii, and add the time that this takes."""
        assert found.born_radii is not None
        if self.accuracy is None:
            return None, seconds
        return self._check.first_error(positions, found.born_radii, failed, seconds)


def _explain(model: SolventModel, atoms: Atoms, found: Outputs, k: int) -> InputError:
    """Return the error of a conformation with an invalid Born radius or energy; it names the atom responsible."""
    assert found.born_radii is not None
    born = found.born_radii[k]
    bad = ~(np.isfinite(born) & (born > 0))
    if bad.any():
        return born_radius_error(atoms, int(np.argmax(bad)), born, model)
    if crowded := crowding(atoms, found, k, model):
        return crowded
    i = int(np.argmax(found.bad_atoms(k)))
    return InputError(f"the energy of {atoms.describe(i)} is not finite; check its charge and the dielectric constants")
