"""Results of `solvent`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from ..atoms import Floats
from ..contract import HasFindings
from ..gb_models.solvent_model import SolventModel, surface_area
from ..results import TermBatch, TermResult
from .error import RadiusError

TERMS = ("gb_self", "gb_pair", "nonpolar")


def terms_of(model: SolventModel) -> tuple[str, ...]:
    """Return the terms that a model has, the first of TERMS: no nonpolar energy with surface="none"."""
    return TERMS[:-1] if model.surface == "none" else TERMS


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class SolventResult(HasFindings, TermResult):
    """Born radii and implicit-solvent energy of one conformation of n atoms, and how they were computed.

    born_radii : (n,) A
    psi : (n,) the argument of the radius function, dimensionless
    terms, per_atom : without terms, and None, if energies were not requested
    seconds : "total", including overhead. If kernel times were requested also "place", of the kernel that sorts atoms
        into tiles. "born" and "energy" are the kernels of the two steps, "kernel" is their sum. "born" of the ladder
        includes the time between its kernels. "error", of its measurement including overhead
    accuracy : of Born radii; None without approximation
    error : RadiusError measured on some of the atoms. None without approximation, and on devices without float64.
        Members of a batch have that of the batch

    >>> result = pele_ocl.solvent("data/structures/trialanine.pdb")
    >>> result.terms.names, round(float(result.born_radii.max()), 2)
    (('gb_self', 'gb_pair', 'nonpolar'), 2.82)
    """

    _room = "solvent"

    model: SolventModel
    born_radii: Floats
    psi: Floats
    accuracy: float | None = None
    error: RadiusError | None = None

    @property
    def surface_area(self) -> float:
        """Surface area, A^2, with surface="lcpo"; that of an atom is its nonpolar energy divided by the tension.

        Raises InputError for other models, and if energies were not requested.
        """
        self.terms.require()
        return surface_area(self.model, float(self.terms.nonpolar) if self.model.surface == "lcpo" else 0.0)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class SolventBatch(TermBatch[SolventResult]):
    """Born radii and energies of m conformations of n atoms; `batch[i]` is the SolventResult of one.

    atoms : the molecule as in the plan; positions : (m, n, 3) A as given, not copied
    born_radii : (m, n) A; psi : (m, n)
    errors : reasons why conformations failed, by index from 0; their results are NaN
    accuracy, error : as in SolventResult, with the error of the first valid conformation

    >>> atoms = pele_ocl.read("data/structures/trialanine.pdb")
    >>> batch = pele_ocl.Solvent(atoms).evaluate_batch([atoms.positions] * 2)
    >>> batch.born_radii.shape, batch.total.round(1).tolist()
    ((2, 33), [-119.2, -119.2])
    """

    _room = "solvent"
    _of_one = SolventResult
    _each: ClassVar[Mapping[str, str]] = {"born_radii": "born_radii", "psi": "psi"}

    model: SolventModel
    born_radii: Floats
    psi: Floats
    accuracy: float | None = None
    error: RadiusError | None = None
