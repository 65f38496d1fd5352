"""Violations by AlphaFold's rule, and models relaxed until there are none."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from test_cli import error_of, on_the_chosen_device, run  # noqa: F401

import pele_ocl
from pele_ocl import InputError, ParameterError, Relaxer
from pele_ocl.formats import read_structure
from pele_ocl.formats.b_factors import read_b_factors
from pele_ocl.formats.conformation_files import Content, write_conformation
from pele_ocl.inputfile import read_file
from pele_ocl.paths import shipped
from pele_ocl.relax import PROTOCOLS, Violations, topologies
from pele_ocl.relax.stereochemistry import residue_bounds

STRUCTURES = shipped("data") / "structures"
HEXAPEPTIDE = STRUCTURES / "hexapeptide.pdb"


@pytest.fixture(scope="module")
def ubiquitin():
    return read_structure(STRUCTURES / "ubiquitin.pdb")


@pytest.fixture(scope="module")
def rule(ubiquitin):
    return Violations(ubiquitin.labels)


def index(structure, number: int, name: str) -> int:
    return int(np.flatnonzero((structure.labels.residue_numbers == number) & (structure.labels.names == name))[0])


def kinds(found) -> dict[str, int]:
    return dict(Counter(violation.kind for violation in found))


def test_protocols_are_in_our_units():
    protocol = PROTOCOLS["alphafold"]
    assert protocol.force_constant == 5  # of x^2, where AlphaFold has 10 of x^2 / 2
    assert protocol.rms_gradient == pytest.approx(0.239)
    assert PROTOCOLS["colabfold"].max_iterations == 2000


def test_bounds_follow_from_the_tables():
    bounds = residue_bounds("ALA")
    assert (bounds["CA", "N"].lowest, bounds["CA", "N"].highest) == pytest.approx((1.459 - 0.24, 1.459 + 0.24))
    rng = np.random.default_rng(0)
    a, b = rng.normal(1.459, 0.020, 200_000), rng.normal(1.525, 0.026, 200_000)
    angle = np.radians(rng.normal(111.0, 2.7, 200_000))
    across = np.sqrt(a * a + b * b - 2 * a * b * np.cos(angle))
    of_angle = bounds["C", "N"]
    assert of_angle.kind == "angle"
    assert (of_angle.lowest + of_angle.highest) / 2 == pytest.approx(across.mean(), abs=2e-3)
    assert (of_angle.highest - of_angle.lowest) / 24 == pytest.approx(across.std(), rel=0.02)
    contact = bounds["N", "O"]
    assert (contact.kind, contact.lowest, contact.highest) == ("contact", pytest.approx(1.55 + 1.52 - 1.5), np.inf)
    assert ("C", "OXT") not in bounds


def test_a_real_protein_has_none(ubiquitin, rule):
    assert rule.find(ubiquitin.positions) == []


def test_a_mirror_image_has_all_centres_wrong_and_nothing_that_counts(ubiquitin, rule):
    found = rule.find(ubiquitin.positions * [1, 1, -1])
    names = ubiquitin.labels.residue_names[ubiquitin.labels.residue_starts]
    n_side = np.isin(names, ("ILE", "THR")).sum()
    assert kinds(found) == {"chirality": (names != "GLY").sum() + n_side}
    assert not any(violation.counts for violation in found)


def test_peptide_bonds(ubiquitin, rule):
    behind = ubiquitin.labels.residue_numbers >= 30
    carbon, nitrogen = index(ubiquitin, 29, "C"), index(ubiquitin, 30, "N")
    along = ubiquitin.positions[nitrogen] - ubiquitin.positions[carbon]
    torn = ubiquitin.positions + 0.3 * behind[:, None] * along / np.linalg.norm(along)
    (found,) = [v for v in rule.find(torn) if v.kind == "bond C-N"]
    assert found.atoms == (carbon, nitrogen)
    assert found.value == pytest.approx(np.linalg.norm(along) + 0.3)
    assert (found.lowest, found.highest) == pytest.approx((1.329 - 12 * 0.014, 1.329 + 12 * 0.014))
    assert rule.residues([found]).tolist() == [28, 29]
    assert "A:LYS29:C - A:ILE30:N: 1.6" in found.described(ubiquitin.labels)


def test_a_cis_peptide_is_found_but_does_not_count(ubiquitin, rule):
    """All behind a peptide bond is turned about it by half a turn."""
    behind = (ubiquitin.labels.residue_numbers > 30) | (
        (ubiquitin.labels.residue_numbers == 30) & (ubiquitin.labels.names != "N")
    )
    origin = ubiquitin.positions[index(ubiquitin, 30, "N")]
    axis = origin - ubiquitin.positions[index(ubiquitin, 29, "C")]
    axis /= np.linalg.norm(axis)
    away = ubiquitin.positions - origin
    turned = np.where(behind[:, None], origin + 2 * (away @ axis)[:, None] * axis - away, ubiquitin.positions)
    (found,) = [v for v in rule.find(turned) if v.kind == "cis peptide"]
    assert found.value < 15
    assert not found.counts
    assert found.atoms[1:3] == (index(ubiquitin, 29, "C"), index(ubiquitin, 30, "N"))


def test_clashes_and_distances_within_residues(ubiquitin, rule):
    moved = ubiquitin.positions.copy()
    one, other = index(ubiquitin, 5, "CG1"), index(ubiquitin, 67, "CD1")
    moved[one] = moved[other] + [0.5, 0, 0]
    found = rule.find(moved)
    assert {"clash", "bond", "angle"} <= set(kinds(found))
    (clash,) = [v for v in found if v.atoms == (one, other)]
    assert (clash.value, clash.lowest) == pytest.approx((0.5, 1.9))
    assert {4, 66} <= set(rule.residues(found).tolist())
    bad = moved.copy()
    bad[0, 0] = np.nan
    with pytest.raises(InputError, match="finite numbers are needed"):
        rule.find(bad)
    with pytest.raises(InputError, match="1231, 3"):
        rule.find(moved[:5])


def clashing(path: Path, shift: float = 0.0) -> Path:
    """Ubiquitin in which two side chains stand within each other, with B-factors that tell the residues apart."""
    atoms = pele_ocl.read(STRUCTURES / "ubiquitin.pdb")
    side = (atoms.labels.residue_numbers == 4) & ~np.isin(atoms.labels.names, ("N", "CA", "C", "O", "H", "HA", "CB"))
    ring = index(atoms, 4, "CZ")
    close = np.flatnonzero((atoms.labels.residue_numbers == 66) & (atoms.labels.names == "CB"))[0]
    positions = atoms.positions.copy()
    positions[side] += 0.5 * (positions[close] - positions[ring]) + shift
    b_factors = np.stack([np.ones(len(atoms)), 20.0 + atoms.labels.residue_numbers], axis=1)
    write_conformation(path, Content(atoms.moved(positions), b_factors=b_factors))
    return path


def test_a_clashing_model_is_relaxed(tmp_path):
    source = clashing(tmp_path / "model.pdb")
    result = Relaxer().relax(source)
    assert any(violation.counts for violation in result.before)
    assert result.is_clean
    assert result.n_added == 0
    assert result.rounds[0].freed == ()
    assert all(round_.result.stopped_by == "gradient" for round_ in result.rounds)
    assert set(result.rounds[0].result.energy_after.names) >= {"bond", "coulomb", "restraint"}
    assert "gb_pair" not in result.rounds[0].result.energy_after.names  # in vacuum
    hydrogen = index(result.atoms, 11, "HA")
    carbon = index(result.atoms, 11, "CA")
    length = np.linalg.norm(result.atoms.positions[hydrogen] - result.atoms.positions[carbon])
    assert length == pytest.approx(1.09, abs=2e-5)  # held


def test_hydrogens_of_a_sequence_are_prepared_once(tmp_path, monkeypatch):
    pytest.importorskip("pdbfixer")
    lines = [line for line in HEXAPEPTIDE.read_text().splitlines() if line.startswith("ATOM") and line[76:78] != " H"]
    turn = np.array([[0.0, -1, 0], [1, 0, 0], [0, 0, 1]])
    places = [[float(line[k : k + 8]) for k in (30, 38, 46)] for line in lines] @ turn.T + 3
    turned = [
        f"{line[:21]}B{int(line[22:26]) + 10:4d}{line[26:30]}{'{:8.3f}{:8.3f}{:8.3f}'.format(*place)}{line[54:]}"
        for line, place in zip(lines, places, strict=True)
    ]
    for name, content in (("one.pdb", lines), ("two.pdb", turned)):
        (tmp_path / name).write_text("\n".join([*content, "END\n"]))
    calls = []
    prepare = topologies.prepare
    monkeypatch.setattr(topologies, "prepare", lambda *paths: calls.append(paths) or prepare(*paths))
    known = topologies.Topologies()
    one, two = (known.read(tmp_path / name) for name in ("one.pdb", "two.pdb"))
    assert len(calls) == 1
    assert one.n_added == two.n_added > 40
    assert two.atoms.positions == pytest.approx(one.atoms.positions @ turn.T + 3, abs=5e-3)
    assert str(two.atoms.labels.residues[0]) == "B:MET11"
    assert (one.atoms.charges == two.atoms.charges).all()


def test_the_command_keeps_b_factors_and_numbers(tmp_path):
    models = [clashing(tmp_path / "a.pdb"), clashing(tmp_path / "b.pdb", 0.1)]
    (tmp_path / "c.pdb").write_text(
        "ATOM      1  C1  LIG A   1      11.100  11.100  11.100  1.00  0.00           C\nEND\n"
    )
    result = run("relax", *models, tmp_path / "c.pdb", "-o", tmp_path / "out", "--json", code=1)
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    assert [row.get("is_clean") for row in rows] == [True, True, None]
    assert rows[0]["violations_before"]["clash"] > 0
    assert set(rows[0]["seconds"]) == {"preparation", "minimisation", "violations", "total"}
    assert "error" in rows[2]
    assert "Error: 1 model of 3 failed" in result.stderr
    labels = read_structure(models[0]).labels
    relaxed = tmp_path / "out" / "a.pdb"
    assert [str(r) for r in read_structure(relaxed).labels.residues] == [str(r) for r in labels.residues]
    known = read_b_factors(read_file(relaxed), labels)
    assert known[:, 1] == pytest.approx(20.0 + labels.residue_numbers)


def test_the_table_lists_what_is_left(tmp_path):
    mirrored = pele_ocl.read(HEXAPEPTIDE)
    path = tmp_path / "mirror.pdb"
    write_conformation(path, Content(mirrored.moved(mirrored.positions * [1, 1, -1])))
    text = run("relax", path, "-o", tmp_path / "out.cif", "--like", "colabfold").stdout
    assert "mirror.pdb: left" in text
    assert text.count("  chirality A:") == 5
    assert "1 model -> " in text
    assert "1 without violations" in text


def test_refusals(tmp_path):
    with pytest.raises(InputError, match="there is no protocol 'rosetta'; choose alphafold or colabfold"):
        pele_ocl.relax(HEXAPEPTIDE, "rosetta")
    path = tmp_path / "x.pdb"
    path.write_text(HEXAPEPTIDE.read_text().replace("PHE", "XYZ"))
    with pytest.raises(ParameterError, match=r"x\.pdb:\d+ .*relax is for proteins, and XYZ is no part"):
        pele_ocl.relax(path)
    assert "same file as the input" in error_of("relax", HEXAPEPTIDE, "-o", HEXAPEPTIDE)
