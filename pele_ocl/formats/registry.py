"""Registry of structure and map formats by suffix.

A format is a module, and a line here for each suffix, for reading and for writing; see docs/extend/format.md. Modules
are imported when a format is first used.
"""

from __future__ import annotations

import bz2
import gzip
import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TypeVar

from ..atoms import Atoms, Floats, Structure
from ..common.errors import FormatError, InputError
from ..common.inputfile import InputFile, open_regular
from ..common.paths import file_path
from ..common.textfiles import BZIP2_MAGIC, GZIP_MAGIC
from ..common.variant import Progress

if TYPE_CHECKING:
    import gemmi

    from ..atoms import Topology
    from ..grid import Map

# Lower-case suffix -> module and name of the format in it. Suffixes of structures may be followed by `.gz` or `.bz2`.
STRUCTURES: dict[str, str] = {
    ".pdb": "pele_ocl.formats.pdb:FORMAT",
    ".ent": "pele_ocl.formats.pdb:FORMAT",
    ".cif": "pele_ocl.formats.mmcif:FORMAT",
    ".mmcif": "pele_ocl.formats.mmcif:FORMAT",
    ".pdbx": "pele_ocl.formats.mmcif:FORMAT",
    ".pqr": "pele_ocl.formats.pqr:FORMAT",
    ".prmtop": "pele_ocl.formats.amber:FORMAT",
    ".parm7": "pele_ocl.formats.amber:FORMAT",
    ".top": "pele_ocl.interop.topology_files:TOP",
    ".psf": "pele_ocl.interop.topology_files:PSF",
    ".sdf": "pele_ocl.ligand.files:FORMAT",
    ".mol2": "pele_ocl.formats.mol2:FORMAT",
    ".gro": "pele_ocl.formats.gro:FORMAT",
}
MAPS: dict[str, str] = {
    ".dx": "pele_ocl.formats.maps.dx:FORMAT",
    ".dx.gz": "pele_ocl.formats.maps.dx:GZIP_FORMAT",
    ".cube": "pele_ocl.formats.maps.cube:FORMAT",
    ".cub": "pele_ocl.formats.maps.cube:FORMAT",
    ".mrc": "pele_ocl.formats.maps.mrc:FORMAT",
    ".ccp4": "pele_ocl.formats.maps.mrc:FORMAT",
    ".map": "pele_ocl.formats.maps.mrc:FORMAT",
    ".h5": "pele_ocl.formats.maps.hdf5:FORMAT",
}
# Formats for writing conformations, each a ConformationFormat of `conformation_files.py`.
WRITTEN: dict[str, str] = {
    ".pdb": "pele_ocl.formats.conformation_files:PdbFormat",
    ".cif": "pele_ocl.formats.conformation_files:MmcifFormat",
    ".h5": "pele_ocl.formats.conformation_files:Hdf5Format",
    ".nc": "pele_ocl.formats.conformation_files:NetcdfFormat",
    ".dcd": "pele_ocl.formats.conformation_files:DcdFormat",
    ".xtc": "pele_ocl.formats.conformation_files:XtcFormat",
    ".xyz": "pele_ocl.formats.conformation_files:XyzFormat",
    ".rst7": "pele_ocl.formats.conformation_files:RestartFormat",
    ".inpcrd": "pele_ocl.formats.conformation_files:RestartFormat",
    ".ncrst": "pele_ocl.formats.conformation_files:NetcdfRestartFormat",
}


COMPRESSED = (".gz", ".bz2")
_AMBER = b"%VERSION"


@dataclass(frozen=True)
class StructureFormat:
    """Functions and properties of a structure format.

    read : reads a model by number, by default the first, and returns a Structure, which needs a force field, or Atoms
        with parameters
    models : returns the model numbers of a file, in order
    brings_parameters : True if `read` returns Atoms
    is_of_ligands : True if `read` also accepts options for the force field, charges and hydrogens of small molecules
    kind : description of a file, for messages
    has_lennard_jones, advice : whether the format has Lennard-Jones parameters, and what to use instead if not
    has_bonds : True if Atoms of the format have bonds
    topology : reads the parameters of a file without positions, for topology formats, whose `read` raises an error
    with_parameters : like `topology`, for formats with parameters in separate files
    conformations : reads the numbers and positions (m, n, 3) A of all models, for formats that support it. If a
        dictionary is passed, errors are stored in it by index, and the positions of unreadable models are NaN
    has_pdb_records : True if the lines of a file can be copied to a PDB file
    cell : reads the unit cell (3, 3) A from uncompressed bytes; None if there is none
    first_model : reads the first model with gemmi, for formats with occupancies and B-factors
    written_as : suffix in WRITTEN for writing a similar file
    """

    read: Callable[[InputFile, int | None], Structure | Atoms]
    models: Callable[[InputFile], list[int]]
    brings_parameters: bool = False
    is_of_ligands: bool = False
    conformations: Callable[[InputFile, dict[int, str] | None], tuple[list[int], Floats]] | None = None
    has_pdb_records: bool = False
    kind: str = "the file"
    has_lennard_jones: bool = True
    has_bonds: bool = True
    advice: str = "give a .pdb or .cif file"
    topology: Callable[[InputFile], Topology] | None = None
    with_parameters: Callable[[InputFile, Sequence[str | PathLike[str]]], Topology] | None = None
    cell: Callable[[bytes], Floats | None] | None = None
    first_model: Callable[[InputFile], gemmi.Structure] | None = None
    written_as: str = ".pdb"


class HeldFile(InputFile):
    """A molecule in memory that can be passed to readers like an InputFile.

    name : name for messages, such as "the universe"; form : format whose `read` returns the molecule
    """

    def __init__(self, name: str, form: StructureFormat) -> None:
        super().__init__(Path(name), b"")
        object.__setattr__(self, "form", form)

    form: StructureFormat
    sha256 = ""


def held_file(name: str, held: Structure | Atoms, cell: Floats | None = None) -> HeldFile:
    """Wrap a molecule in memory as a file with one model. name : for messages; cell : (3, 3) A, of a Structure"""

    def read(file: InputFile, model: int | None) -> Structure | Atoms:
        if model not in (None, 1):
            raise InputError(f"{name} has no model {model}; set its frame, and leave out `model`")
        return held

    has_own = isinstance(held, Atoms)
    form = StructureFormat(read, lambda file: [1], has_own, kind=name, cell=lambda data: cell)
    return HeldFile(name, form)


@dataclass(frozen=True)
class Details:
    """Additional content of a map file, written if the format supports it, and the progress callback."""

    atoms: Atoms | None = None
    attributes: Mapping[str, object] = field(default_factory=dict)
    extra: Mapping[str, Map] = field(default_factory=dict)
    progress: Progress | None = None

    def tell(self, share: float) -> None:
        """Report the written fraction of the map, 0 to 1."""
        if self.progress is not None:
            self.progress(share)


@dataclass(frozen=True)
class MapFormat:
    """Functions that read and write maps in one format.

    unit : unit of potentials implied by the format; None if files name it
    read_extra : reads the additional maps of a file, by name, for formats that support several
    """

    read: Callable[[InputFile], Map]
    write: Callable[[Path, Map, Details], None]
    unit: str | None = None
    read_extra: Callable[[InputFile], dict[str, Map]] | None = None


# Suffixes of unsupported formats, with advice.
_OTHERS = {
    ".bcif": "BinaryCIF is not supported; give the same entry as mmCIF (.cif)",
    ".mmtf": "MMTF is not supported; give the same entry as mmCIF (.cif)",
    ".smi": "a SMILES has no coordinates; give it to `pele-ocl ligand`, or as `ligands` for a residue of a structure",
    ".coor": "coordinates of NAMD need a topology (.psf, .prmtop); give it first, and these as its coordinates",
    **dict.fromkeys(
        (".crd", ".rst7", ".inpcrd", ".ncrst", ".restrt", ".rst"),
        "coordinates need a topology (.psf, .prmtop); give it first, and these as its coordinates",
    ),
}


def structure_format(path: str | PathLike[str]) -> StructureFormat:
    """Return the format of a structure file. Raises FormatError for directories and suffixes not in STRUCTURES."""
    if isinstance(path, HeldFile):
        return path.form
    suffix = structure_suffix(path)
    if file_path(path).is_dir():
        raise FormatError(f"{path}: a folder; give a file in it")
    if suffix not in STRUCTURES:
        if suffix in _OTHERS:
            raise FormatError(f"{path}: {_OTHERS[suffix]}")
        known = ", ".join(STRUCTURES)
        raise FormatError(f"{path}: unknown suffix {suffix!r}; molecules end in {known}, or these with .gz or .bz2")
    return _loaded(STRUCTURES[suffix], StructureFormat)


def refuse_other_format(path: str | PathLike[str]) -> None:
    """Raise FormatError for coordinates in an unsupported format, by the suffix and the first bytes."""
    suffix = structure_suffix(path)
    if suffix in (".bcif", ".mmtf"):
        raise FormatError(f"{path}: {_OTHERS[suffix]}")
    try:
        with open_plain(path) as stream:
            head = stream.read(4096)
            size = stream.seek(0, 2)
    except (OSError, EOFError, ValueError):
        return  # the reader reports the error
    if len(head) >= 4 and size == 4 + 24 * int.from_bytes(head[:4], "little"):
        raise FormatError(
            f"{path}: is a binary coordinate file of NAMD, which is not supported; convert it to .pdb, .rst7 or .nc "
            "(VMD, MDAnalysis, cpptraj)"
        )
    if head.startswith(b"*") and suffix in (".crd", ".cor"):
        raise FormatError(
            f"{path}: is a coordinate file of CHARMM, which is not supported; convert it to .pdb (CHARMM, VMD, "
            "MDAnalysis)"
        )


def is_structure(path: str | PathLike[str]) -> bool:
    """Return whether a path has a suffix in STRUCTURES, also before `.gz` or `.bz2`, or is an AMBER topology."""
    return isinstance(path, HeldFile) or structure_suffix(path) in STRUCTURES


def is_pdb(path: str | PathLike[str]) -> bool:
    """Return whether a path has a suffix of uncompressed PDB files."""
    return Path(path).suffix.lower() in STRUCTURES and structure_format(path).has_pdb_records


def structure_suffix(path: str | PathLike[str]) -> str:
    """Return the suffix in lower case, without `.gz` or `.bz2`.

    It is `.prmtop` for files with an unknown suffix that begin like AMBER topologies, such as `prmtop`, and "" for a
    HeldFile.
    """
    if isinstance(path, HeldFile):
        return ""
    file = Path(path)
    suffix = (file.with_suffix("") if file.suffix.lower() in COMPRESSED else file).suffix.lower()
    return ".prmtop" if suffix not in STRUCTURES and _begins_as_amber(path) else suffix


def _begins_as_amber(path: str | PathLike[str]) -> bool:
    """Return whether a file, plain or compressed, begins with %VERSION like AMBER topologies; False for other paths."""
    try:
        with open_plain(path) as stream:
            return stream.read(len(_AMBER)) == _AMBER
    except (OSError, EOFError, ValueError):
        return False


def open_plain(path: str | PathLike[str]) -> BinaryIO | gzip.GzipFile | bz2.BZ2File:
    """Open a file or an InputFile as a stream, decompressing gzip or bzip2. Raises OSError."""
    source: str | io.BytesIO
    if isinstance(path, InputFile):
        magic, source = path.data[:3], io.BytesIO(path.data)
    else:
        source = str(path)
        with open_regular(source) as stream:
            magic = stream.read(3)
    if magic.startswith(GZIP_MAGIC):
        return gzip.open(source)
    if magic == BZIP2_MAGIC:
        return bz2.open(source)
    return open(source, "rb") if isinstance(source, str) else source


_SCRIPTS = {".pml": "pymol", ".cxc": "chimerax", ".vmd": "vmd"}  # scripts of visualization programs


def scripts_way(path: str | PathLike[str]) -> str:
    """Explain how to write a script for a visualization program, for messages; "" for other suffixes."""
    program = _SCRIPTS.get(Path(path).suffix.lower())
    return f"; potmap and pb write a scene for this program next to a map: `scene={program!r}`" if program else ""


def map_suffix(path: str | PathLike[str]) -> str | None:
    """Return the longest key of MAPS that a path ends with; None if there is none."""
    name = Path(path).name.lower()
    return max((known for known in MAPS if name.endswith(known)), key=len, default=None)


def map_format(suffix: str) -> MapFormat:
    """Return the format of a suffix in MAPS."""
    return _loaded(MAPS[suffix], MapFormat)


F = TypeVar("F")


def _loaded(where: str, kind: type[F]) -> F:
    """Import the format at `module:name`."""
    found = named(where)
    assert isinstance(found, kind), f"{where} is not a {kind.__name__}"
    return found


def named(where: str) -> Any:
    """Import the object at `module:name`."""
    module, _, name = where.partition(":")
    return getattr(import_module(module), name)
