"""Potentials, ions, pictures and maps: the functions and their commands give the same numbers, JSON and files."""

from __future__ import annotations

import doctest
import json
import re
from pathlib import Path

import amber_helpers
import numpy as np
import pytest
from test_cli import HEXAPEPTIDE, on_the_chosen_device, run
from trajectory_helpers import write_trajectory

import pele_ocl
from pele_ocl import Atoms, FormatError, InputError, PBIon, PBModel, read_map

__all__ = ["on_the_chosen_device"]

PEPTIDE = HEXAPEPTIDE.with_name("trialanine.pdb")
SMALL = {"spacing": 2.0, "padding": 3.0}


def words_of(options: dict) -> list[str]:
    """Options of a command by the keywords of its function."""
    words = []
    for name, value in options.items():
        option = f"--{name.replace('_', '-')}"
        for each in value if isinstance(value, list) else [value]:
            words += [option] if each is True else [option, str(each)]
    return words


def without_seconds(found: object) -> object:
    """The same object without times, paths of files that differ, and numbers that depend on times."""
    if isinstance(found, dict):
        noisy = ("second", "output", "per_s")
        return {name: without_seconds(of) for name, of in found.items() if not any(word in name for word in noisy)}
    return [without_seconds(of) for of in found] if isinstance(found, list) else found


def text_without_seconds(text: str) -> str:
    """Text of a command without its times, and the files that it names."""
    kept = [line for line in text.splitlines() if not line.startswith(("Written  ", "Rate: ", "Kernel: "))]
    return re.sub(r"[\d.,e+-]+ (ms|s|minutes)\b", "SECONDS", "\n".join(kept))


def test_texts_of_both_doors(tmp_path):
    calls = {
        "pb": ({"spacing": 1.5, "padding": 6.0}, []),
        "potmap": (SMALL, []),
        "ions": ({"add": {"NA": 1}, "spacing": 2.0}, ["-o", tmp_path / "a.pdb"]),
    }
    for name, (options, files) in calls.items():
        words = ["--add", "NA:1", "--spacing", 2] if name == "ions" else words_of(options)
        found = getattr(pele_ocl, name)(PEPTIDE, **options)
        for verbose in (False, True):
            said = run(name, PEPTIDE, *words, *files, *(["-v"] if verbose else [])).stdout
            assert text_without_seconds(found.text(verbose)) == text_without_seconds(said)
    assert "change of the energy by the last correction of the solver" in pele_ocl.pb(PEPTIDE, **calls["pb"][0]).text()


def content(path: Path) -> str:
    """Lines of a file but for the command and its parameters, which comments name."""
    lines = path.read_text(encoding="latin-1").splitlines()
    return "\n".join(line for line in lines if not line.startswith("#"))


MAPS = [
    {"method": "cutoff", "cutoff": 8.0, "smooth": True, "unit": "kT/e", "temperature": 310.0},
    {"method": "pb", "solute_dielectric": 4.0, "dielectric": 80.0, "ionic_strength": 0.1},
    {"for_surface": True},
    {"dielectric": 4.0, "distance_dependent": True, "min_distance": 1.0, "precision": "float64"},
    {"origin": (0.0, 0.0, 0.0), "shape": (4, 5, 6), "padding": None},
]


@pytest.mark.parametrize("options", MAPS, ids=lambda options: "-".join(options))
def test_maps_of_both_doors(tmp_path, options):
    every = {**SMALL, **options}
    every = {name: value for name, value in every.items() if value is not None}
    words = words_of({name: value for name, value in every.items() if not isinstance(value, tuple)})
    words += [str(part) for name, of in every.items() if isinstance(of, tuple) for part in (f"--{name}", *of)]
    found = pele_ocl.potmap(PEPTIDE, **every)
    told = json.loads(run("potmap", PEPTIDE, *words, "-o", tmp_path / "a.dx", "--json").stdout)
    assert without_seconds(json.loads(json.dumps(found.to_json()))) == without_seconds(told)
    found.save(tmp_path / "b.dx")
    assert content(tmp_path / "a.dx") == content(tmp_path / "b.dx")


def test_a_map_makes_its_own_grid_and_writes_every_format(tmp_path):
    atoms = pele_ocl.read(PEPTIDE)
    found = pele_ocl.potmap(atoms, **SMALL, field=True, output=[tmp_path / "a.h5", tmp_path / "a.mrc"])
    alone = pele_ocl.potmap(atoms, pele_ocl.Grid.around(atoms, 3, 2))  # without its field, by another kernel
    np.testing.assert_allclose(found.map.values, alone.map.values, rtol=1e-5, atol=1e-3)
    table, record = found.table(), found.to_json()
    assert [table[name][0] for name in ("min", "max", "mean")] == [record[name] for name in ("min", "max", "mean")]
    assert " x ".join(map(str, record["shape"])) in str(table)
    for suffix in (".h5", ".dx", ".dx.gz", ".cube", ".mrc", ".ccp4", ".map"):
        found.save(tmp_path / f"b{suffix}")
        np.testing.assert_allclose(
            read_map(tmp_path / f"b{suffix}").in_unit("kcal/mol/e").values, found.map.values, rtol=2e-5, atol=1e-4
        )
    assert (tmp_path / "a.mrc").exists()
    with pytest.raises(FormatError, match="maps end in"):
        found.save(tmp_path / "a.txt")
    with pytest.raises(InputError, match="choose either `grid`, or"):
        pele_ocl.potmap(atoms, found.map.grid, padding=3)
    with pytest.raises(InputError, match="`select` applies to reading files"):
        pele_ocl.potmap(atoms, select="protein")
    assert "spacing" not in repr(found)
    assert "_repr_html_" in dir(found)


def test_models_and_frames_of_both_doors(tmp_path):
    text = PEPTIDE.read_text()
    lines = [line for line in text.splitlines() if line.startswith("ATOM")]
    both = ["MODEL        1", *lines, "ENDMDL", "MODEL        2", *lines, "ENDMDL", "END", ""]
    (tmp_path / "two.pdb").write_text("\n".join(both))
    models = pele_ocl.potmap(tmp_path / "two.pdb", **SMALL, models="all", combine="stdev")
    assert (sorted(models.maps), models.n_models) == (["avg", "max", "min", "stdev"], 2)
    assert np.abs(models.map.values).max() < 1e-3
    words = ("--models", "all", "--combine", "stdev", *words_of(SMALL), "--json")
    assert without_seconds(models.to_json()) == without_seconds(
        json.loads(run("potmap", tmp_path / "two.pdb", *words).stdout)
    )
    frames = pele_ocl.potmap(PEPTIDE, **SMALL, trajectory=tmp_path / "two.pdb", align=True)
    assert len(frames.frames) == 2
    words = ("-t", tmp_path / "two.pdb", *words_of(SMALL), "--json", "--align")
    told = json.loads(run("potmap", PEPTIDE, *words).stdout)
    assert without_seconds(frames.to_json()) == without_seconds(told)
    at = pele_ocl.potmap(PEPTIDE, trajectory=tmp_path / "two.pdb", at_atoms="name CA", output=tmp_path / "a.csv")
    assert at.values.shape == (2, 3)
    words = ("-t", tmp_path / "two.pdb", "--at-atoms", "name CA", "-o", tmp_path / "b.csv", "--json")
    assert without_seconds(at.to_json()) == without_seconds(json.loads(run("potmap", PEPTIDE, *words).stdout))
    assert content(tmp_path / "a.csv") == content(tmp_path / "b.csv")


def test_a_topology_has_the_positions_of_the_first_frame(tmp_path):
    top = tmp_path / "top.parm7"
    top.write_text(amber_helpers.rendered(amber_helpers.content()))
    first = amber_helpers.hexapeptide().positions
    nc = write_trajectory(tmp_path / "run.nc", np.stack([first, first + 0.5]))
    found = pele_ocl.potmap(top, trajectory=nc, **SMALL)
    told = json.loads(run("potmap", top, "-t", nc, *words_of(SMALL), "--json").stdout)
    assert without_seconds(json.loads(json.dumps(found.to_json()))) == without_seconds(told)
    at = pele_ocl.potmap(top, trajectory=[nc], at_atoms="name CA", select="resid 1:3")
    assert at.values.shape == (2, 3)


def test_several_structures_of_both_doors(tmp_path):
    paths = [PEPTIDE, HEXAPEPTIDE]
    found = pele_ocl.potmap(paths, **SMALL, output=tmp_path / "{name}.dx")
    for path in paths:
        alone = pele_ocl.potmap(path, **SMALL)
        alone.save(tmp_path / "alone.dx")
        assert content(tmp_path / f"{path.stem}.dx") == content(tmp_path / "alone.dx")
    lines = run("potmap", *paths, *words_of(SMALL), "-o", tmp_path / "{name}.mrc", "--json").stdout.splitlines()
    assert without_seconds(found.to_json()) == without_seconds([json.loads(line) for line in lines])
    assert not found.errors
    with pytest.raises(InputError, match=r"need \{name\} in it"):
        pele_ocl.potmap(paths, output=tmp_path / "one.dx")
    (tmp_path / "bad.pdb").write_text("ATOM      1  N   ALA A   1       x.000   0.000   0.000  1.00  0.00\nEND\n")
    failed = pele_ocl.potmap([tmp_path / "bad.pdb", PEPTIDE], **SMALL)
    assert list(failed.errors) == [0]


PB = [
    {"ionic_strength": 0.15},
    {"nonlinear": True, "ionic_strength": 0.1, "solvent_dielectric": 80.0, "per_residue": True},
    {"like": "apbs", "dielectric_surface": "mol", "probe": 1.2},
    {"radii": "pdb2pqr-parse", "charges": "spl2", "boundary": "sdh", "temperature": 310.0},
]


@pytest.mark.parametrize("options", PB, ids=lambda options: "-".join(options))
def test_pb_of_both_doors(tmp_path, options):
    every = {"spacing": 1.5, "padding": 6.0, **options}
    found = pele_ocl.pb(PEPTIDE, **every, output=tmp_path / "c.dx")
    files = ("-o", tmp_path / "a.dx", "--pqr", tmp_path / "a.pqr")
    told = json.loads(run("pb", PEPTIDE, *words_of(every), *files, "--json").stdout)
    assert without_seconds(json.loads(json.dumps(found.to_json()))) == without_seconds(told)
    for suffix in (".dx", ".pqr"):
        found.save(tmp_path / f"b{suffix}")
        assert content(tmp_path / f"a{suffix}") == content(tmp_path / f"b{suffix}")
    first, energies = (found.table()[name].tolist() for name in found.table().keys())
    if "per_residue" in options:
        assert dict(zip(first, energies, strict=True)) == {row["residue"]: row["total"] for row in told["residues"]}
    else:
        assert first[:2] == ["solvation", "solver_error"]
        assert energies == [found.solvation, *told["errors"].values()]
    assert set(found.table().about) < set(found.text().splitlines())
    assert f"{found.solvation:.3f}" in repr(found)


def test_pb_by_names_is_that_of_its_model():
    atoms = pele_ocl.read(PEPTIDE)
    ions = (PBIon(2, 0.1, 1.5), PBIon(-1, 0.2))
    model = PBModel(4, 80, ions, surface="smol", equation="nonlinear")
    by_model = pele_ocl.pb(atoms, model, spacing=1.5, padding=6)
    by_names = pele_ocl.pb(
        atoms, solute_dielectric=4, solvent_dielectric=80, ion=[(2, 0.1, 1.5), PBIon(-1, 0.2)], nonlinear=True,
        dielectric_surface="smol", spacing=1.5, padding=6,
    )  # fmt: skip
    assert (by_model.model, by_model.energy) == (by_names.model, by_names.energy)
    with pytest.raises(InputError, match="choose one of `model` and its constants"):
        pele_ocl.pb(atoms, model, probe=1.5)
    with pytest.raises(InputError, match="choose one of `ionic_strength` and `ion`"):
        pele_ocl.pb(atoms, ionic_strength=0.1, ion=ions)


def test_an_energy_with_self_energies_is_not_shown_as_solvation():
    complete = pele_ocl.pb(PEPTIDE, spacing=1.5, padding=6.0, reaction=False)
    assert complete.table()["term"].tolist() == ["energy", "solver_error"]
    assert "olvation" not in complete.text() + complete.table().text()
    assert complete.text().count(f"{complete.energy:,.3f} kcal/mol, including self energies of the charges") == 1
    by_residue = pele_ocl.pb(PEPTIDE, spacing=1.5, padding=6.0, reaction=False, per_residue=True).table()
    assert "including self energies" in by_residue.title
    assert by_residue["energy"].sum() == pytest.approx(complete.energy, rel=1e-6)


def test_the_error_of_one_solution_is_not_that_of_a_difference():
    with pytest.raises(InputError, match="`grid_error`, `extrapolate` and `shifts` apply only without"):
        pele_ocl.pb(PEPTIDE, spacing=1.5, like="apbs", grid_error=True)
    found = pele_ocl.pb(PEPTIDE, spacing=1.5, padding=6.0, like="apbs", reaction=True, grid_error=True)
    assert found.errors.grid > 0
    assert found.table()["term"].tolist() == ["solvation", "solver_error", "grid_error"]


def test_an_input_file_of_apbs_is_run_by_both_doors(tmp_path):
    (tmp_path / "ion.pqr").write_text("ATOM  1  I  ION  1  0.0 0.0 0.0  1.00 3.00\n")
    (tmp_path / "apbs.in").write_text(
        f"read mol pqr {tmp_path / 'ion.pqr'} end\nelec name one mg-manual dime 33 33 33 glen 12 12 12 gcent mol 1 "
        "mol 1 lpbe bcfl sdh pdie 2.0 sdie 78.54 chgm spl2 srfm smol srad 1.4 swin 0.3 sdens 10.0 temp 298.15 "
        "calcenergy total end\nprint elecEnergy one end\nquit\n"
    )
    found = pele_ocl.pb(tmp_path / "apbs.in")
    told = json.loads(run("pb", tmp_path / "apbs.in", "--json").stdout)
    assert without_seconds(found.to_json()) == without_seconds(told)
    assert found.text() == run("pb", tmp_path / "apbs.in").stdout.rstrip("\n")
    assert found.prints[0] == found.energies[0]
    with pytest.raises(InputError, match=r"contains all settings; leave out `spacing`"):
        pele_ocl.pb(tmp_path / "apbs.in", spacing=1.0)


def test_ions_of_both_doors(tmp_path):
    every = {"concentration": 0.5, "spacing": 1.0, "dielectric": 80.0}
    found = pele_ocl.ions(HEXAPEPTIDE, tmp_path / "a.pdb", **every, map_output=tmp_path / "a.dx")
    files = ("-o", tmp_path / "b.pdb", "--map-output", tmp_path / "b.dx")
    told = json.loads(run("ions", HEXAPEPTIDE, *words_of(every), *files, "--json").stdout)
    assert without_seconds(found.to_json()) == without_seconds(told)
    for suffix in (".pdb", ".dx"):
        assert content(tmp_path / f"a{suffix}") == content(tmp_path / f"b{suffix}")
    own = pele_ocl.place_ions(found.atoms, {"NA": "auto", "CL": "auto"}, **every)
    assert np.array_equal(own.positions, found.positions)
    assert list(found.table()["ion"]) == [species.name for species in found.species]
    by_count = pele_ocl.ions(pele_ocl.read(HEXAPEPTIDE), add={"NA": 2}, spacing=2.0)
    by_count.save(tmp_path / "c.pdb")
    assert len(pele_ocl.read(tmp_path / "c.pdb")) == 98
    with pytest.raises(InputError, match="the map was not stored"):
        by_count.save(tmp_path / "c.dx")
    with pytest.raises(InputError, match="choose one of `neutralize` and `concentration`"):
        pele_ocl.ions(HEXAPEPTIDE, neutralize=True, concentration=0.1)


def test_views_of_both_doors(tmp_path):
    pytest.importorskip("plotly")
    pytest.importorskip("matplotlib")
    every = {"method": "screened", "color_max": 3.0}
    found = pele_ocl.view(PEPTIDE, [tmp_path / "a.html", tmp_path / "a.png"], **every)
    files = ("-o", tmp_path / "b.html", "-o", tmp_path / "b.png")
    told = json.loads(run("view", PEPTIDE, *words_of(every), *files, "--json").stdout)
    assert without_seconds(json.loads(json.dumps(found.to_json()))) == without_seconds(told)
    for suffix in (".html", ".png"):
        assert (tmp_path / f"a{suffix}").read_bytes() == (tmp_path / f"b{suffix}").read_bytes()
    assert found._repr_html_().startswith("<iframe")
    again = pele_ocl.view(PEPTIDE, map=found.map, color_max=3.0)
    assert np.array_equal(again.shown.colouring.values, found.shown.colouring.values)
    names = dict.fromkeys(map(str, found.atoms.labels.residues), 1.5)
    assert pele_ocl.view(found.atoms, residue_values=names, unit="kcal/mol").facts()["unit"] == "kcal/mol"
    with pytest.raises(InputError, match="choose one of `map` and `residue_values`"):
        pele_ocl.view(PEPTIDE, map=found.map, residue_values=names)


def test_map_files_of_both_doors(tmp_path):
    atoms = pele_ocl.read(PEPTIDE)
    pele_ocl.potmap(atoms, **SMALL, unit="kT/e", output=tmp_path / "m.dx")
    found = pele_ocl.convert(tmp_path / "m.dx", tmp_path / "a.cube", unit="mV")
    told = json.loads(run("convert", tmp_path / "m.dx", tmp_path / "b.cube", "--unit", "mV", "--json").stdout)
    assert without_seconds(found.to_json()) == without_seconds(told)
    twice = pele_ocl.mapmath(tmp_path / "m.dx", "+", tmp_path / "m.dx", scale=0.5)
    words = (tmp_path / "m.dx", "+", tmp_path / "m.dx", "--scale", 0.5, "--json")
    assert without_seconds(twice.to_json()) == without_seconds(json.loads(run("mapmath", *words).stdout))
    assert np.array_equal(twice.map.values, read_map(tmp_path / "m.dx").values)
    with pytest.raises(InputError, match="no map after the last -"):
        pele_ocl.mapmath(twice.map, "-")
    values = pele_ocl.sample_map(tmp_path / "m.dx", PEPTIDE, output=tmp_path / "a.csv")
    words = (tmp_path / "m.dx", PEPTIDE, "-o", tmp_path / "b.csv", "--json")
    assert without_seconds(values.to_json()) == without_seconds(json.loads(run("sample", *words).stdout))
    assert content(tmp_path / "a.csv") == content(tmp_path / "b.csv")
    assert np.array_equal(values.values, pele_ocl.sample(values.map, atoms.positions))


@pytest.mark.parametrize("name", ["potmap", "pb", "ions", "view"])
def test_examples_of_docstrings(name):
    pytest.importorskip("plotly")
    examples = doctest.DocTestFinder(recurse=False).find(getattr(pele_ocl, name)._function, name)
    runner = doctest.DocTestRunner()
    assert [runner.run(example).failed for example in examples if example.examples] == [0]


def test_atoms_that_no_file_brought():
    pair = Atoms(positions=[[0, 0, 0], [3, 0, 0]], charges=[1.0, -1.0], gb_radii=[1.5, 1.5])
    for found in (
        pele_ocl.potmap(pair, spacing=2.0, padding=2.0, min_distance=0.5), pele_ocl.pb(pair, spacing=1.0, padding=4.0),
    ):  # fmt: skip
        record = found.to_json()
        assert (record["structure"], record["sha256"], record["n_atoms"]) == ("", "", 2)
        assert json.dumps(record)
