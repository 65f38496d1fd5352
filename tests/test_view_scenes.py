"""Scenes: PyMOL finds the map on the structure; the scripts of ChimeraX and VMD say what they should."""

from __future__ import annotations

import re
import subprocess
import sys

import numpy as np
import pytest
from conftest import DEVICES
from test_cli import HEXAPEPTIDE, error_of, on_the_chosen_device, run

import pele_ocl
from pele_ocl import FormatError, read, read_map
from pele_ocl.formats.amber.writing import prmtop_text
from pele_ocl.painting import PROGRAMS, scene_files, write_scene

__all__ = ["on_the_chosen_device"]

COARSE = ("--spacing", 2.1, "--padding", 3, "--device", DEVICES[0].index)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with a structure, and in a folder of it with a blank in its name the map and all scenes."""
    folder = tmp_path_factory.mktemp("scenes")
    (folder / "peptide.pdb").write_bytes(HEXAPEPTIDE.read_bytes())
    (folder / "the maps").mkdir()
    run(
        "potmap", folder / "peptide.pdb", *COARSE, "--for-surface", "-o", folder / "the maps" / "map.dx",
        *(word for program in PROGRAMS for word in ("--scene", program)),
    )  # fmt: skip
    return folder


def script(folder, suffix):
    return (folder / "the maps" / f"map{suffix}").read_text().splitlines()


def test_every_script_names_its_files_from_its_folder(folder):
    for program in PROGRAMS.values():
        lines = script(folder, program.suffix)
        assert lines[0].startswith(
            "# Screened Coulomb potential of peptide.pdb at its surface, -2 (red) to 2 (blue) kT/e at 298.15 K"
        )
        text = "\n".join(lines)
        assert "../peptide.pdb" in text
        assert "map.dx" in text
        assert str(folder) not in text


# PyMOL has settings of the process and writes to its stdout, so it gets one of its own.
_IN_PYMOL = """
import json, sys
import pymol2
with pymol2.PyMOL() as session:
    cmd = session.cmd
    cmd.load(sys.argv[1])
    cmd.save(sys.argv[2], "potential")
    found = {
        "objects": cmd.get_names(),
        "extent": cmd.get_extent("potential"),
        "atoms": [list(atom.coord) for atom in cmd.get_model("molecule").atom],
        "ramp": cmd.get("surface_color", "molecule"),
        "above": cmd.get("surface_ramp_above_mode"),
        "probe": cmd.get("solvent_radius"),
    }
print("FOUND", json.dumps(found))
"""


def test_pymol_lays_the_map_on_the_structure(folder, tmp_path):
    pytest.importorskip("pymol2")
    arguments = [str(folder / "the maps" / "map.pml"), str(tmp_path / "as_read.ccp4")]
    ran = subprocess.run(
        [sys.executable, "-c", _IN_PYMOL, *arguments], cwd=tmp_path, capture_output=True, text=True, timeout=120
    )
    import json

    line = next((line for line in ran.stdout.splitlines() if line.startswith("FOUND ")), None)
    assert line is not None, ran.stdout + ran.stderr
    found = json.loads(line.removeprefix("FOUND "))
    map_ = read_map(folder / "the maps" / "map.dx")
    ramp = "ramp_screened_Coulomb_potential_kT_e_at_298_15_K"
    assert found["objects"] == ["molecule", "potential", ramp]
    assert (found["ramp"], found["above"], float(found["probe"])) == (ramp, "1", 1.4)  # a probe outside the surface
    np.testing.assert_allclose(found["extent"], [map_.grid.origin, map_.grid.last], atol=1e-4)
    atoms, expected = (np.round(each, 3) for each in (found["atoms"], read(HEXAPEPTIDE).positions))
    np.testing.assert_array_equal(sorted(atoms.tolist()), sorted(expected.tolist()))  # PyMOL has an order of its own
    as_read = read_map(tmp_path / "as_read.ccp4")
    np.testing.assert_allclose(as_read.values, map_.values, rtol=1e-5, atol=1e-6)


def test_vmd_is_told_what_it_should(folder):
    """Tcl runs the script; VMD's commands note how they were called."""
    tkinter = pytest.importorskip("tkinter")
    tcl = tkinter.Tcl()
    tcl.eval("set calls {}")
    for name in ("mol", "color", "display"):
        tcl.eval(f"proc {name} args {{ lappend ::calls [list {name} {{*}}$args] }}")
    path = folder / "the maps" / "map.vmd"
    tcl.eval(f"source {{{path}}}")
    calls = [tcl.splitlist(call) for call in tcl.splitlist(tcl.eval("set calls"))]
    opened = [call for call in calls if call[:2] in {("mol", "new"), ("mol", "addfile")}]
    assert [(path.parent / call[2]).resolve() for call in opened] == [
        folder / "peptide.pdb",
        folder / "the maps" / "map.dx",
    ]
    assert ("mol", "scaleminmax", "top", "1", "-2", "2") in calls
    assert ("mol", "color", "Volume", "0") in calls
    assert ("color", "scale", "method", "RWB") in calls
    assert calls.index(("mol", "color", "Volume", "0")) < [c[:2] for c in calls].index(("mol", "scaleminmax"))


def test_the_script_of_vmd_is_whole(folder):
    """Without Tcl: braces and brackets are closed on each line."""
    for line in script(folder, ".vmd")[1:]:
        for pair in ("{}", "[]"):
            assert line.count(pair[0]) == line.count(pair[1]), line


def test_the_commands_of_chimerax(folder):
    known = {"close", "open", "hide", "surface", "color", "key", "2dlabels", "view"}
    lines = script(folder, ".cxc")
    assert {line.split()[0] for line in lines[1:]} == known
    assert all(line.count('"') % 2 == 0 for line in lines)
    assert lines[2:4] == ['open "../peptide.pdb"', 'open "map.dx"']  # models #1 and #2
    assert "color electrostatic #1 map #2 palette red:white:blue range -2,2 offset 1.4" in lines
    assert any(line.startswith('2dlabels text "screened Coulomb potential, kT/e at') for line in lines)


def test_the_map_that_a_program_reads_is_taken(tmp_path):
    maps = [tmp_path / name for name in ("a.h5", "a.mrc", "a.dx")]
    paths = {program: scene_files(program, "in.pdb", maps)[:2] for program in PROGRAMS}
    assert paths["pymol"] == (tmp_path / "a.pml", maps[2])
    assert paths["chimerax"] == (tmp_path / "a.cxc", maps[1])
    assert paths["vmd"] == (tmp_path / "a.vmd", maps[2])


def test_what_a_program_does_not_read(tmp_path):
    with pytest.raises(
        FormatError,
        match=r"a scene for VMD needs a map in a format that it reads: give `output` with "
        r"the suffix \.dx",
    ):
        scene_files("vmd", "in.pdb", [tmp_path / "a.mrc"])
    for program, name in (("vmd", "in.pdb.gz"), ("pymol", "in.pdb.bz2"), ("pymol", "in.prmtop"), ("vmd", "in.sdf")):
        files = scene_files(program, name, [tmp_path / "a.dx"])
        assert (files.structure, files.is_own) == (tmp_path / "a-atoms.pdb", True)
    (tmp_path / "a{b.pdb").write_bytes(HEXAPEPTIDE.read_bytes())
    words = ("-o", tmp_path / "a.dx", "--scene", "pymol")
    assert "a scene cannot contain this file name" in error_of("potmap", tmp_path / "a{b.pdb", *COARSE, *words)
    (tmp_path / "a{b.pdb").unlink()
    with pytest.raises(FormatError, match="a scene cannot contain this file name"):
        scene_files("vmd", "in.pdb", [tmp_path / "a'\"b.dx"])
    assert "a scene for PyMOL needs a map in a format that it reads" in error_of(
        "potmap", HEXAPEPTIDE, *COARSE, "--scene", "pymol"
    )
    assert not list(tmp_path.iterdir())


HOSTILE = [
    "a;system touch owned;.pdb", "a\nsystem touch owned.pdb", "a\rquit.pdb", "a[exec touch owned].pdb",
    "a$env(HOME).pdb",
    "a}; exec touch owned; set b {.pdb", 'a"; close; open ".pdb', "a' + str(cmd.quit()) + '.pdb", "a\\.pdb", "a#.pdb",
    "a/@b;quit/c.pdb", "a`id`.pdb", "a|b.pdb", "a&b.pdb", "a(b).pdb", "a,b.pdb", "a=b.pdb", "a%b.pdb",
    "a~b.pdb", "a*.pdb",
    "a\x1b]0;x\x07.pdb", "\u202egbp.pdb", "\u00e9.pdb", "a\u2028quit.pdb", "http://host/a.pdb?b.pdb",
    "a<b>.pdb", "a!b.pdb",
]  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("name", HOSTILE, ids=ascii)
def test_names_that_a_program_might_obey_are_in_no_script(tmp_path, program, name):
    """PyMOL begins a command at a semicolon even in a comment; the structure and the map may have such a name."""
    good = tmp_path / "a.dx"
    with pytest.raises(
        FormatError, match="a scene cannot contain this file name, because programs interpret some"
    ) as refused:
        write_scene(program, tmp_path / name, good, 5, "kT/e")
    assert str(refused.value).replace("\n", "").isprintable()  # commands print it as one line
    if "/" not in name:
        with pytest.raises(FormatError, match="a scene cannot contain this file name"):
            scene_files(program, tmp_path / "in.pdb", [tmp_path / f"{name}.dx"])
    assert not list(tmp_path.iterdir())


def test_units_and_quantities_are_made_harmless(tmp_path):
    for program, of in PROGRAMS.items():
        hostile = "V;system touch owned\n[exit]{}"
        text = write_scene(
            program, tmp_path / "a b+c-d_e.pdb", tmp_path / "a.dx", 5, hostile, quantity=hostile
        ).read_text()
        assert of.suffix != ".vmd" or "a b+c-d_e.pdb" in text
        for line in text.splitlines():
            assert ";system" not in line
            assert "[exit]" not in line


def test_a_scene_without_a_range_has_that_of_the_surface(tmp_path):
    run("potmap", HEXAPEPTIDE, *COARSE, "--unit", "V", "-o", tmp_path / "map.dx", "--scene", "chimerax")
    line = next(line for line in (tmp_path / "map.cxc").read_text().splitlines() if line.startswith("key "))
    assert re.fullmatch(r"key red:-(\S+) white:0 blue:\1", line)


def test_atoms_that_no_program_reads_are_written_beside_the_map(tmp_path):
    """Of a topology and its coordinates, and of Atoms; what was written is told."""
    atoms = pele_ocl.read(HEXAPEPTIDE)
    (topology := tmp_path / "in.prmtop").write_text(prmtop_text(atoms))
    atoms.save(tmp_path / "in.rst7")
    scenes = ("--scene", "pymol", "--scene", "chimerax", "-o", tmp_path / "map.mrc", "-o", tmp_path / "map.dx")
    said = run("potmap", topology, tmp_path / "in.rst7", *COARSE, *scenes).stdout
    script = (tmp_path / "map.pml").read_text()
    assert "/cmd.load('map-atoms.pdb', 'molecule')" in script
    assert 'open "map-atoms.pdb"' in (tmp_path / "map.cxc").read_text()
    shown = pele_ocl.read(tmp_path / "map-atoms.pdb")
    assert np.abs(shown.positions - atoms.positions).max() < 6e-4
    for name in ("map-atoms.pdb", "map.pml", "map.cxc"):
        assert f"Written       {tmp_path / name}" in said
    pele_ocl.potmap(HEXAPEPTIDE, spacing=3, padding=3, output=tmp_path / "part.dx", scene="vmd", select="resid 1:2")
    assert len(pele_ocl.formats.read_structure(tmp_path / "part-atoms.pdb").positions) < len(atoms)
    own = tmp_path / "map-atoms.pdb"
    with pytest.raises(FormatError, match="the input"):
        pele_ocl.potmap(own, spacing=3, padding=3, output=tmp_path / "map.dx", scene="vmd", select="resid 1:2")
    found = pele_ocl.potmap(atoms, spacing=3, padding=3, output=tmp_path / "own.dx", scene="vmd")
    assert found.scenes == (tmp_path / "own-atoms.pdb", tmp_path / "own.vmd")
    assert all(path.is_file() for path in found.scenes)


def test_pb_writes_a_scene_of_its_map(tmp_path):
    words = ("--spacing", "2", "--padding", "4", "-o", tmp_path / "map.dx", "--scene", "pymol")
    assert f"Written       {tmp_path / 'map.pml'}" in run("pb", HEXAPEPTIDE, *words).stdout
    script = (tmp_path / "map.pml").read_text()
    assert "# Poisson-Boltzmann potential of hexapeptide.pdb at its surface, -5 (red) to 5 (blue) kT/e" in script
    with pytest.raises(FormatError, match="a scene for VMD needs a map in a format that it reads"):
        pele_ocl.pb(HEXAPEPTIDE, scene="vmd")
