"""Damaged files of every kind: each is read or refused with one sentence, in time, and makes sense.

200 mutations a kind with fixed seeds; `pytest -m slow tests/test_fuzz_files.py` makes 5,000, or PELE_OCL_FUZZ of them.
"""

from __future__ import annotations

import faulthandler
import gzip
import io
import json
import os
import re
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import amber_helpers
import numpy as np
import pytest

from pele_ocl import Atoms, Grid, Map, read, read_conformations, selection, trajectory, write_conformations, write_map
from pele_ocl.atoms import Labels, Topology, correspondence
from pele_ocl.binding.mmpbsa.namelists import read_input
from pele_ocl.binding.mmpbsa.systems import read_index
from pele_ocl.common.errors import PeleError
from pele_ocl.common.inputfile import read_file
from pele_ocl.forcefield import read_control, read_links, read_obc, read_template
from pele_ocl.formats import (
    model_numbers,
    place,
    read_extra_maps,
    read_map,
    read_points,
    read_pqr,
    read_structure,
    read_topology,
)
from pele_ocl.pairs import PairList, read_pairs, write_pairs

FEW, MANY = 200, int(os.environ.get("PELE_OCL_FUZZ", "5000"))
SECONDS = 20  # for one mutation
MEMORY = 2**30  # bytes; the files have some kilobytes
LONGEST = 700  # characters of a sentence
N_ATOMS = 16

Rng = np.random.Generator


def structure_text(atom: str, frame: str = "{}") -> bytes:
    names = [(n, name) for n in range(1, N_ATOMS // 2 + 1) for name in ("N", "CA")]
    rows = [atom.format(serial=k, n=n, name=name, x=1.5 * k, y=-0.25 * k) for k, (n, name) in enumerate(names, 1)]
    return frame.format("".join(rows)).encode()


PDB_ATOM = "ATOM  {serial:>5}  {name:<2}  ALA A{n:>4}    {x:8.3f}{y:8.3f}  -3.250  1.00  0.00           {name:.1}\n"
PQR_ATOM = "ATOM  {serial:>5}  {name:<2}  ALA A{n:>4}    {x:8.3f} {y:7.3f}  -3.250 -0.4157 1.8240\n"
CIF_ATOM = "ATOM {name} ALA A {n} . {x} {y} -3.25 1\n"
CIF_COLUMNS = ("group_PDB auth_atom_id auth_comp_id auth_asym_id auth_seq_id label_alt_id "
               "Cartn_x Cartn_y Cartn_z pdbx_PDB_model_num").split()  # fmt: skip
CIF = "data_x\nloop_\n" + "".join(f"_atom_site.{name}\n" for name in CIF_COLUMNS) + "{}"
LINKS = """\
# a peptide bond
NAME PEPTIDE_BOND
ATOID  1 _C___
BOND   C     N  * 490.000   1.335
ANGL   CA    C     N  *  70.000 116.600
TORS   CA    C     N  *  H  *  2.4500 -1.0 2  #
ITOR   CA    N  *  C     O     10.500 -1.0 2
"""
CONTROL = """\
{ // a run
  "Initialization" : { "ForceField" : "OPLS2005", "MultipleComplex" : [ $COMPLEXES ],
    "Solvent" : { "ionicStrength" : 0.250, "solventType" : "OBC", "useDebyeLength" : true },
    "allowMissingTerminals" : true },
  "commands" : [ { "seed" : $SEED } ]
}
"""
TEMPLATE = """\
* LIGAND DATABASE FILE (OPLS2005)
MOH       3     2     1      0       0
    1     0 M   CT   _C1_     0    1.000000   90.000000    0.000000
    2     1 S   OH   _O1_     0    1.400000  109.500000    0.000000
    3     2 S   HO   _H1_     0    0.950000  109.500000    0.000000
NBON
    1   3.5000   0.0660   0.2650   1.9750   1.7500   0.005000000  -0.741685710
    2   3.1200   0.1700  -0.6830   1.7500   1.5600   0.005000000  -0.741685710
    3   0.0000   0.0000   0.4180   0.9960   0.8600   0.005000000  -0.741685710
BOND
    1     2   320.000  1.410
    2     3   553.000  0.945
THET
    1     2     3    55.00000  108.50000
PHI
IPHI
END
"""
OBC_TEXT = "# table\n" + "".join(f"ALA  {name:<4} CT  1.{k}9  0.72\n" for k, name in enumerate("N CA C O CB".split()))
OBC_JSON = json.dumps(
    {"SolventParameters": {"Name": "OBC2", "General": {"solvent_dielectric": 78.5},
                           "OLC": {f"_C{k}_": {"radius": 1.7, "scale": 0.72} for k in range(4)}}}, indent=1
)  # fmt: skip
PAIRS = PairList(
    N_ATOMS, range(12), range(1, 13), [k % 2 for k in range(12)], [0.5] * 12, [0.25 * k for k in range(12)]
)
POINTS = np.arange(36.0).reshape(12, 3) / 7
MAP = Map(
    Grid((-1.5, 0.25, 3), (0.5, 0.75, 1), (4, 3, 2)), np.arange(24.0).reshape(2, 3, 4) - 7.5, "kT/e", "A map", 300
)


@dataclass(frozen=True)
class Kind:
    """A kind of file: its name, a whole one, how it is read, and whether what was read makes sense."""

    name: str
    content: Callable[[Path], bytes]
    read: Callable[[Path], object]
    check: Callable[[object, bytes], None]
    text: bool = True


def constant(content: bytes) -> Callable[[Path], bytes]:
    return lambda folder: content


def written(write: Callable[[Path], None], name: str) -> Callable[[Path], bytes]:
    """Return the bytes that a function writes to a file."""

    def content(folder: Path) -> bytes:
        path = folder / f"whole-{name}"
        write(path)
        return path.read_bytes()

    return content


def finite(*arrays: np.ndarray) -> None:
    assert all(np.isfinite(array).all() for array in arrays)


def check_atoms(found: object, content: bytes) -> None:
    """Check for as many atoms as lines of atoms, unless models or alternate locations were left out."""
    structure = found
    finite(structure.positions)
    if isinstance(structure, Atoms):
        finite(structure.charges, structure.gb_radii)
    labels = structure.labels
    assert all(str(name).isprintable() for name in (*labels.names, *labels.residue_names, *labels.chains))
    text = re.split("\r\n|\r|\n", content.decode("utf-8-sig", "replace").upper())
    lines = [line for line in text if line.lstrip().startswith(("ATOM", "HETATM"))]
    assert len(structure.positions) <= max(len(lines), 1)
    if not structure.notes and len(structure.positions) < len(lines):
        strange = [line for line in lines if not line.lstrip().startswith(("ATOM ", "HETATM", "ATOM\t"))]
        assert len(structure.positions) + len(strange) >= len(lines), content.decode(errors="replace")


def check_mmcif(found: object, content: bytes) -> None:
    finite(found.positions)
    assert 0 < len(found.positions) <= 2 * N_ATOMS


def check_models(found: object, content: bytes) -> None:
    numbers, positions = found
    finite(positions)
    assert len(numbers) == len(positions)


def check_template(found: object, content: bytes) -> None:
    finite(found.lj_lengths, found.lj_epsilon, found.charges)
    for _, table in found.terms.tables() if found.terms is not None else ():
        finite(table.parameters)
        assert table.atoms.max(initial=0) < len(found)
    assert (len(found), len(found.bonds)) in ((3, 2), (1, 0), (2, 1), (3, 1), (2, 0)), content.decode(errors="replace")


def check_links(found: object, content: bytes) -> None:
    ((_, link),) = found.items()
    terms = [link.bond, *link.angles, *link.torsions, *link.impropers]
    finite(*(np.array(term.parameters) for term in terms))
    assert all(2 <= len({*term.atoms}) <= 4 for term in terms)


def check_control(found: object, content: bytes) -> None:
    assert np.isfinite(found.ionic_strength)
    assert found.gb in ("obc2", "none", "sgbnp", "vdgbnp")


def check_obc(found: object, content: bytes) -> None:
    assert found
    assert all(1 < radius < 10 and 0 < scale < 1 for radius, scale in found.values())


def check_pairs(found: object, content: bytes) -> None:
    finite(*(array for array in (found.sigma2, found.charge_products) if array is not None))
    assert found.first.max(initial=0) < N_ATOMS
    assert found.first.min(initial=0) >= 0


def check_points(found: object, content: bytes) -> None:
    finite(found)
    assert found.shape[1:] == (3,)


def check_map(found: object, content: bytes) -> None:
    main, extra = found
    for map_ in (main, *extra.values()):
        finite(map_.values, map_.grid.origin, map_.grid.spacing)
        assert map_.values.shape == map_.grid.shape[::-1]
        assert (map_.title + map_.unit).isprintable()


def check_topology(found: object, content: bytes) -> None:
    atoms = found.parameters
    finite(atoms.charges, atoms.lj_sigma, atoms.lj_epsilon, *(table.parameters for _, table in atoms.bonded.tables()))
    assert len(atoms.labels.residues) == 6
    assert 0 < len(atoms.bonded.one_four) <= 300


def check_placed(found: object, content: bytes) -> None:
    finite(found.positions)


def placed(path: Path) -> Atoms:
    return place(SIXTEEN, path)


def npy(array: np.ndarray) -> bytes:
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


def maps(path: Path) -> tuple[Map, dict[str, Map]]:
    return read_map(path), read_extra_maps(path)


def pairs(path: Path) -> PairList:
    return read_pairs(path, N_ATOMS)


def pair_file(name: str) -> Callable[[Path], bytes]:
    return written(lambda path: write_pairs(path, PAIRS), name)


def map_file(name: str) -> Callable[[Path], bytes]:
    return written(lambda path: write_map(path, MAP, attributes={"note": "made"}), name)


def read_models(path: Path) -> tuple[list[int], np.ndarray]:
    model_numbers(path)
    return read_conformations(path)


PDB_MODELS = b"".join(b"MODEL %8d\n%sENDMDL\n" % (k, structure_text(PDB_ATOM)) for k in (1, 2))
SIXTEEN = Topology(Atoms(positions=np.zeros((N_ATOMS, 3)), charges=np.zeros(N_ATOMS)), "x.parm7")
COORDINATES = np.arange(3.0 * N_ATOMS).reshape(N_ATOMS, 3) / 7
TOPOLOGY = amber_helpers.rendered(amber_helpers.with_cmap(amber_helpers.with_charmm(amber_helpers.content())))
MOL2 = "@<TRIPOS>MOLECULE\nmade\n16 15 1\nSMALL\nUSER_CHARGES\n\n@<TRIPOS>ATOM\n{}@<TRIPOS>BOND\n{}"
MOL2_ATOMS = "".join(
    f"{k:>4} C{k:<3} {1.5 * k:9.4f}   -0.2500   -3.2500 C.3  1 LIG  {0.01 * k:8.4f}\n" for k in range(1, 17)
)
MOL2_BONDS = "".join(f"{k:>4} {k:>4} {k + 1:>4} 1\n" for k in range(1, 16))
GRO_ATOM = "{n:5d}ALA  {name:>5}{serial:>5}{x:8.3f}{y:8.3f}  -0.325\n"
GRO = "made\n16\n{}   5.00000   5.00000   5.00000\n"
MMPBSA = """\
made by hand
&general
   startframe=1, endframe=20, interval=2, verbose=2, strip_mask=":WAT,Cl-",
   receptor_mask=":1-241", ligand_mask=':RAL' # a comment
/
&gb
   igb=5, saltcon=0.150, surften=0.0072, surfoff=0.0,
/
&pb
   istrng=0.150, indi=1.0, exdi=80.0, scale=2, inp=1, radiopt=0, npbopt=1,
/
&decomp
   idecomp=1, dec_verbose=3, print_res="1-10; 40"
/
"""
INDEX = "[ System ]\n" + " ".join(map(str, range(1, 17))) + "\n[ Protein ]\n 1 2 3 4\n[ LIG ]\n   5   6\n   7\n"
PACKED = gzip.compress(structure_text(PDB_ATOM), mtime=0)
POINT_TEXT = "x,y,z\n" + "".join(f"{x},{y},{z}\n" for x, y, z in POINTS.tolist())


def nbfix() -> str:
    """A topology in which a pair of types has Lennard-Jones parameters of its own."""
    made = amber_helpers.content()
    form, values = made["LENNARD_JONES_ACOEF"]
    return amber_helpers.rendered({**made, "LENNARD_JONES_ACOEF": (form, [*values[:3], 1.5 * values[3], *values[4:]])})


def check_mmpbsa(found: object, content: bytes) -> None:
    assert found.text
    assert 0 <= found.verbose
    assert np.isfinite([found.surface_offset, found.model.ionic_strength, found.model.surface_tension]).all()
    assert all(isinstance(note, str) and note.isprintable() for note in found.notes)


def check_index(found: object, content: bytes) -> None:
    assert all(name.isprintable() and (atoms >= 0).all() for name, atoms in found)


KINDS = [
    Kind("m.pdb", constant(structure_text(PDB_ATOM, "REMARK\n{}TER\nEND\n")), read_structure, check_atoms),
    Kind("c.pdb", constant(PDB_MODELS), read_models, check_models),
    Kind("m.cif", constant(structure_text(CIF_ATOM, CIF)), read_structure, check_mmcif),
    Kind("m.pqr", constant(structure_text(PQR_ATOM, "REMARK\n{}TER\nEND\n")), read_pqr, check_atoms),
    Kind("m.pdb.gz", constant(PACKED), read_structure, check_mmcif, text=False),
    Kind("x.parm7", constant(TOPOLOGY.encode()), read_topology, check_topology),
    Kind("n.parm7", constant(nbfix().encode()), read_topology, check_topology),
    Kind("m.gro", constant(structure_text(GRO_ATOM, GRO)), read_structure, check_mmcif),
    Kind("m.mol2", constant(MOL2.format(MOL2_ATOMS, MOL2_BONDS).encode()), read, check_placed),
    Kind("mmpbsa.in", constant(MMPBSA.encode()), lambda path: read_input(read_file(path), False), check_mmpbsa),
    Kind("gmx.in", constant(MMPBSA.encode()), lambda path: read_input(read_file(path), True), check_mmpbsa),
    Kind("index.ndx", constant(INDEX.encode()), read_index, check_index),
    Kind("x.rst7", constant(amber_helpers.restart(COORDINATES, True, True).encode()), placed, check_placed),
    Kind("x.ncrst", constant(amber_helpers.netcdf(COORDINATES[None], 2, False)), placed, check_placed, text=False),
    Kind("x.nc", constant(amber_helpers.netcdf(COORDINATES[None])), placed, check_placed, text=False),
    Kind("mohz", constant(TEMPLATE.encode()), read_template, check_template),
    Kind("inter_residue_bonds", constant(LINKS.encode()), read_links, check_links),
    Kind("pele.conf", constant(CONTROL.encode()), read_control, check_control),
    Kind("obc.txt", constant(OBC_TEXT.encode()), read_obc, check_obc),
    Kind("obc.json", constant(OBC_JSON.encode()), read_obc, check_obc),
    *(Kind(name, pair_file(name), pairs, check_pairs) for name in ("p.txt", "p.csv")),
    *(Kind(name, pair_file(name), pairs, check_pairs, text=False) for name in ("p.npz", "p.h5")),
    Kind("x.npy", constant(npy(POINTS)), read_points, check_points, text=False),
    Kind("x.csv", constant(POINT_TEXT.encode()), read_points, check_points),
    *(Kind(name, map_file(name), maps, check_map) for name in ("m.dx", "m.cube")),
    *(Kind(name, map_file(name), maps, check_map, text=False) for name in ("m.dx.gz", "m.mrc", "m.h5")),
]

HUGE = [b"9" * 5000, b"1e400", b"-1e308", b"1e-320", b"nan", b"inf", b"99999999999", b"-1", b"0", b"0x10", b"1_0"]
STRANGE = [b"\0", b"\xff\xfe", b"\x1b[31m", b"\xc3\xa9", b"\xe2\x80\xae", b"\xd9\xa3", b"\xc2\xa0", b"[" * 3000]
STRANGE += [b"\r", b"\t", b'"', b"#", b"{", b"'", b"*", b";"]


def cut(data: bytes, rng: Rng) -> bytes:
    at = int(rng.integers(len(data) + 1))
    return data[:at] if rng.random() < 0.4 else data[:at] + data[at + int(rng.integers(1, 100)) :]


def flip(data: bytes, rng: Rng) -> bytes:
    at = int(rng.integers(len(data)))
    return data[:at] + bytes([int(rng.integers(256))]) + data[at + 1 :]


def flip_bit(data: bytes, rng: Rng) -> bytes:
    at = int(rng.integers(len(data)))
    return data[:at] + bytes([data[at] ^ 1 << int(rng.integers(8))]) + data[at + 1 :]


def insert(data: bytes, rng: Rng) -> bytes:
    at = int(rng.integers(len(data) + 1))
    return data[:at] + STRANGE[int(rng.integers(len(STRANGE)))] + data[at:]


def fill(data: bytes, rng: Rng) -> bytes:
    """Eight bytes set to what numbers and addresses in binary files must not be."""
    at = int(rng.integers(len(data)))
    value = [b"\xff" * 8, b"\0" * 8, b"\xff\xff\xff\x7f\0\0\0\0", bytes(rng.integers(0, 256, 8, np.uint8))][
        int(rng.integers(4))
    ]
    return data[:at] + value + data[at + 8 :]


def duplicate_line(data: bytes, rng: Rng) -> bytes:
    lines = data.splitlines(keepends=True)
    first = int(rng.integers(len(lines)))
    last = first + int(rng.integers(1, 4))
    return b"".join(lines[:last] + lines[first:])


def swap_lines(data: bytes, rng: Rng) -> bytes:
    lines = data.splitlines(keepends=True)
    i, j = rng.integers(len(lines), size=2).tolist()
    lines[i], lines[j] = lines[j], lines[i]
    return b"".join(lines)


def join_lines(data: bytes, rng: Rng) -> bytes:
    lines = data.splitlines(keepends=True)
    at = int(rng.integers(len(lines)))
    lines[at] = lines[at].rstrip(b"\n") + b" "
    return b"".join(lines)


def change_field(data: bytes, rng: Rng) -> bytes:
    """A word left out, made huge, or exchanged with another of its line."""
    lines = data.splitlines(keepends=True)
    at = int(rng.integers(len(lines)))
    words = lines[at].split(b" ")
    i, j = rng.integers(len(words), size=2).tolist()
    match int(rng.integers(3)):
        case 0:
            del words[i]
        case 1:
            words[i] = HUGE[int(rng.integers(len(HUGE)))]
        case _:
            words[i], words[j] = words[j], words[i]
    lines[at] = b" ".join(words)
    return b"".join(lines)


TEXT_CHANGES = [cut, flip, insert, duplicate_line, swap_lines, join_lines, change_field, change_field]
BINARY_CHANGES = [cut, flip, flip_bit, insert, fill, fill]


def mutations(content: bytes, text: bool, n: int, seed: int) -> Iterator[bytes]:
    """n files, each with one to three changes; of gzip data every other is changed before it is compressed."""
    rng = np.random.default_rng(seed)
    packed = content[:2] == b"\x1f\x8b"
    for k in range(n):
        inside = packed and k % 2 == 0
        data = gzip.decompress(content) if inside else content
        changes = TEXT_CHANGES if text or inside else BINARY_CHANGES
        for _ in range(int(rng.integers(1, 4))):
            data = changes[int(rng.integers(len(changes)))](data, rng) if data else data
        yield gzip.compress(data, 1, mtime=0) if inside else data


@contextmanager
def watched() -> Iterator[None]:
    """End the whole run, with a traceback, if the block takes too long; C libraries hear no other signal."""
    faulthandler.dump_traceback_later(SECONDS, exit=True)
    try:
        yield
    finally:
        faulthandler.cancel_dump_traceback_later()


@contextmanager
def memory_limited() -> Iterator[None]:
    """No more than MEMORY beyond what the process has already; without Linux, no limit."""
    if not Path("/proc/self/statm").is_file():
        yield
        return
    import resource

    before = resource.getrlimit(resource.RLIMIT_AS)
    taken = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (taken + MEMORY, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


def fuzz(kind: Kind, folder: Path, n: int) -> None:
    whole = kind.content(folder)
    path = folder / kind.name
    path.write_bytes(whole)
    found = kind.read(path)
    kind.check(found, whole)
    assert len(getattr(found, "positions", range(N_ATOMS))) == N_ATOMS
    refused = 0
    with memory_limited():
        for k, data in enumerate(mutations(whole, kind.text, n, zlib.crc32(kind.name.encode()))):
            path.write_bytes(data)
            with watched():
                try:
                    found = kind.read(path)
                except PeleError as error:
                    refused += 1
                    message = str(error)
                    assert message.startswith(str(path)), f"mutation {k}: {message}"
                    assert message.isprintable(), f"mutation {k}: {message!r}"
                    assert "MemoryError" not in message, f"mutation {k}: {message}"
                    assert "llocat" not in message, f"mutation {k}: {message}"
                    assert len(message) - len(str(path)) < LONGEST, f"mutation {k}: {message}"
                else:
                    kind.check(found, data)
    assert refused > n / 20


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_a_few_mutations(tmp_path: Path, kind: Kind) -> None:
    fuzz(kind, tmp_path, FEW)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_many_mutations(tmp_path: Path, kind: Kind) -> None:
    fuzz(kind, tmp_path, MANY)


MASKS = (":1-2@CA", "!(:WAT,Cl-|@/Na)", ":LIG<:5.0&!@H=", "@C%,1-3", "protein and within 5 of resname LIG", ":R?L@CA,N")


def test_damaged_masks_are_selections_or_sentences():
    atoms = amber_helpers.hexapeptide()
    rng, refused = np.random.default_rng(5), 0
    for k in range(FEW * 5):
        mask = MASKS[k % len(MASKS)].encode()
        for _ in range(int(rng.integers(1, 4))):
            mask = (cut, flip, insert)[int(rng.integers(3))](mask, rng) if mask else mask
        text = mask.decode("latin-1")
        message, found = "", np.zeros(len(atoms), np.bool_)
        try:
            found = selection(atoms, text)
        except PeleError as error:
            refused, message = refused + 1, str(error)
        assert message or found.any(), repr(text)
        assert message.isprintable(), f"{text!r}: {message!r}"
        assert len(message) < LONGEST, f"{text!r}: {message}"
    assert FEW / 4 < refused < FEW * 5


RESIDUES = {
    "ALA": "N H CA HA CB HB1 HB2 HB3 C O", "SER": "N H CA HA CB HB2 HB3 OG HG C O", "GLY": "N H CA HA2 HA3 C O",
    "LIG": "C1 C2 N1 O1 CL1 H11 H12", "HOH": "O H1 H2", "NA": "NA",
}  # fmt: skip
SPELLED = {"HB1": "1HB", "HB2": "2HB", "HB3": "3HB", "H": "HN", "HA2": "2HA", "HA3": "1HA", "O1": "o1", "CL1": "Cl1"}


def random_labels(rng: Rng) -> Labels:
    """Some chains of residues, whose numbers rise."""
    rows: list[tuple[str, str, int, str, int]] = []
    number = index = 0
    for chain in "ABC"[: int(rng.integers(1, 4))]:
        for _ in range(int(rng.integers(1, 6))):
            name = list(RESIDUES)[int(rng.integers(len(RESIDUES)))]
            number, index = number + int(rng.integers(1, 5)), index + 1
            rows += [(chain, name, number, atom, index - 1) for atom in RESIDUES[name].split()]
    chains, residues, numbers, names, places = zip(*rows, strict=True)
    elements = ["Na" if name == "NA" else "Cl" if name == "CL1" else name[0] for name in names]
    return Labels(names, elements, residues, numbers, [""] * len(rows), chains, places)


def in_order(labels: Labels, order: np.ndarray, chains: np.ndarray, numbers: np.ndarray, names: np.ndarray) -> Labels:
    """Labels as a reader gives them for atoms in another order, with other chains, numbers and names."""
    columns = chains[order], labels.residue_names[order], numbers[order]
    changes = np.any([column[1:] != column[:-1] for column in columns], axis=0)
    return Labels(
        names[order], labels.elements[order], columns[1], columns[2], labels.insertion_codes[order], columns[0],
        np.concatenate([[0], np.cumsum(changes)]),
    )  # fmt: skip


def random_order(labels: Labels, rng: Rng) -> np.ndarray:
    """Atoms shuffled, reversed, rotated, exchanged within a residue, or with residues shuffled as wholes."""
    n, kind = len(labels), int(rng.integers(5))
    if kind == 0:
        return rng.permutation(n)
    if kind == 1:
        return np.arange(n)[::-1]
    if kind == 2:
        return np.roll(np.arange(n), int(rng.integers(n)))
    keys = labels.residue_index if kind == 3 else rng.permutation(labels.residue_index.max() + 1)[labels.residue_index]
    return np.lexsort((rng.random(n) if kind == 3 else np.arange(n), keys))


def test_labels_in_any_order_are_found_or_refused():
    """Names in another spelling, no chains, other numbers; atoms that are lost, twice or renamed are refused."""
    rng, refused = np.random.default_rng(11), 0
    for k in range(FEW * 5):
        labels = random_labels(rng)
        order = random_order(labels, rng)
        chains, numbers, names = labels.chains.copy(), labels.residue_numbers.copy(), labels.names.astype("U6")
        if k % 3 == 1:
            chains[:] = ""
        if k % 4 == 1:
            numbers = numbers + 100
        if k % 5 == 1:
            names = np.array([SPELLED.get(name, name) for name in names.tolist()], "U6")
        damage, place = k % 7, int(rng.integers(len(labels)))
        if damage == 4:
            order = np.delete(order, place)
        elif damage == 5:
            order = np.append(order, place)
        elif damage == 6:
            names[place] = "XX"
        if not len(order):
            continue
        given = in_order(labels, order, chains, numbers, names)
        message, found = "", None
        try:
            found = correspondence(labels, given, "given")
        except PeleError as error:
            refused, message = refused + 1, str(error)
        if found is None:
            assert message.startswith("given: "), f"{k}: {message}"
            assert "atom " in message, f"{k}: {message}"
            # With chains and numbers all of them are found; without chains, numbers and order may disagree.
            assert damage >= 4 or k % 4 == 1 or k % 3 == 1, f"{k}: {message}"
        else:
            assert damage < 4, f"{k}: atoms that differ were accepted"
            assert_same_residues(labels, order[found.order], k)
    assert FEW < refused < FEW * 4


def assert_same_residues(labels: Labels, order: np.ndarray, k: int) -> None:
    """Every atom is itself; without numbers a residue may be an equal one, which nothing tells from it."""
    if k % 4 != 1:
        assert (order == np.arange(len(labels))).all(), f"{k}: {order}"
    assert (labels.names[order] == labels.names).all(), f"{k}: {order}"
    assert (labels.residue_names[order] == labels.residue_names).all(), f"{k}: {order}"


@pytest.mark.parametrize("suffix", [".pdb", ".cif", ".h5"])
def test_frames_in_any_order_are_put_in_order(tmp_path: Path, suffix: str) -> None:
    atoms, rng = amber_helpers.hexapeptide(), np.random.default_rng(12)
    frames = np.round(atoms.positions + rng.normal(0, 0.1, (2, *atoms.positions.shape)), 3)
    path = tmp_path / f"x{suffix}"
    for k in range(FEW // 20):
        order = random_order(atoms.labels, rng)
        order = order if k % 3 else np.delete(order, int(rng.integers(len(order))))
        write_conformations(path, atoms[order], frames[:, order])
        if k % 3:
            (found,) = trajectory(path, atoms)
            assert np.abs(found - frames).max() < 1e-5, f"{k}"
        else:
            with pytest.raises(PeleError, match="and lacks its atom"):
                trajectory(path, atoms)
