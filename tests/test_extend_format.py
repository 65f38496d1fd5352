"""docs/extend/format.md, executed: its modules stand in a package, its lines in the tables, and files are read."""

from __future__ import annotations

import ast
import gzip
import json
import re
import sys
import types
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result
from test_architecture import parsed

import pele_ocl
from pele_ocl import FormatError, Grid, Map, read, read_map, write_map
from pele_ocl.cli import main
from pele_ocl.formats import brings_parameters, conformation_files, model_numbers, registry

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "extend" / "format.md"
HEXAPEPTIDE = ROOT / "data" / "structures" / "hexapeptide.pdb"


@pytest.fixture
def added(monkeypatch: pytest.MonkeyPatch) -> None:
    """Add the four formats of the page, as it prints them."""
    monkeypatch.setattr(registry, "STRUCTURES", dict(registry.STRUCTURES))
    monkeypatch.setattr(registry, "MAPS", dict(registry.MAPS))
    monkeypatch.setattr(registry, "WRITTEN", dict(registry.WRITTEN))
    monkeypatch.setattr(conformation_files, "WRITTEN", registry.WRITTEN)
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert len(blocks) == 8
    for module, line in zip(blocks[::2], blocks[1::2], strict=True):
        assert "from pele_ocl" not in module, "modules of the package take relative imports"
        name = re.search(r'"(pele_ocl\.formats\.[\w.]+):', line)[1]
        made = types.ModuleType(name)
        made.__package__ = name.rpartition(".")[0]
        exec(compile(module, "format.md", "exec"), vars(made))
        monkeypatch.setitem(sys.modules, name, made)
        exec(compile(line, "format.md", "exec"), vars(registry))


@pytest.mark.usefixtures("added")
def test_a_structure_format(tmp_path: Path) -> None:
    text = "# water\nO 0 0 0 -0.8 1.5\nH 0.96 0 0 0.4 1.2 # hydrogen\nH -0.24 0.93 0 0.4 1.2\n"
    plain, packed = tmp_path / "water.elq", tmp_path / "water.elq.gz"
    plain.write_text(text)
    packed.write_bytes(gzip.compress(text.encode()))
    for path in (plain, packed):
        assert read(path).charges.tolist() == [-0.8, 0.4, 0.4]
        assert (brings_parameters(path), model_numbers(path)) == (True, [1])
    for before, after in (("0.93", "0.9x"), ("H -0.24", "Qq -0.24")):
        plain.write_text(text.replace(before, after))
        with pytest.raises(FormatError, match=r"water.elq:4: expected element, x, y, z, charge and radius, not "):
            read(plain)
    with pytest.raises(FormatError, match=r"molecules end in .*, .pqr, .*, .elq, .named, or these with .gz or .bz2"):
        read(tmp_path / "water.abc")


@pytest.mark.usefixtures("added")
def test_a_structure_format_is_written_by_its_own_module(tmp_path: Path) -> None:
    """What is read is written and read again, also by `minimize`; it holds one structure."""
    atoms, path = read(HEXAPEPTIDE), tmp_path / "hexapeptide.elq"
    pele_ocl.write_conformations(path, atoms)
    again = read(path)
    np.testing.assert_allclose(again.positions, atoms.positions, atol=6e-5)
    np.testing.assert_allclose(again.charges, atoms.charges, atol=6e-7)
    assert again.labels.elements.tolist() == atoms.labels.elements.tolist()
    with pytest.raises(FormatError, match=r"a \.elq file contains one structure"):
        pele_ocl.write_conformations(path, atoms, [atoms.positions, atoms.positions])
    with pytest.raises(FormatError, match="its atoms have no radii"):
        pele_ocl.write_conformations(path, replace(atoms, gb_radii=None, gb_scales=None))
    words = ["minimize", str(HEXAPEPTIDE), "--max-iterations", "1", "-o", str(tmp_path / "least.elq")]
    assert CliRunner().invoke(main, words).exit_code == 0
    assert len(read(tmp_path / "least.elq")) == 96


@pytest.mark.usefixtures("added")
def test_a_structure_format_whose_parameters_come_from_the_force_field(tmp_path: Path) -> None:
    expected, path = read(HEXAPEPTIDE), tmp_path / "hexapeptide.named"
    labels = expected.labels
    columns = labels.chains, labels.residue_numbers, labels.residue_names, labels.names, labels.elements
    rows = zip(*(column.tolist() for column in columns), *expected.positions.T.tolist(), strict=True)
    path.write_text("\n".join(" ".join(map(str, row)) for row in rows))
    found = read(path)
    assert len(found) == 96
    np.testing.assert_array_equal(found.positions, expected.positions)
    np.testing.assert_array_equal(found.charges, expected.charges)
    path.write_text(path.read_text().replace(" CA C ", " CA ", 1))
    with pytest.raises(FormatError, match=r"hexapeptide.named:\d+: expected names, element, x, y and z, not "):
        read(path)


@pytest.mark.usefixtures("added")
def test_a_format_in_the_tables_is_offered_by_read_minimize_and_relax(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A suffix that nothing but the tables knows is read, written, and named in messages."""
    monkeypatch.setitem(registry.STRUCTURES, ".brk", registry.STRUCTURES[".pdb"])
    source = tmp_path / "hexapeptide.brk"
    source.write_bytes(HEXAPEPTIDE.read_bytes())
    assert len(read(source)) == 96

    def run(command: str, target: str) -> Result:
        return CliRunner().invoke(main, [command, str(source), "--max-iterations", "1", "-o", str(tmp_path / target)])

    for command in ("minimize", "relax"):
        run(command, f"{command}.tab")
        rows = [line.split("\t") for line in (tmp_path / f"{command}.tab").read_text().splitlines()]
        assert [len(row) for row in rows] == 96 * [9] + [1]
        assert ".tab" in run(command, "written.abc").output
    run("minimize", "folder/")
    assert (tmp_path / "folder" / "hexapeptide.pdb").exists()


@pytest.mark.usefixtures("added")
def test_a_map_format(tmp_path: Path) -> None:
    path = tmp_path / "map.pts"
    map_ = Map(Grid((1, 2, 3), (0.5, 0.25, 1), (4, 3, 2)), np.arange(24.0).reshape(2, 3, 4))
    write_map(path, map_)
    found = read_map(path)
    np.testing.assert_array_equal(found.values, map_.values)
    np.testing.assert_array_equal(found.grid.spacing, map_.grid.spacing)
    result = CliRunner().invoke(main, ["convert", str(path), str(tmp_path / "map.dx"), "--json"])
    assert json.loads(result.output)["shape"] == [4, 3, 2]
    path.write_text(path.read_text() + "1.0\n")
    with pytest.raises(FormatError, match=r"map.pts: contains more than the 24 values it announces"):
        read_map(path)


def test_every_line_of_the_tables_names_a_format() -> None:
    for suffix in registry.STRUCTURES:
        assert callable(registry.structure_format(f"a{suffix}").read)
    for suffix in registry.WRITTEN:
        assert conformation_files.CONFORMATION_FORMATS[suffix].head
    for suffix in registry.MAPS:
        assert callable(registry.map_format(suffix).write)


def test_suffixes_stand_in_the_tables_alone() -> None:
    """No other module of the package tells formats of structures or maps apart by their suffixes."""
    tables = registry.STRUCTURES, registry.MAPS, conformation_files.CONFORMATION_FORMATS
    suffixes = {suffix for table in tables for suffix in table} - {".h5"}
    package = Path(pele_ocl.__file__).parent
    named = {
        path.relative_to(package).as_posix()
        for path in package.rglob("*.py")
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.Constant) and node.value in suffixes
    }
    assert named == {
        "formats/registry.py",
        "formats/mmcif.py",  # its `written_as`
        "trajectories/files/__init__.py",  # the table of trajectories
        "binding/poses.py",  # poses come as SDF, too
        "rescore/files.py",  # PELE's trajectories are PDB or XTC
        "rescore/spec.py",
        "explore/trajectory.py",
        "explore/pages.py",  # trajectories of PELE's are PDB or XTC
        "explore/refining.py",  # names of files that are written
        "interop/preparing.py",  # reads formats with the residues of a sequence
        "pb/__init__.py",  # writes PQR
        "pb/result.py",
        "interop/preparation.py",  # writes PDB
        "interop/mdanalysis.py",  # topologies of CHARMM
        "minimize/running.py",  # names of structures in memory
        "pb/apbs.py",  # writes what APBS would
        "ligand/cache.py",  # topologies that are kept
        "ligand/molecule.py",  # files of small molecules
        "explore/refine_spec.py",  # names of files that are written
        "jobs/outputs.py",  # complexes of an earlier run
        "dynamics/spec.py",
        "dynamics/files.py",
        "dynamics/result.py",
        "painting/scenes.py",  # files that other programs open
        "atoms/atoms.py",  # Atoms.save chooses a writer
        "ligand/completion.py",  # components of the PDB
        "ligand/given.py",  # topologies of the user's
        "ligand/phosphoresidues.py",  # topologies that are kept
        "parametrize/writing.py",  # names of files that are written
        "explore/preparing.py",  # formats that have chains
        "reading/files.py",  # structures that may have remarks of `ligand`
        "screen/molecules.py",  # poses come as SDF and PDB
        "screen/reference.py",
        "screen/spec.py",  # names of files that are written
    }
