"""Map files: OpenDX, Gaussian cube, MRC/CCP4 and HDF5. The suffix determines the format."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from os import PathLike
from pathlib import Path

import numpy as np

from ...atoms import Atoms
from ...common.arguments import callback, file_path, file_paths, instance, text
from ...common.errors import FormatError, InputError
from ...common.inputfile import LARGE_BYTES, read_file
from ...common.variant import Progress
from ...common.writing import replacing
from ...grid import Map, require_map
from ...units import POTENTIAL_UNITS
from ..registry import MAPS, Details, map_format, map_suffix, scripts_way

__all__ = [
    "as_written",
    "holds_several",
    "read_extra_maps",
    "read_map",
    "require_map_suffix",
    "write_map",
]


def read_map(path: str | PathLike[str]) -> Map:
    """Read a map on an orthogonal grid. The suffix determines the format.

    Files of other programs are supported, including MRC with any axis order and number type, and DX with any line
    length. `unit` is "" if the file does not contain it.

    Raises FormatError, with the file and for text formats the line, if the file cannot be read, has non-orthogonal
    axes, or contains values that are not finite.

    >>> grid = pele_ocl.Grid(origin=(0, 0, 0), spacing=1.0, shape=(2, 2, 2))
    >>> pele_ocl.Map(grid, np.ones((2, 2, 2)), "V").save("ones.h5")
    >>> pele_ocl.read_map("ones.h5").full_unit
    'V'
    """
    suffix = require_map_suffix(file_path(path))
    try:
        map_ = map_format(suffix).read(read_file(path, LARGE_BYTES))
    except InputError as error:  # invalid grid
        raise FormatError(f"{path}: {error}") from None
    fault = _not_finite(map_)
    if fault:
        raise FormatError(f"{path}: {fault}")
    return map_


def read_extra_maps(path: str | PathLike[str]) -> dict[str, Map]:
    """Read the additional maps of a file, by name. Raises FormatError if they cannot be read."""
    read = map_format(require_map_suffix(path)).read_extra
    return {} if read is None else read(read_file(path, LARGE_BYTES))


def write_map(
    path: str | PathLike[str],
    map_: Map,
    *,
    unit: str | None = None,
    atoms: Atoms | None = None,
    attributes: Mapping[str, object] | None = None,
    extra: Mapping[str, Map] | None = None,
    inputs: Iterable[str | PathLike[str]] = (),
    progress: Progress | None = None,
) -> None:
    """Write a map for read_map and other programs. The suffix determines the format.

    path : file with a suffix in MAPS
    unit : unit to convert to, one of units.POTENTIAL_UNITS; by default that of the map, or hartree/e in a cube file
    atoms : atoms to include in a cube file
    attributes : metadata such as program and parameters, written as attributes in HDF5, comments in DX, labels in MRC
    extra : further maps by name, supported only in HDF5
    inputs : files that must not be overwritten
    progress : called with the written fraction, 0 to 1

    Raises FormatError for an unknown suffix, a read-only directory, or further maps in a format for one map. Raises
    InputError for values that are not finite, or a unit that cannot be converted.

    >>> grid = pele_ocl.Grid(origin=(0, 0, 0), spacing=1.0, shape=(2, 2, 2))
    >>> pele_ocl.write_map("ones.cube", pele_ocl.Map(grid, np.ones((2, 2, 2)), "V"))
    """
    require_map(map_)
    callback("progress", progress)
    for name, value, kind in (("attributes", attributes, Mapping), ("extra", extra, Mapping), ("atoms", atoms, Atoms)):
        if value is not None:
            instance(name, value, kind, "a dictionary" if kind is Mapping else "Atoms")
    for name, other in (extra or {}).items():
        text("the name of a further map", name)
        require_map(other)
    for name in attributes or {}:
        text("the name of an attribute", name)
    if unit is not None:
        text("unit", unit)
    inputs = file_paths("inputs", inputs)
    suffix = require_map_suffix(file_path(path), several=bool(extra))
    map_ = as_written(path, map_, unit)
    for name, written in {"the map": map_, **(extra or {})}.items():
        fault = _not_finite(written)
        if fault:
            raise InputError(f"{path}: {name} cannot be written: {fault}")
    with replacing(path, inputs) as temporary:
        map_format(suffix).write(temporary, map_, Details(atoms, attributes or {}, extra or {}, progress))


def as_written(path: str | PathLike[str], map_: Map, unit: str | None = None) -> Map:
    """Convert a map to the unit that write_map uses: `unit` if given, otherwise that of the format or the map.

    Raises FormatError for an unknown suffix, InputError for a unit that cannot be converted.
    """
    wanted = unit or map_format(require_map_suffix(path)).unit
    return map_ if wanted is None or (unit is None and map_.unit not in POTENTIAL_UNITS) else map_.in_unit(wanted)


def require_map_suffix(path: str | PathLike[str], several: bool = False) -> str:
    """Return the suffix of a map file in lower case. Raises FormatError unless it is a key of MAPS.

    several : True if the format must support several maps per file
    """
    suffix = map_suffix(path)
    if suffix is None:
        raise FormatError(
            f"{path}: unknown suffix {Path(path).suffix!r}; maps end in {', '.join(MAPS)}{scripts_way(path)}"
        )
    if several and not holds_several(path):
        fitting = ", ".join(known for known in MAPS if holds_several(known))
        raise FormatError(f"{path}: {suffix} files contain one map; for several use {fitting}")
    return suffix


def holds_several(path: str | PathLike[str]) -> bool:
    """Return whether the format of a file supports several maps."""
    return map_format(require_map_suffix(path)).read_extra is not None


def _not_finite(map_: Map) -> str:
    """Describe the first value that is not finite; "" if all values are finite."""
    bad = ~np.isfinite(map_.values)
    if not bad.any():
        return ""
    k, j, i = np.unravel_index(int(bad.argmax()), bad.shape)
    return f"the value at point ({i}, {j}, {k}) is {map_.values[k, j, i]}; expected finite numbers"
