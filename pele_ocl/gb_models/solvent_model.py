"""SolventModel: the user-defined constants of the implicit-solvent model."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any
from weakref import ref

from ..atoms import RADII_SETS, Atoms, noted, require_atoms, with_default_set
from ..common.arguments import choice, described, in_lower_case, is_among, is_finite
from ..common.errors import InputError, KeywordError, PeleError
from ..common.modules import accept_former
from ..units import COULOMB_KCAL_A, debye_kappa, in_unit, molar
from . import GB_MODELS, GBModel, Spheres, model_name, models_listed
from .radii_of_models import RADII, radii_note

# Generalized Born energies use the Debye-Hueckel kappa times this factor (Srinivasan et al., Theor. Chem. Acc. 101, 426
# (1999)), as in PELE and Amber.
SCREENING_SCALE = 0.73

# Debye-Hueckel kappa (1/A) as different programs compute it from ionic strength (mol/L), dielectric constant and
# temperature (K). sander always uses the value for water at room temperature.
KAPPAS: Mapping[str, Callable[[float, float, float], float]] = {
    "debye": debye_kappa,
    "amber": lambda ionic_strength, dielectric, temperature: math.sqrt(0.10806 * ionic_strength),
    "openmm": lambda ionic_strength, dielectric, temperature: (
        50.33355 * math.sqrt(ionic_strength / dielectric / temperature)
    ),
}

# Nonpolar terms and their default surface tensions, kcal/mol/A^2: for ACE as in PELE and OpenMM, for LCPO as in
# MM/GBSA; in SGB/NP it is a parameter of each atom.
SURFACES = {"ace": 0.0054, "lcpo": 0.0072, "sgb": 0.0, "none": 0.0}

# Treatment of atoms without LCPO parameters: as carbon, as in sander, NAB and cpptraj, or as an error.
LCPO_UNKNOWN = ("carbon", "refuse")

# Assignment of LCPO parameters: by elements and bonds, or by AMBER atom types as in cpptraj.
LCPO_RULES = ("chemistry", "amber")

# Programs whose interpretation of GBn and GBn2 can be chosen.
GBN_CONVENTIONS = ("openmm", "amber")

# Constants that have an effect without solvent.
IN_VACUUM = ("gb", "solute_dielectric", "coulomb_constant")

# Fields that are not numbers.
_WORDS = ("gb", "kappa_convention", "surface", "gbn_convention", "lcpo_unknown", "default_radii", "lcpo_rule")

OF_MODEL = "model"  # value of default_radii: the set that the GB model was parametrized with

# Dielectric constants of water in the MM/GBSA programs, whose other constants agree: NAB and sander in MMPBSA.py, and
# gmx_MMPBSA.
MMGBSA_DIELECTRICS = {"mmpbsa.py": 78.3, "sander": 80.0, "gmx": 78.5}

# Constants of other programs that differ from the defaults of SolventModel; see docs/theory/solvent.md, section 3.
PRESETS: Mapping[str, Mapping[str, float | str]] = {
    "amber": {
        "solvent_dielectric": 78.5, "coulomb_constant": 18.2223**2, "kappa_convention": "amber", "surface": "none",
        "born_cutoff": 25.0, "gbn_convention": "amber", "default_radii": "model", "lcpo_rule": "amber",
    },
    **{
        program: {
            "solvent_dielectric": dielectric, "coulomb_constant": 18.2223**2, "kappa_convention": "amber",
            "surface": "lcpo", "born_cutoff": 25.0, "gbn_convention": "amber", "default_radii": "model",
            "lcpo_rule": "amber",
        }
        for program, dielectric in MMGBSA_DIELECTRICS.items()
    },
    "openmm": {"solvent_dielectric": 78.5, "kappa_convention": "openmm"},
    "exact": {},
    "pele": {"coulomb_constant": 332.0637, "default_radii": "pele"},
}  # fmt: skip
# Constants of other programs for a single GB model.
PRESETS_OF_MODELS: Mapping[tuple[str, str], Mapping[str, float]] = {("openmm", "gbn"): {"beta": 1.907992938}}


# Cache of the spheres of recent molecules, which a plan, its checks and its tables all request.
_spheres: deque[tuple[ref[Atoms], SolventModel, Spheres]] = deque(maxlen=8)

# Fields whose defaults depend on the GB model or the nonpolar term.
_FOLLOWING = ("surface", "surface_tension", "offset", "alpha", "beta", "gamma")


class OwnWord(str):
    """Default value of a text field. `dataclasses.replace` passes it on, and the new model chooses it again."""


class OwnNumber(float):
    """Default value of a numeric field, as OwnWord for texts."""


@dataclass(frozen=True)
class SolventModel:
    """A Generalized Born model with a nonpolar term; the defaults are PELE's, except for Coulomb's constant.

    gb : name of the model for Born radii, such as "obc2", from pele_ocl/gb_models/__init__.py, or AMBER's number:
        5 or "igb=5"; "none" for no solvent
    solute_dielectric, solvent_dielectric : relative permittivities, between 0.001 and 1e6
    ionic_strength : mol/L, 0 to 20; 0 means no screening
    temperature : K, 0.001 to 1e6; only used to compute kappa, except with kappa_convention "amber"
    offset : A, subtracted from each radius; None for the default of the GB model: 0.09, or 0.195141 for gbn2
    alpha, beta, gamma : coefficients of the tanh polynomial of OBC and GBn; None for the defaults of the GB model,
        which depend on the element in gbn2
    surface_tension : surface tension of the nonpolar term, kcal/mol/A^2, >= 0; None for 0.0054 with ACE, 0.0072 with
        LCPO
    probe_radius : radius of the solvent probe, A, > 0
    born_cutoff : cutoff of the Born integrals, A, > 0, as rgbmax in sander; None for no cutoff
    gbn_convention : details of gbn and gbn2 that the papers leave open. "openmm" interpolates the neck tables (1 to 2 A
        in steps of 0.05 A) linearly and uses the closed form for all spheres. "amber" takes the nearest table entry and
        uses sander's 5-term series beyond 4 scaled radii, even for overlapping spheres; this affects sulphur in gbn2,
        whose scaled radius is negative, and oxygen in nucleic acids, whose scaled radius is small
    coulomb_constant : Coulomb's constant in all electrostatic energies, kcal A/(mol e^2), > 0; by default from CODATA
        2018
    kappa_convention : formula for kappa, which is always scaled by 0.73: "debye" for Debye-Hueckel theory with the
        dielectric constant and temperature, "amber" for sqrt(0.10806 I) at any temperature as in sander, "openmm" as in
        OpenMM's application layer
    surface : nonpolar term: "ace" (Schaefer, Bartels and Karplus 1998) from Born radii, "lcpo" (Weiser, Shenkin and
        Still 1999) from the surface area, or "none". The default is "ace". sgbnp and vdgbnp use "sgb" (Gallicchio,
        Zhang and Levy 2002) instead, unless the term is "none"
    lcpo_unknown : "carbon" assigns carbon's parameters to atoms without LCPO parameters, as AMBER's programs do;
        "refuse" raises InputError for them
    default_radii : set of GB radii for molecules whose radii were not chosen by the file or the user: a name, or
        "model" for the set of the GB model. By default gbn uses bondi, gbn2 uses mbondi3, and other models use the
        force field's set
    lcpo_rule : "chemistry" assigns LCPO parameters by elements and bonds; "amber" assigns them by the first letters of
        AMBER atom types like cpptraj, which treats chlorine, bromine and iodine as carbon and gives ions no area

    Raises InputError for values out of range, and for solvent parameters with gb="none".

    >>> model = pele_ocl.SolventModel(gb="gbn2", ionic_strength=0.15)
    >>> model.gb, round(model.kappa, 4)
    ('gbn2', 0.0921)
    """

    solute_dielectric: float = 1.0
    solvent_dielectric: float = 80.0
    ionic_strength: float = 0.0
    temperature: float = 298.15
    # __post_init__ replaces None by the default of the GB model.
    offset: float = None  # type: ignore[assignment]
    alpha: float = None  # type: ignore[assignment]
    beta: float = None  # type: ignore[assignment]
    gamma: float = None  # type: ignore[assignment]
    surface_tension: float = None  # type: ignore[assignment]
    probe_radius: float = 1.4
    born_cutoff: float | None = None
    gbn_convention: str = "openmm"
    gb: str = "obc2"
    coulomb_constant: float = COULOMB_KCAL_A
    kappa_convention: str = "debye"
    surface: str = None  # type: ignore[assignment]
    lcpo_unknown: str = "carbon"
    default_radii: str | None = None
    lcpo_rule: str = "chemistry"

    def __post_init__(self) -> None:
        vars(self).update(in_lower_case(vars(self)))
        object.__setattr__(self, "gb", model_name(self.gb))
        if not isinstance(self.gb, str) or self.gb not in GB_MODELS:
            raise InputError(f"gb is {described(self.gb)}; choose {models_listed()}")
        object.__setattr__(self, "temperature", in_unit("temperature", self.temperature, "K"))
        choice("kappa_convention", self.kappa_convention, tuple(KAPPAS))
        is_made_of_another = self._forget_own()
        if self.surface is not None:
            choice("surface", self.surface, tuple(SURFACES))
        if self.gb_model.vacuum and not is_made_of_another:
            self._refuse_solvent()
        self._fit_surface()
        self._take_own()
        choice("lcpo_unknown", self.lcpo_unknown, LCPO_UNKNOWN)
        choice("lcpo_rule", self.lcpo_rule, LCPO_RULES)
        choice("gbn_convention", self.gbn_convention, GBN_CONVENTIONS)
        if self.default_radii is not None:
            choice("default_radii", self.default_radii, (*RADII_SETS, OF_MODEL))
        for f in fields(self):
            if f.name in _WORDS:
                continue
            value = getattr(self, f.name)
            if self._may_be_none(f.name):
                if value is None:
                    continue
                if f.name != "born_cutoff":
                    raise InputError(
                        f"{f.name} is {described(value)}, but {self.gb} defines it by element; leave it out"
                    )
            if not is_finite(value) or abs(value) > 1e6:
                raise InputError(f"{f.name} is {described(value)}; expected a finite number, at most 1,000,000")
            if f.name in ("solute_dielectric", "solvent_dielectric", "temperature") and not 1e-3 <= value <= 1e6:
                raise InputError(f"{f.name} is {value:g}; it must be positive, 0.001 to 1,000,000")
            if f.name in ("probe_radius", "coulomb_constant", "born_cutoff") and value <= 0:
                raise InputError(f"{f.name} is {value:g}; it must be positive")
            if f.name == "ionic_strength":
                molar(f.name, value)
            if f.name in ("offset", "surface_tension") and value < 0:
                raise InputError(f"{f.name} is {value:g}; it cannot be negative")

    def _forget_own(self) -> bool:
        """Reset default values passed on by `dataclasses.replace` to None. Returns whether there were any."""
        own = [name for name in _FOLLOWING if isinstance(getattr(self, name), OwnWord | OwnNumber)]
        for name in own:
            object.__setattr__(self, name, None)
        return bool(own)

    def _take_own(self) -> None:
        """Fill in defaults that depend on other fields, in order of dependency."""
        if self.surface is None:
            object.__setattr__(self, "surface", OwnWord(self.gb_model.nonpolar or "ace"))
        if self.surface_tension is None:
            object.__setattr__(self, "surface_tension", OwnNumber(SURFACES[self.surface]))
        for name in ("offset", "alpha", "beta", "gamma"):
            if getattr(self, name) is None and (value := getattr(self.gb_model, name)) is not None:
                object.__setattr__(self, name, OwnNumber(value))

    def _refuse_solvent(self) -> None:
        """Raise InputError if solvent parameters are given with the model without solvent."""
        same = {"surface": "none", "surface_tension": 0.0}  # redundant but allowed, like 0 mol/L
        for f in fields(self):
            value = getattr(self, f.name)
            plays = f.name not in (*IN_VACUUM, "default_radii")
            if plays and value not in (f.default, same.get(f.name, f.default)):
                raise InputError(
                    f"{f.name} is {described(value)}, and gb={self.gb!r} has no solvent; leave one of them out"
                )

    def in_vacuum(self) -> SolventModel:
        """Return the model without solvent, with the same Coulomb constant and solute dielectric constant."""
        return type(self)(
            gb="none", solute_dielectric=self.solute_dielectric, coulomb_constant=self.coulomb_constant
        )  # fmt: skip

    def _fit_surface(self) -> None:
        """Set the nonpolar term of the GB model. Raises InputError for options that the model does not support."""
        if (nonpolar := self.gb_model.nonpolar) is not None:
            if self.born_cutoff is not None:
                raise InputError(f"{self.gb} computes Born radii from the complete surface; leave out born_cutoff")
            if self.surface == "lcpo" or self.surface_tension:
                raise InputError(f"{self.gb} has its own nonpolar term; leave out surface and surface_tension")
            if self.surface not in (None, "none"):
                object.__setattr__(self, "surface", nonpolar)
        elif self.surface == "sgb":
            if not self.gb_model.vacuum:
                raise InputError(
                    f"surface 'sgb' can only be used with sgbnp and vdgbnp, not with {self.gb}; choose another"
                )
            object.__setattr__(self, "surface", "none")

    def _may_be_none(self, name: str) -> bool:
        """Return whether None is a valid final value of a field."""
        return name == "born_cutoff" or (self.gb_model.by_atom and name in ("alpha", "beta", "gamma"))

    @classmethod
    def or_default(cls, model: SolventModel | None) -> SolventModel:
        """Return the model, or the default model for None. Raises InputError for anything else."""
        if model is not None and not isinstance(model, cls):
            raise InputError(f"model is {described(model)}; expected a SolventModel: SolventModel(ionic_strength=0.15)")
        return model or cls()

    @classmethod
    def like(cls, program: str, **changes: float | str | None) -> SolventModel:
        """Return a model with the constants of another program, with optional changes: like("amber", gb="obc1").

        program : name of the program, such as "amber" (sander), "openmm" (its application layer) or "pele"
        changes : fields of SolventModel that override those constants

        Raises InputError for unknown programs or fields.

        >>> model = pele_ocl.SolventModel.like("amber", gb="gbn2")
        >>> model.solvent_dielectric, model.surface
        (78.5, 'none')
        """
        program, changes = in_lower_case({"program": program})["program"], in_lower_case(changes)
        choice("program", program, tuple(PRESETS))
        if "rgb_max" in changes:
            changes = {"born_cutoff" if name == "rgb_max" else name: of for name, of in changes.items()}
        unknown = set(changes) - {f.name for f in fields(cls)}
        if unknown:
            raise InputError(f"a SolventModel has no {', '.join(sorted(unknown))}; see help(SolventModel)")
        of_model = PRESETS_OF_MODELS.get((program, str(model_name(changes.get("gb")))), {})
        own = {**PRESETS[program], **of_model}
        if is_among(changes.get("gb"), ("none",)):
            own = {name: value for name, value in own.items() if name in (*IN_VACUUM, "default_radii")}
        return cls(**{**own, **changes})  # type: ignore[arg-type]

    @property
    def gb_model(self) -> GBModel:
        """The GBModel named by `gb`."""
        return GB_MODELS[self.gb]

    @property
    def radii_set(self) -> str | None:
        """Set of GB radii for molecules whose radii were not chosen; None for the force field's set."""
        if self.default_radii not in (None, OF_MODEL):
            return self.default_radii
        own = self.gb_model
        return own.radii_set if self.default_radii == OF_MODEL or own.needs_its_radii else None

    def choose_radii(self, atoms: Atoms) -> Atoms:
        """Assign the GB radii of this model unless the file or the user chose others.

        Functions that take a model call it. Chosen radii are kept, with a note if they do not match the GB model.
        Without solvent, atoms are returned unchanged.

        Raises ParameterError if the set has no radius for an atom, InputError if radii cannot be assigned without
        bonds.

        >>> atoms = pele_ocl.read("data/structures/trialanine.pdb")
        >>> pele_ocl.SolventModel(gb="gbn2").choose_radii(atoms).gb_radii_set
        'mbondi3'
        """
        require_atoms(atoms)
        if self.gb_model.vacuum:
            return atoms
        if atoms.has_default_radii:
            assert atoms.default_radii is not None
            name = self.radii_set or atoms.default_radii.name
            if name == atoms.default_radii.name and atoms.default_radii.lacking:
                return atoms  # functions that need radii raise the error
            if atoms.gb_radii_set != name:
                atoms = with_default_set(atoms, name)
        if atoms.gb_radii is None:
            return atoms
        unfit = radii_note(self.gb, atoms.gb_radii_set)
        told = [note for note in atoms.notes if note == unfit or getattr(note, "code", "") != RADII]
        if unfit is not None and unfit not in told:
            told.append(unfit)
        return atoms if tuple(told) == atoms.notes else noted(atoms, tuple(told))

    def spheres(self, atoms: Atoms) -> Spheres:
        """Return the spheres of atoms in this model. Raises InputError or ParameterError for missing parameters."""
        for of, model, spheres in list(_spheres):
            if of() is atoms and model == self:
                return spheres
        chosen = self.choose_radii(atoms)
        chosen.require(self.gb_model.parameters, f"the GB model {self.gb}")
        made = self.gb_model.spheres(chosen, self.offset, self.gbn_convention == "amber")
        for values in (made.radii, made.rho, made.scaled, *([] if made.constants is None else [made.constants])):
            values.flags.writeable = False
        _spheres.append((ref(atoms), self, made))
        return made

    @property
    def radius_definitions(self) -> dict[str, int]:
        """Macros of kernels that use the radius function (cl/physics/gb_radius.clh)."""
        return self.gb_model.definitions

    @property
    def integral_definitions(self) -> dict[str, int]:
        """Macros of kernels that compute Born integrals or their derivatives."""
        chosen = {
            "NECK": self.gb_model.neck_scale > 0, "RGB_MAX": self.born_cutoff is not None,
            "SERIES_FIRST": self.series_first,
        }  # fmt: skip
        return {name: 1 for name, is_on in chosen.items() if is_on}

    @property
    def series_first(self) -> bool:
        """True if distant spheres use the series even where they overlap, as in sander; only relevant for gbn2."""
        return self.gbn_convention == "amber" and self.gb_model.has_negative

    @property
    def radius_constants(self) -> tuple[float, float, float, float]:
        """Constants of the radius function: alpha, beta, gamma, and the offset in A."""
        return self.alpha, self.beta, self.gamma, self.offset

    @property
    def outside(self) -> float:
        """Solute dielectric constant divided by that of the solvent; 1 without solvent."""
        return 1.0 if self.gb_model.vacuum else self.solute_dielectric / self.solvent_dielectric

    @property
    def kappa(self) -> float:
        """Inverse screening length of the GB energy, 1/A; 0 without ions."""
        if self.gb_model.vacuum:
            return 0.0
        kappa = KAPPAS[self.kappa_convention]
        return SCREENING_SCALE * kappa(self.ionic_strength, self.solvent_dielectric, self.temperature)

    @property
    def coulomb_factor(self) -> float:
        """Coulomb's constant divided by the solute dielectric constant, kcal A/(mol e^2)."""
        return self.coulomb_constant / self.solute_dielectric

    @property
    def ace_tension(self) -> float:
        """Surface tension of the ACE term, kcal/mol/A^2; 0 with another nonpolar term or without solvent."""
        return self.surface_tension if self.surface == "ace" and not self.gb_model.vacuum else 0.0

    @property
    def settings(self) -> dict[str, float | str | None]:
        """All constants by name, including kappa (1/A); None for those without effect.

        born_cutoff is None without a cutoff. Without solvent, all but the constants of the Coulomb energy are None.
        """
        values = {**asdict(self), "kappa": self.kappa}
        del values["default_radii"]  # recorded with each molecule
        if self.surface != "lcpo":
            values["lcpo_unknown"] = None
        if self.gb_model.vacuum:
            return {name: value if name in IN_VACUUM else None for name, value in values.items()}
        return values


accept_former(SolventModel, rgb_max="born_cutoff")


def choose_radii_of(model: SolventModel, molecules: Iterable[Atoms]) -> list[Atoms]:
    """Choose the radii of several molecules, once per distinct object. Molecules that raise errors are unchanged."""
    found: dict[int, Atoms] = {}
    given = list(molecules)
    for atoms in given:
        if id(atoms) not in found:
            try:
                found[id(atoms)] = model.choose_radii(atoms)
            except PeleError:  # the plan of this molecule raises it again
                found[id(atoms)] = atoms
    return [found[id(atoms)] for atoms in given]


def has_area(model: SolventModel, terms: Container[str]) -> bool:
    """Return whether the surface area can be computed from these energy terms: from the LCPO nonpolar energy."""
    return model.surface == "lcpo" and model.surface_tension > 0 and "nonpolar" in terms


def surface_area(model: SolventModel, nonpolar: float) -> float:
    """Return the surface area (A^2) for a nonpolar energy (kcal/mol). Raises InputError for models without an area."""
    if model.surface != "lcpo" or model.surface_tension == 0:
        raise InputError("a surface area is only computed with surface='lcpo' and a surface_tension above 0")
    return nonpolar / model.surface_tension


OF_SOLVENT = ("like", *(of.name for of in fields(SolventModel)))  # keywords for a SolventModel
_SAYS_NONE = {"surface": "none", "ionic_strength": 0.0}  # values that agree with `gb='none'`


def solvent_of(words: Mapping[str, Any], vacuum: str = "gb='none'") -> SolventModel:
    """Create a SolventModel from keywords: `like` and fields of SolventModel.

    vacuum : option that turns the solvent off, for messages

    Raises InputError for solvent parameters with `gb="none"`.
    """
    given = {word: of for word, of in words.items() if word != "like"}
    like = words.get("like")
    if is_among(given.get("gb"), ("none",)):
        idle = [word for word, of in given.items() if word not in (*IN_VACUUM, "gb") and of != _SAYS_NONE.get(word)]
        if idle:
            names = ", ".join(f"`{word}`" for word in idle)
            raise KeywordError(f"`{vacuum}` has no solvent; leave out {names}, which would have no effect")
        given = {word: of for word, of in given.items() if word in IN_VACUUM} | {"gb": "none"}
    return SolventModel(**given) if like is None else SolventModel.like(like, **given)
