"""Parts of records common to several jobs, in JSON form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from ..atoms import Atoms, Floats
from ..atoms.selection import Composition
from ..common.notes import as_json
from ..gb_models.solvent_model import SolventModel, has_area, surface_area
from ..results import TermResult

Energies = Mapping[str, float]  # by term, including the total


def composition_as_json(atoms: Atoms) -> dict[str, int | dict[str, int]] | None:
    """Return the number of residues of each kind; None without labels."""
    return None if atoms.labels is None else Composition.of(atoms.labels).as_json()


class Computed(Protocol):
    """Plan or result with its device, variant and precision."""

    @property
    def atoms(self) -> Atoms: ...
    @property
    def device(self) -> object: ...
    @property
    def variant(self) -> str: ...
    @property
    def precision(self) -> str: ...


class Approximate(Protocol):
    """Plan or result that may be approximate; `accuracy` is None if it is exact."""

    @property
    def accuracy(self) -> float | None: ...


def facts_of_plan(of: Computed) -> dict[str, Any]:
    """Return the first part of a record: size of the molecule, device, variant and precision."""
    return {
        "n_atoms": len(of.atoms),
        "composition": composition_as_json(of.atoms),
        "device": str(of.device),
        "variant": of.variant,
        "precision": of.precision,
    }


def numbers_in(facts: Mapping[str, object]) -> dict[str, float]:
    """Return the scalar numbers among the facts."""
    return {name: of for name, of in facts.items() if isinstance(of, int | float) and not isinstance(of, bool)}


def settings(model: SolventModel, atoms: Atoms) -> dict[str, float | str | None]:
    """Return the force field, all constants of the solvent, and the name of the GB radii."""
    radii = None if model.gb_model.vacuum else radii_of(model, atoms)
    return {"forcefield": atoms.forcefield, **model.settings, "gb_radii_set": radii}


def radii_of(model: SolventModel, atoms: Atoms) -> str:
    """Return the name of the GB radii used by the model, or "sgb" for those of Atoms.sgb."""
    return model.gb_model.name_of_radii(atoms)


def area_facts(model: SolventModel, energy: Mapping[str, float]) -> dict[str, float]:
    """Return the surface area, A^2, if the model has one."""
    return {"surface_area": surface_area(model, energy["nonpolar"])} if has_area(model, energy) else {}


def names_of_residues(atoms: Atoms) -> list[str]:
    """Return the names of the residues in order, such as `A:ALA5`."""
    assert atoms.labels is not None
    return [atoms.labels.residue(int(i)) for i in atoms.labels.residue_starts]


def residue_facts(result: TermResult) -> dict[str, Any]:
    """Return the residue energies of a result, for a record."""
    return {"residues": residues_as_json(names_of_residues(result.atoms), result.per_residue().columns())}


def residues_as_json(names: Sequence[str], terms: Mapping[str, Floats]) -> list[dict[str, Any]]:
    """Return a dict for each residue. terms : name -> (n_residues,) kcal/mol"""
    columns = [values.tolist() for values in terms.values()]
    return [{"residue": name, **dict(zip(terms, row, strict=True))} for name, *row in zip(names, *columns, strict=True)]


def accuracy_facts(of: Approximate) -> dict[str, Any]:
    """Return the accuracy and the measured error (None if not measured); empty for an exact computation."""
    if of.accuracy is None:
        return {}
    error = getattr(of, "error", None)  # plans have no error
    measured = None if error is None else {**vars(error), "about": error.about}
    return {"accuracy": of.accuracy, "measured_error": measured}


def radii_facts(radii: Floats) -> dict[str, float]:
    """Return minimum, maximum and mean of Born radii (n,), A."""
    return {"min": float(radii.min()), "max": float(radii.max()), "mean": float(radii.mean())}


def gradient_facts(gradient: Floats | None) -> dict[str, float] | None:
    """Summarize a gradient (n, 3), kcal/mol/A: its norm, the largest norm of an atom, and the norm of the sum."""
    if gradient is None:
        return None
    return {
        "norm": float(np.linalg.norm(gradient)),
        "max": float(np.linalg.norm(gradient, axis=1).max(initial=0.0)),
        "net": float(np.linalg.norm(gradient.sum(axis=0))),
    }


def notes_of(atoms: Atoms) -> dict[str, Any]:
    """Return the notes about atoms in JSON form."""
    return as_json(atoms.notes)
