"""Nonbonded energy over a pair list, prepared for repeated evaluation on a device."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import is_dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike

from ..atoms import Atoms, Floats, require_atoms
from ..common.arguments import callback, described, flag, is_among, numbers
from ..common.errors import InputError
from ..common.hashing import sha256_of
from ..common.variant import Progress, Variant
from ..gb_models.solvent_model import IN_VACUUM, SolventModel
from ..pairs import AllPairs, PairList, Pairs, own_lj_pairs, pairs_split, pairs_within, require_pairs
from ..plan.conformations import TooWideError
from ..plan.evaluator import Evaluator, Failures, Outputs
from ..plan.plan import Plan
from ..plan.selection import IN_LADDER, Automatic, check_plan_options
from ..results import Terms
from ..solvent import Solvent
from ..solvent import choose_variant as variant_of_radii
from .listed import DeviceList, Piecewise
from .passes import AnyPasses
from .records import MoleculeRecords
from .result import TERMS, NonbondBatch, NonbondResult
from .variants import VARIANTS, choose_variant

if TYPE_CHECKING:
    from ..opencl.device import Device


def check_molecule(atoms: Atoms, pairs: Pairs, solvent: str) -> None:
    """Raise InputError for an unknown solvent, missing parameters, and a list for other atoms."""
    if not is_among(solvent, ("gb", "vacuum")):
        raise InputError(f"unknown solvent {described(solvent)}; choose gb or vacuum")
    require_atoms(atoms)
    require_pairs(pairs)
    atoms.require(("charges", "lj_sigma", "lj_epsilon"), "the nonbonded energy")
    if pairs.n_atoms != len(atoms):
        raise InputError(f"the pair list is for {pairs.n_atoms} atoms; there are {len(atoms)}")
    if len(own_lj_pairs(atoms)):
        raise InputError(
            "pairs of these atoms have special Lennard-Jones parameters (NBFIX), which pair lists cannot "
            "contain; use energy"
        )
    atoms.require_apart()


def one_an_atom(name: str, given: ArrayLike, n: int) -> Floats:
    """Return a copy of positive numbers (n,). Raises InputError for anything else."""
    values = _numbers(given)
    if values.shape != (n,) or not _are_positive(values):
        raise InputError(f"{name} must be {n} positive numbers, one per atom")
    return values


def one_a_conformation(name: str, given: ArrayLike, m: int, n: int) -> Floats:
    """Return a copy of positive numbers (n,) or (m, n). Raises InputError for anything else."""
    values = _numbers(given)
    if values.shape not in ((n,), (m, n)) or not _are_positive(values):
        raise InputError(f"{name} must be positive numbers, ({n},) one per atom or ({m}, {n}) for each conformation")
    return values


def _numbers(given: ArrayLike) -> Floats:
    """Copy numbers; return an empty array for anything else."""
    try:
        return numbers("", given).copy()
    except InputError:
        return np.empty(0)


def _are_positive(values: Floats) -> bool:
    return bool(values.min() > 0 and values.max() < np.inf)  # both false for NaN


_HASHED = 1 << 20  # pairs hashed at a time
# Pairs on the device at a time. Longer lists are evaluated in pieces, which are prepared again in each evaluation.
CHUNK = 1 << 24
BYTES_A_PAIR = 24  # in the largest buffer: three float64 of a stored gradient


class Nonbond(Plan[NonbondResult, NonbondBatch]):
    """Nonbonded energy and gradient over one pair list, prepared for repeated evaluation; parameters as in `nonbond`.

    pairs : the list; dielectrics : (n,) internal dielectric constants; gb : whether there is a solvent
    model : SolventModel; names : names of the terms, in the order of results

    >>> atoms = pele_ocl.read("data/structures/trialanine.pdb")
    >>> plan = pele_ocl.Nonbond(atoms, pele_ocl.pairs_within(atoms, 8.0))
    >>> round(plan.evaluate().lennard_jones, 2)
    -3.12
    """

    quantity = "nonbond"
    variants: ClassVar[Mapping[str, Variant[type[AnyPasses]]]] = VARIANTS
    _elsewhere: ClassVar[str] = IN_LADDER  # for errors about unknown variants

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
        model = SolventModel.or_default(model)
        flag("gradient", gradient)
        callback("progress", progress)
        check_plan_options(precision, variant, self.variants, more=self._elsewhere)
        if model.gb_model.vacuum:
            solvent = "vacuum"
        if not model.gb_model.is_pairwise:
            raise InputError(
                f"the model {model.gb} is only available for complete energies; use obc2 with Born radii and "
                "internal_dielectrics"
            )
        atoms = atoms if is_among(solvent, ("vacuum",)) else model.choose_radii(atoms)
        check_molecule(atoms, pairs, solvent)
        self.dielectrics = (
            np.full(len(atoms), model.solute_dielectric)
            if internal_dielectrics is None
            else one_an_atom("internal_dielectrics", internal_dielectrics, len(atoms))
        )
        self.pairs, self.gradient, self.progress, self.gb = pairs, gradient, progress, solvent == "gb"
        self.model = model
        super().__init__(atoms, precision=precision, variant=variant, device=device, size=len(pairs))
        self._molecule = MoleculeRecords.of(
            atoms, self.dielectrics, model, precision, self.gb, self.device.has_float64
        )  # fmt: skip
        self._listed: DeviceList | None = None
        self._solvent: Solvent | None = None
        self._preparing = threading.RLock()

    @property
    def _list_rule(self) -> Callable[[Atoms], PairList] | None:
        """Function that makes the pair list for given positions; None if the list is fixed."""
        return self.pairs.rule if isinstance(self.pairs, PairList) else None

    @property
    def _is_made_anew(self) -> bool:
        return self._list_rule is not None

    def _frames_function(self) -> Callable[[Any, Progress | None], Any] | None:
        if self._list_rule is None:
            return None
        from .fresh_lists import evaluate_with_fresh_lists

        return evaluate_with_fresh_lists(self, self._list_rule, self._over_pairs, self.gb)

    def _settings_of_results(self) -> dict[str, object]:
        pairs = self.pairs if is_dataclass(self.pairs) else self.pairs.chunks(_HASHED)
        return {
            **super()._settings_of_results(), "gb": self.gb, "gradient": self.gradient, "n_pairs": len(self.pairs),
            "pairs_sha256": sha256_of(pairs), "internal_dielectrics_sha256": sha256_of(self.dielectrics),
        }  # fmt: skip

    def _described(self) -> dict[str, Any]:
        return dict(
            pairs=self.pairs, solvent="gb" if self.gb else "vacuum", gradient=self.gradient, variant=self.variant,
            precision=self.precision, device=self.device, model=self.model, internal_dielectrics=self.dielectrics,
        )  # fmt: skip

    @cached_property
    def _how(self) -> Mapping[str, Any]:
        """Options stored in results: how the list was made, not the list itself."""
        model = self.model
        if not self.gb and not model.gb_model.vacuum:
            model = SolventModel(**{**{name: getattr(model, name) for name in IN_VACUUM}, "gb": "none"})
        solvent, varies = "gb" if self.gb else "vacuum", bool(np.ptp(self.dielectrics))
        return {"model": model, "solvent": solvent, "variable_dielectric": varies, **_origin_of(self.pairs)}

    def _over_pairs(self, atoms: Atoms, pairs: Pairs) -> Nonbond:
        """Create the same plan for other positions and another list."""
        return type(self)(atoms, **{**self._described(), "pairs": pairs})

    def evaluate(
        self, positions: ArrayLike | None = None, born_radii: ArrayLike | None = None, *, profile: bool = False,
        progress: Progress | None = None,
    ) -> NonbondResult:  # fmt: skip
        """Evaluate positions (n, 3) A, by default those of the atoms.

        born_radii : (n,) A; by default computed by `solvent` for the positions
        profile : True to measure kernel times, which slows down launches
        progress : called with the fraction done, 0 to 1; by default the plan's function

        Raises InputError for positions and radii that do not fit, and for overflowing results. In float32 a molecule
        may extend over 4,000 A; if it grows by more than a quarter and 64 A, a new plan is made, which takes longer.
        There are no such limits in float64.
        """
        start = time.perf_counter()
        flag("profile", profile)
        callback("progress", progress)
        given = self._given(positions)
        try:
            return self._evaluate(given, born_radii, profile, progress, start)
        except TooWideError:
            wider = type(self)(self._placed(given), progress=self.progress, **self._described())
        return wider.evaluate(born_radii=born_radii, profile=profile, progress=progress)

    def _evaluate(
        self, given: Floats, born_radii: ArrayLike | None, profile: bool, progress: Progress | None, start: float
    ) -> NonbondResult:
        """Evaluate one conformation. Raises TooWideError if it exceeds the range of fixed-point coordinates."""
        failures = Failures(1)
        if born_radii is not None:
            born_radii = one_an_atom("born_radii", born_radii, len(self.atoms))
        moved = None if given is self.atoms.positions else given[np.newaxis]
        radii = self._radii_for(born_radii, moved, failures)
        return self._evaluate_one(given, profile, progress or self.progress, failures, radii, start)

    def evaluate_batch(
        self, conformations: ArrayLike, progress: Progress | None = None, *, born_radii: ArrayLike | None = None,
        profile: bool = False, errors: Literal["raise", "record"] = "raise",
    ) -> NonbondBatch:  # fmt: skip
        """Evaluate conformations (m, n, 3) A together; results are bit-identical to those of single ones.

        born_radii : (n,) A for all conformations, or (m, n); by default computed by `solvent` for each
        progress, profile, errors : as in `Energy.evaluate_batch`

        In float32 a conformation may be wider than the atoms of the plan by a quarter and 64 A.
        """
        start = time.perf_counter()
        flag("profile", profile)
        callback("progress", progress)
        given, failures = self._checked(conformations, errors)
        if born_radii is not None:
            born_radii = one_a_conformation("born_radii", born_radii, *given.shape[:2])
        radii = self._radii_for(born_radii, given, failures)
        found, seconds = self._compute(given, profile, progress or self.progress, failures, radii)
        return self._batch(given, found, failures.in_order, {**seconds, "total": time.perf_counter() - start})

    def _radii_for(self, given: Floats | None, conformations: Floats | None, failures: Failures) -> Floats | None:
        """Return given or computed Born radii of conformations, or None if they are not needed.

        conformations : (m, n, 3) A, None for the positions of the atoms
        """
        if not self.gb:
            return None
        return self._computed_radii(conformations, failures) if given is None else given

    def _computed_radii(self, conformations: Floats | None, failures: Failures) -> Floats:
        """Compute Born radii (m, n) A of conformations with a Solvent plan; 1 for failed ones."""
        with self._preparing:
            if self._solvent is None:
                exact = variant_of_radii(self.device.kind, len(self.atoms))
                self._solvent = Solvent(
                    self.atoms, variant=exact, precision=self.precision, device=self.device, model=self.model
                )
        if conformations is None:
            return self._solvent.evaluate().born_radii
        batch = self._solvent.evaluate_batch(conformations, errors="record")
        for k, reason in batch.errors.items():
            failures.add(k, InputError(reason))
        failures.check(len(conformations))
        return np.where(np.isnan(batch.born_radii), 1.0, batch.born_radii)

    def _automatic(self, per_atom: bool) -> Automatic:
        return choose_variant

    def _prepare(self, m: int) -> Evaluator:
        most = min(CHUNK, self.device.largest_buffer // BYTES_A_PAIR)
        pairs, explain = self.pairs, partial(_explain, self.precision)
        if 0 < len(pairs) <= most:
            return self._whole(most).pipeline(m, explain)
        made_ready = self._made_ready()
        return Piecewise(self.atoms, len(pairs), lambda: map(made_ready, pairs.chunks(most)), explain, m)

    def _whole(self, most: int) -> DeviceList:
        """Return the list on the device, prepared once for all evaluators."""
        with self._preparing:
            if self._listed is None:
                (pairs,) = self.pairs.chunks(most)
                self._listed = self._made_ready()(pairs)
            return self._listed

    def _made_ready(self) -> Callable[[PairList], DeviceList]:
        """Return a function that prepares a list, without a reference to the plan: see `Plan._prepare`."""
        passes = self.variants[self.variant].run
        return partial(DeviceList.of, passes, self.device, self.precision, self._molecule, gradient=self.gradient)

    def _outputs(self, m: int) -> Outputs:
        return Outputs.empty(m, len(self.atoms), len(TERMS), gradients=self.gradient)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the terms in results; without GB energy in a model without solvent."""
        return TERMS[:-1] if self.model.gb_model.vacuum else TERMS

    @property
    def _is_exact(self) -> bool:
        """Whether results are exact; False for rungs of the ladder that lose updates to races."""
        return True

    def _result(self, atoms: Atoms, found: Outputs, seconds: Mapping[str, float]) -> NonbondResult:
        return NonbondResult._unchecked(
            atoms=atoms,
            n_pairs=len(self.pairs),
            terms=Terms._unchecked(self.names, found.energies[0, : len(self.names)]),
            per_atom=None,
            gradient=None if found.gradients is None else found.gradients[0],
            exact=self._is_exact,
            device=str(self.device),
            variant=self.variant,
            precision=self.precision,
            seconds=seconds,
            how=self._how,
        )

    def _batch(
        self, positions: Floats, found: Outputs, errors: Mapping[int, str], seconds: Mapping[str, float]
    ) -> NonbondBatch:
        return NonbondBatch(
            atoms=self.atoms,
            n_pairs=len(self.pairs),
            positions=positions,
            terms=Terms(self.names, found.energies[:, : len(self.names)]),
            gradients=found.gradients,
            exact=self._is_exact,
            errors=errors,
            device=str(self.device),
            variant=self.variant,
            precision=self.precision,
            seconds=seconds,
            how=self._how,
        )


def _origin_of(pairs: Pairs) -> dict[str, Any]:
    """Describe how a list was made, by fields of NonbondSpec."""
    if isinstance(pairs, AllPairs):
        return {"pairs": "all", "one_four": "scale" if len(pairs.one_four) else "exclude"}
    for kind, function in ("cutoff", pairs_within), ("split", pairs_split):
        rule = getattr(pairs, "rule", None)
        if isinstance(rule, partial) and rule.func is function:
            words = rule.keywords
            return {"pairs": kind, "cutoff": words.get("cutoff"), "one_four": words["one_four"]}
    return {"pairs": "list"}


def _explain(precision: str, atoms: Atoms, found: Outputs, k: int) -> InputError:
    """Return the error of a conformation whose energy overflows."""
    bad = found.bad_atoms(k)
    where = f" of {atoms.describe(int(np.argmax(bad)))}" if bad.any() else ""
    return InputError(f"the energy{where} is not finite in {precision}; check charges and distances to other atoms")
