"""Text reports of results: headline, force field and solvent, energies, tables of models and residues, timings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from ..atoms import Atoms, Floats, Labels
from ..atoms.selection import Composition
from ..common.inputfile import InputFile
from ..common.installation import installed_version
from ..common.notes import one_line
from ..gb_models import GB_MODELS
from ..gb_models.radii_of_models import radii_words
from ..gb_models.solvent_model import SolventModel
from ..units import COULOMB_KCAL_A
from .facts import Energies, area_facts, settings

UNIT = "kcal/mol"
Facts = Mapping[str, Any]  # settings of a record
Model = tuple[int, Energies | str]  # number of a model, with its terms or its error message
_GB_TERMS = ("gb_pair", "gb_self", "nonpolar")
_SURFACES = {"ace": "ACE", "lcpo": "LCPO", "sgb": "SGB/NP surface", "none": "no surface"}


class Computation(Protocol):
    """Result with its device, variant and precision."""

    @property
    def device(self) -> str: ...

    @property
    def variant(self) -> str | None: ...

    @property
    def precision(self) -> str: ...


class Approximate(Protocol):
    """Result with possibly approximate Born radii."""

    @property
    def accuracy(self) -> float | None: ...

    @property
    def error(self) -> Any: ...


def software() -> str:
    """Return the name and version of the program."""
    return f"pele-ocl {installed_version()}"


def duration(seconds: float) -> str:
    """Format a time in s: `1.52 ms`, `12.30 s`, `7.5 minutes`, `2.3 hours`."""
    for unit, length in (("hours", 3600.0), ("minutes", 60.0)):
        if seconds >= 2 * length:
            return f"{seconds / length:,.1f} {unit}"
    return f"{seconds:.2f} s" if seconds >= 0.9995 else f"{1e3 * seconds:.3g} ms"


def frame_rate(per_second: float) -> str:
    """Format a rate: `1,250 frames/s`, `2.5 frames/s`, `8.10 s per frame`."""
    if 0 < per_second < 1:
        return f"{duration(1 / per_second)} per frame"
    return f"{figures(per_second)} frames/s"


def figures(value: float, digits: int = 3) -> str:
    """Format a positive number with at least `digits` digits, without exponent for large ones: `12,345`, `0.0123`."""
    return f"{value:,.0f}" if value >= 10 ** (digits - 1) else f"{value:.{digits}g}"


def counted(n: int, what: str) -> str:
    """Format a count, such as `1 atom` or `2 atoms`."""
    return f"{n:,} {what}{'' if n == 1 else 's'}"


def headline(source: InputFile | str | None, atoms: Atoms) -> str:
    """Describe a molecule in one line. source : its file or name"""
    name = source or "" if isinstance(source, str | None) else source.path.name
    parts = [counted(len(atoms), "atom")]
    if atoms.labels is not None:
        composition = Composition.of(atoms.labels)
        is_mixed = composition.protein < len(atoms.labels.residue_starts)
        parts += composition.parts() if is_mixed else [counted(composition.protein, "residue")]
    charge = round(float(atoms.charges.sum()), 3) + 0.0  # avoids -0.000
    return f"{one_line(name)}: {', '.join(parts)}, net charge {charge:+.3f} e"


def ending(how: Computation, kernel_seconds: float, total: float) -> str:
    """Describe how a result was computed, and the kernel and total times, s."""
    times = f"kernels {duration(kernel_seconds)}, total {duration(total)}"
    return f"{how.variant}, {how.precision}, on {how.device}: {times}"


def choice_line(devices: str) -> str:
    """Describe the choice of variants and layouts on the devices of a result."""
    from ..opencl.device import list_devices
    from ..plan.tuning import describe

    first = next(device for device in list_devices() if str(device) in devices)
    return f"Choice: {describe(first)}"


def model_line(facts: Mapping[str, object]) -> str:
    """Describe the settings of a result."""
    texts = {
        name: f"{value:.10g}" if isinstance(value, float | int) else value
        for name, value in facts.items()
        if value not in (None, "") and not isinstance(value, list)
    }
    return "Solvent model: " + ", ".join(f"{name} {text}" for name, text in texts.items())


def area_lines(model: SolventModel, energy: Energies) -> list[str]:
    """Return the line with the surface area, if there is one."""
    return [f"Surface area  {area:,.1f} A^2 (LCPO)" for area in area_facts(model, energy).values()]


def energy_lines(energy: Energies) -> list[str]:
    """Return a header and the energies, kcal/mol."""
    return [
        "Energy        kcal/mol",
        *(f"  {name.replace('_', ' '):17s}{value:13,.3f}" for name, value in energy.items()),
    ]


def physics_lines(
    model: SolventModel, atoms: Atoms, terms: Sequence[str] | None = None, cutoff: float | None = None
) -> list[str]:
    """Describe force field and solvent. terms : energy terms, None for all; cutoff : nonbonded cutoff, A"""
    return lines_of({**settings(model, atoms), "cutoff": cutoff}, terms)


def lines_of(facts: Facts, terms: Sequence[str] | None = None) -> list[str]:
    """Describe the force field and the solvent of settings. terms : energy terms, None for all"""
    found = [forcefield_line(str(facts["forcefield"]))] if facts.get("forcefield") else []
    return [*found, f"Solvent       {solvent_text(facts, terms)}; {pairs_text(facts)}"]


def forcefield_line(name: str) -> str:
    """Return the line with the force field."""
    return f"Force field   {'of the input file' if name == 'file' else one_line(name)}"


def solvent_text(facts: Facts, terms: Sequence[str] | None = None) -> str:
    """Describe the solvent model and its constants, with Coulomb's constant if it is not the default."""
    inside = f"inside {_inside(facts)}"
    coulomb = float(facts["coulomb_constant"])
    constant = [] if coulomb == COULOMB_KCAL_A else [f"Coulomb {coulomb:.7g}"]
    if facts.get("pb") is not None:
        return ", ".join([*_poisson_boltzmann(facts), *constant, _surface(facts)])
    if GB_MODELS[facts["gb"]].vacuum:
        return ", ".join(["none (vacuum)", inside, *constant])
    if terms is not None and not set(_GB_TERMS) & set(terms):
        return ", ".join(["not in these terms", inside, *constant])
    parts = [facts["gb"], f"radii {radii_words(facts['gb_radii_set'] or '')}"]
    parts += [f"water {facts['solvent_dielectric']:g}", inside, salt_text(facts)]
    parts += [] if facts.get("born_cutoff") is None else [f"Born integrals within {facts['born_cutoff']:g} A"]
    parts += constant
    parts += [_surface(facts)] if terms is None or "nonpolar" in terms or facts["surface"] == "none" else []
    return ", ".join(parts)


def _poisson_boltzmann(facts: Facts) -> list[str]:
    """Describe a PBSolvent with its constants."""
    pb = facts["pb"]
    return [
        f"Poisson-Boltzmann ({pb.equation})", f"radii {radii_words(facts['gb_radii_set'] or '')}",
        f"water {facts['solvent_dielectric']:g}", f"inside {facts['solute_dielectric']:g}", salt_text(facts),
        f"grid of {pb.spacing:g} A to {pb.padding:g} A around the complex", f"surface {pb.surface}",
    ]  # fmt: skip


def pairs_text(facts: Facts) -> str:
    """Describe which pairs are included."""
    pairs, cutoff = facts.get("pairs"), facts.get("cutoff")
    if pairs == "split":
        return "pairs of PELE's short list (10 A, 15 A between charged groups)"
    if pairs not in (None, "all", "cutoff"):
        return f"pairs of {one_line(str(pairs))}"
    return "all pairs" if cutoff is None or pairs == "all" else f"pairs within {cutoff:g} A"


def _inside(facts: Facts) -> str:
    by_residue = facts.get("internal_dielectric") == "vdgbnp" or GB_MODELS[facts["gb"]].own_dielectrics
    return "by residue" if by_residue else f"{facts['solute_dielectric']:g}"


def salt_text(facts: Facts) -> str:
    """Describe the salt and the temperature."""
    strength = facts["ionic_strength"]
    return f"salt {strength:g} mol/L at {facts['temperature']:g} K" if strength else "no salt"


def _surface(facts: Facts) -> str:
    tension = facts["surface_tension"]
    return _SURFACES[facts["surface"]] + (f" {tension:g}" if tension else "")


def medium_lines(facts: Facts) -> list[str]:
    """Describe the medium of an electrostatic potential. facts : settings of its record"""
    found = [forcefield_line(facts["forcefield"])] if facts["forcefield"] else []
    if "solute_dielectric" in facts:  # Poisson-Boltzmann
        dielectrics = f"dielectrics {facts['solute_dielectric']:g} and {facts['solvent_dielectric']:g}"
        surface = f"surface {facts['surface']}, probe {facts['probe']:g} A, radii {radii_words(facts['radii_set'])}"
        medium = f"{facts['equation']} Poisson-Boltzmann, {dielectrics}, {salt_text(facts)}; {surface}"
        return [*found, f"Medium        {medium}"]
    parts = [f"dielectric {facts['dielectric']:g}{' r' if facts['distance_dependent'] else ''}", salt_text(facts)]
    parts += [f"points within {facts['min_distance']:g} A as at it"] if facts["min_distance"] else []
    reach = "all charges" if facts["cutoff"] is None else f"charges within {facts['cutoff']:g} A"
    smooth = ", smoothed" if facts["smooth"] else ""
    return [*found, f"Medium        {', '.join(parts)}; {reach}{smooth}"]


def accuracy_lines(result: Approximate, way: str) -> list[str]:
    """Describe accuracy and error, after an empty line. way : method used for the Born radii"""
    if result.accuracy is None:
        return []
    error, asked = result.error, accuracy_text(way, result.accuracy)
    if error is None:
        return ["", f"{asked}; their error could not be measured, because this needs a device with float64"]
    missed = (
        ", more than requested: `precision='float64'` has smaller rounding errors"
        if error.largest > result.accuracy
        else ""
    )
    return ["", f"{asked}; measured {error.largest:.1e} at most{missed}, {error.rms:.1e} rms", f"  ({error.about})"]


def accuracy_text(way: str, accuracy: float) -> str:
    """Format the requested accuracy."""
    return f"Born radii by {way} to {accuracy:.0e}"


def accuracy_attributes(result: Approximate) -> dict[str, float]:
    """Return the accuracy and the error, for a file."""
    if result.accuracy is None:
        return {}
    measured = {} if result.error is None else {"error_largest": result.error.largest, "error_rms": result.error.rms}
    return {"accuracy": result.accuracy, **measured}


def gradient_line(facts: Mapping[str, Any] | None, held: str = "") -> list[str]:
    """Describe a gradient. facts : from `gradient_facts`, or None for an empty list; held : text added to the line"""
    if facts is None:
        return []
    longest = f"maximum per atom {facts['max']:,.3f}, net {facts['net']:.2g} {UNIT}/A"
    return [f"Gradient      norm {facts['norm']:,.3f}, {longest}{held}"]


def residue_table(
    names: Sequence[str], models: Iterable[tuple[int | None, Mapping[str, Floats]]], what: str = ""
) -> str:
    """Return a text table of residue energies.

    models : number of each model, or None for a single structure, with its terms
    what : description of the energies, with a comma and a space after it
    """
    lines: list[tuple[str, ...]] = []
    heads: tuple[str, ...] = ()
    for number, terms in models:
        first = ("model", "residue") if number is not None else ("residue",)
        heads = *first, *(term.replace("_", " ") for term in terms)
        columns = [values.tolist() for values in terms.values()]
        for name, *row in zip(names, *columns, strict=True):
            lines.append((*([str(number)] if number is not None else []), name, *(f"{value:.3f}" for value in row)))
    from ..report import text_table

    align = (">" if heads[0] == "model" else "") + "<" + ">" * (len(heads) - heads.index("residue") - 1)
    return f"Energy of residues, {what}{UNIT}\n" + text_table(heads, lines, align)


def model_lines(models: Sequence[Model], about: str = f"Energy of models, {UNIT}") -> list[str]:
    """Return the number of models, and a table of their energies or errors. about : title of the table"""
    from ..report import text_table

    names = _terms(models)
    heads = "model", *(term.replace("_", " ") for term in names)
    cells = [(str(number), *("" if isinstance(of, str) else f"{of[name]:.3f}" for name in names))
             for number, of in models]  # fmt: skip
    lines = text_table(heads, cells, ">" * len(heads)).split("\n")
    for k, (_, of) in enumerate(models, 1):
        lines[k] += f"  {one_line(of)}" if isinstance(of, str) else ""
    return [counted(len(models), "model"), "", about, *lines]


def model_columns(
    models: Sequence[Model], unit: str = UNIT, kind: str = "model"
) -> tuple[dict[str, Any], dict[str, str]]:
    """Return columns with a row for each model, NaN and an error for failed models, and their units.

    kind : name of the column with model numbers
    """
    terms = {
        name: np.array([np.nan if isinstance(of, str) else of[name] for _, of in models]) for name in _terms(models)
    }
    columns = {kind: np.array([number for number, _ in models]), **terms, "error": reasons(models)}
    return columns, dict.fromkeys(terms, unit)


def reasons(models: Sequence[tuple[int, object]]) -> np.ndarray[Any, np.dtype[np.str_]]:
    """Return the error message of each model, (m,), "" if it did not fail."""
    return np.array([one_line(of) if isinstance(of, str) else "" for _, of in models])


def _terms(models: Sequence[Model]) -> list[str]:
    """Return the terms of the first model that did not fail."""
    return list(next((of for _, of in models if not isinstance(of, str)), ()))


def label_columns(atoms: Atoms) -> dict[str, Any]:
    """Return the labels of atoms as table columns; empty without labels."""
    return {} if atoms.labels is None else columns_of(atoms.labels)


def columns_of(labels: Labels) -> dict[str, Any]:
    """Return labels as table columns."""
    return {
        "chain": labels.chains,
        "residue_name": labels.residue_names,
        "residue_number": labels.residue_numbers,
        "insertion_code": labels.insertion_codes,
        "atom_name": labels.names,
        "element": labels.elements,
        "residue_index": labels.residue_index,
        "atom_index": np.arange(len(labels), dtype=np.int32),
    }
