"""Poisson-Boltzmann electrostatics by finite differences."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from functools import partial
from os import PathLike
from typing import TYPE_CHECKING, Any, overload

from numpy.typing import ArrayLike

from ..atoms import Atoms
from ..common import arguments
from ..common.errors import FormatError, KeywordError
from ..common.inputfile import read_file
from ..common.modules import lazy_names, make_callable, takes, takes_structures
from ..common.notes import heard_notes, note
from ..common.variant import Progress
from ..common.writing import refuse_target
from ..contract import of_structure
from ..formats import require_map_suffix
from ..grid import Grid, Map
from ..jobs.checks import Checks
from ..jobs.given import given_molecule, reading_of
from ..jobs.provenance import Call, with_coordinates
from ..pb_model import (
    LIKE_APBS,
    PBIon,
    PBMaps,
    PBModel,
    centre_of,
    focusing_grids,
    grid_at,
    lowered_shape,
    salt_of,
)
from ..reading import Reading
from .plan import PoissonBoltzmann
from .result import PBErrors, PBLevelResult, PBParts, PBResult
from .solvers import SOLVERS

if TYPE_CHECKING:
    from ..opencl.device import Device
    from .apbs_run import ApbsResult, PrintLine
else:
    __getattr__ = lazy_names(__name__, {"apbs_run": "ApbsResult"})

__all__ = [
    "SOLVERS",
    "ApbsResult",
    "PBErrors",
    "PBIon",
    "PBLevelResult",
    "PBMaps",
    "PBModel",
    "PBParts",
    "PBResult",
    "PoissonBoltzmann",
    "centre_of",
    "focusing_grids",
    "grid_at",
    "lowered_shape",
    "pb",
]


Path_ = str | PathLike[str]
_END = 5.0  # kT/e, end of the colour scale of scenes
_COARSE = 0.02  # error of the grid, as a fraction of the energy, above which a note recommends a smaller spacing
_NO_SALT = "Note: the map was computed without salt; `view` shows potentials with `ionic_strength=0.15`"
_MODEL_FIELDS = {  # fields of PBModel by keyword of `pb`
    "solute_dielectric": "solute_dielectric", "solvent_dielectric": "solvent_dielectric", "temperature": "temperature",
    "dielectric_surface": "surface", "probe": "probe", "density": "density", "window": "window", "charges": "charges",
    "boundary": "boundary",
}  # fmt: skip


@overload
def pb(what: Atoms, model: PBModel | Path_ | None = None, **options: Any) -> PBResult: ...
@overload
def pb(what: Path_, model: PBModel | int | Path_ | None = None, **options: Any) -> Any: ...
@arguments.checked
@takes("reading")
@takes_structures("atoms")
def pb(
    what: Atoms | Path_, model: PBModel | int | Path_ | None = None, *,
    grids: Grid | Sequence[Grid] | None = None, spacing: float = 0.5, padding: float = 10.0, wide: bool | None = None,
    radii: ArrayLike | str | None = None, reaction: bool | None = None, solver: str = "mgcg", tolerance: float = 1e-6,
    max_iterations: int = 100_000,
    given: PBMaps | None = None, device: Device | int | str | None = None, keep_map: bool = True,
    grid_error: bool | None = None, extrapolate: bool = False, shifts: int = 0, seed: int = 0,
    progress: Progress | None = None, like: str | None = None, nonlinear: bool = False,
    ionic_strength: float | None = None, ion: Sequence[PBIon | tuple[float, ...]] = (),
    solute_dielectric: float | None = None,
    solvent_dielectric: float | None = None, temperature: float | None = None, dielectric_surface: str | None = None,
    probe: float | None = None, density: float | None = None, window: float | None = None, charges: str | None = None,
    boundary: str | None = None, per_residue: bool = False, strict: bool = False, output: Path_ | None = None,
    pqr: Path_ | None = None, scene: str | Sequence[str] = (), reading: Reading | None = None, call: Call | None = None,
    show: PrintLine | None = None,
    **read: Any,
) -> PBResult | ApbsResult:  # fmt: skip
    """Solve the Poisson-Boltzmann equation for a molecule.

    Use PoissonBoltzmann for many conformations of one molecule; docs/theory/poisson-boltzmann.md describes the method.

    what : Atoms, or the path of a structure, preferably a .pqr file, whose radii are used. An input file of APBS, .in,
        is computed as by APBS; only `device` and `progress` can be combined with it
    model : a PBModel, or the number of the model in a file with several. Constants can also be given as keywords:
        solute_dielectric, 2, solvent_dielectric, 78.54, temperature, K, dielectric_surface, "edges", probe, density,
        window, charges and boundary as in PBModel. `nonlinear` selects the nonlinear equation. `ionic_strength`, mol/L,
        is that of a 1:1 salt with radius 2 A, 0 by default, whereas `view` has 0.15; `ion` lists ion species instead,
        each a PBIon or its charge, e, concentration, mol/L, and radius, A. A path instead of the model is the output:
        `pb(what, "map.dx")`
    like : "apbs" for its defaults: surface "smol", charges "spl2" and boundary "sdh", unless others are given. The
        solvation energy is then the difference of two solutions
    grids, spacing, padding, radii, reaction, solver, tolerance, max_iterations, given, device : as in PoissonBoltzmann
    wide : whether to take boundary values from a coarser grid, as in PoissonBoltzmann. By default this is done only for
        the map, in a second solution when the map is first accessed, so that energies do not depend on whether a map is
        kept
    keep_map, grid_error, extrapolate, shifts, seed, progress : as in PoissonBoltzmann.solve
    per_residue : True to show contributions of residues in `text`, `table` and `to_json`
    strict : True to reject structures with findings
    output : map to write, kT/e: .dx, .mrc, .cube, .h5 or others
    pqr : file to write with the atoms and the charges and radii used
    scene : programs, "pymol", "chimerax" or "vmd", for which to write a script next to `output` that shows the surface
        coloured by the potential, from -5 to 5 kT/e
    reading, read : how files are read: a jobs.Reading, or its fields as keywords: `select`, `forcefield`,
        `coordinates`, `parameters`
    call : function that returns facts about the call to store in files
    show : called with the lines that APBS would print for its input files

    Returns a PBResult, whose `solvation` is in kcal/mol; an ApbsResult for an input file of APBS. Raises InputError for
    options that cannot be combined, and the errors of PoissonBoltzmann and its `solve`.

        >>> import pele_ocl
        >>> ion = pele_ocl.Atoms(positions=[[0, 0, 0]], charges=[1.0], gb_radii=[2.0])
        >>> result = pele_ocl.pb(ion, solute_dielectric=1, spacing=0.25, padding=4)
        >>> round(result.energy)  # Born: -166.03 (1 - 1/78.54) / 2 A
        -82
    """
    if isinstance(model, str | PathLike):
        output, model = arguments.one_output(model, output), None
    keywords = dict(locals())
    from ..painting import quantity_of, require_scenes, write_scenes  # not needed for binding energies

    if isinstance(model, int):
        read, model = {**read, "model": model}, None
    if not isinstance(what, Atoms) and arguments.file_path(what, "the structure").suffix.lower() == ".in":
        _refuse_for_apbs({**keywords, **read})
        from .apbs_run import run_apbs

        return run_apbs(read_file(what), device, show, progress)
    strength = 0.0 if ionic_strength is None else ionic_strength
    arguments.number("ionic_strength", strength, "a number in mol/L, 0 to 20")
    if output is not None:
        require_map_suffix(arguments.file_path(output, "output"))
    if pqr is not None and arguments.file_path(pqr, "pqr").suffix.lower() != ".pqr":
        raise FormatError(f"{pqr}: the suffix of `pqr` must be .pqr")
    programs = (scene,) if isinstance(scene, str) else arguments.texts("scene", scene)
    path = None if isinstance(what, Atoms) else arguments.file_path(what)
    maps = [] if output is None else [arguments.file_path(output)]
    is_whole = reading_of(reading, read).is_whole
    scenes = require_scenes(programs, path, maps, is_whole)
    constants = {of: keywords[name] for name, of in _MODEL_FIELDS.items() if keywords[name] is not None}
    if like is not None:
        arguments.choice("like", like, ("apbs",))
        if extrapolate or shifts or (grid_error and not reaction):  # errors of a difference are not known
            raise KeywordError('`grid_error`, `extrapolate` and `shifts` apply only without `like="apbs"`')
    if model is None:
        model = _model_of(like, nonlinear, strength, ion, constants)
    elif like is not None or nonlinear or strength or len(ion) or constants:
        raise KeywordError("choose one of `model` and its constants as keywords")
    if isinstance(radii, str) and not isinstance(what, Atoms) and reading is None:
        read, radii = {**read, "radii": radii}, None
    with heard_notes() as heard:
        molecule = given_molecule(what, reading, read)
        checks = Checks(molecule.source or "the atoms", arguments.flag("strict", strict))
        if molecule.source is not None or strict:
            checks.add(*of_structure(molecule.atoms))
        if pqr is not None:
            refuse_target(pqr, [] if molecule.source is None else [molecule.source])
        own_grid, kept = grids is None and wide is None and given is None, keep_map or output is not None
        plan_of = partial(
            PoissonBoltzmann, molecule.atoms, model, grids=grids, spacing=spacing, padding=padding, radii=radii,
            reaction=like is None if reaction is None else reaction, solver=solver, tolerance=tolerance,
            max_iterations=max_iterations, given=given, device=device,
        )  # fmt: skip
        plan = plan_of(wide=False if wide is None else wide)
        result = plan.solve(
            keep_map=kept and not own_grid, grid_error=grid_error, extrapolate=extrapolate, shifts=shifts, seed=seed,
            progress=progress,
        )  # fmt: skip
        alone = None if like is None or plan.reaction else _in_the_solute(plan, result).solve(keep_map=False)
        _tell_of_grid(result)
        if output is not None and ionic_strength is None and not model.has_salt:
            note(_NO_SALT, code="no_salt")
    result = replace(
        result, alone=alone, source=molecule.source, findings=tuple(checks.findings),
        with_residues=arguments.flag("per_residue", per_residue), heard=tuple(heard),
        call=with_coordinates(call, molecule.coordinates), scenes=scenes,
    )  # fmt: skip
    if kept and own_grid:  # the map is computed when needed, so the energy does not depend on it
        result.compute_map_by(partial(_wide_map, plan_of))
    if per_residue:
        result.residue_shares()  # checks labels before files are written
    if pqr is not None:
        result.save(pqr)
    if output is not None:
        result.save(output, progress=progress)
    if programs:
        map_ = result.map
        assert map_ is not None
        unit, quantity = map_.full_unit, quantity_of(map_)
        write_scenes(programs, molecule.source, result.atoms, maps, _END, unit, quantity, is_whole)
    return result


def _tell_of_grid(result: PBResult) -> None:
    """Issue a note if the energy may have a large error from the spacing of the grid."""
    error, spacing = result.errors.grid, float(result.levels[-1].grid.spacing.max())
    if error is not None and error > _COARSE * abs(result.energy) > 0:
        share = error / abs(result.energy)
        note(
            f"Note: the error of the grid may be up to {share:.1%} of the energy; `spacing={spacing / 2:g}` reduces it",
            code="grid_error", share=share,
        )  # fmt: skip


def _wide_map(plan_of: Callable[..., PoissonBoltzmann]) -> Map:
    """Compute the map with boundary values from a coarser grid."""
    found = plan_of(wide=True).solve(grid_error=False).map
    assert found is not None
    return found


_ION = "a PBIon, or its charge, e, concentration, mol/L, and radius, A"


def _model_of(
    like: str | None, nonlinear: bool, ionic_strength: float, ion: Sequence[PBIon | tuple[float, ...]],
    constants: dict[str, Any],
) -> PBModel:  # fmt: skip
    """Return the model for the given keywords."""
    ions = tuple(each if isinstance(each, PBIon) else PBIon(*each) for each in arguments.rows("ion", ion, _ION, PBIon))
    if ions and ionic_strength:
        raise KeywordError("choose one of `ionic_strength` and `ion`")
    program = {} if like is None else LIKE_APBS
    salt = salt_of(ionic_strength) if ionic_strength else ions
    equation = "nonlinear" if arguments.flag("nonlinear", nonlinear) else "linear"
    return PBModel(**{**program, **constants, "ions": salt, "equation": equation})


def _refuse_for_apbs(keywords: dict[str, Any]) -> None:
    """Raise KeywordError for keywords that conflict with an input file of APBS."""
    defaults = {name: of.default for name, of in inspect.signature(pb).parameters.items()}
    able = ("what", "device", "progress", "show", "call", "keep_map", "reading", "read", "structures", "trajectory",
            "allow_missing_terminals")  # fmt: skip
    reading = keywords["reading"]
    if isinstance(reading, Reading):
        defaults |= {of.name: of.default for of in fields(Reading)}
        keywords |= {of.name: getattr(reading, of.name) for of in fields(Reading) if of.name not in keywords}
    given = [
        name for name, value in keywords.items() if name not in able and value not in (None, (), {})
        and not (isinstance(value, int | float | str) and value == defaults.get(name))
    ]  # fmt: skip
    if given:
        names = ", ".join(f"`{name}`" for name in given)
        raise KeywordError(f"an input file of APBS contains all settings; leave out {names}")


def _in_the_solute(plan: PoissonBoltzmann, result: PBResult) -> PoissonBoltzmann:
    """Return the plan for the same charges and grids, with the solute's dielectric everywhere and no salt."""
    model = replace(plan.model, solvent_dielectric=plan.model.solute_dielectric, ions=(), equation="linear")
    return PoissonBoltzmann(
        plan.atoms, model, grids=[level.grid for level in result.levels], reaction=False, solver=plan.solver,
        tolerance=plan.tolerance, device=plan.device,
    )  # fmt: skip


make_callable(__name__)
