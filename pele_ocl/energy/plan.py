"""Energy and gradient of one molecule, prepared for repeated evaluation on a device."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..atoms import Atoms, Floats
from ..common.arguments import flag
from ..common.errors import InputError
from ..common.hashing import sha256_of
from ..common.settled import rewrite
from ..common.variant import Machine, Progress
from ..gb_models.solvent_model import SolventModel
from ..plan.conformations import Encoding, check_span
from ..plan.evaluator import Outputs
from ..plan.passes import reason_of
from ..plan.pipeline import Pipeline
from ..plan.plan import Plan
from ..plan.selection import Automatic, check_plan_options
from ..results import Terms
from ..solvent.error import born_radius_error, check_radii
from ..tiles import Tiles
from ..tiles.surface import check_surface, crowding
from .frozen import Frozen, check_in_place, frozen_atoms
from .options import Options
from .result import EnergyBatch, EnergyResult
from .sites import check_sites
from .term_set import TermSet
from .terms import Term
from .variants import VARIANTS, check_born, choose_variant, chosen_born

if TYPE_CHECKING:
    from ..opencl.binding import Binder
    from ..opencl.device import Device
    from ..solvent.error import RadiusCheck
    from .layout import EnergyLayout
    from .passes import AnyPasses


class Energy(Plan[EnergyResult, EnergyBatch]):
    """Energy and gradient of one molecule, prepared for repeated evaluation; parameters as in `energy`.

    born : key of BORN, never "auto"; accuracy : of the Born radii; None if they are exact
    rebuild_sites : whether virtual sites are placed by their rules before each evaluation and their gradients
        distributed to their parents; by default the given positions are used
    frozen : (n,) True for atoms that do not move; further_terms : Terms in addition to the force field's
    options : options of the kernels; layout : how the work is divided on the device
    model : SolventModel; names : names of the terms, in the order of results

    >>> atoms = pele_ocl.read("data/structures/trialanine.pdb")
    >>> plan = pele_ocl.Energy(atoms, gradient=False)
    >>> round(plan.evaluate().total, 1)
    -135.5
    >>> batch = plan.evaluate_batch([atoms.positions, atoms.positions + 1.0])
    >>> batch.total.round(1).tolist()
    [-135.5, -135.5]
    """

    quantity = "energy"
    variants = VARIANTS
    _has_other_layout = False  # than the default for its size, set by `share_programs`

    def __init__(
        self,
        atoms: Atoms,
        *,
        gradient: bool = True,
        fixed_radii: bool = False,
        one_four: Literal["scale", "exclude"] = "scale",
        cutoff: float | None = None,
        per_atom: bool = False,
        frozen: ArrayLike | None = None,
        terms: Sequence[Term] = (),
        only_terms: Sequence[str] | None = None,
        precision: str = "float32",
        variant: str = "auto",
        born: str = "auto",
        accuracy: float | None = None,
        device: Device | int | str | None = None,
        model: SolventModel | None = None,
        rebuild_sites: bool = False,
    ) -> None:
        model = SolventModel.or_default(model)
        atoms = model.choose_radii(atoms)
        gradient, fixed_radii = flag("gradient", gradient), flag("fixed_radii", fixed_radii)
        chain = gradient and not fixed_radii and not model.gb_model.vacuum
        if chain and model.gb_model.holds_radii:
            raise InputError(
                f"the gradient of {model.gb} keeps Born radii and surface fixed, as in PELE: "
                "give `fixed_radii=True`, or gradient=False"
            )
        options = Options(gradient, chain, per_atom, cutoff, one_four, flag("rebuild_sites", rebuild_sites))
        if rebuild_sites:
            check_sites(atoms)
        check_plan_options(precision, variant, VARIANTS, per_atom)
        asked = check_born(born, accuracy)
        self._contents = TermSet.of(atoms, options, model, only_terms, terms)
        of_passes = self._contents.for_passes(atoms, model)
        check_radii(*of_passes)
        check_surface(*of_passes)
        check_span(atoms.positions)
        atoms.require_apart()
        self._fixed_radii, self._only_terms = fixed_radii, None if only_terms is None else tuple(only_terms)
        self.further_terms = (terms,) if isinstance(terms, Term) else tuple(terms)
        self.options = replace(options, chain=options.chain and self._contents.has_gb)
        self.model = model
        super().__init__(atoms, precision=precision, variant=variant, device=device, size=len(atoms), per_atom=per_atom)
        passes = VARIANTS[self.variant].run()
        machine = Machine.of(self.device, precision)
        self.layout = self._choice.applied(self.variant, passes.layout_for(machine, len(atoms)))
        self.frozen = frozen_atoms(atoms, frozen)
        if rebuild_sites and atoms.virtual_sites is not None:
            self.frozen[atoms.virtual_sites.atoms] = atoms.virtual_sites.are_held(self.frozen)
        self._has_frozen = bool(self.frozen.any())
        # Born radii from all pairs can leave out pairs of frozen atoms; the tree cannot.
        suits = self._contents.has_gb and not self._has_frozen and model.gb_model.is_pairwise
        chosen = chosen_born(born, asked, machine, len(atoms), self.layout.tile, suits)
        self.born, self.accuracy = chosen.name, chosen.accuracy
        if (asked or self.accuracy) is not None and not self._contents.has_gb:
            raise InputError("no term depends on Born radii; leave out born and accuracy")
        if (of_surface := model.gb_model.of_surface) and (self.accuracy is not None or asked is not None):
            raise InputError(f"the Born radii of {model.gb} come from the surface; leave out born and accuracy")
        if self.born == "surface" and not of_surface:
            raise InputError(f"Born radii of {model.gb} are not integrals over the surface; leave out born")
        self.born = "surface" if of_surface else self.born
        if self._has_frozen and per_atom:
            raise InputError(
                "energies of single atoms are not available with frozen atoms; leave out per_atom or frozen"
            )
        self._tiles = self._cut_into_tiles()
        self._frozen_part: Frozen | None = None
        self._encoding = Encoding.of(float(np.ptp(atoms.positions, axis=0).max()), self.device.has_float64)

    def _cut_into_tiles(self) -> Tiles:
        row_tiles = VARIANTS[self.variant].run().row_tiles(self.layout)
        return Tiles.of(self.atoms.positions, self.layout.tile, self.frozen).aligned(row_tiles)

    @cached_property
    def _check(self) -> RadiusCheck:
        from ..solvent.error import RadiusCheck  # only approximate radii need it

        return RadiusCheck(self.atoms, self.model, self.device)

    @property
    def holds_radii(self) -> bool:
        """Return whether gradients are at fixed Born radii."""
        return self._fixed_radii

    @property
    def names(self) -> tuple[str, ...]:
        return self._contents.names

    def _settings_of_results(self) -> dict[str, object]:
        further = {"further_terms_sha256": sha256_of(self.further_terms)} if self.further_terms else {}
        accuracy = {} if self.accuracy is None else {"accuracy": self.accuracy}
        return {**super()._settings_of_results(), "options": asdict(self.options), **further, **accuracy}

    def __reduce__(self) -> tuple[Callable[..., object], tuple[object, ...]]:
        made = super().__reduce__()
        return (_again, (*made, self.layout)) if self._has_other_layout else made

    def _described(self) -> dict[str, Any]:
        return dict(
            gradient=self.options.gradient, fixed_radii=self._fixed_radii, one_four=self.options.one_four,
            cutoff=self.options.cutoff, per_atom=self.options.per_atom,
            frozen=self.frozen if self._has_frozen else None, terms=self.further_terms,
            only_terms=self._only_terms, precision=self.precision, variant=self.variant, born=self.born,
            accuracy=self.accuracy, device=self.device, model=self.model, rebuild_sites=self.options.rebuild_sites,
        )  # fmt: skip

    def _automatic(self, per_atom: bool) -> Automatic:
        return lambda kind, size: choose_variant(kind, per_atom)

    def _prepare(self, m: int) -> Pipeline:
        from ..opencl.queue import Queue

        passes = passes_of(self, Queue(self.device, self.precision), m)
        return Pipeline(self.atoms, passes, partial(_explain, self.model, self.precision))

    def _make_passes(self, queue: Binder, m: int) -> AnyPasses:
        """Create the passes for up to m conformations, without the interactions among frozen atoms."""
        tiles, kind = self._tiles, VARIANTS[self.variant].run()
        leaves_out = kind.leaves_out and self.model.gb_model.is_pairwise
        if not (leaves_out and tiles.first_frozen < len(tiles)):
            return self._make_passes_of(queue, m, self._contents, None, self._encoding)
        still = np.zeros(len(self.atoms), bool)
        still[tiles.order[tiles.first_frozen * tiles.size :]] = True
        if self._frozen_part is None:
            from ..opencl.queue import Queue

            own = Queue(self.device, self.precision)
            self._frozen_part = Frozen.of(
                lambda contents, frozen, encoding, positions: (
                    self._make_passes_of(own, 1, contents, frozen, encoding).measured(own, positions)
                ),
                self._contents.within(still), self.atoms, tiles,
                self.model.gb_model.vacuum or not self._contents.has_gb, self.device.has_float64,
            )  # fmt: skip
        contents = self._contents.within(still, inside=False)
        return self._make_passes_of(queue, m, contents, self._frozen_part, self._encoding)

    def _make_passes_of(
        self, queue: Binder, m: int, contents: TermSet, frozen: Frozen | None, encoding: Encoding
    ) -> AnyPasses:
        passes = VARIANTS[self.variant].run()(
            queue, self.atoms, self._tiles, self.layout, self.options, self.model, encoding, contents, frozen,
            self.accuracy,
        )  # fmt: skip
        passes.make(m)
        return passes

    def _check_places(self, conformations: Floats) -> None:
        if self._has_frozen:
            check_in_place(conformations, self.atoms, self.frozen)

    def _amend(self, found: Outputs) -> None:
        if found.gradients is not None and self._has_frozen:
            found.gradients[:, self.frozen] = 0

    def _outputs(self, m: int) -> Outputs:
        options = self.options
        return Outputs.empty(
            m, len(self.atoms), len(self._contents.names), gradients=options.gradient, born_radii=True,
            per_atom=options.per_atom,
        )  # fmt: skip

    def _radii(self, found: Outputs) -> Floats:
        """Born radii (m, n) A; NaN if no term depends on them."""
        assert found.born_radii is not None
        return found.born_radii if self._contents.has_gb else np.full_like(found.born_radii, np.nan)

    def _result(self, atoms: Atoms, found: Outputs, seconds: Mapping[str, float]) -> EnergyResult:
        error, radii = None, self._radii(found)
        if self.accuracy is not None:
            error, seconds = self._check.first_error(atoms.positions[np.newaxis], radii, (), seconds)
        return EnergyResult._unchecked(
            atoms=atoms,
            terms=Terms._unchecked(self._contents.names, found.energies[0]),
            per_atom=None if found.per_atom is None else Terms._unchecked(self._contents.names, found.per_atom[0]),
            model=self.model,
            gradient=None if found.gradients is None else found.gradients[0],
            born_radii=radii[0],
            device=self._title,
            variant=self.variant,
            precision=self.precision,
            seconds=seconds,
            born=self.born,
            accuracy=self.accuracy,
            error=error,
            how=self._how,
        )

    def _batch(
        self, positions: Floats, found: Outputs, errors: Mapping[int, str], seconds: Mapping[str, float]
    ) -> EnergyBatch:
        error, radii = None, self._radii(found)
        if self.accuracy is not None:
            error, seconds = self._check.first_error(positions, radii, errors, seconds)
        return EnergyBatch(
            atoms=self.atoms,
            positions=positions,
            terms=Terms(self._contents.names, found.energies),
            per_atom=None if found.per_atom is None else Terms(self._contents.names, found.per_atom),
            model=self.model,
            gradients=found.gradients,
            born_radii=radii,
            errors=errors,
            device=self._title,
            variant=self.variant,
            precision=self.precision,
            seconds=seconds,
            born=self.born,
            accuracy=self.accuracy,
            error=error,
            how=self._how,
        )


def _explain(model: SolventModel, precision: str, atoms: Atoms, found: Outputs, k: int) -> InputError:
    """Return the error of a conformation whose energy overflows; it names the atom responsible."""
    assert found.born_radii is not None
    bad = found.bad_atoms(k)
    if bad.any() and found.born_radii[k, np.argmax(bad)] <= 0:
        return born_radius_error(atoms, int(np.argmax(bad)), found.born_radii[k], model)
    if crowded := crowding(atoms, found, k, model):
        return crowded
    where = f"of {atoms.describe(int(np.argmax(bad)))} " if bad.any() else ""
    precise = "" if precision == "float64" else ", or use float64"
    return InputError(
        f"the energy {where}is too large for {precision}; check for overlapping atoms, and check radii and "
        f"charges{precise}"
    )


class EnergyAndAtoms(Energy):
    """Energy plan whose results also have per-atom energies, and totals bit-identical to those without `per_atom`.

    of_atoms : plan of the per-atom energies; it sums in another order, so its totals differ by rounding
    """

    def __init__(self, atoms: Atoms, *, gradient: bool = True, **options: Any) -> None:
        self.of_atoms = Energy(atoms, **options, gradient=False, per_atom=True)
        super().__init__(atoms, **options, gradient=gradient)

    def _described(self) -> dict[str, Any]:
        described = super()._described()
        del described["per_atom"]
        return described

    @cached_property
    def _how(self) -> Mapping[str, Any]:
        return {**super()._how, "per_atom": True}

    def evaluate(
        self, positions: ArrayLike | None = None, *, profile: bool = False, progress: Progress | None = None
    ) -> EnergyResult:
        found = super().evaluate(positions, profile=profile, progress=progress)
        of_atoms = self.of_atoms.evaluate(positions, profile=profile)
        return replace(found, per_atom=of_atoms.per_atom, seconds=_sums(found.seconds, of_atoms.seconds))

    def evaluate_batch(
        self, conformations: ArrayLike, progress: Progress | None = None, *, profile: bool = False,
        errors: Literal["raise", "record"] = "raise",
    ) -> EnergyBatch:  # fmt: skip
        found = super().evaluate_batch(conformations, progress, profile=profile, errors=errors)
        of_atoms = self.of_atoms.evaluate_batch(conformations, profile=profile, errors=errors)
        return replace(found, per_atom=of_atoms.per_atom, seconds=_sums(found.seconds, of_atoms.seconds))


def passes_of(plan: Energy, queue: Binder, m: int) -> AnyPasses:
    """Create the passes for up to m conformations at a time on a queue."""
    passes = plan._make_passes(queue, m)
    queue.finish()  # evaluations may go to another queue
    passes.movable = all(kernels.movable for kernels in plan._contents.term_kernels)
    passes.reason = partial(reason_of, plan.atoms, explain=partial(_explain, plan.model, plan.precision))
    return passes


def batch_of(plan: Energy, passes: AnyPasses, results: NDArray[Any], positions: Floats) -> EnergyBatch:
    """Create a batch from results (m, n_results) at positions (m, n, 3) A; errors are recorded."""
    found, errors = passes.unpacked(results, positions)
    return plan._batch(positions, found, errors, {})


def share_programs(plan: Energy, other: Energy) -> None:
    """Give a plan the layout of a plan of a larger molecule, before the first evaluation.

    On CPUs small molecules have smaller tiles, for which each kernel would be compiled again. If both plans are
    evaluated equally often, the time saved by smaller tiles is negligible.
    """
    if plan.device.kind == "CPU" and plan.variant == other.variant and plan.layout != other.layout:
        _take_layout(plan, other.layout)


def _take_layout(plan: Energy, layout: EnergyLayout) -> None:
    rewrite(plan, layout=layout, _has_other_layout=True)
    rewrite(plan, _tiles=plan._cut_into_tiles())


def _again(make: Callable[..., Energy], arguments: tuple[object, ...], layout: EnergyLayout) -> Energy:
    """Unpickle a plan that has the layout of another plan."""
    plan = make(*arguments)
    _take_layout(plan, layout)
    return plan


def _sums(one: Mapping[str, float], other: Mapping[str, float]) -> dict[str, float]:
    return {name: one.get(name, 0.0) + other.get(name, 0.0) for name in {**one, **other}}
