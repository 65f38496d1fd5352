"""Place ions one by one where the electrostatic potential is most favourable, like cionize."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from os import PathLike
from typing import TYPE_CHECKING

import numpy as np

from ..atoms import Atoms, require_atoms
from ..common import arguments
from ..common.errors import InputError, KeywordError
from ..common.modules import make_callable, takes, takes_structures
from ..common.notes import heard_notes, note
from ..common.variant import PRECISIONS, Progress
from ..common.writing import replacing
from ..formats import require_map_suffix
from ..grid import Grid, Map, require_map
from ..jobs.checks import Checks
from ..jobs.given import given_molecule, reading_of
from ..jobs.provenance import Call, with_coordinates
from ..potential_model import PotentialModel
from ..potmap import MapOptions, PotmapResult, potmap
from ..potmap.options import medium_facts
from ..reading import Reading
from ..units import COULOMB_KCAL_A
from .counts import Requests, count_ions
from .placement import Placement
from .result import IonsResult, require_pdb
from .species import SPECIES, Species

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ..jobs.words import ReadingOptions
    from ..opencl.device import Device

__all__ = ["SPECIES", "IonsResult", "Requests", "Species", "ions", "place_ions"]


MOST_DISTANCE = 1e6  # A
UNIT = "kcal/mol/e"
DEFAULT_IONS: Requests = {"NA": "auto", "CL": "auto"}
CLOSE = 1e-3  # A; minimum distance of the potential of an atom


@arguments.checked
@takes("reading")
@takes_structures("atoms")
def ions(
    what: Atoms | str | PathLike[str],
    output: str | PathLike[str] | None = None,
    *,
    add: Requests | None = None,
    neutralize: bool = False,
    concentration: float | None = None,
    spacing: float = 0.5,
    padding: float = 10.0,
    solute_distance: float = 6.0,
    ion_distance: float = 10.0,
    dielectric: float = 1.0,
    grid: Grid | None = None,
    map: Map | None = None,
    keep_map: bool = False,
    map_output: str | PathLike[str] | None = None,
    variant: str = "auto",
    precision: str = "float32",
    device: Device | int | str | None = None,
    progress: Progress | None = None,
    reading: Reading | None = None,
    call: Call | None = None,
    **read: Unpack[ReadingOptions],
) -> IonsResult:
    """Place ions around a molecule, one by one at the lowest energy in the potential of the molecule and previous ions.

    what : Atoms with charges, or the path of a structure. Ions in the structure are part of the molecule
    output : PDB file to write, with the molecule and the ions
    add : number of ions of each species, or "auto": {"NA": 12, "CL": "auto"}; by default "auto" for NA and CL
    neutralize, concentration : meaning of "auto", as in `place_ions`; required unless `add` is given
    map_output : map file to write, with the potential of the molecule and all ions
    reading, read : options for reading files, as a jobs.Reading or as its keywords: `select`, `forcefield`, `model`,
        `coordinates`, `parameters`, `radii`
    call : function that returns metadata about the call for the path of the structure, to be written to files
    All other arguments are those of `place_ions`.

    Returns an IonsResult. Raises InputError for options that cannot be combined, and the errors of `place_ions`.

        >>> import pele_ocl
        >>> solute = pele_ocl.Atoms(positions=[[0, 0, 0]], charges=[-2.0])
        >>> pele_ocl.ions(solute, add={"NA": 1}, spacing=2).net_charge
        -1.0
    """
    if add is not None and not isinstance(add, Mapping):
        raise InputError(f"add is {arguments.described(add)}; expected a dictionary of numbers by name")
    if neutralize and concentration is not None:
        raise KeywordError("choose one of `neutralize` and `concentration`")
    if not add and not neutralize and concentration is None:
        raise KeywordError("specify the ions: `add`, or `neutralize=True`, or `concentration=0.15`")
    if output is not None:
        require_pdb(output)
    if map_output is not None:
        require_map_suffix(arguments.file_path(map_output, "map_output"))
    with heard_notes() as heard:
        molecule = given_molecule(what, reading, read)
        if molecule.source is not None:
            Checks(molecule.source).noted(molecule.atoms)
        if there := _ions_of(molecule.atoms):
            held = ", ".join(f"{count} {name}" for name, count in there.items())
            name = "the molecule" if molecule.source is None else molecule.source
            note(
                f"Note: {name} already contains ions ({held}); they are treated as part of the molecule, which "
                "`neutralize` takes into account and `concentration` does not"
            )
        result = place_ions(
            molecule.atoms, add or DEFAULT_IONS, neutralize=neutralize, concentration=concentration, spacing=spacing,
            padding=padding, solute_distance=solute_distance, ion_distance=ion_distance, dielectric=dielectric,
            grid=grid, map=map, keep_map=keep_map or map_output is not None, variant=variant, precision=precision,
            device=device, progress=progress,
        )  # fmt: skip
        if not len(result):
            note(f"Note: no ion was placed: {_why_none(result, neutralize, concentration)}")
    model = reading_of(reading, read).model
    call = with_coordinates(call, molecule.coordinates)
    result = replace(result, source=molecule.source, model=model, heard=tuple(heard), call=call)
    inputs = [] if molecule.source is None else [molecule.source]
    with ExitStack() as files:
        if output is not None:  # not created if the map cannot be written
            written = files.enter_context(replacing(output, inputs))
            result.save(written)
        if map_output is not None:
            result.save(map_output, progress=progress)
    return result


def _ions_of(atoms: Atoms) -> Counter[str]:
    """Count the ions already present in a structure, by name."""
    if atoms.labels is None:
        return Counter()
    alone = np.bincount(atoms.labels.residue_index)[atoms.labels.residue_index] == 1
    return Counter(str(name) for name in atoms.labels.residue_names[alone] if name in SPECIES)


def _why_none(result: IonsResult, neutralize: bool, concentration: float | None) -> str:
    """Explain why no ion was placed."""
    if neutralize:
        left = f"no requested ion brings the net charge of {result.net_charge:+.3f} e closer to 0"
        return f"{left}; `concentration` adds a salt"
    if concentration is not None:
        return f"{concentration:g} mol/L in the free volume of {result.free_volume:,.0f} A^3 are less than one ion"
    return "all counts are 0"


@arguments.checked
@takes_structures("atoms")
def place_ions(
    atoms: Atoms,
    ions: Requests,
    *,
    neutralize: bool = False,
    concentration: float | None = None,
    spacing: float = 0.5,
    padding: float = 10.0,
    solute_distance: float = 6.0,
    ion_distance: float = 10.0,
    dielectric: float = 1.0,
    grid: Grid | None = None,
    map: Map | None = None,
    keep_map: bool = False,
    variant: str = "auto",
    precision: str = "float32",
    device: Device | int | str | None = None,
    progress: Progress | None = None,
) -> IonsResult:
    """Place ions around a molecule, one by one at the lowest energy in the potential of the molecule and previous ions.

    docs/theory/ions.md describes the method. Species alternate in the order given. Among equivalent points, the first
    one in the map is chosen, with x running fastest.

    atoms : Atoms with charges
    ions : number of ions of each species, or "auto": {"NA": 12, "CL": "auto"}. The keys are those of SPECIES
    neutralize : True to choose the "auto" number that brings the total charge closest to 0
    concentration : mol/L in the free volume, of the salt of the two "auto" species, which also neutralizes; with a
        single "auto" species, the concentration of that ion
    spacing, padding : spacing and padding of the grid around the molecule, A; ignored if a grid or a map is given
    solute_distance, ion_distance : minimum distance of an ion to an atom and to another ion, A
    dielectric : relative permittivity, > 0
    grid : grid whose points are possible positions of ions
    map : potential of the molecule on such a grid, kcal/mol/e; by default it is computed
    keep_map : True to return the potential of the molecule and all ions
    variant : algorithm of `potmap`
    precision, device : as in `solvent`
    progress : called with the completed fraction, 0 to 1, first of the map and then of the ions

    Returns an IonsResult. Raises InputError for invalid values, or if there is no room for all ions. Raises DeviceError
    if the device does not support the precision.

    >>> atoms = pele_ocl.read("data/structures/hexapeptide.pdb")
    >>> placed = pele_ocl.place_ions(atoms, {"NA": 2}, spacing=2.0)
    >>> placed.positions.shape
    (2, 3)
    """
    # OpenCL is imported only here, because reading files and printing help do not need it.
    from ..opencl.device import get_device

    start = time.perf_counter()
    _check(atoms, grid, map, keep_map, solute_distance, ion_distance, dielectric, precision, progress)
    count_ions(ions, 0.0, 0.0, neutralize, concentration)  # raises errors before the expensive steps
    device = get_device(device)
    device.require_precision(precision)
    molecule: PotmapResult | None = None
    if map is None:
        grid = grid if grid is not None else Grid.around(atoms, padding, spacing)
        molecule = potmap(
            atoms, grid, variant=variant, precision=precision, device=device, dielectric=dielectric,
            min_distance=_clamp(atoms, grid), progress=progress,
        )  # fmt: skip
        map = molecule.map

    counts_in = partial(
        count_ions, ions, float(atoms.charges.sum()), neutralize=neutralize, concentration=concentration
    )
    placed = _placed(
        atoms, map, counts_in, solute_distance, ion_distance, COULOMB_KCAL_A / dielectric, keep_map, precision, device,
        progress,
    )  # fmt: skip
    of_map = molecule.seconds["kernel"] if molecule else 0.0
    seconds = {"map": of_map, **placed.seconds, "total": time.perf_counter() - start}
    settings = {**medium_facts(atoms, MapOptions(dielectric=dielectric)), "temperature": None}
    return replace(placed, variant=molecule.variant if molecule else None, seconds=seconds, settings=settings)


def _placed(
    atoms: Atoms, map_: Map, counts_in: Callable[[float], dict[Species, int]], solute_distance: float,
    ion_distance: float, scale: float, keep_map: bool, precision: str, device: Device, progress: Progress | None,
) -> IonsResult:  # fmt: skip
    """Place ions in a potential map.

    counts_in : returns the number of ions of each species for a free volume (A^3)
    scale : Coulomb's constant divided by the dielectric constant, kcal A/(mol e^2)
    """
    from ..opencl.queue import Queue

    queue, grid = Queue(device, precision), map_.grid
    placement = Placement(queue, grid, map_.values, atoms.positions, solute_distance, ion_distance)
    volume = placement.n_allowed * float(np.prod(grid.spacing))
    exclusion_seconds = queue.kernel_seconds
    order = interleaved(counts_in(volume))
    charges = [scale * species.charge for species in order]
    points, potentials = placement.place(charges, progress)
    ion_seconds = queue.kernel_seconds
    _require_room(order, len(points), volume, solute_distance, ion_distance)
    values = placement.with_ions(map_.values, points, potentials, charges) if keep_map else None
    return IonsResult(
        atoms=atoms,
        grid=grid,
        species=tuple(order),
        positions=grid.position(points),
        potentials=potentials,
        free_volume=volume,
        map=None if values is None else Map.owning(grid, values, UNIT, f"{map_.title} and {_ions(len(order))}".strip()),
        device=str(device),
        variant=None,
        precision=precision,
        seconds={"exclusion": exclusion_seconds, "ions": ion_seconds - exclusion_seconds},
    )


def _ions(n: int) -> str:
    return "1 ion" if n == 1 else f"{n} ions"


def _clamp(atoms: Atoms, grid: Grid) -> float:
    """Choose the minimum distance of the map: 0, which is faster, if no grid point coincides with an atom."""
    off = grid.index(atoms.positions)
    apart = np.linalg.norm((off - np.round(off)) * grid.spacing, axis=1)
    return CLOSE if (apart < CLOSE).any() else 0.0


def interleaved(counts: dict[Species, int]) -> list[Species]:
    """List all ions with species alternating; each species appears as often as its count."""
    rounds = max(counts.values(), default=0)
    return [species for turn in range(rounds) for species, count in counts.items() if turn < count]


def _check(
    atoms: Atoms, grid: Grid | None, map_: Map | None, keep_map: bool, solute_distance: float, ion_distance: float,
    dielectric: float, precision: str, progress: Progress | None,
) -> None:  # fmt: skip
    require_atoms(atoms)
    if grid is not None:
        arguments.instance("grid", grid, Grid, "a Grid: Grid.around(atoms, padding=10, spacing=0.5)")
    if map_ is not None:
        _check_map(map_)
    arguments.flag("keep_map", keep_map)
    arguments.callback("progress", progress)
    if not arguments.is_among(precision, PRECISIONS):
        raise InputError(f"unknown precision {arguments.described(precision)}; choose {' or '.join(PRECISIONS)}")
    for name, value in (("solute distance", solute_distance), ("ion distance", ion_distance)):
        if not (arguments.is_finite(value) and 0 <= value <= MOST_DISTANCE):
            given = arguments.described(value)
            raise InputError(f"the {name} must be 0 or more Angstrom, not {given}; {MOST_DISTANCE:,.0f} at most")
    if not arguments.is_finite(dielectric) or dielectric <= 0:
        raise InputError(f"the dielectric constant must be positive, not {arguments.described(dielectric)}")
    PotentialModel(dielectric)  # validates the range
    atoms.require(("charges",), "the placement of ions")


def _check_map(map_: Map) -> None:
    require_map(map_)
    if map_.unit not in ("", UNIT):
        raise InputError(f"the map is in {map_.unit}; convert it to {UNIT}")
    if not np.isfinite(map_.values).all():
        raise InputError("the map contains values that are not finite; recompute it with a minimum distance")


def _require_room(
    order: list[Species], n_placed: int, volume: float, solute_distance: float, ion_distance: float
) -> None:
    """Raise InputError unless all ions were placed."""
    if n_placed < len(order):
        raise InputError(
            f"there was room for {n_placed} of {_ions(len(order))}: the free volume of {volume:,.0f} A^3 is full (no "
            f"ion within {solute_distance:g} A of an atom or {ion_distance:g} A of another ion); use fewer ions, "
            "smaller distances or a larger padding"
        )


make_callable(__name__)
