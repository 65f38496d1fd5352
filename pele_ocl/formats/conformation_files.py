"""Writers for files with conformations or trajectories of a molecule, written one frame after another.

Everything that depends only on the molecule is written first and does not change afterwards, so the file of an
interrupted program can be continued.
"""

from __future__ import annotations

import io
import json
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import Any

import gemmi
import numpy as np
from numpy.typing import ArrayLike

from ..atoms import Atoms, Floats, Labels, require_atoms
from ..atoms.chemistry import is_polymer
from ..common.arguments import checked, file_path, numbers
from ..common.errors import FormatError, InputError
from ..common.extras import extra
from ..common.writing import appending, replacing
from .hdf5 import placed_dataset, text_array, text_type, write_attributes
from .pdb_writing import atom_lines
from .registry import WRITTEN, named

INTERVAL = "interval_ps"  # attribute of a Content with the time between frames


@dataclass(frozen=True)
class Content:
    """Molecule and metadata of a file of conformations.

    atoms : Atoms with labels; n : number of conformations; source : source of the atoms, for messages
    b_factors : (n_atoms, 2) occupancies and B-factors for PDB and mmCIF files
    precision : precision of positions in HDF5 files, "float32" or "float64"
    attributes : attributes of HDF5 files
    has_velocities : True to write velocities with each conformation
    """

    atoms: Atoms
    n: int = 1
    source: str = "the molecule"
    b_factors: Floats | None = None
    precision: str = "float32"
    attributes: Mapping[str, object] = field(default_factory=dict)
    has_velocities: bool = False

    @property
    def labels(self) -> Labels:
        """Labels of the atoms. Raises FormatError if there are none."""
        if self.atoms.labels is None:
            raise FormatError(
                f"{self.source}: its atoms have no names, which PDB and mmCIF files need; use .nc or .rst7"
            )
        return self.atoms.labels

    @property
    def known_b_factors(self) -> Floats:
        """Occupancies and B-factors, 1 and 0 by default."""
        return np.tile([1.0, 0.0], (len(self.atoms), 1)) if self.b_factors is None else self.b_factors


class ConformationFormat(ABC):
    """Format of a file that consists of a header, conformations, and an end.

    has_gaps : True if failed conformations are written as NaN, False if they are omitted
    keeps_b_factors : True if occupancies and B-factors are written
    decimals : decimals of positions in A; None for binary formats
    takes_velocities : True if the format supports velocities
    holds_one : True if a file contains only one conformation
    """

    has_gaps: bool = False
    keeps_b_factors: bool = False
    decimals: int | None = None
    takes_velocities: bool = False
    holds_one: bool = False
    velocities_behind: int | None = None  # bytes between a conformation and its velocities; None if adjacent

    def __init__(self, content: Content) -> None:  # noqa: B027, as a format may need nothing
        """Prepare the format. content : the molecule and the number of conformations"""

    @abstractmethod
    def head(self) -> bytes:
        """Return the header."""

    @abstractmethod
    def conformation(self, number: int, positions: Floats | None) -> bytes:
        """Return the bytes of a conformation (n, 3) A, None for a failed one. number : from 1

        Raises FormatError for positions that the format cannot represent.
        """

    def velocities(self, values: Floats | None) -> bytes:
        """Return the bytes of the velocities (n, 3) A/ps of a conformation, None for a failed one."""
        raise NotImplementedError

    def end(self) -> bytes:
        """Return the bytes after the last conformation."""
        return b""

    def begin(self, stream: io.FileIO) -> None:  # noqa: B027, as most formats have nothing to do
        """Prepare a new file for conformations, after the header was written."""

    def cut(self, stream: io.FileIO, size: int) -> None:
        """Truncate the file to a size in bytes."""
        stream.truncate(size)

    def grown(self, stream: io.FileIO, size: int) -> None:  # noqa: B027
        """Update the number of conformations in the header after the file has grown to a size in bytes."""


class ConformationFile:
    """A file to which conformations are appended. size : bytes of the header and the conformations"""

    def __init__(self, path: Path, layout: ConformationFormat, size: int | None) -> None:
        """Open a file. size : size when a previous run was interrupted, to continue it; None for a new file"""
        self.path, self._layout = path, layout
        head = layout.head()
        if size is None:
            with replacing(path) as temporary:
                temporary.write_bytes(head)
        else:
            self._require(head, size)
        self.size = len(head) if size is None else size
        self._stream = open(path, "r+b", buffering=0)
        with appending(path):
            if size is None:
                layout.begin(self._stream)
            else:
                layout.cut(self._stream, size)

    def __enter__(self) -> ConformationFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stream.close()

    def append(self, number: int, positions: Floats | None, velocities: Floats | None = None) -> None:
        """Append a conformation; None for a failed one, which formats without gaps omit.

        number : number of the conformation, from 1
        velocities : (n, 3) A/ps, if the Content has velocities

        Raises FormatError if writing fails, for example on a full disk. Previous conformations are not affected.
        """
        if positions is None and not self._layout.has_gaps:
            return
        data = self._layout.conformation(number, positions)
        if velocities is not None:
            behind, more = self._layout.velocities_behind, self._layout.velocities(velocities)
            if behind is None:
                data += more
            else:
                self._write(more, self.size + len(data) + behind)
        self._write(data, self.size)
        self.size += len(data)
        self._layout.grown(self._stream, self.size)

    def finish(self) -> None:
        """Finish the file after the last conformation."""
        self._write(self._layout.end(), self.size)

    def _write(self, data: bytes, place: int) -> None:
        with appending(self.path):
            self._stream.seek(place)
            left = memoryview(data)
            while left:
                left = left[self._stream.write(left) :]

    def _require(self, head: bytes, size: int) -> None:
        """Raise FormatError unless the existing file begins with this header and has at least this size."""
        try:
            with open(self.path, "rb") as stream:
                is_same = stream.read(len(head)) == head or self._layout.has_gaps
                n_bytes = stream.seek(0, 2)
        except FileNotFoundError:
            is_same, n_bytes = False, 0
        if not is_same or n_bytes < size:
            raise FormatError(f"{self.path}: was changed after the interrupted run; start again without `resume`")


_PLACE = slice(30, 54)  # columns with x, y and z


class PdbFormat(ConformationFormat):
    """PDB files with chains, residue numbers, insertion codes and B-factors."""

    keeps_b_factors = True
    decimals = 3

    def __init__(self, content: Content) -> None:
        labels, n_atoms = content.labels, len(content.atoms)
        self._n, self._source = content.n, content.source
        lines = list(atom_lines(labels, np.zeros((n_atoms, 3)), content.source, content.known_b_factors))
        self._lines, self._is_atom = lines, [not line.startswith("TER") for line in lines]

    def head(self) -> bytes:
        return b""

    def conformation(self, number: int, positions: Floats | None) -> bytes:
        assert positions is not None
        if not ((positions > -999.9995) & (positions < 9999.9995)).all():
            raise FormatError(f"{self._source}: a position does not fit into a PDB file; use .cif, .h5 or .nc")
        places = iter(positions.tolist())
        lines = [
            f"{line[: _PLACE.start]}{'{:8.3f}{:8.3f}{:8.3f}'.format(*next(places))}{line[_PLACE.stop :]}"
            if is_atom
            else line
            for line, is_atom in zip(self._lines, self._is_atom, strict=True)
        ]
        before, after = (f"MODEL {number:8d}\n", "ENDMDL\n") if self._n > 1 else ("", "")
        return "".join([before, *lines, after]).encode("latin-1")

    def end(self) -> bytes:
        return b"END\n"


_COLUMNS = (
    "group_PDB", "id", "type_symbol", "label_atom_id", "label_alt_id", "label_comp_id", "label_asym_id",
    "label_entity_id", "label_seq_id", "pdbx_PDB_ins_code", "auth_seq_id", "auth_comp_id", "auth_asym_id",
    "auth_atom_id", "occupancy", "B_iso_or_equiv", "Cartn_x", "Cartn_y", "Cartn_z", "pdbx_PDB_model_num",
)  # fmt: skip


class MmcifFormat(ConformationFormat):
    """mmCIF files with the labels of the input as author names (auth_*)."""

    keeps_b_factors = True
    decimals = 6  # gradients of a minimum change by up to 0.001 kcal/mol/A; by 0.06 with four decimals

    def __init__(self, content: Content) -> None:
        labels = content.labels
        columns = (
            labels.names, labels.elements, labels.residue_names, labels.residue_numbers, labels.insertion_codes,
            labels.chains, labels.residue_index, content.known_b_factors,
        )  # fmt: skip
        first = int(labels.residue_index[0]) if len(labels) else 0
        rows = enumerate(zip(*(column.tolist() for column in columns), strict=True), 1)
        self._rows = [_row(serial, row[:6], row[6] - first + 1, row[7]) for serial, row in rows]

    def head(self) -> bytes:
        return "".join(["data_model\nloop_\n", *(f"_atom_site.{name}\n" for name in _COLUMNS)]).encode()

    def conformation(self, number: int, positions: Floats | None) -> bytes:
        assert positions is not None
        rows = zip(self._rows, positions.tolist(), strict=True)
        return "".join(f"{row} {x:.6f} {y:.6f} {z:.6f} {number}\n" for row, (x, y, z) in rows).encode()

    def end(self) -> bytes:
        return b"#\n"


def _row(serial: int, texts: Sequence[object], place: int, b_factor: Sequence[float]) -> str:
    """Return the row of an atom up to the positions. place : number of its residue, from 1"""
    name, element, residue, number, code, chain = map(str, texts)
    atom, comp, asym = (gemmi.cif.quote(text) if text else "." for text in (name, residue, chain))
    is_chain = is_polymer(residue)
    return " ".join(
        (
            "ATOM" if is_chain else "HETATM", str(serial), element, atom, ".", comp, asym, "1",
            str(place) if is_chain else ".", gemmi.cif.quote(code) if code else "?", number, comp, asym, atom,
            f"{b_factor[0]:.2f}", f"{b_factor[1]:.2f}",
        )
    )  # fmt: skip


_DIMENSION, _VARIABLE, _ATTRIBUTE = 10, 11, 12
_CHAR, _FLOAT, _DOUBLE = 2, 5, 6
_VELOCITY_UNIT = np.float32(20.455)  # AMBER's unit of velocity in A/ps, as rounded in its programs


class NetcdfFormat(ConformationFormat):
    """AMBER NetCDF trajectories: float32 coordinates in A, one record per frame, with times if known; without labels.

    Velocities are in AMBER's unit; the attribute `scale_factor` is the conversion to A/ps.
    """

    has_gaps = True
    takes_velocities = True

    def __init__(self, content: Content) -> None:
        self._n_atoms, self._has_velocities = len(content.atoms), content.has_velocities
        interval = content.attributes.get(INTERVAL)
        self._interval = None if interval is None else float(str(interval))
        self._head = self._made(0)
        self._head = self._made(len(self._head))

    def head(self) -> bytes:
        return self._head

    def conformation(self, number: int, positions: Floats | None) -> bytes:
        values = np.full((self._n_atoms, 3), np.nan) if positions is None else positions
        time = b"" if self._interval is None else np.array((number - 1) * self._interval, ">f4").tobytes()
        return time + values.astype(">f4").tobytes()

    def velocities(self, values: Floats | None) -> bytes:
        found = np.full((self._n_atoms, 3), np.nan) if values is None else values / _VELOCITY_UNIT
        return found.astype(">f4").tobytes()

    def grown(self, stream: io.FileIO, size: int) -> None:
        stream.seek(4)
        n_arrays = 2 if self._has_velocities else 1
        stream.write(_number((size - len(self._head)) // (self._time_bytes + 12 * n_arrays * self._n_atoms)))

    @property
    def _time_bytes(self) -> int:
        return 0 if self._interval is None else 4

    def _made(self, begin: int) -> bytes:
        """Create the header. begin : offset of the first frame, the length of the header"""
        dimensions = [("frame", 0), ("spatial", 3), ("atom", self._n_atoms)]
        spatial_bytes = 4
        variables = [
            _variable("spatial", (1,), {}, _CHAR, spatial_bytes, begin - spatial_bytes),
        ]
        if self._time_bytes:
            variables.append(_variable("time", (0,), {"units": "picosecond"}, _FLOAT, self._time_bytes, begin))
        units = {"units": "angstrom"}
        variables.append(
            _variable("coordinates", (0, 2, 1), units, _FLOAT, 12 * self._n_atoms, begin + self._time_bytes)
        )
        if self._has_velocities:
            own: dict[str, str | np.float32] = {"units": "angstrom/picosecond", "scale_factor": _VELOCITY_UNIT}
            place = begin + self._time_bytes + 12 * self._n_atoms
            variables.append(_variable("velocities", (0, 2, 1), own, _FLOAT, 12 * self._n_atoms, place))
        return _netcdf_head("AMBER", dimensions, variables) + b"xyz\0"


def _netcdf_head(convention: str, dimensions: Sequence[tuple[str, int]], variables: Sequence[bytes]) -> bytes:
    """Create the header of a NetCDF file with one of AMBER's conventions, up to the values."""
    attributes = {"Conventions": convention, "ConventionVersion": "1.0", "program": "pele-ocl", "programVersion": "1"}
    return b"".join(
        (
            b"CDF\x02", _number(0),
            _number(_DIMENSION), _number(len(dimensions)), *(_name(name) + _number(n) for name, n in dimensions),
            _attributes(attributes),
            _number(_VARIABLE), _number(len(variables)), *variables,
        )
    )  # fmt: skip


def _number(value: int, n_bytes: int = 4) -> bytes:
    return max(0, value).to_bytes(n_bytes, "big")


def _padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % 4)


def _name(text: str) -> bytes:
    return _number(len(text)) + _padded(text.encode())


def _attributes(of: Mapping[str, str | np.float32]) -> bytes:
    if not of:
        return bytes(8)
    texts = (
        _name(name)
        + (
            _number(_CHAR) + _name(value)
            if isinstance(value, str)
            else _number(_FLOAT) + _number(1) + np.array(value, ">f4").tobytes()
        )
        for name, value in of.items()
    )
    return _number(_ATTRIBUTE) + _number(len(of)) + b"".join(texts)


def _variable(
    name: str,
    dimensions: tuple[int, ...],
    attributes: Mapping[str, str | np.float32],
    kind: int,
    n_bytes: int,
    begin: int,
) -> bytes:
    indices = b"".join(map(_number, dimensions))
    size = min(-(-n_bytes // 4) * 4, 2**32 - 1)
    return b"".join(
        (
            _name(name), _number(len(dimensions)), indices, _attributes(attributes), _number(kind), _number(size),
            _number(begin, 8),
        )
    )  # fmt: skip


_BLOCK = 1 << 22  # numbers
_CONTENTS = 1 << 16  # bytes reserved for metadata, so that all of it precedes the positions


class Hdf5Format(ConformationFormat):
    """HDF5 files in which the metadata precede the positions. Missing and failed conformations are NaN.

    Velocities follow the positions in a dataset of the same shape.

    dataset : name of the positions; per_angstrom : 1 A in the unit of the positions
    """

    has_gaps = True
    takes_velocities = True
    dataset = "positions"
    per_angstrom = 1.0

    def __init__(self, content: Content) -> None:
        self._content = content
        self._shape = content.n, len(content.atoms), 3
        self._dtype = np.dtype(content.precision).newbyteorder("<")
        self._n_arrays = 2 if content.has_velocities else 1
        if content.has_velocities:
            self.velocities_behind = max(0, content.n - 1) * 3 * len(content.atoms) * self._dtype.itemsize

    def head(self) -> bytes:
        return self._head

    def conformation(self, number: int, positions: Floats | None) -> bytes:
        values = np.full(self._shape[1:], np.nan) if positions is None else positions
        return (self.per_angstrom * values).astype(self._dtype).tobytes()

    def velocities(self, values: Floats | None) -> bytes:
        return self.conformation(1, values)  # unit of the positions per ps

    def begin(self, stream: io.FileIO) -> None:
        stream.seek(len(self._head))
        left = self._n_arrays * int(np.prod(self._shape))
        while left:
            stream.write(np.full(min(left, _BLOCK), np.nan, self._dtype).tobytes())
            left -= min(left, _BLOCK)

    def cut(self, stream: io.FileIO, size: int) -> None:
        """Do nothing, because the file always has its final size."""

    @cached_property
    def _head(self) -> bytes:
        """The file up to the positions, which come last."""
        import h5py

        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "head.h5"
            with h5py.File(path, "w", libver=("v108", "latest"), track_order=True, meta_block_size=_CONTENTS) as file:
                self.write_rest(file, self._content)
                dataset = placed_dataset(file, self.dataset, self._shape, self._dtype)
                # Fixed-length strings, because the heap of variable-length ones may grow and be moved behind the
                # positions.
                own = [dataset]
                if self._n_arrays > 1:
                    own.append(placed_dataset(file, "velocities", self._shape, self._dtype))
                for of, per in zip(own, ("", "/picosecond"), strict=False):
                    for name, text in self.unit.items():
                        of.attrs.create(name, text + per, dtype=h5py.string_dtype("utf-8", len(text + per)))
                begin = int(dataset.id.get_offset())
            assert path.stat().st_size == begin + self._n_arrays * int(np.prod(self._shape)) * self._dtype.itemsize
            with open(path, "rb") as stream:
                return stream.read(begin)

    @property
    def unit(self) -> dict[str, str]:
        """Unit of the positions, as an attribute of the dataset."""
        return {"unit": "angstrom"}

    def write_rest(self, file: Any, content: Content) -> None:
        """Write everything except the positions to an h5py.File."""
        labels = content.atoms.labels
        write_attributes(file, content.attributes)
        for f in fields(Labels) if labels is not None else ():
            values = getattr(labels, f.name)
            if values.dtype.kind == "U":
                file.create_dataset(f.name, data=text_array(values), dtype=text_type())
            else:
                file.create_dataset(f.name, data=values)


_AKMA = 0.04888821290839616  # CHARMM's unit of time (AKMA), ps
_NANOMETER = 0.1  # nm per A


class DcdFormat(ConformationFormat):
    """DCD files as written by CHARMM without a unit cell: float32 coordinates in A, without labels."""

    has_gaps = True

    def __init__(self, content: Content) -> None:
        self._n_atoms = len(content.atoms)
        self._interval = float(str(content.attributes.get(INTERVAL, 1.0)))
        self._frame_bytes = 3 * (4 * self._n_atoms + 8)

    def head(self) -> bytes:
        numbers = np.zeros(20, "<i4")
        numbers[[1, 2, 19]] = 0, 1, 24  # first step, steps between frames, CHARMM's version
        numbers[9:10] = np.array([self._interval / _AKMA], "<f4").view("<i4")
        title = np.array([1], "<i4").tobytes() + b"written by pele-ocl".ljust(80)
        return b"".join(map(_record, (b"CORD" + numbers.tobytes(), title, np.array([self._n_atoms], "<i4").tobytes())))

    def conformation(self, number: int, positions: Floats | None) -> bytes:
        values = np.full((self._n_atoms, 3), np.nan) if positions is None else positions
        return b"".join(_record(axis.astype("<f4").tobytes()) for axis in values.T)

    def grown(self, stream: io.FileIO, size: int) -> None:
        n = np.array((size - len(self.head())) // self._frame_bytes, "<i4").tobytes()
        for place in (8, 20):  # frames, and steps
            stream.seek(place)
            stream.write(n)


def _record(data: bytes) -> bytes:
    """Return a Fortran record, with its length before and after the data."""
    mark = np.array(len(data), "<i4").tobytes()
    return mark + data + mark


class XtcFormat(ConformationFormat):
    """XTC files, written with MDTraj: coordinates rounded to 0.01 A, without labels."""

    decimals = 2

    def __init__(self, content: Content) -> None:
        self._interval = float(str(content.attributes.get(INTERVAL, 1.0)))
        self._writer = extra("mdtraj.formats", "an .xtc file").XTCTrajectoryFile

    def head(self) -> bytes:
        return b""

    def conformation(self, number: int, positions: Floats | None) -> bytes:
        assert positions is not None
        values = (_NANOMETER * positions).astype(np.float32)[None]
        time, step = np.array([(number - 1) * self._interval], np.float32), np.array([number], np.int32)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "frame.xtc"  # frames are simply concatenated in a file
            with self._writer(str(path), "w") as file:
                file.write(values, time=time, step=step, box=np.zeros((1, 3, 3), np.float32))
            return path.read_bytes()


class XyzFormat(ConformationFormat):
    """Extended XYZ files for ASE: elements and positions as text, and the time of each frame in ps."""

    decimals = 5

    def __init__(self, content: Content) -> None:
        self._elements = [f"{element:2s}" for element in content.labels.elements.tolist()]
        self._interval = float(str(content.attributes.get(INTERVAL, 1.0)))

    def head(self) -> bytes:
        return b""

    def conformation(self, number: int, positions: Floats | None) -> bytes:
        assert positions is not None
        comment = f'Properties=species:S:1:pos:R:3 time={(number - 1) * self._interval:.6g} pbc="F F F"'
        rows = zip(self._elements, positions.tolist(), strict=True)
        lines = (f"{element} {x:.5f} {y:.5f} {z:.5f}\n" for element, (x, y, z) in rows)
        return "".join([f"{len(self._elements)}\n{comment}\n", *lines]).encode()


class RestartFormat(ConformationFormat):
    """AMBER text restarts (rst7, inpcrd): positions, without labels, velocities and unit cell."""

    decimals = 7
    holds_one = True

    def __init__(self, content: Content) -> None:
        self._title = content.source

    def head(self) -> bytes:
        return b""

    def conformation(self, number: int, positions: Floats | None) -> bytes:
        from .amber.writing import rst7_text  # imports the topology readers, which most commands do not need

        assert positions is not None
        return rst7_text(positions, self._title).encode("ascii", "replace")


class NetcdfRestartFormat(ConformationFormat):
    """AMBER NetCDF restarts (ncrst) by the AMBERRESTART convention: float64 positions in A, with a time of 0 ps."""

    holds_one = True

    def __init__(self, content: Content) -> None:
        self._n_atoms = len(content.atoms)
        self._head = self._made(0)
        self._head = self._made(len(self._head))

    def head(self) -> bytes:
        return self._head

    def conformation(self, number: int, positions: Floats | None) -> bytes:
        assert positions is not None
        return positions.astype(">f8").tobytes()

    def _made(self, begin: int) -> bytes:
        """Create the header. begin : offset of the positions, the length of the header"""
        time, units = np.zeros(1, ">f8").tobytes(), {"units": "angstrom"}
        size = 24 * self._n_atoms
        variables = [
            _variable("spatial", (0,), {}, _CHAR, 4, begin - len(time) - 4),
            _variable("time", (), {"units": "picosecond"}, _DOUBLE, len(time), begin - len(time)),
            _variable("coordinates", (1, 0), units, _DOUBLE, size, begin),
        ]
        return _netcdf_head("AMBERRESTART", [("spatial", 3), ("atom", self._n_atoms)], variables) + b"xyz\0" + time


class MdtrajFormat(Hdf5Format):
    """HDF5 files by MDTraj's convention (Pande, version 1.1): nm, ps, topology in JSON; missing frames are NaN."""

    dataset = "coordinates"
    per_angstrom = _NANOMETER

    @property
    def unit(self) -> dict[str, str]:
        return {"units": "nanometers"}

    def write_rest(self, file: Any, content: Content) -> None:
        head = {"conventions": "Pande", "conventionVersion": "1.1", "program": "pele-ocl", "programVersion": "1"}
        for name, text in {**head, "application": "pele-ocl simulate"}.items():
            file.attrs[name] = np.bytes_(text)
        times = float(str(content.attributes.get(INTERVAL, 1.0))) * np.arange(content.n, dtype=np.float32)
        file.create_dataset("time", data=times).attrs["units"] = np.bytes_("picoseconds")
        if content.atoms.labels is not None:
            file.create_dataset("topology", data=np.array([json.dumps(_topology(content.atoms)).encode()]))


def _topology(atoms: Atoms) -> dict[str, Any]:
    """Return chains, residues, atoms and bonds in the structure of MDTraj's JSON topologies."""
    labels = atoms.labels
    assert labels is not None
    chains: list[dict[str, Any]] = []
    residues: dict[int, dict[str, Any]] = {}
    columns = (labels.residue_index, labels.chains, labels.residue_names, labels.residue_numbers)
    rows = zip(*(column.tolist() for column in columns), labels.names.tolist(), labels.elements.tolist(), strict=True)
    for k, (place, chain, residue, number, name, element) in enumerate(rows):
        if place not in residues:
            if not chains or chains[-1]["chain_id"] != chain:
                chains.append({"index": len(chains), "chain_id": chain, "residues": []})
            residues[place] = {
                "index": len(residues), "name": residue, "resSeq": number, "segmentID": "", "atoms": [],
            }  # fmt: skip
            chains[-1]["residues"].append(residues[place])
        residues[place]["atoms"].append({"index": k, "name": name, "element": element})
    return {"chains": chains, "bonds": np.unique(np.sort(atoms.bond_pairs, axis=1), axis=0).tolist()}


__all__ = [
    "CONFORMATION_FORMATS",
    "ConformationFile",
    "Content",
    "layout_of",
    "require_suffix",
    "write_conformation",
    "write_conformations",
]


class _Written(Mapping[str, type[ConformationFormat]]):
    """Mapping of suffixes to the classes in WRITTEN, whose modules are imported on access."""

    def __getitem__(self, suffix: str) -> type[ConformationFormat]:
        found: type[ConformationFormat] = named(WRITTEN[suffix])
        assert issubclass(found, ConformationFormat), f"{WRITTEN[suffix]} is not a ConformationFormat"
        return found

    def __contains__(self, suffix: object) -> bool:
        return suffix in WRITTEN

    def __iter__(self) -> Iterator[str]:
        return iter(WRITTEN)

    def __len__(self) -> int:
        return len(WRITTEN)


CONFORMATION_FORMATS = _Written()


def written_suffixes(*, with_b_factors: bool = False) -> str:
    """List the suffixes of CONFORMATION_FORMATS for messages: `.pdb or .cif` for formats with B-factors."""
    *most, last = (s for s, form in CONFORMATION_FORMATS.items() if form.keeps_b_factors or not with_b_factors)
    return f"{', '.join(most)} or {last}"


def require_suffix(path: str | PathLike[str]) -> str:
    """Return the suffix of a path. Raises FormatError unless it is a key of CONFORMATION_FORMATS."""
    suffix = Path(path).suffix.lower()
    if suffix not in CONFORMATION_FORMATS:
        raise FormatError(f"{path}: unknown suffix {suffix!r}; structures are written as {written_suffixes()}")
    return suffix


def layout_of(path: str | PathLike[str], content: Content) -> ConformationFormat:
    """Return the format for a path and content, without writing anything.

    HDF5 files with a time between frames use MDTraj's convention.

    Raises FormatError for unknown suffixes, for labels that the format cannot represent, and for several conformations
    in a format for one.
    """
    form = CONFORMATION_FORMATS[require_suffix(path)]
    if form.holds_one and content.n != 1:
        kind = f"a {Path(path).suffix.lower()} file"
        raise FormatError(f"{path}: {kind} contains one structure; write {content.n:,} structures as .nc, a trajectory")
    return MdtrajFormat(content) if form is Hdf5Format and INTERVAL in content.attributes else form(content)


@checked
def write_conformations(path: str | PathLike[str], atoms: Atoms, conformations: ArrayLike | None = None) -> None:
    """Write conformations as PDB, mmCIF, HDF5, AMBER NetCDF, DCD, GROMACS XTC or extended XYZ, by the suffix.

    A single structure can also be written as an AMBER restart: .rst7 or .inpcrd as text, .ncrst as NetCDF. PDB files
    have three decimals, so the RMS gradient of a minimum increases to about 0.6 kcal/mol/A; mmCIF files have six.
    `read_conformations` reads all of these formats.

    atoms : Atoms with labels, which are not needed for NetCDF, DCD, XTC and restarts
    conformations : (n, 3) or (m, n, 3) A; by default the positions of `atoms`

    Raises InputError for another shape. Raises FormatError for unknown suffixes, for contents that the format does not
    support, and if the file cannot be written.

    >>> atoms = pele_ocl.read("data/structures/trialanine.pdb")
    >>> pele_ocl.write_conformations("two.nc", atoms, [atoms.positions, atoms.positions + 1.0])
    >>> pele_ocl.trajectory("two.nc", atoms).frames
    range(0, 2)
    """
    require_atoms(atoms)
    target = file_path(path)
    given = atoms.positions if conformations is None else numbers("conformations", conformations)
    if given.ndim not in (2, 3) or given.shape[-2:] != atoms.positions.shape or not given.size:
        n = len(atoms)
        raise InputError(f"conformations have shape {given.shape}; expected ({n}, 3), or (m, {n}, 3), m at least 1")
    each = given.reshape(-1, len(atoms), 3)
    layout = layout_of(target, Content(atoms, len(each)))
    with replacing(target) as temporary, ConformationFile(temporary, layout, None) as file:
        for k, positions in enumerate(each, 1):
            file.append(k, positions)
        file.finish()


def write_conformation(path: str | PathLike[str], content: Content) -> None:
    """Write the positions of the content's atoms as a single conformation.

    Raises FormatError like `layout_of`, and if the file cannot be written.
    """
    layout = layout_of(path, content)
    with replacing(path) as temporary, ConformationFile(temporary, layout, None) as file:
        file.append(1, content.atoms.positions)
        file.finish()
