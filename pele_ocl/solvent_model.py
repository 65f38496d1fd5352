"""The constants of the implicit-solvent model that a user may set."""

from __future__ import annotations

from dataclasses import dataclass, fields

from .arguments import described, is_finite
from .atoms import Atoms
from .errors import InputError
from .gb_models import GB_MODELS, GBModel, Spheres
from .units import debye_kappa

# Generalized Born energies screen with this share of the Debye-Hueckel kappa (Srinivasan et al., Theor. Chem. Acc.
# 101, 426 (1999)), in PELE as in Amber.
SCREENING_SCALE = 0.73


@dataclass(frozen=True)
class SolventModel:
    """A Generalized Born model with the ACE nonpolar term; the defaults are PELE's.

    gb : name of the model that Born radii follow, a key of GB_MODELS: "hct", "obc1", "obc2", "gbn", "gbn2", or "none"
        for no solvent at all
    solute_dielectric, solvent_dielectric : relative permittivities, 0.001 to 1e6
    ionic_strength : mol/L, >= 0; 0 means no screening
    temperature : K, 0.001 to 1e6; matters only with ions
    offset : A, taken off each radius; None for the model's own, 0.09, or 0.195141 of gbn2
    alpha, beta, gamma : of the tanh polynomial of OBC and GBn; None for the model's own, which gbn2 has by element
    surface_tension : kcal/mol/A^2 of the nonpolar term, >= 0 (Schaefer, Bartels and Karplus 1998)
    probe_radius : A, > 0
    rgb_max : A, > 0; spheres count in Born radii as far as they are within this distance of an atom, as in sander;
        None for all of them

    Raises InputError for values outside these bounds.
    """

    solute_dielectric: float = 1.0
    solvent_dielectric: float = 80.0
    ionic_strength: float = 0.0
    temperature: float = 298.15
    # None stands for the model's own value, which __post_init__ puts in its place.
    offset: float = None  # type: ignore[assignment]
    alpha: float = None  # type: ignore[assignment]
    beta: float = None  # type: ignore[assignment]
    gamma: float = None  # type: ignore[assignment]
    surface_tension: float = 0.0054
    probe_radius: float = 1.4
    rgb_max: float | None = None
    gb: str = "obc2"

    def __post_init__(self) -> None:
        if not isinstance(self.gb, str) or self.gb not in GB_MODELS:
            raise InputError(f"gb is {described(self.gb)}; choose {', '.join(GB_MODELS)}")
        for f in fields(self):
            if f.name == "gb":
                continue
            if getattr(self, f.name) is None and hasattr(self.gb_model, f.name):
                object.__setattr__(self, f.name, getattr(self.gb_model, f.name))
            value = getattr(self, f.name)
            if self._may_be_none(f.name):
                if value is None:
                    continue
                if f.name != "rgb_max":
                    raise InputError(f"{f.name} is {described(value)}, and {self.gb} has its own by element; leave it out")
            if not is_finite(value) or abs(value) > 1e6:
                raise InputError(f"{f.name} is {described(value)}; a finite number is needed, at most 1,000,000")
            if f.name in ("solute_dielectric", "solvent_dielectric", "temperature") and not 1e-3 <= value <= 1e6:
                raise InputError(f"{f.name} is {value:g}; it must be positive, 0.001 to 1,000,000")
            if f.name in ("probe_radius", "rgb_max") and value <= 0:
                raise InputError(f"{f.name} is {value:g}; it must be positive")
            if f.name in ("ionic_strength", "offset", "surface_tension") and value < 0:
                raise InputError(f"{f.name} is {value:g}; it cannot be negative")

    def _may_be_none(self, name: str) -> bool:
        """Whether a value may be left out for good."""
        return name == "rgb_max" or (self.gb_model.by_atom and name in ("alpha", "beta", "gamma"))

    @classmethod
    def or_default(cls, model: SolventModel | None) -> SolventModel:
        """The model, by default the standard one; raises InputError for anything else."""
        if model is not None and not isinstance(model, cls):
            raise InputError(
                f"model is {described(model)}; a SolventModel is needed: SolventModel(ionic_strength=0.15)"
            )
        return model or cls()

    @property
    def gb_model(self) -> GBModel:
        """The Generalized Born model of that name."""
        return GB_MODELS[self.gb]

    def spheres(self, atoms: Atoms) -> Spheres:
        """The spheres of atoms in this model; raises InputError or ParameterError where they lack what it needs."""
        return self.gb_model.spheres(atoms, self.offset)

    @property
    def radius_definitions(self) -> dict[str, int]:
        """The build definitions of kernels that take the radius function; cl/physics/gb_radius.clh."""
        return self.gb_model.definitions

    @property
    def integral_definitions(self) -> dict[str, int]:
        """The build definitions of kernels that compute Born integrals or their slopes."""
        chosen = {"NECK": self.gb_model.neck_scale > 0, "RGB_MAX": self.rgb_max is not None}
        return {name: 1 for name, is_on in chosen.items() if is_on}

    @property
    def radius_constants(self) -> tuple[float, float, float, float]:
        """The constants of the radius function as kernels take them: alpha, beta, gamma, and the offset in A."""
        return self.alpha, self.beta, self.gamma, self.offset

    @property
    def outside(self) -> float:
        """The dielectric constant of the solute over that of the solvent; 1 where there is no solvent."""
        return 1.0 if self.gb_model.vacuum else self.solute_dielectric / self.solvent_dielectric

    @property
    def kappa(self) -> float:
        """Inverse screening length of the GB energy, 1/A; 0 without ions."""
        if self.gb_model.vacuum:
            return 0.0
        return SCREENING_SCALE * debye_kappa(self.ionic_strength, self.solvent_dielectric, self.temperature)
