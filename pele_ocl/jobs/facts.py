"""Facts that the records of several jobs share, as JSON has them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..atoms import Atoms, Floats
from ..atoms.selection import Composition
from ..energy import EnergyBatch, EnergyResult
from ..solvent import SolventResult
from ..solvent_model import SolventModel, has_area, surface_area

Energies = Mapping[str, float]  # by term, the total among them


def composition_as_json(atoms: Atoms) -> dict[str, int | dict[str, int]] | None:
    """How many residues of each kind there are; None where the kinds are not known."""
    return None if atoms.labels is None else Composition.of(atoms.labels).as_json()


def settings(model: SolventModel, atoms: Atoms) -> dict[str, float | str | None]:
    """Every constant of the solvent, and the set of the GB radii."""
    return {**model.settings, "gb_radii_set": None if model.gb_model.vacuum else radii_of(model, atoms)}


def radii_of(model: SolventModel, atoms: Atoms) -> str:
    """Name the set of the radii that the model takes: of the GB radii, or "sgb" of Atoms.sgb."""
    return "sgb" if model.gb_model.of_surface else atoms.gb_radii_set


def area_facts(model: SolventModel, energy: Mapping[str, float]) -> dict[str, float]:
    """The surface area, A^2, where there is one."""
    return {"surface_area": surface_area(model, energy["nonpolar"])} if has_area(model, energy) else {}


def residue_names(atoms: Atoms) -> list[str]:
    """The residues in their order: `A:ALA5`."""
    assert atoms.labels is not None
    return [atoms.labels.residue(int(i)) for i in atoms.labels.residue_starts]


def residues_as_json(names: Sequence[str], terms: Mapping[str, Floats]) -> list[dict[str, Any]]:
    """An object for each residue; terms : name -> (n_residues,) kcal/mol"""
    columns = [values.tolist() for values in terms.values()]
    return [{"residue": name, **dict(zip(terms, row, strict=True))} for name, *row in zip(names, *columns, strict=True)]


def models_as_json(numbers: Sequence[int], energies: Sequence[Energies]) -> list[dict[str, Any]]:
    """An object for each model."""
    return [{"model": number, **of} for number, of in zip(numbers, energies, strict=True)]


def accuracy_facts(result: SolventResult | EnergyResult | EnergyBatch) -> dict[str, Any]:
    """The accuracy and the measured error; nothing where nothing was left out.

    The error is null where it could not be measured.
    """
    if result.accuracy is None:
        return {}
    error = result.error
    return {"accuracy": result.accuracy, "error": None if error is None else {**vars(error), "about": error.about}}


def notes_of(atoms: Atoms) -> dict[str, list[str]]:
    """Give the notes about atoms, for a report in JSON."""
    return {"notes": list(atoms.notes)}
