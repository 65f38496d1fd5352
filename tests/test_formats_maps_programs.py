"""Map files: other programs read what we write, and we read what they write."""

from __future__ import annotations

import numpy as np
import pytest
from maps_helpers import ATOL_A, CUBE, RTOL, SHAPES, VMD_DX, some_map

import pele_ocl
from pele_ocl.common.installation import shipped
from pele_ocl.formats import read_map, write_map
from pele_ocl.grid import Grid
from pele_ocl.units import BOHR_A

# What they read


@pytest.mark.parametrize("shape", [(4, 3, 2), (5, 2, 13)], ids=str)
@pytest.mark.parametrize("suffix", [".dx", ".dx.gz", ".mrc", ".ccp4", ".map"])
def test_griddataformats_reads_ours(tmp_path, suffix, shape):
    from gridData import Grid as TheirGrid

    ours = some_map(shape)
    write_map(tmp_path / f"map{suffix}", ours)
    kind = {} if ".dx" in suffix else {"file_format": "MRC"}
    theirs = TheirGrid(str(tmp_path / f"map{suffix}"), **kind)
    np.testing.assert_allclose(theirs.grid, ours.values.transpose(2, 1, 0), rtol=RTOL[suffix])
    np.testing.assert_allclose(theirs.origin, ours.grid.origin, rtol=0, atol=ATOL_A[suffix])
    np.testing.assert_allclose(theirs.delta, ours.grid.spacing, rtol=0, atol=1e-6)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_mrcfile_and_gemmi_read_ours(tmp_path, shape, capsys):
    import gemmi
    import mrcfile

    ours, path = some_map(shape), tmp_path / "map.mrc"
    write_map(path, ours)
    assert mrcfile.validate(path), capsys.readouterr().out
    with mrcfile.open(path) as file:
        np.testing.assert_array_equal(file.data, ours.values)
        origin = [file.header.origin[axis].item() for axis in "xyz"]
        spacing = [file.voxel_size[axis].item() for axis in "xyz"]
    np.testing.assert_allclose(origin, ours.grid.origin, rtol=0, atol=ATOL_A[".mrc"])
    np.testing.assert_allclose(spacing, ours.grid.spacing, rtol=1e-6)
    density = gemmi.read_ccp4_map(str(path), setup=True)
    np.testing.assert_array_equal(density.grid.array, ours.values.transpose(2, 1, 0))
    np.testing.assert_allclose(density.grid.unit_cell.parameters[:3], ours.grid.spacing * shape, rtol=1e-6)
    assert density.grid.unit_cell.parameters[3:] == (90, 90, 90)
    np.testing.assert_allclose([density.header_float(w) for w in (50, 51, 52)], ours.grid.origin, rtol=1e-6)


def test_ase_reads_our_cube(tmp_path):
    from ase.io.cube import read_cube

    atoms = pele_ocl.read(shipped("data") / "structures" / "hexapeptide.pdb")
    ours = some_map((5, 2, 13))
    write_map(tmp_path / "map.cube", ours, atoms=atoms)
    with open(tmp_path / "map.cube") as file:
        theirs = read_cube(file)
    bohr = 0.5291772105638411 / BOHR_A  # ASE's is that of CODATA 2014
    np.testing.assert_allclose(theirs["data"], ours.values.transpose(2, 1, 0), rtol=RTOL[".cube"])
    np.testing.assert_allclose(theirs["origin"], ours.grid.origin * bohr, rtol=0, atol=3e-7)
    np.testing.assert_allclose(theirs["spacing"], np.diag(ours.grid.spacing) * bohr, rtol=0, atol=3e-7)
    assert theirs["atoms"].get_chemical_symbols() == atoms.labels.elements.tolist()
    np.testing.assert_allclose(theirs["atoms"].positions, atoms.positions * bohr, rtol=0, atol=3e-7)


def test_cube_without_atoms_has_a_dummy(tmp_path):
    """PyMOL and VMD read nothing from a cube file whose number of atoms is 0."""
    from ase.io.cube import read_cube

    write_map(tmp_path / "map.cube", some_map())
    with open(tmp_path / "map.cube") as file:
        theirs = read_cube(file)
    assert theirs["atoms"].get_atomic_numbers().tolist() == [0]
    np.testing.assert_allclose(theirs["data"], some_map().values.transpose(2, 1, 0), rtol=RTOL[".cube"])


# What they write


def test_griddataformats_dx(tmp_path):
    from gridData import Grid as TheirGrid

    wanted = some_map((5, 2, 13), dtype=np.float64)
    theirs = TheirGrid(wanted.values.transpose(2, 1, 0), origin=wanted.grid.origin, delta=wanted.grid.spacing)
    theirs.export(str(tmp_path / "map.dx"))
    found = read_map(tmp_path / "map.dx")
    np.testing.assert_allclose(found.values, wanted.values, rtol=1e-6)
    np.testing.assert_allclose(found.grid.origin, wanted.grid.origin, rtol=1e-6)
    np.testing.assert_allclose(found.grid.spacing, wanted.grid.spacing, rtol=1e-6)
    assert found.unit == ""


@pytest.mark.parametrize("axes", ["123", "321", "213", "231", "312", "132"])
@pytest.mark.parametrize(
    ("kind", "order"), [("i1", "<"), ("i2", ">"), ("f4", "<"), ("f4", ">"), ("u2", ">"), ("f2", "<")]
)
def test_mrc_of_any_axes_and_numbers(tmp_path, axes, kind, order):
    import mrcfile

    grid = Grid((3.5, -2.25, 8), (0.5, 0.75, 1.25), (4, 3, 2))
    values = np.arange(24).reshape(2, 3, 4).astype(kind)
    columns, rows, sections = (int(axis) - 1 for axis in axes)  # each 0 for x, 1 for y, 2 for z
    with mrcfile.new(tmp_path / "map.mrc") as file:
        file.set_data(values.transpose(2 - sections, 2 - rows, 2 - columns).astype(order + kind))
        file.header.mapc, file.header.mapr, file.header.maps = columns + 1, rows + 1, sections + 1
        file.header.mx, file.header.my, file.header.mz = grid.shape
        file.header.cella = tuple(grid.spacing * grid.shape)
        file.header.origin = tuple(grid.origin)
    found = read_map(tmp_path / "map.mrc")
    np.testing.assert_array_equal(found.values, values)
    np.testing.assert_allclose(found.grid.origin, grid.origin)
    np.testing.assert_allclose(found.grid.spacing, grid.spacing)


def test_mrc_where_nstart_gives_the_place(tmp_path):
    """NSTART is in the order of the file's axes; a map of part of the cell has its steps from the whole cell."""
    import mrcfile

    with mrcfile.new(tmp_path / "map.ccp4") as file:
        file.set_data(np.arange(24, dtype=np.float32).reshape(2, 3, 4))  # z, x, y
        file.header.mapc, file.header.mapr, file.header.maps = 2, 1, 3
        file.header.nxstart, file.header.nystart, file.header.nzstart = 10, -20, 30
        file.header.mx, file.header.my, file.header.mz = 40, 50, 60
        file.header.cella = (20, 50, 120)
    found = read_map(tmp_path / "map.ccp4")
    assert found.grid.shape == (3, 4, 2)
    np.testing.assert_allclose(found.grid.spacing, (0.5, 1, 2))
    np.testing.assert_allclose(found.grid.origin, (-10, 10, 60))
    np.testing.assert_array_equal(found.values[0], np.arange(12).reshape(3, 4).T)


def test_gemmi_ccp4(tmp_path):
    import gemmi

    wanted = some_map()
    density = gemmi.Ccp4Map()
    density.grid = gemmi.FloatGrid(wanted.values.transpose(2, 1, 0))
    density.grid.set_unit_cell(gemmi.UnitCell(*wanted.grid.spacing * wanted.grid.shape, 90, 90, 90))
    density.grid.spacegroup = gemmi.SpaceGroup("P1")
    density.update_ccp4_header(2)  # symmetry operators stand between header and values
    density.write_ccp4_map(str(tmp_path / "map.ccp4"))
    found = read_map(tmp_path / "map.ccp4")
    np.testing.assert_array_equal(found.values, wanted.values)
    np.testing.assert_allclose(found.grid.spacing, wanted.grid.spacing, rtol=1e-6)
    np.testing.assert_array_equal(found.grid.origin, 0)


def test_ase_cube(tmp_path):
    from ase import Atoms as TheirAtoms
    from ase.io.cube import write_cube

    wanted = some_map((5, 2, 13), dtype=np.float64)
    cell = wanted.grid.spacing * wanted.grid.shape
    with open(tmp_path / "map.cube", "w") as file:
        molecule = TheirAtoms("OH", [(0, 0, 0), (0, 0, 1)], cell=cell)
        write_cube(file, molecule, wanted.values.transpose(2, 1, 0), wanted.grid.origin, "some potential")
    found = read_map(tmp_path / "map.cube")
    np.testing.assert_allclose(found.values, wanted.values, rtol=1e-6)
    np.testing.assert_allclose(found.grid.origin, wanted.grid.origin, rtol=0, atol=1e-6)
    np.testing.assert_allclose(found.grid.spacing, wanted.grid.spacing, rtol=0, atol=1e-6)
    assert (found.unit, found.title) == ("", "some potential")


APBS_DX = (
    VMD_DX.replace("Data calculated by the VMD volmap function", "Data from 3.4.1\n# \n# POTENTIAL (kT/e)\n# ")
    .replace("class field\n", 'class field\ncomponent "positions" value 1\n')
    .replace("\n\nobject", '\nattribute "dep" string "positions"\nobject')
)
DIALECTS = {
    "VMD": VMD_DX,
    "APBS": APBS_DX,
    "one value per line": VMD_DX.replace("1 2 3\n4 5 6\n", "".join(f" {k}\n" for k in range(1, 7))),
    "all in one line": VMD_DX.replace("3\n4", "3 4"),
    "Windows": VMD_DX.replace("\n", "\r\n"),
    "quotes": VMD_DX.replace('type double rank 0', 'type "float" rank "0"').replace("object 1", 'object "grid"'),
    "brackets": VMD_DX.replace("items 6", "items [ 6 ]"),
    "no end": VMD_DX[: VMD_DX.index("\n\nobject")],
}  # fmt: skip


@pytest.mark.parametrize("dialect", DIALECTS)
def test_dialects_of_dx(tmp_path, dialect):
    (tmp_path / "map.dx").write_bytes(DIALECTS[dialect].encode())
    found = read_map(tmp_path / "map.dx")
    np.testing.assert_array_equal(found.values, np.array([[[1, 4]], [[2, 5]], [[3, 6]]]))
    np.testing.assert_array_equal(found.grid.origin, (-1.5, 2.25, 10))
    np.testing.assert_array_equal(found.grid.spacing, (0.5, 1, 2))
    assert found.unit == ("kT/e" if dialect == "APBS" else "")


def test_cube_in_angstrom(tmp_path):
    """Negative numbers of points; and one value per point said in so many words."""
    text = (
        CUBE.replace("    2    0.5", "   -2    0.5")
        .replace("    1    0.0", "   -1    0.0")
        .replace("    3    0.0", "   -3    0.0")
    )
    (tmp_path / "map.cub").write_text(text.replace("3.000000\n", "3.000000    1\n", 1))
    found = read_map(tmp_path / "map.cub")
    np.testing.assert_array_equal(found.grid.origin, (1, 2, 3))
    np.testing.assert_array_equal(found.grid.spacing, (0.5, 1, 2))
    np.testing.assert_array_equal(found.values, np.array([[[1, 4]], [[2, 5]], [[3, 6]]]))
