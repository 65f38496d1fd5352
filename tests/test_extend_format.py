"""docs/extend/format.md, executed: its modules stand in a package, its lines in the tables, and files are read."""

from __future__ import annotations

import gzip
import json
import re
import sys
import types
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import pele_ocl
from pele_ocl import FormatError, Grid, Map, read, read_map, write_map
from pele_ocl.cli import main
from pele_ocl.formats import is_pqr, model_numbers, registry

PAGE = Path(__file__).parent.parent / "docs" / "extend" / "format.md"


@pytest.fixture
def added(monkeypatch: pytest.MonkeyPatch) -> None:
    """Add the two formats of the page, as it prints them."""
    monkeypatch.setattr(registry, "STRUCTURES", dict(registry.STRUCTURES))
    monkeypatch.setattr(registry, "MAPS", dict(registry.MAPS))
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert len(blocks) == 4
    for module, line in zip(blocks[::2], blocks[1::2], strict=True):
        name = re.search(r'"(pele_ocl\.formats\.\w+):FORMAT"', line)[1]
        made = types.ModuleType(name)
        exec(compile(module, "format.md", "exec"), vars(made))
        monkeypatch.setitem(sys.modules, name, made)
        exec(compile(line, "format.md", "exec"), vars(registry))


@pytest.mark.usefixtures("added")
def test_a_structure_format(tmp_path: Path) -> None:
    text = "# water\n0 0 0 -0.8 1.5\n0.96 0 0 0.4 1.2 # hydrogen\n-0.24 0.93 0 0.4 1.2\n"
    plain, packed = tmp_path / "water.xyzq", tmp_path / "water.xyzq.gz"
    plain.write_text(text)
    packed.write_bytes(gzip.compress(text.encode()))
    for path in (plain, packed):
        assert read(path).charges.tolist() == [-0.8, 0.4, 0.4]
        assert (is_pqr(path), model_numbers(path)) == (True, [1])
    plain.write_text(text.replace("0.93", "0.9x"))
    with pytest.raises(FormatError, match=r"water.xyzq:4: x, y, z, charge and radius are needed here, not '-0.24 0.9x"):
        read(plain)
    with pytest.raises(FormatError, match=r"molecules end in .*, .pqr, .*, .xyzq, or these with .gz or .bz2"):
        read(tmp_path / "water.abc")


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
    with pytest.raises(FormatError, match=r"map.pts: holds more than the 24 values it announces"):
        read_map(path)


def test_every_line_of_the_tables_names_a_format() -> None:
    for suffix in registry.STRUCTURES:
        assert callable(registry.structure_format(f"a{suffix}").read)
    for suffix in registry.MAPS:
        assert callable(registry.map_format(suffix).write)


def test_suffixes_stand_in_the_tables_alone() -> None:
    """No other module of the package tells formats of structures or maps apart by their suffixes."""
    suffixes = [suffix for suffix in (*registry.STRUCTURES, *registry.MAPS) if suffix != ".h5"]
    telling = re.compile(rf"""(==|endswith\(|in \(?)\s*["']({"|".join(map(re.escape, suffixes))})["']""")
    package = Path(pele_ocl.__file__).parent
    found = {
        str(path.relative_to(package)): telling.search(path.read_text())
        for path in package.rglob("*.py")
        if path.name != "registry.py"
    }
    assert {name for name, hit in found.items() if hit} <= {
        "cli/ions.py",
        "trajectories/files/models.py",  # which read or write PDB alone
        "cli/pele_run/__init__.py",
        "cli/pele_run/evaluation.py",  # PELE's trajectories are PDB or XTC
        "binding/poses.py",  # poses come as SDF, too
        "explore/trajectory.py",  # PELE's trajectories again
    }
