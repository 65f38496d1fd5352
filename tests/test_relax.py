"""Violations by AlphaFold's rule, and models relaxed until there are none."""

from __future__ import annotations

import io
import json
import re
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from test_cli import error_of, on_the_chosen_device, run  # noqa: F401

import pele_ocl
from pele_ocl import InputError, ParameterError, Relaxer, RelaxSpec
from pele_ocl.cli.structures import StructureLine
from pele_ocl.common.inputfile import read_file
from pele_ocl.common.installation import shipped
from pele_ocl.forcefield import ForceField
from pele_ocl.formats import Content, read_b_factors, read_structure, write_conformation
from pele_ocl.relax import PROTOCOLS, Violation, Violations, topologies
from pele_ocl.relax.hydrogens import completed, tautomers
from pele_ocl.relax.placing import Placing
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
    """Atoms after a peptide bond are turned about it by half a turn."""
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
    with pytest.raises(InputError, match=r"expected \(.*\) finite numbers"):
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
    seen = []
    result = Relaxer().relax(source, watch=lambda *of: seen.append(of))
    assert max(gradient for _, _, gradient in seen) > 0.239
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


def heavy_lines() -> list[str]:
    """Return the lines of ubiquitin's atoms but for hydrogens."""
    lines = (STRUCTURES / "ubiquitin.pdb").read_text().splitlines()
    return [line for line in lines if line.startswith("ATOM") and line[76:78] != " H"]


def model(path: Path, lines: list[str], moved=lambda places: places) -> Path:
    """A file of atoms, which are moved. moved : from positions (n, 3) A to positions"""
    places = moved(np.array([[float(line[k : k + 8]) for k in (30, 38, 46)] for line in lines]))
    rows = [
        f"{line[:30]}{'{:8.3f}{:8.3f}{:8.3f}'.format(*place)}{line[54:]}"
        for line, place in zip(lines, places, strict=True)
    ]
    path.write_text("\n".join([*rows, "END\n"]))
    return path


def hydrogens(atoms) -> dict[str, np.ndarray]:
    """Return the positions of the hydrogens on each other atom, by its name."""
    found: dict[str, list[np.ndarray]] = {}
    is_hydrogen = atoms.labels.elements == "H"
    for i, j in atoms.bonds.tolist():
        for heavy, other in ((i, j), (j, i)):
            if is_hydrogen[other]:
                found.setdefault(atoms.labels.atom(heavy), []).append(atoms.positions[other])
    return {name: np.array(places) for name, places in found.items()}


def test_hydrogens_stand_where_another_program_puts_them(tmp_path):
    """But for methyl groups and lysine, which turn freely; of hydroxyl groups nearly all have the same neighbour."""
    placed = topologies.Topologies().read(model(tmp_path / "heavy.pdb", heavy_lines())).atoms
    ours, theirs = hydrogens(placed), hydrogens(pele_ocl.read(STRUCTURES / "ubiquitin.pdb"))
    assert {name: len(places) for name, places in ours.items()} == {
        name: len(places) for name, places in theirs.items()
    }
    away = {
        name: np.linalg.norm(places[:, None] - theirs[name], axis=2).min(axis=1).max()
        for name, places in ours.items()
        if len(places) < 3
    }
    turning = {name for name in away if name.split(":")[-1] in ("OG", "OG1", "OH")}
    assert max(away[name] for name in away.keys() - turning) < 0.25
    assert sum(away[name] > 0.5 for name in turning) <= 2 < len(turning) / 4


def in_line(names):
    """CA, CB and CG2 exactly in a line, CG1 beside it, and the others about them."""
    places = {"CA": (-1.5, 0, 0), "CB": (0, 0, 0), "CG2": (1.5, 0, 0), "CG1": (0, 0, -1.5), "N": (-2, 1.4, 0)}
    return np.array([places.get(name, (-2.0, -0.7, 1.2)) for name in names])


def placed_on(path: Path, places):
    """Place hydrogens on ubiquitin's heavy atoms, and mark (n,) the added ones."""
    field = ForceField.load()
    structure = read_structure(model(path, heavy_lines()))
    full, own = completed(structure, field.templates)
    atoms = field.assign(full)
    given = places(structure.labels.names.tolist())
    return atoms.moved(Placing.of(atoms, own).placed(given)), own < 0


@pytest.mark.parametrize(
    "places",
    [
        in_line,
        lambda names: np.arange(len(names))[:, None] * [1.5, 0, 0],  # all in a line
        lambda names: np.arange(len(names))[:, None] * [0, -1.5, 1.5],
        lambda names: np.arange(len(names))[:, None] % 2 * [0, 0, 1.5],  # neighbours in one place
        lambda names: np.zeros((len(names), 3)),  # all in one place
    ],
)
def test_added_atoms_stand_off_their_parents_in_any_geometry(tmp_path, places):
    """Atoms of proteins have one, two or three neighbours; here these lead nowhere, or in one direction."""
    atoms, added = placed_on(tmp_path / "heavy.pdb", places)
    one, other = atoms.bonds[added[atoms.bonds].any(axis=1)].T
    lengths = np.linalg.norm(atoms.positions[one] - atoms.positions[other], axis=1)
    assert ((lengths > 0.95) & (lengths < 1.35)).all()
    for together in hydrogens(atoms).values():
        apart = np.linalg.norm(together[:, None] - together, axis=2)[np.triu_indices(len(together), 1)]
        assert (apart > 1.3).all()


def test_a_hydrogen_stands_off_the_plane_of_its_parent_and_three_neighbours(tmp_path):
    atoms, _ = placed_on(tmp_path / "heavy.pdb", in_line)
    assert np.abs(hydrogens(atoms)["A:VAL5:CB"]) == pytest.approx(np.array([[0, 1.09, 0]]))


def test_histidine_has_a_hydrogen_where_something_takes_it(ubiquitin):
    ring = [ubiquitin.positions[index(ubiquitin, 68, name)] for name in ("NE2", "CD2", "CE1")]
    along = 2 * ring[0] - ring[1] - ring[2]
    moved = ubiquitin.positions.copy()
    acceptor = index(ubiquitin, 1, "O")
    found = []
    for place in (ring[0] + 2.9 * along / np.linalg.norm(along), ring[0] + 50):
        moved[acceptor] = place
        found += tautomers(replace(ubiquitin, positions=moved)).values()
    assert found == ["HIE", "HID"]


def test_no_model_depends_on_those_before_it(tmp_path):
    """A torn bond is closed, and neither it nor noise that turns centres over reaches the next model."""
    lines = heavy_lines()
    behind = np.array([int(line[22:26]) for line in lines])[:, None] >= 30
    noise = np.random.default_rng(1).normal(0, 0.35, (len(lines), 3))
    clean = model(tmp_path / "clean.pdb", lines)
    torn = model(tmp_path / "torn.pdb", lines, lambda places: places + 0.5 * behind)
    noisy = model(tmp_path / "noisy.pdb", lines, lambda places: places + noise)
    alone, relaxer = Relaxer().relax(clean), Relaxer()
    of_torn, of_noisy, last = map(relaxer.relax, (torn, noisy, clean))
    assert "bond C-N" in kinds(of_torn.before)
    assert "chirality" in kinds(of_noisy.before)
    assert of_torn.is_clean
    assert last.after == []
    assert (last.atoms.positions == alone.atoms.positions).all()
    assert len(last.atoms.bonds) == len(of_torn.atoms.bonds) == len(alone.atoms.bonds)


def test_models_of_a_sequence_share_parameters_and_keep_their_numbers(tmp_path, monkeypatch):
    calls, assign = [], ForceField.assign
    monkeypatch.setattr(ForceField, "assign", lambda field, structure: calls.append(1) or assign(field, structure))
    turn = np.array([[0.0, -1, 0], [1, 0, 0], [0, 0, 1]])
    lines = heavy_lines()
    renumbered = [f"{line[:21]}B{int(line[22:26]) + 10:4d}{line[26:]}" for line in lines]
    known = topologies.Topologies()
    one = known.read(model(tmp_path / "one.pdb", lines))
    two = known.read(model(tmp_path / "two.pdb", renumbered, lambda places: places @ turn.T + 3))
    assert len(calls) == 1
    assert (one.atoms.charges == two.atoms.charges).all()
    assert (~two.given).sum() == 629
    assert two.atoms.positions == pytest.approx(one.atoms.positions @ turn.T + 3, abs=5e-3)
    assert str(two.atoms.labels.residues[0]) == "B:MET11"


def test_numbers_that_jump(tmp_path):
    """Across a bond they are no clash, and across a gap no bond."""
    lines = [line for line in HEXAPEPTIDE.read_text().splitlines() if line.startswith("ATOM")]
    jumping = [f"{line[:22]}{int(line[22:26]) + 10 * (int(line[22:26]) > 3):4d}{line[26:]}" for line in lines]
    behind = np.array([int(line[22:26]) for line in jumping])[:, None] > 3
    bonded = pele_ocl.relax(model(tmp_path / "bonded.pdb", jumping))
    assert (bonded.before, bonded.notes) == ([], ())
    gap = pele_ocl.relax(model(tmp_path / "gap.pdb", jumping, lambda places: places + 2 * behind))
    note, of_ends = gap.notes
    assert re.search(r"gap\.pdb: A:\w+3:C and 1 more: a chain ends without the atoms of a terminal residue", of_ends)
    assert "A:GLU2" not in note
    assert "A:PHE4" not in note
    assert re.search(
        r"gap\.pdb:\d+ \(A:\w+3:N\) and A:\w+14 are not bonded: their numbers are not consecutive, .* A apart", note
    )


def pieces(path: Path, shift: tuple[float, float, float], lines: list[str] | None = None) -> Path:
    """Write ubiquitin, numbered in one row, with residues from 30 on shifted, A."""
    lines = heavy_lines() if lines is None else lines
    behind = np.array([int(line[22:26]) for line in lines])[:, None] >= 30
    return model(path, lines, lambda places: places + np.array(shift) * behind)


def calphas(atoms) -> np.ndarray:
    return atoms.positions[atoms.labels.names == "CA"]


def peptide_bond(atoms) -> list[int]:
    return sorted((index(atoms, 29, "C"), index(atoms, 30, "N")))


def test_pieces_with_one_numbering_stay_apart(tmp_path):
    """Predictions have such targets in two pieces; the commands that compute energies leave them apart, too."""
    source = pieces(tmp_path / "pieces.pdb", (0, 0, 30))
    result = Relaxer().relax(source)
    (note,) = result.notes
    assert re.search(
        r"pieces\.pdb:\d+ \(A:LYS29:N\) and A:ILE30 are not bonded: C and N are 31\.2 A apart, .* gap", note
    )
    assert (result.before, result.after, result.is_worse) == ([], [], False)
    assert np.linalg.norm(calphas(result.atoms) - calphas(read_structure(source)), axis=1).max() < 1
    assert peptide_bond(result.atoms) not in result.atoms.bonds.tolist()
    write_conformation(tmp_path / "relaxed.pdb", Content(result.atoms))
    again = pele_ocl.read(tmp_path / "relaxed.pdb")
    assert peptide_bond(again) not in again.bonds.tolist()
    closed = Relaxer(close_gaps=True).relax(source)
    assert peptide_bond(closed.atoms) in closed.atoms.bonds.tolist()
    assert closed.notes == ()
    assert kinds(closed.before) == {"bond C-N": 1}
    assert np.linalg.norm(calphas(closed.atoms) - calphas(read_structure(source)), axis=1).max() > 10


@pytest.mark.parametrize(("shift", "is_closed"), [(2.0, True), (2.5, True), (3.2, False)])
def test_a_bond_is_torn_up_to_four_angstrom(shift, is_closed, tmp_path):
    carbon, nitrogen = (
        next(k for k, line in enumerate(heavy_lines()) if line[12:16].strip() == name and int(line[22:26]) == number)
        for number, name in ((29, "C"), (30, "N"))
    )
    source = read_structure(model(tmp_path / "whole.pdb", heavy_lines()))
    along = source.positions[nitrogen] - source.positions[carbon]
    along /= np.linalg.norm(along)
    result = Relaxer().relax(pieces(tmp_path / "torn.pdb", tuple(shift * along)))
    assert (peptide_bond(result.atoms) in result.atoms.bonds.tolist()) is is_closed
    assert len(result.notes) == (not is_closed)
    assert ("bond C-N" in kinds(result.before)) is is_closed
    assert "bond C-N" not in kinds(result.after)


def test_the_command_tells_of_gaps_and_of_more_violations(tmp_path):
    source = pieces(tmp_path / "pieces.pdb", (0, 0, 30))
    kept = run("relax", source, "-o", tmp_path / "kept.pdb")
    assert re.search(r"Note: \S*pieces\.pdb:\d+ .* C and N are 31\.2 A apart", kept.stderr)
    pulled = ("relax", source, "-o", tmp_path / "pulled.pdb", "--close-gaps", "--max-iterations", "20")
    result = run(*pulled, code=1)
    (line,) = [line for line in result.stdout.splitlines() if line.startswith("pieces.pdb  ")]
    assert line.endswith("more violations, or more clashes, than before  ended after 20 iterations")
    assert re.search(
        r"Error: more violations, or more clashes, than before in \S*pieces.pdb \(1 -> \d+\)", result.stderr
    )
    assert (tmp_path / "pulled.pdb").exists()
    (row,) = map(json.loads, run(*pulled, "--json", code=1).stdout.splitlines())
    assert row["is_worse"]
    assert row["n_after"] > row["n_before"] == 1
    assert (row["iterations"], row["stopped_by"]) == (20, "iterations")


def test_more_clashes_are_worse():
    result = pele_ocl.relax(HEXAPEPTIDE)
    clash, bond = (Violation(kind, (0, 1), 1.0, 1.9, np.inf) for kind in ("clash", "bond"))
    for before, after, worse in (
        ([], [], False), ([clash], [clash], False), ([bond], [clash], True), ([clash] * 2, [clash, bond], False),
        ([bond], [bond] * 2, True), ([], [replace(bond, kind="chirality")], False),
    ):  # fmt: skip
        rounds = [*result.rounds[:-1], replace(result.rounds[-1], after=after)]
        assert replace(result, before=before, rounds=rounds).is_worse is worse


def backbone(lines: list[str]) -> list[str]:
    """Return the atoms that design programs give of backbones."""
    return [line for line in lines if line[12:16].strip() in ("N", "CA", "C", "O", "CB")]


def test_a_backbone_is_refused(tmp_path):
    lines = heavy_lines()
    with pytest.raises(ParameterError, match=r"x\.pdb: 68 of 68 residues have no side chains, the first is A:MET1; "):
        pele_ocl.relax(model(tmp_path / "x.pdb", backbone(lines)))
    most = [*backbone(lines[:300]), *lines[300:]]
    with pytest.raises(ParameterError, match="35 of 68 residues have no side chains"):
        pele_ocl.relax(model(tmp_path / "y.pdb", most))
    glycine = [line.replace(line[17:20], "GLY") for line in backbone(lines) if line[12:16] != " CB "]
    assert pele_ocl.relax(model(tmp_path / "glycine.pdb", glycine)).is_clean


def test_iterations_are_limited_over_all_rounds(tmp_path):
    """A crushed model is given up after so many; they are told, and it is written as it is."""
    crushed = model(tmp_path / "crushed.pdb", heavy_lines(), lambda places: places * 0.5)
    result = Relaxer(max_iterations=60).relax(crushed)
    assert (result.iterations, result.converged) == (60, False)
    rounds = replace(PROTOCOLS["alphafold"], max_iterations=25, iterations_in_all=40)
    assert [round_.result.iterations for round_ in Relaxer(rounds).relax(crushed).rounds] == [25, 15]
    assert PROTOCOLS["alphafold"].iterations_in_all == PROTOCOLS["colabfold"].iterations_in_all == 2_000
    for wrong in ({"max_iterations": 0}, {"close_gaps": "yes"}):
        with pytest.raises(InputError, match=next(iter(wrong))):
            Relaxer(**wrong)


def test_findings_are_told_and_refused_by_strict(tmp_path):
    """Atoms on top of each other, by their numbers in the file."""
    lines = heavy_lines()
    seventh = np.arange(len(lines))[:, None] == 7
    near = model(tmp_path / "near.pdb", lines, lambda places: np.where(seventh, places[6] + 0.2, places))
    words = ("relax", near, "-o", tmp_path / "out.pdb", "--max-iterations", "300")
    done = run(*words, "--json")
    (row,) = map(json.loads, done.stdout.splitlines())
    (found,) = (of for of in row["findings"] if "overlap" in of["text"])
    assert found["action"] == "noted"
    assert re.search(r"atom 6 \(A:.*\) and atom 7 \(A:.*\) are 0\.35 A apart", found["text"])
    kept = pele_ocl.relax(near, max_iterations=1).atoms.labels
    assert [str(kept.names[k]) for k in found["atoms"]] == [lines[k][12:16].strip() for k in (6, 7)]
    assert f"Note: {near}: atom 6 " in done.stderr
    (tmp_path / "out.pdb").unlink()
    assert error_of(*words, "--strict").startswith(f"{near}: atom 6 ")
    assert not (tmp_path / "out.pdb").exists()
    run("relax", HEXAPEPTIDE, "-o", tmp_path / "out.pdb", "--strict")


def test_bad_models_hold_no_others(tmp_path, monkeypatch):
    """Each model is on disk before the next one is begun, whatever became of earlier ones."""
    lines, out = heavy_lines(), tmp_path / "out"
    nowhere = [*lines[:5], f"{lines[5][:30]}{'     nan' * 3}{lines[5][54:]}", *lines[6:]]
    files = {
        "1-backbone": (backbone(lines), lambda places: places), "2-good": (lines, lambda places: places),
        "3-nan": (lines, lambda places: places),
        "4-together": (lines, lambda places: np.where(np.arange(len(places))[:, None] == 7, places[8], places)),
        "5-unknown": ([line.replace("LEU", "XYZ") for line in lines], lambda places: places),
        "6-crushed": (lines, lambda places: places * 0.5), "7-good": (lines, lambda places: places + 1),
    }  # fmt: skip
    paths = [model(tmp_path / f"{name}.pdb", of, moved) for name, (of, moved) in files.items()]
    paths[2].write_text("\n".join(nowhere))
    there, own = [], Relaxer.relax

    def relaxed(relaxer, source, **more):
        there.append(sorted(path.stem[0] for path in out.glob("*.pdb")))
        return own(relaxer, source, **more)

    monkeypatch.setattr(Relaxer, "relax", relaxed)
    result = run("relax", *paths, "-o", out, "--max-iterations", "50", code=1)
    assert there == [[], [], ["2"], ["2"], ["2"], ["2"], ["2", "6"]]
    assert sorted(path.stem for path in out.glob("*.pdb")) == ["2-good", "6-crushed", "7-good"]
    assert "Error: 4 models of 7 failed: " in result.stderr
    told = [line for line in result.stdout.splitlines() if re.match(r"\d-\S+\.pdb ", line)]
    for line, reason in zip(
        told,
        (
            "68 of 68 residues have no side",
            r"\d$",
            "a finite number",
            "at the same position",
            "XYZ is not part",
            "50 iter",
            r"\d$",
        ),
        strict=True,
    ):
        assert re.search(reason, line)


def ring(path: Path, *lacking: str) -> Path:
    """A hexapeptide whose last C is near its first N, without hydrogens, OXT and atoms of these names."""
    lines = [line for line in HEXAPEPTIDE.read_text().splitlines() if line.startswith("ATOM") and line[76:78] != " H"]
    lines = [line for line in lines if line[12:16].strip() not in ("OXT", *lacking)]
    names = [(int(line[22:26]), line[12:16].strip()) for line in lines]
    residues = np.array([number for number, _ in names])
    first, last = names.index((1, "N")), names.index((6, "C"))

    def moved(places):
        places = places.copy()
        centre = places.mean(axis=0)
        for number in range(1, 7):  # residues about a circle, in their order
            of = residues == number
            turn = np.radians(60 * number)
            places[of] += centre + 6 * np.array([np.cos(turn), np.sin(turn), 0]) - places[of].mean(axis=0)
        places[first] = places[last] + [0, 0, 1.33]
        return places

    return model(path, lines, moved)


def test_a_ring_stays_one(tmp_path):
    """A ring's ends are bonded and have no atoms of terminal residues; a chain of these residues is still one."""
    known = topologies.Topologies(close_gaps=True)
    closed = known.read(ring(tmp_path / "ring.pdb"))
    first, last = index(closed.atoms, 1, "N"), index(closed.atoms, 6, "C")
    assert [first, last] in closed.atoms.bonds.tolist()
    assert "OXT" not in closed.atoms.labels.names
    assert len(hydrogens(closed.atoms)["A:MET1:N"]) == 1
    assert re.search(
        r"ring\.pdb:1 \(A:MET1:N\) and A:ASP6 are bonded because .* treated as a ring", "\n".join(closed.notes)
    )
    assert len(closed.notes) == 1
    lines = (tmp_path / "ring.pdb").read_text().splitlines()[:-1]
    far = model(tmp_path / "chain.pdb", lines, lambda places: places + np.eye(len(places))[:, :1] * [0, 0, 3])
    chain = known.read(far)
    assert [first, index(chain.atoms, 6, "C")] not in chain.atoms.bonds.tolist()
    assert "OXT" in chain.atoms.labels.names
    assert chain.notes == ()
    with pytest.raises(ParameterError, match=r"lacking\.pdb:1 \(A:MET1:N\): starts a ring in which atoms are missing"):
        known.read(ring(tmp_path / "lacking.pdb", "CZ"))


def test_ends_without_a_template_are_refused(tmp_path):
    lines = [line for line in heavy_lines() if int(line[22:26]) >= 16]
    acid = [line.replace("GLU", "GLH") if int(line[22:26]) == 16 else line for line in lines]
    with pytest.raises(
        ParameterError, match=r"A:GLH16:N\): .* no template of GLH at the start of a chain; rename it to GLU"
    ):
        pele_ocl.relax(model(tmp_path / "begins.pdb", acid))
    ending = [line.replace("ASP", "ASH") for line in lines if int(line[22:26]) <= 21]
    with pytest.raises(ParameterError, match=r"A:ASH21:N\): .* no template of ASH at the end .*; rename it to ASP"):
        pele_ocl.relax(model(tmp_path / "ends.pdb", ending))
    alone = [line for line in lines if int(line[22:26]) in (16, 17, 30, 40, 41)]
    with pytest.raises(
        ParameterError, match=r"A:ILE30:N\): is not bonded to another residue, .* build the adjacent residues"
    ):
        pele_ocl.relax(model(tmp_path / "alone.pdb", alone))


def test_caps_end_a_chain(tmp_path):
    """Acetyl groups wait for a residue after them alone, methyl amides for one before."""
    of = {(16, "CA"): "CH3", (16, "C"): "C", (16, "O"): "O", (18, "N"): "N", (18, "CA"): "CH3"}
    lines = []
    for line in heavy_lines():
        number, name = int(line[22:26]), line[12:16].strip()
        if (number, name) in of:
            lines.append(f"{line[:12]} {of[number, name]:3s} {'ACE' if number == 16 else 'NME'}{line[20:]}")
        elif number == 17:
            lines.append(line)
    read = topologies.Topologies().read(model(tmp_path / "capped.pdb", lines))
    assert read.notes == ()
    assert read.atoms.charges.sum() == pytest.approx(0, abs=1e-6)
    assert len(read.atoms) == 6 + 16 + 6


def test_notes_tell_what_became_of_the_file(tmp_path):
    """A further model and a water are left out, selenomethionine is replaced, and atoms are built."""
    pytest.importorskip("pdbfixer")
    lines = [line for line in HEXAPEPTIDE.read_text().splitlines() if line.startswith("ATOM") and line[76:78] != " H"]
    lines = [line for line in lines if (line[12:16], line[17:20]) != (" CZ ", "PHE")]
    selenium = [
        line.replace("MET", "MSE").replace(" SD  ", "SE   ").replace("ATOM  ", "HETATM").replace(" S ", "SE ")
        for line in lines
    ]
    water = "HETATM 9001  O   HOH A 201      20.000  40.000  10.000  1.00  0.00           O"
    path = tmp_path / "model.pdb"
    path.write_text(
        "\n".join(["MODEL        1", *selenium, "TER", water, "ENDMDL", "MODEL        2", *lines, "ENDMDL", "END\n"])
    )
    read = topologies.Topologies().read(path)
    told = "\n".join(read.notes)
    assert "contains several models; model 1, the first, was read" in told
    assert "--model" not in told
    assert "1 water was left out" in told
    assert "A:MSE1 was replaced by MET" in told
    assert "CZ of A:PHE" in told
    heavy = read.atoms.labels.elements != "H"
    assert not read.given[(read.atoms.labels.names == "CZ") & heavy].any()


def test_the_command_keeps_b_factors_and_numbers(tmp_path):
    models = [clashing(tmp_path / "a.pdb"), clashing(tmp_path / "b.pdb", 0.1)]
    (tmp_path / "c.pdb").write_text(
        "ATOM      1  C1  LIG A   1      11.100  11.100  11.100  1.00  0.00           C\nEND\n"
    )
    command = ("relax", *models, tmp_path / "c.pdb", "-o", tmp_path / "out", "--json")
    result = run(*command, "--table", tmp_path / "report.csv", code=1)
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    assert [row.get("is_clean") for row in rows] == [True, True, None]
    assert rows[0]["violations_before"]["clash"] > 0
    assert set(rows[0]["seconds"]) == {"preparation", "minimization", "violations", "total"}
    assert "error" in rows[2]
    assert re.search(r"Error: 1 model of 3 failed: \S*c\.pdb:1 .*relax is for proteins", result.stderr)
    head, *lines = [line for line in (tmp_path / "report.csv").read_text().splitlines() if line[0] != "#"]
    assert head.startswith("name,violations,left,")
    assert lines[0].split(",")[1] == str(rows[0]["n_before"]) != "0"  # counts stay whole
    assert lines[2].split(",")[1:9] == [""] * 8
    assert "relax is for proteins" in lines[2]
    again = run(*command, "--resume", code=1)
    assert [json.loads(line) for line in again.stdout.splitlines()] == rows  # seconds of the first run included
    labels = read_structure(models[0]).labels
    relaxed = tmp_path / "out" / "a.pdb"
    assert [str(r) for r in read_structure(relaxed).labels.residues] == [str(r) for r in labels.residues]
    known = read_b_factors(read_file(relaxed), labels)
    assert known[:, 1] == pytest.approx(20.0 + labels.residue_numbers)


def test_the_table_lists_what_is_left(tmp_path):
    mirrored = pele_ocl.read(HEXAPEPTIDE)
    path = tmp_path / "mirror.pdb"
    write_conformation(path, Content(mirrored.moved(mirrored.positions * [1, 1, -1])))
    text = run("relax", path, "-o", tmp_path / "out.cif", "--protocol", "colabfold").stdout
    assert "mirror.pdb: left" in text
    assert text.count("  chirality A:") == 5
    assert "1 model -> " in text
    assert "1 without violations" in text


def test_refusals(tmp_path):
    with pytest.raises(InputError, match="unknown protocol 'rosetta'; choose alphafold or colabfold"):
        pele_ocl.relax(HEXAPEPTIDE, "rosetta")
    path = tmp_path / "x.pdb"
    path.write_text(HEXAPEPTIDE.read_text().replace("PHE", "XYZ"))
    with pytest.raises(ParameterError, match=r"x\.pdb:\d+ .*relax is for proteins, and XYZ is not part"):
        pele_ocl.relax(path)
    assert "same file as the input" in error_of("relax", HEXAPEPTIDE, "-o", HEXAPEPTIDE)
    assert error_of("relax", tmp_path / "nope.pdb", "-o", tmp_path / "out.pdb").endswith("nope.pdb: no such file")
    assert "relaxed models are written as .pdb or .cif" in error_of(
        "relax", HEXAPEPTIDE, "-o", tmp_path / "new/{name}.nc"
    )
    assert "no OpenCL device fits 'nope'" in error_of("relax", path, "-o", tmp_path / "new/out.pdb", "--device", "nope")
    assert not (tmp_path / "new").exists()


def test_folders_are_made_for_what_is_written(tmp_path):
    """Folders are made for a report, too; a model that fails leaves no empty one."""
    bad = tmp_path / "bad.pdb"
    bad.write_text("ATOM      1  C1  LIG A   1      11.100  11.100  11.100  1.00  0.00           C\nEND\n")
    (tmp_path / "worse.pdb").write_text(bad.read_text())
    folder = tmp_path / "new" / "q"
    assert "relax is for proteins" in error_of("relax", bad, "-o", f"{folder}/")
    failed = run("relax", bad, tmp_path / "worse.pdb", "-o", f"{folder}/", code=1)
    assert "Error: 2 models of 2 failed" in failed.stderr
    assert not folder.parent.exists()
    run("relax", bad, tmp_path / "worse.pdb", "-o", f"{folder}/", "--table", folder / "r.csv", code=1)
    assert [path.name for path in folder.iterdir()] == ["r.csv"]
    run("relax", HEXAPEPTIDE, "-o", f"{folder}/", "--table", folder / "r.csv")
    assert sorted(path.name for path in folder.iterdir()) == ["hexapeptide.pdb", "r.csv"]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Quick:
    """Stand-in for a Relaxer: half a second a round by a clock of its own, two rounds a model."""

    def __init__(self, result) -> None:
        self.result, self.now = result, 0.0

    def relax(self, source, watch):
        for told in ((0, 1, 2.5), (1, 1, 0.1)) * 2:
            self.now += 0.25
            watch(*told)
        return self.result


def test_progress_is_shown_for_models_that_are_quick(tmp_path, monkeypatch):
    """A model is done once all its rounds are, and the rest follows from finished ones."""
    relaxer = Quick(pele_ocl.relax(HEXAPEPTIDE))
    monkeypatch.setattr("pele_ocl.cli.progress.time.monotonic", lambda: relaxer.now)
    monkeypatch.setattr("sys.stderr", Terminal())
    monkeypatch.setattr(RelaxSpec, "relaxer", relaxer)
    files = [tmp_path / f"{k}.pdb" for k in range(100)]
    for path in files:
        path.write_bytes(HEXAPEPTIDE.read_bytes())
    with StructureLine("Relaxing") as line:
        batch = pele_ocl.relax(files, output=tmp_path / "out", watch=line.watch)
    assert not batch.errors
    told = re.findall(r"Relaxing: (\d+) of 100 structures, .*?(?:, ([^,]+) left)?(?=\r)", sys.stderr.getvalue() + "\r")
    done = [int(n) for n, _ in told]
    assert done == sorted(done)
    assert len(done) > 200
    assert [left for n, left in told if n == "50"] == ["50 s", "50 s", "51 s", "51 s"]
