"""`pele_ocl.minimize`, `relax` and `refine` give what their commands do."""

from __future__ import annotations

import doctest
import json

import numpy as np
import pytest
from test_cli import HEXAPEPTIDE, on_the_chosen_device, run  # noqa: F401
from test_cli_minimize import shaken
from trajectory_helpers import write_trajectory

import pele_ocl
from pele_ocl import FormatError, InputError, read

QUICK = {"tolerance": 2.0, "max_iterations": 30}
WORDS = ("--tolerance", "2", "--max-iterations", "30")


@pytest.fixture(scope="module")
def peptide():
    return read(HEXAPEPTIDE)


def timeless(value):
    if isinstance(value, dict):
        return {name: timeless(of) for name, of in value.items() if name != "seconds"}
    return [timeless(of) for of in value] if isinstance(value, list) else value


def lines_of(*words, code=0):
    return [timeless(json.loads(line)) for line in run(*words, "--json", code=code).stdout.splitlines()]


def text_of(path):
    """Text of a table without its head, and without its times."""
    lines = [line for line in path.read_text().splitlines() if not line.startswith("#")]
    times = [k for k, name in enumerate(lines[0].split(",")) if name.startswith(("seconds", "prepared"))]
    return [[cell for k, cell in enumerate(line.split(",")) if k not in times] for line in lines]


def test_one_structure_is_minimized_as_by_the_command(peptide, tmp_path):
    """Of a path and of atoms; the file, the record and the table are the same."""
    (line,) = lines_of("minimize", HEXAPEPTIDE, "-o", tmp_path / "c.pdb", *WORDS, "--restrain", "backbone:1")
    result = pele_ocl.minimize(HEXAPEPTIDE, output=tmp_path / "p.pdb", restrain="backbone:1", **QUICK)
    assert timeless(result.to_json()) == line
    assert (tmp_path / "p.pdb").read_bytes() == (tmp_path / "c.pdb").read_bytes()
    result.save(tmp_path / "again.pdb")
    assert (tmp_path / "again.pdb").read_bytes() == (tmp_path / "c.pdb").read_bytes()
    assert f"total {result.total:,.3f} kcal/mol" in repr(result)
    assert result.table()["energy_after_total"].tolist() == [result.total]
    assert "<table>" in result._repr_html_()
    atoms = pele_ocl.minimize(peptide, restrain="backbone:1", **QUICK)
    np.testing.assert_array_equal(atoms.positions, result.positions)
    own = timeless(atoms.to_json())
    assert {name: own[name] for name in line if name not in ("structure", "sha256", "rounding_gradient")} == {
        name: line[name] for name in line if name not in ("structure", "sha256", "rounding_gradient")
    }
    with pytest.raises(FormatError, match="no such file"):
        pele_ocl.minimize(tmp_path / "none.pdb")
    with pytest.raises(TypeError, match="tolerence"):
        pele_ocl.minimize(HEXAPEPTIDE, tolerence=1)


def test_several_structures_are_minimized_as_by_the_command(peptide, tmp_path):
    """One that fails is NaN with its reason; without an output results are kept, with one they are read from files."""
    paths = [*shaken(tmp_path, peptide, 2), tmp_path / "bad.pdb"]
    paths[-1].write_text("ATOM      1  N   GLY A   1      11.1\nEND\n")
    lines = lines_of("minimize", *paths, "-o", tmp_path / "c", "--table", tmp_path / "c.csv", *WORDS, code=1)
    kept = pele_ocl.minimize(paths, errors="record", **QUICK)
    out = {"output": tmp_path / "p", "table": tmp_path / "p.csv"}
    written = pele_ocl.minimize(str(tmp_path / "*.pdb"), errors="record", **out, **QUICK)
    assert [record["structure"] for record in written.to_json()] == sorted(map(str, paths))
    order = [written.to_json().index(of) for of in sorted(written.to_json(), key=lambda of: of["structure"])]
    assert order == [0, 1, 2]
    assert timeless(written.to_json())[1:] == lines[:2]
    assert text_of(tmp_path / "p.csv") == [text_of(tmp_path / "c.csv")[k] for k in (0, 3, 1, 2)]
    assert (tmp_path / "p" / "p0.pdb").read_bytes() == (tmp_path / "c" / "p0.pdb").read_bytes()
    assert list(kept.errors) == [2]
    assert list(written.errors) == [0]
    np.testing.assert_array_equal(kept.total[:2], written.total[1:])
    assert np.isnan([kept.total[2], kept[2].total]).all()
    assert not kept[2].converged
    np.testing.assert_allclose(written[1].positions, kept[0].positions, atol=6e-4)
    assert kept.energies.shape == (3, len(kept.terms.names))
    with pytest.raises(InputError, match="gradient was not stored"):
        _ = written[1].gradient
    with pytest.raises(InputError, match=r"bad\.pdb:1"):
        _ = kept[2].positions
    with pytest.raises(FormatError, match=r"bad\.pdb:1"):
        pele_ocl.minimize(paths, **QUICK)
    again = pele_ocl.minimize(paths[:2], output=tmp_path / "p", resume=True, errors="record", **QUICK)
    assert again.to_json() == written.to_json()[1:]
    kept.save(tmp_path / "s")
    assert (tmp_path / "s" / "p0.pdb").read_bytes() == (tmp_path / "c" / "p0.pdb").read_bytes()


def test_frames_are_minimized_as_by_the_command(peptide, tmp_path):
    """From a file, of atoms, and in memory; the file that is written may be saved later, too."""
    frames = peptide.positions + np.random.default_rng(1).normal(0, 0.05, (3, *peptide.positions.shape))
    frames[1, 5] = np.nan
    source = write_trajectory(tmp_path / "run.nc", frames)
    words = ("minimize", HEXAPEPTIDE, "-t", source, "-o", tmp_path / "c.pdb", *WORDS, "--freeze", "resid 1")
    (line,) = lines_of(*words, code=1)
    options = {"freeze": "resid 1", "errors": "record", **QUICK}
    batch = pele_ocl.minimize(HEXAPEPTIDE, trajectory=source, output=tmp_path / "p.pdb", **options)
    assert timeless(batch.to_json()) == line
    assert (tmp_path / "p.pdb").read_bytes() == (tmp_path / "c.pdb").read_bytes()
    kept = pele_ocl.minimize(peptide, trajectory=source, **options)
    held = pele_ocl.minimize(peptide, trajectory=frames, **options)
    assert list(batch.errors) == list(kept.errors) == list(held.errors) == [1]
    np.testing.assert_array_equal(kept.total, batch.total)
    np.testing.assert_allclose(kept.positions[[0, 2]], batch.positions[[0, 2]], atol=6e-4)
    np.testing.assert_allclose(held.total[[0, 2]], kept.total[[0, 2]], atol=0.01)
    kept.save(tmp_path / "k.pdb")
    assert read(tmp_path / "k.pdb", model=1).positions == pytest.approx(kept[0].positions, abs=1e-3)
    with pytest.raises(InputError, match="give one as `trajectory`"):
        pele_ocl.minimize(HEXAPEPTIDE, frames="0:2")


def test_former_keywords_still_work(peptide):
    with pytest.warns(DeprecationWarning, match="largest is now max_gradient"):
        former = pele_ocl.minimize(peptide, largest=20.0, max_iterations=50)
    assert former.total == pele_ocl.minimize(peptide, max_gradient=20.0, max_iterations=50).total
    with pytest.raises(InputError, match="former name of `max_gradient`"):
        pele_ocl.minimize(peptide, largest=20.0, max_gradient=20.0)
    with pytest.warns(DeprecationWarning, match="like is now protocol"):
        pele_ocl.Relaxer(like="colabfold")


def test_models_are_relaxed_as_by_the_command(tmp_path):
    (line,) = lines_of("relax", HEXAPEPTIDE, "-o", tmp_path / "c.pdb", "--like", "colabfold")
    result = pele_ocl.relax(HEXAPEPTIDE, "colabfold", output=tmp_path / "p.pdb")
    assert timeless(result.to_json()) == line
    assert (tmp_path / "p.pdb").read_bytes() == (tmp_path / "c.pdb").read_bytes()
    assert "0 after 1 round and" in repr(result)
    bad = tmp_path / "bad.pdb"
    bad.write_text("ATOM      1  C1  LIG A   1      11.100  11.100  11.100  1.00  0.00           C\nEND\n")
    batch = pele_ocl.relax([HEXAPEPTIDE, bad], "colabfold", errors="record")
    assert timeless(batch.to_json())[0] == line
    assert list(batch.errors) == [1]
    assert batch.is_clean.tolist() == [True, False]
    assert batch.total[0] == result.total
    assert np.isnan(batch.total[1])
    batch.save(tmp_path / "s")
    assert (tmp_path / "s" / "hexapeptide.pdb").read_bytes() == (tmp_path / "c.pdb").read_bytes()
    assert batch.table()["rounds"].tolist() == [1, None]


def test_poses_are_refined_as_by_the_command(peptide, tmp_path):
    words = ("refine", HEXAPEPTIDE, "--ligand", "resid 1", "--near", "5", "--max-iterations", "3")
    (line,) = lines_of(*words, "-o", tmp_path / "c")
    options = {"ligand": "resid 1", "moving_radius": 5.0, "max_iterations": 3}
    found = pele_ocl.refine(HEXAPEPTIDE, output=tmp_path / "p", **options)
    assert timeless(found.to_json()) == line
    assert text_of(tmp_path / "p" / "refine.csv") == text_of(tmp_path / "c" / "refine.csv")
    for name in ("hexapeptide.pdb", "index.html"):
        assert (tmp_path / "p" / name).read_bytes() == (tmp_path / "c" / name).read_bytes()
    poses = [peptide.positions, np.full_like(peptide.positions, np.nan)]
    kept = pele_ocl.refine(peptide, poses, errors="record", **options)
    assert kept.score[0] == found.score[0]
    assert list(kept.errors) == [1]
    assert np.isnan(kept.score[1])
    np.testing.assert_allclose(found.positions[0], kept.positions[0], atol=6e-4)
    assert kept.ranks.tolist() == [1, 0]
    assert "2 poses" in repr(kept)
    kept.save(tmp_path / "s")
    assert sorted(path.name for path in (tmp_path / "s").iterdir()) == ["index.html", "pose_1.pdb", "refine.csv"]


@pytest.mark.parametrize("name", ["minimize", "relax", "refine"])
def test_examples_of_docstrings(name):
    function = getattr(pele_ocl, name)
    (example,) = doctest.DocTestFinder(recurse=False).find(getattr(function, "_function", function), name)
    assert example.examples
    assert not doctest.DocTestRunner().run(example).failed
