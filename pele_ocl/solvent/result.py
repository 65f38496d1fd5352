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
    """Names of the terms in a model; no nonpolar energy with surface="none"."""
    return TERMS[:-1] if model.surface == "none" else TERMS


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class SolventResult(HasFindings, TermResult):
    """Born radii and implicit-solvent energy of one conformation of n atoms, and how they were computed.

    born_radii : (n,) A
    psi : (n,) argument of the radius function, dimensionless
    terms, per_atom : empty, and None, if energies were not requested
    seconds : "total", including overhead. If kernel times were requested also "place", for sorting atoms into tiles,
        "born" and "energy", for the two steps, and "kernel", their sum. For rungs of the ladder "born" includes the
        time between kernels. "error", for measuring the error, including overhead
    accuracy : requested accuracy of Born radii; None if they are exact
    error : RadiusError measured on some of the atoms; None if radii are exact, and on devices without float64. Results
        from a batch have the error of the batch

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
        """Surface area, A^2, for surface="lcpo"; that of an atom is its nonpolar energy divided by the surface tension.

        Raises InputError for other models, and if energies were not requested.
        """
        self.terms.require()
        return surface_area(self.model, float(self.terms.nonpolar) if self.model.surface == "lcpo" else 0.0)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class SolventBatch(TermBatch[SolventResult]):
    """Born radii and energies of m conformations of n atoms; `batch[i]` is the SolventResult of one.

    atoms : the molecule of the plan; positions : (m, n, 3) A as given, not copied
    born_radii : (m, n) A; psi : (m, n)
    errors : reasons for failed conformations, by index from 0; their results are NaN
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
