"""Descriptions of maps for pages and pictures."""

from __future__ import annotations

from ..atoms import Atoms
from ..gb_models.radii_of_models import radii_words
from ..grid import Map
from ..pb_model import PBModel
from ..potential_model import LAWS, PotentialModel

POISSON_BOLTZMANN = "Poisson-Boltzmann potential"  # beginning of the titles of these maps
NOT_POISSON_BOLTZMANN = (
    "It is not a solution of the Poisson-Boltzmann equation, in which the inside of the molecule has a lower "
    "permittivity than the solvent and excludes the salt: compare it only with maps computed in the same way, not "
    "with those of APBS."
)


def quantity_of(map_: Map) -> str:
    """Return the name of a map's values for a colour bar, taken from its title, or "potential"."""
    return next((law for law in (POISSON_BOLTZMANN, *LAWS) if law in map_.title), "potential")


def about_model(model: PotentialModel) -> str:
    """Describe a map computed by `potmap` with these settings."""
    if model.distance_dependent:
        medium = f"with the permittivity {model.dielectric:g} r at the distance of r Å"
    elif model.dielectric == 1:
        medium = "in vacuum"
    else:
        medium = f"in a uniform medium of relative permittivity {model.dielectric:g}, inside and outside the molecule"
    salt = f", screened by salt with a Debye length of {1 / model.kappa:.1f} Å" if model.kappa else ""
    cutoff = f", of charges within {model.cutoff:g} Å" if model.cutoff else ""
    return f"The map is the Coulomb potential of the atoms' charges {medium}{salt}{cutoff}. {NOT_POISSON_BOLTZMANN}"


def about_map(model: PotentialModel | PBModel, map_: Map, atoms: Atoms) -> str:
    """Describe a map computed by `potmap` for these atoms."""
    if isinstance(model, PBModel):
        return about_pb(model, float(map_.grid.spacing.max()), atoms.gb_radii_set)
    return about_model(model)


def about_pb(model: PBModel, spacing: float, radii: str) -> str:
    """Describe a map computed by `PoissonBoltzmann`. spacing : A; radii : name of the atomic radii"""
    salt = f"{model.ionic_strength:g} mol/L of salt" if model.has_salt else "without salt"
    return (
        f"The map is the potential by the {model.equation} Poisson-Boltzmann equation: permittivity "
        f"{model.solute_dielectric:g} inside the molecule and {model.solvent_dielectric:g} outside, {salt}, at "
        f"{model.temperature:g} K, on a grid of {spacing:.2g} Å. The atoms have the radii {radii_words(radii)}."
    )


def about_file(name: str, title: str) -> str:
    """Describe a map read from a file. name : of the file; title : in the file"""
    says = f", which calls it “{title}”" if title else ""
    if POISSON_BOLTZMANN in title:
        return (
            f"The map was read from {name}{says}: it is a solution of the Poisson-Boltzmann equation by pele-ocl. Its "
            "permittivities, salt and radii are listed in the report of the run that computed it."
        )
    return (
        f"The map was read from {name}{says}. The meaning of its values depends on the program that wrote it: APBS "
        "solves the Poisson-Boltzmann equation, as pele-ocl does where the title says so; its other maps "
        "sum the Coulomb potential of charges in a uniform medium, which is not a solution of that equation."
    )
