"""Results of `energy`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from ..atoms import Floats
from ..common.arguments import texts
from ..common.errors import InputError
from ..contract import HasFindings
from ..gb_models.solvent_model import SolventModel, surface_area
from ..results import TermBatch, TermResult
from .bonded.tasks import TABLES_OF_TERMS

if TYPE_CHECKING:
    from ..solvent.error import RadiusError

PASS_TERMS = ("lennard_jones", "coulomb", "gb_pair", "gb_self", "nonpolar")  # computed by the passes over pairs
TERMS = ("lennard_jones", "lennard_jones_14", "coulomb", "coulomb_14", "gb_pair", "gb_self", "nonpolar")
BONDED_TERMS = tuple(TABLES_OF_TERMS)
ALL_TERMS = (*BONDED_TERMS, *TERMS)  # in the order of results
# Groups of terms.
GROUPS = {"bonded": BONDED_TERMS, "nonbonded": TERMS[:4], "gb": ("gb_pair", "gb_self")}


def terms_listed(terms: str | Sequence[str] | None) -> list[str] | None:
    """Return a list of term names from a list or a comma-separated text; spaces may replace underscores.

    Raises InputError for unknown names.
    """
    if terms is None:
        return None
    given = terms.split(",") if isinstance(terms, str) else texts("only_terms", terms)
    names = ["_".join(name.split()) for name in given]
    unknown = next((name for name in names if name not in (*ALL_TERMS, *GROUPS)), None)
    if unknown is not None:
        raise InputError(
            f"unknown term {unknown!r}; choose from {', '.join(ALL_TERMS)}; {', '.join(GROUPS)} are groups of terms"
        )
    return names


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class EnergyResult(HasFindings, TermResult):
    """Energy of one conformation of n atoms, and how it was computed.

    gradient : (n, 3) kcal/mol/A; None if not requested
    born_radii : (n,) A; NaN if no term depends on them, as without solvent
    seconds : "total", including overhead and kernel compilation; "kernel", if kernel times were requested, from the
        first start to the last end, summed over chunks; "error", for measuring the error, including overhead
    born : how Born radii were computed, a key of BORN
    accuracy : requested accuracy of Born radii; None if they come from all pairs
    error : RadiusError measured on some of the atoms; None if radii come from all pairs, and on devices without
        float64. Results from a batch have the error of the batch

    >>> result = pele_ocl.energy("data/structures/trialanine.pdb")
    >>> round(result.total, 1), round(result.coulomb, 1), result.gradient.shape
    (-135.5, -253.1, (33, 3))
    >>> result.save("energy.csv")
    >>> print(result.table())
    Energy of 33 atoms
    Force field   amber99sb
    Solvent       obc2, radii openmm-obc, water 80, inside 1, no salt, ACE 0.0054; all pairs
    <BLANKLINE>
    term              energy [kcal/mol]
    bond                          1.266
    ...
    total                      -135.505
    """

    _room = "energy"

    model: SolventModel
    gradient: Floats | None
    born_radii: Floats
    born: str
    accuracy: float | None = None
    error: RadiusError | None = None

    @property
    def surface_area(self) -> float:
        """Surface area, A^2, for surface="lcpo"; that of an atom is its nonpolar energy divided by the surface tension.

        Raises InputError for other models, and if the nonpolar energy was not computed.

        >>> result = pele_ocl.energy("data/structures/trialanine.pdb", surface="lcpo", gb="gbn2")
        >>> round(result.surface_area)
        348
        """
        if "nonpolar" not in self.terms.names:
            raise InputError(
                "there is no surface area without the nonpolar energy; choose surface='lcpo' and include this term"
            )
        return surface_area(self.model, float(self.terms.nonpolar))


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class EnergyBatch(TermBatch[EnergyResult]):
    """Energies of m conformations of n atoms; `batch[i]` is the EnergyResult of one.

    atoms : the molecule of the plan; positions : (m, n, 3) A as given, not copied
    gradients : (m, n, 3) kcal/mol/A, None if not requested; born_radii : (m, n) A
    errors : reasons for failed conformations, by index from 0; their results are NaN
    born, accuracy, error : as in EnergyResult, with the error of the first valid conformation

    >>> atoms = pele_ocl.read("data/structures/trialanine.pdb")
    >>> batch = pele_ocl.Energy(atoms).evaluate_batch([atoms.positions, atoms.positions * 1.01])
    >>> len(batch), batch.energies.shape, batch.gradients.shape
    (2, (2, 11), (2, 33, 3))
    >>> batch.save("two.csv")
    >>> batch[0].total < batch[1].total
    True
    """

    _room = "energy"
    _of_one = EnergyResult
    _each: ClassVar[Mapping[str, str]] = {"gradient": "gradients", "born_radii": "born_radii"}

    model: SolventModel
    gradients: Floats | None
    born_radii: Floats
    born: str
    accuracy: float | None = None
    error: RadiusError | None = None
