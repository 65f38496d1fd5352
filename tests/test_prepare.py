"""Bare PDB files made ready with PDBFixer, and read again with the built-in force field."""

from __future__ import annotations

import gzip
import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from test_cli import error_of, run

from pele_ocl import FormatError, InputError, energy, prepare, read, solvent
from pele_ocl.formats import read_structure

HEXAPEPTIDE = Path(__file__).parent.parent / "data" / "structures" / "hexapeptide.pdb"
ATOMS = [line for line in HEXAPEPTIDE.read_text().splitlines() if line.startswith("ATOM")]
WATER = "HETATM 9001  O   HOH A 201      20.000  40.000  10.000  1.00  0.00           O"
ZINC = "HETATM 9002 ZN    ZN A 202      40.000  40.000  10.000  1.00  0.00          ZN"
LIGAND = [
    f"HETATM 900{k}  C{k}  LIG A 203      {60 + 1.5 * k:6.3f}  40.000  10.000  1.00  0.00           C" for k in (3, 4)
]
HEAVY = [line for line in ATOMS if line[76:78] != " H"]


@pytest.fixture(autouse=True)
def _extra():
    pytest.importorskip("pdbfixer")


def file_of(folder, lines, name="bare.pdb"):
    path = folder / name
    path.write_text("\n".join([*lines, "END\n"]))
    return path


def place(line):
    return np.array([float(line[k : k + 8]) for k in (30, 38, 46)])


def at(line, where):
    return f"{line[:30]}{''.join(f'{x:8.3f}' for x in where)}{line[54:]}"


def residue(line):
    return int(line[22:26])


def test_what_is_taken_out_is_told_and_other_formats_are_refused(tmp_path, caplog):
    bare = file_of(tmp_path, [*HEAVY, *LIGAND, WATER])
    changes = prepare(bare)
    assert changes.notes == ("1 LIG removed; `keep_hetero=True` keeps ligands and ions",)
    assert "bare.pdb: 1 LIG removed; `keep_hetero=True` keeps ligands and ions" in caplog.text
    done = run("prepare", bare, "-o", tmp_path / "ready.pdb")
    assert "1 LIG removed; --keep-hetero keeps ligands and ions" in done.stderr
    assert "HOH removed" not in done.stderr
    (tmp_path / "x.gro").write_text("title\n0\n1 1 1\n")
    with pytest.raises(FormatError, match=r"x.gro: `prepare` reads PDB and mmCIF files; give a .pdb or .cif file"):
        prepare(tmp_path / "x.gro")
    for word in ("keep", "ligands"):
        with pytest.raises(TypeError, match=f"'{word}'; did you mean 'keep_hetero'"):
            prepare(bare, **{word: "LIG"})


def test_hydrogens_are_added_where_they_belong(tmp_path):
    target = tmp_path / "ready.pdb"
    changes = prepare(file_of(tmp_path, HEAVY), target)
    atoms, before = read(target), read(HEXAPEPTIDE)
    assert len(atoms) == len(before) == changes.n_atoms
    assert changes.hydrogens_added == sum(line[76:78] == " H" for line in ATOMS)
    assert (changes.removed, changes.atoms_added, changes.residues_added, changes.relaxed) == ({}, {}, {}, True)
    assert [str(r) for r in atoms.labels.residues] == [str(r) for r in before.labels.residues]
    heavy = {(line[12:16].strip(), residue(line)): line[30:54] for line in HEAVY}
    written = {
        (line[12:16].strip(), residue(line)): line[30:54]
        for line in target.read_text().splitlines()
        if line.startswith("ATOM")
    }
    assert all(written[key] == place for key, place in heavy.items())
    result = energy(atoms, precision="float64").energy
    assert result["lennard_jones"] < 100  # no hydrogen stands in another atom


def test_two_runs_give_one_file(tmp_path):
    bare = file_of(tmp_path, HEAVY)
    for name in ("one.pdb", "two.pdb"):
        prepare(bare, tmp_path / name)
    assert (tmp_path / "one.pdb").read_text() == (tmp_path / "two.pdb").read_text()


def test_missing_atoms_waters_ligands_and_alternates(tmp_path):
    some = [line for line in HEAVY if line[12:16].strip() not in ("CG", "OXT", "SD", "CE") or residue(line) > 1]
    some = [line for line in some if line[12:16] != " OXT"]
    first = next(k for k, line in enumerate(some) if residue(line) == 2 and line[12:16] == " CB ")
    twice = [
        f"{some[first][:16]}A{some[first][17:54]}  0.40{some[first][60:]}",
        f"{some[first][:16]}B{some[first][17:30]}  50.000  50.000  50.000  0.30{some[first][60:]}",
    ]
    some[first : first + 1] = twice
    bare = file_of(tmp_path, [*some, "TER", WATER, ZINC, *LIGAND])
    changes = prepare(bare, tmp_path / "ready.pdb")
    assert changes.removed == {"HOH": 1, "ZN": 1, "LIG": 1}
    assert all(f"1 {name}" in repr(changes).partition("; ")[2] for name in changes.removed)
    assert sorted(changes.atoms_added["A:MET1"]) == ["CE", "CG", "SD"]
    assert ["OXT"] in changes.atoms_added.values()
    assert len(changes.alternates) == 1
    atoms = read(tmp_path / "ready.pdb")
    assert len(atoms) == len(ATOMS)
    assert np.abs(atoms.positions).max() < 50
    changes = prepare(bare, tmp_path / "all.pdb", keep_water=True, keep_hetero=True)
    assert changes.removed == {}
    assert changes.left_alone == ["A:LIG203"]
    assert not changes.relaxed
    assert (
        sum("HOH" in line for line in (tmp_path / "all.pdb").read_text().splitlines() if line.startswith("HETATM")) == 3
    )


COLUMNS = (
    "group_PDB", "id", "type_symbol", "label_atom_id", "label_alt_id", "label_comp_id", "label_asym_id",
    "label_entity_id", "label_seq_id", "auth_seq_id", "auth_asym_id", "Cartn_x", "Cartn_y", "Cartn_z", "occupancy",
)  # fmt: skip


def mmcif(folder, sequence=()):
    """Write the hexapeptide without hydrogens, with CB of residue 2 in two places, and without label_seq_id.

    sequence : names of residues, which follow from entity_poly_seq then
    """
    rows = []
    for number, line in enumerate(HEAVY, 1):
        name, x = line[12:16].strip(), line[30:54].split()
        twice = (residue(line), name) == (2, "CB")
        for alt, place, share in (("A", ["50.0"] * 3, 0.4), ("B", x, 0.6)) if twice else ((".", x, 1.0),):
            row = ["ATOM", number, line[77], name, alt, line[17:20], "Q", 1, ".", residue(line), "A", *place, share]
            rows.append(" ".join(map(str, row)))
    parts = ["data_x", "loop_", *(f"_atom_site.{name}" for name in COLUMNS), *rows]
    if sequence:
        parts += ["loop_", "_entity_poly_seq.entity_id", "_entity_poly_seq.num", "_entity_poly_seq.mon_id"]
        parts += [f"1 {k} {name}" for k, name in enumerate(sequence, 1)]
        parts += ["_entity.id 1", "_entity.type polymer", "_struct_asym.id Q", "_struct_asym.entity_id 1"]
    (folder / "bare.cif").write_text("\n".join([*parts, ""]))
    return folder / "bare.cif"


def test_alternates_of_mmcif_files(tmp_path):
    changes = prepare(mmcif(tmp_path), tmp_path / "ready.pdb")
    assert len(changes.alternates) == 1
    atoms, before = read(tmp_path / "ready.pdb"), read(HEXAPEPTIDE)
    assert [str(r) for r in atoms.labels.residues] == [str(r) for r in before.labels.residues]
    assert len(atoms) == len(before)
    assert np.abs(atoms.positions).max() < 20
    prepare(file_of(tmp_path, HEAVY), tmp_path / "same.pdb")
    assert (tmp_path / "ready.pdb").read_text() == (tmp_path / "same.pdb").read_text()


def test_sequences_of_mmcif_files(tmp_path):
    names = [line[17:20] for line in HEAVY if line[12:16] == " CA "]
    changes = prepare(mmcif(tmp_path, ["GLY", *names]), tmp_path / "ready.pdb")
    assert list(changes.residues_missing.values()) == [["GLY"]]


def test_residues_within_a_chain_are_built_and_those_at_its_ends_told(tmp_path):
    names = [line[17:20] for line in HEAVY if line[12:16] == " CA "]
    sequence = f"SEQRES   1 A    8  GLY {' '.join(names)} GLY"
    gap = [line for line in HEAVY if residue(line) != 4]
    changes = prepare(file_of(tmp_path, [sequence, *gap]), tmp_path / "ready.pdb")
    assert list(changes.residues_added.values()) == [[names[3]]]
    assert sorted(changes.residues_missing.values()) == [["GLY"], ["GLY"]]
    labels = read(tmp_path / "ready.pdb").labels
    assert [(r.name, r.number) for r in labels.residues] == [(name, k + 1) for k, name in enumerate(names)]


def disulphide():
    """Two cysteines whose sulphurs are 2.05 A apart."""
    import pdbfixer

    template = Path(pdbfixer.__file__).parent / "templates" / "CYS.pdb"
    lines = [
        line.rstrip()
        for line in template.read_text().splitlines()
        if line.startswith(("ATOM", "HETATM")) and line[76:78].strip() != "H"
    ]
    places = np.array([[float(line[k : k + 8]) for k in (30, 38, 46)] for line in lines])
    sulphur = next(k for k, line in enumerate(lines) if line[12:16].strip() == "SG")
    outward = places[sulphur] - places.mean(axis=0)
    middle = places[sulphur] + 1.025 * outward / np.linalg.norm(outward)
    written = []
    for chain, there in (("A", places), ("B", 2 * middle - places)):
        for line, (x, y, z) in zip(lines, there, strict=True):
            written.append(f"ATOM  {line[6:17]}CYS {chain}   1    {x:8.3f}{y:8.3f}{z:8.3f}  1.00  0.00{line[66:]}")
        written.append("TER")
    return written


def test_disulphides_and_forms_at_a_low_ph(tmp_path):
    changes = prepare(file_of(tmp_path, disulphide()), tmp_path / "ready.pdb")
    assert changes.disulphides == [("A:CYS1", "B:CYS1")]
    assert changes.protonation == {"A:CYS1": "CYX", "B:CYS1": "CYX"}
    acid = prepare(file_of(tmp_path, HEAVY), tmp_path / "acid.pdb", ph=1)
    assert "ASH" in acid.protonation.values()
    with pytest.raises(InputError, match="ph is 15"):
        prepare(file_of(tmp_path, HEAVY), tmp_path / "acid.pdb", ph=15)


def test_the_command_tells_what_it_changed(tmp_path):
    bare = file_of(tmp_path, [*HEAVY, "TER", WATER])
    assert f"`pele-ocl prepare {bare} -o {tmp_path}/bare-ready.pdb`" in error_of("energy", bare)
    text = run("prepare", bare, "-o", tmp_path / "bare-ready.pdb").stdout
    assert "Removed       1 HOH" in text
    assert "Hydrogens     " in text
    assert "lennard jones" in run("energy", tmp_path / "bare-ready.pdb").stdout
    report = json.loads(run("prepare", bare, "-o", tmp_path / "bare-ready.pdb", "--keep-water", "--json").stdout)
    assert (report["removed"], report["ph"]) == ({}, 7.0)
    assert "use the suffix .pdb" in error_of("prepare", bare, "-o", tmp_path / "x.cif")
    assert "no such file" in error_of("prepare", tmp_path / "none.pdb", "-o", tmp_path / "x.pdb")


def test_nothing_is_written_without_the_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pdbfixer", None)
    with pytest.raises(
        InputError,
        match=r"preparing a structure needs PDBFixer, which is not installed: pip install 'pele-ocl\[openmm\]'",
    ):
        prepare(file_of(tmp_path, HEAVY), tmp_path / "ready.pdb")
    assert not (tmp_path / "ready.pdb").exists()
    monkeypatch.undo()
    with pytest.raises(FormatError, match="no such file"):
        prepare(tmp_path / "none.pdb", tmp_path / "ready.pdb")


def bond_lengths(path):
    """Measure the distance of each hydrogen to the nearest heavy atom of its residue, A."""
    atoms = read_structure(path)
    light = atoms.labels.elements == "H"
    return np.array(
        [
            np.linalg.norm(
                atoms.positions[~light & (atoms.labels.residue_index == atoms.labels.residue_index[h])]
                - atoms.positions[h],
                axis=1,
            ).min()
            for h in np.flatnonzero(light)
        ]
    )


def template_lines(name, chain="A", number=1):
    """Write the heavy atoms of a residue in PDBFixer's shape."""
    import pdbfixer

    text = (Path(pdbfixer.__file__).parent / "templates" / f"{name}.pdb").read_text()
    lines = [line for line in text.splitlines() if line.startswith(("ATOM", "HETATM")) and line[76:78].strip() != "H"]
    return [f"ATOM  {line[6:17]}{name:>3} {chain}{number:4d}{line[26:]}" for line in lines]


@pytest.mark.parametrize("name", ["DA", "G"])
def test_a_strand_begins_without_a_phosphate(tmp_path, name):
    lines = template_lines(name)
    assert any(line[12:16].strip() == "P" for line in lines)
    changes = prepare(file_of(tmp_path, [*lines, "TER"]), tmp_path / "ready.pdb")
    assert changes.phosphates_removed == [f"A:{name}1"]
    assert changes.without_parameters == []
    names = set(read(tmp_path / "ready.pdb").labels.names.tolist())
    assert {"HO5'", "HO3'"} <= names
    assert "P" not in names


def test_all_is_relaxed_around_a_residue_without_parameters(tmp_path):
    changes = prepare(file_of(tmp_path, [*HEAVY, "TER", *LIGAND]), tmp_path / "ready.pdb", keep_hetero=True)
    assert (changes.not_relaxed, changes.relaxed) == (["A:LIG203"], False)
    assert changes.without_parameters == ["A:LIG203"]
    assert "A:LIG203: the built-in force field has no parameters for LIG" in changes.warnings[0]
    assert "(for a small molecule its SMILES, `ligand_template`, or its SDF file, `ligands`)" in changes.warnings[0]
    printed = run("prepare", tmp_path / "bare.pdb", "-o", tmp_path / "again.pdb", "--keep-hetero").stdout
    assert "(for a small molecule its SMILES, --ligand-template, or its SDF file, --ligand-file)" in printed
    assert "with --replace" in printed
    assert "A:LIG203" in error_of("energy", tmp_path / "ready.pdb")
    prepare(file_of(tmp_path, HEAVY), tmp_path / "alone.pdb")
    alone = bond_lengths(tmp_path / "alone.pdb")
    assert np.abs(bond_lengths(tmp_path / "ready.pdb") - alone).max() < 0.02
    assert 0.95 < alone.mean() < 1.1


def test_hydrogens_of_the_file_get_their_usual_bond_length(tmp_path):
    atoms = read(HEXAPEPTIDE)
    places = atoms.positions.copy()
    for i, j in atoms.bonds[(atoms.labels.elements[atoms.bonds] == "H").any(axis=1)]:
        light, heavy = (i, j) if atoms.labels.elements[i] == "H" else (j, i)
        places[light] = places[heavy] + 0.85 * (places[light] - places[heavy])
    bare = file_of(tmp_path, [at(line, where) for line, where in zip(ATOMS, places, strict=True)])
    assert bond_lengths(bare).mean() < 0.95
    changes = prepare(bare, tmp_path / "ready.pdb")
    ready = read(tmp_path / "ready.pdb")
    assert changes.hydrogens_moved == int((atoms.labels.elements == "H").sum())
    assert np.abs(ready.positions - atoms.positions).max() < 0.08
    heavy = atoms.labels.elements != "H"
    np.testing.assert_allclose(ready.positions[heavy], places[heavy], atol=1e-3)
    assert 0.95 < bond_lengths(tmp_path / "ready.pdb").mean() < 1.1


def with_ends(lines):
    """Write the lines of single residues, each with its OXT after its O."""
    written, there = [], {}
    for line in lines:
        written.append(line)
        there[line[12:16].strip()] = place(line) if line != "TER" else None
        if line[12:16] == " O  ":
            outward = 2 * there["C"] - there["CA"] - there["O"]
            written.append(at(line.replace(" O  ", " OXT", 1), there["C"] + 1.25 * outward / np.linalg.norm(outward)))
    return written


def test_a_sulphur_has_one_disulphide(tmp_path):
    lines = disulphide()
    sulphur = next(line for line in lines if line[12:16].strip() == "SG")
    third = [f"{line[:21]}C{line[22:]}" for line in lines[: lines.index("TER")]]
    of_third = next(line for line in third if line[12:16].strip() == "SG")
    away = np.array([2.1, 1.9, 0.0])
    shift = place(sulphur) + away - place(of_third)
    moved = [at(line, place(line) + shift) for line in third]
    # All ends have their oxygens, as PDBFixer forgets bonds of the file where it builds atoms.
    atoms = [line for line in with_ends([*lines, *moved]) if line != "TER"]
    numbered = [f"{line[:6]}{k:5d}{line[11:]}" for k, line in enumerate(atoms, 1)]
    first, _, other = (k for k, line in enumerate(atoms, 1) if line[12:16].strip() == "SG")
    changes = prepare(file_of(tmp_path, [*numbered, f"CONECT{first:5d}{other:5d}"]), tmp_path / "ready.pdb")
    assert changes.disulphides == [("A:CYS1", "B:CYS1")]
    assert set(changes.protonation) == {"A:CYS1", "B:CYS1"}
    ready = read_structure(tmp_path / "ready.pdb").labels
    assert ready.chains[ready.names == "HG"].tolist() == ["C"]


def test_a_strange_residue_within_a_chain_stays_or_is_replaced(tmp_path):
    strange = [f"HETATM{line[6:17]}XYZ{line[20:]}" if residue(line) == 3 else line for line in HEAVY]
    bare = file_of(tmp_path, [*strange, "TER", *LIGAND])
    changes = prepare(bare, tmp_path / "ready.pdb")
    assert changes.removed == {"LIG": 1}
    assert changes.left_alone == changes.not_relaxed == changes.without_parameters == ["A:XYZ3"]
    assert "the residue XYZ" in error_of("energy", tmp_path / "ready.pdb")
    assert 0.95 < bond_lengths(tmp_path / "ready.pdb").mean() < 1.1
    changes = prepare(bare, tmp_path / "ready.pdb", replace={"XYZ": "ALA"})
    assert changes.replaced == {"A:XYZ3": "ALA"}
    assert changes.without_parameters == []
    assert changes.charge_changes == {"A:XYZ3": 1}
    assert changes.warnings == [
        "A:XYZ3: XYZ was replaced by ALA; CG, CD, OE1, OE2 were removed; it lost -1 e: its charge was -1, and is 0"
    ]
    assert read(tmp_path / "ready.pdb").labels.residues[2].name == "ALA"
    with pytest.raises(InputError, match="HEM cannot replace XYZ: choose a standard amino acid"):
        prepare(bare, tmp_path / "none.pdb", replace={"XYZ": "HEM"})
    with pytest.raises(InputError, match="no residue is named ABC"):
        prepare(bare, tmp_path / "none.pdb", replace={"ABC": "ALA"})
    assert not (tmp_path / "none.pdb").exists()
    wrong = "prepare", bare, "-o", tmp_path / "x.pdb", "--replace", "XYZ"
    assert "--replace XYZ is not NAME=STANDARD" in error_of(*wrong)


def test_a_removed_residue_that_was_bonded_is_told(tmp_path):
    nitrogen = next(line for line in reversed(HEAVY) if line[12:16] == " N  ")
    near = at(LIGAND[0], place(nitrogen) + 0.8)
    changes = prepare(file_of(tmp_path, [*HEAVY, "TER", near]), tmp_path / "ready.pdb")
    assert changes.removed == {"LIG": 1}
    assert len(changes.warnings) == 1
    assert "bonded to LIG, which was removed" in changes.warnings[0]


def gapped(folder):
    names = [line[17:20] for line in HEAVY if line[12:16] == " CA "]
    gap = [line for line in HEAVY if residue(line) != 4]
    return file_of(folder, [f"SEQRES   1 A    6  {' '.join(names)}", *gap], "gapped.pdb"), names[3]


@pytest.mark.parametrize(
    ("options", "reason"),
    [({"loops": False}, "loops are not built"), ({"loop_seconds": 0.001}, "it took longer than 0.001 s")],
)
def test_loops_that_are_not_built_are_gaps(tmp_path, options, reason):
    bare, name = gapped(tmp_path)
    changes = prepare(bare, tmp_path / "ready.pdb", **options)
    (before,) = changes.not_built
    assert changes.not_built == {before: reason}
    assert (changes.residues_added, changes.residues_missing) == ({}, {before: [name]})
    assert len(read(tmp_path / "ready.pdb").labels.residues) == 5


def test_each_step_is_told(tmp_path):
    bare, _ = gapped(tmp_path)
    told = []
    prepare(bare, tmp_path / "ready.pdb", progress=lambda step, share: told.append((step, share)))
    shares = [share for _, share in told]
    assert shares == sorted(shares)
    assert 0 < shares[0] < shares[-1] <= 1
    steps = list(dict.fromkeys(step for step, _ in told))
    assert steps[1].startswith("building a residue after A:")
    assert steps[2:] == ["building missing atoms", "adding hydrogens", "relaxing built atoms"]


def test_the_command_lists_a_few_of_many(tmp_path):
    bare, _ = gapped(tmp_path)
    text = run("prepare", bare, "-o", tmp_path / "ready.pdb", "--no-loops").stdout
    assert "Not built     1 residue after A:" in text
    assert "loops are not built" in text
    report = json.loads(run("prepare", bare, "-o", tmp_path / "ready.pdb", "--loop-seconds", "0.001", "--json").stdout)
    assert list(report["not_built"].values()) == ["it took longer than 0.001 s"]
    cysteines = [
        line if line == "TER" else f"{line[:22]}{2 * k + 1:4d}{line[26:30]}{float(line[30:38]) + 9 * k:8.3f}{line[38:]}"
        for k in range(8)
        for line in disulphide()
    ]
    text = run("prepare", file_of(tmp_path, cysteines), "-o", tmp_path / "ready.pdb").stdout
    assert "and 4 more; --json lists all" in text


def test_ligands_whose_names_are_too_long_get_one_that_a_pdb_file_holds(tmp_path):
    path = mmcif(tmp_path)
    text = path.read_text()
    ligand = "HETATM 99 C C1 . A1AA6 L 2 . 300 L 60.0 60.0 60.0 1.0"
    path.write_text(f"{text.rstrip()}\n{ligand}\n")
    changes = prepare(path, tmp_path / "ready.pdb")
    assert (changes.removed, changes.renamed) == ({"A1AA6": 1}, {})
    command = "prepare", path, "-o", tmp_path / "kept.pdb", "--keep-hetero"
    assert "Renamed       A1AA6 is LIG" in run(*command).stdout
    assert json.loads(run(*command, "--json").stdout)["renamed"] == {"A1AA6": "LIG"}
    assert read_structure(tmp_path / "kept.pdb").labels.residues[-1] == ("L", "LIG", 300, "")


def test_a_chain_goes_on_behind_a_ter_where_its_residues_are_bonded(tmp_path):
    second = next(k for k, line in enumerate(HEAVY) if residue(line) == 2)
    third = next(k for k, line in enumerate(HEAVY) if residue(line) == 3)
    changes = prepare(file_of(tmp_path, [*HEAVY[:third], "TER", *HEAVY[third:]]), tmp_path / "ready.pdb")
    names = [f"A:{line[17:20]}{residue(line)}" for line in (HEAVY[second], HEAVY[third])]
    assert changes.alternates == (f"{names[0]} and {names[1]} are bonded; the TER record between them was ignored",)
    assert changes.atoms_added == {}
    prepare(file_of(tmp_path, HEAVY), tmp_path / "same.pdb")
    assert (tmp_path / "ready.pdb").read_text() == (tmp_path / "same.pdb").read_text()


def ring(n=8):
    """A ring of glycines whose backbone lies on a circle, oxygens outside."""
    lengths = np.tile([1.46, 1.52, 1.33], n)  # N-CA, CA-C, C-N
    radius = lengths.sum() / (2 * np.pi)
    angles = np.concatenate([[0], np.cumsum(lengths)[:-1]]) / radius
    lines = []
    for k, angle in enumerate(angles):
        outward = np.array([np.cos(angle), np.sin(angle), 0.0])
        places = [(radius, "NAC"[k % 3], ("N", "CA", "C")[k % 3])]
        places += [(radius + 1.23, "O", "O")] if k % 3 == 2 else []
        for away, element, name in places:
            serial = len(lines) + 1
            element = "C" if name == "CA" else element
            where = "".join(f"{x:8.3f}" for x in away * outward)
            lines.append(
                f"ATOM  {serial:5d}  {name:<3} GLY A{k // 3 + 1:4d}    {where}  1.00  0.00          {element:>2}"
            )
    return lines


def test_a_ring_of_residues_has_no_ends(tmp_path):
    changes = prepare(file_of(tmp_path, ring()), tmp_path / "ready.pdb")
    assert (changes.atoms_added, changes.not_relaxed, changes.without_parameters) == ({}, [], [])
    atoms = read(tmp_path / "ready.pdb")
    assert len(atoms) == 8 * 7  # a glycine within a chain
    assert np.count_nonzero(atoms.labels.names == "H") == 8
    first, last = np.flatnonzero(atoms.labels.names == "N")[0], np.flatnonzero(atoms.labels.names == "C")[-1]
    assert [first, last] in atoms.bonds.tolist()


@pytest.mark.parametrize("name", ["CA", "P"])
def test_a_trace_is_no_structure_to_build_on(tmp_path, name):
    trace = [
        f"ATOM  {k:5d}  {name:<3} {'ALA' if name == 'CA' else '  U'} A{k:4d}    {3.8 * k:8.3f}   0.000   0.000"
        for k in range(9)
    ]
    with pytest.raises(InputError, match=r"9 of 9 residues, A:(ALA|U)0 first, have incomplete backbones"):
        prepare(file_of(tmp_path, trace), tmp_path / "ready.pdb")
    assert not (tmp_path / "ready.pdb").exists()


def test_a_file_of_ligands_alone_says_what_to_keep(tmp_path):
    bare = file_of(tmp_path, [*LIGAND, WATER])
    with pytest.raises(
        InputError, match=r"no protein and no nucleic acid, but 1 LIG, 1 HOH; keep these with `keep_het"
    ):
        prepare(bare, tmp_path / "ready.pdb")
    assert not (tmp_path / "ready.pdb").exists()


def test_residues_that_carry_a_sugar(tmp_path):
    """AMBER's NLN is an asparagine; where the sugar stays, it has one hydrogen less."""
    lines = template_lines("ASN")
    carrier = [f"{line[:17]}NLN{line[20:]}" for line in lines]
    nitrogen = next(place(line) for line in lines if line[12:16].strip() == "ND2")
    outward = nitrogen - np.mean([place(line) for line in lines], axis=0)
    sugar = at(LIGAND[0].replace("LIG", "0GB"), nitrogen + 1.45 * outward / np.linalg.norm(outward))
    bare = file_of(tmp_path, [*carrier, "TER", sugar])
    changes = prepare(bare, tmp_path / "ready.pdb")
    assert changes.replaced == {"A:NLN1": "ASN"}
    assert "A:ASN1 was bonded to 0GB, which was removed" in changes.warnings[0]
    on_nitrogen = {"HD21", "HD22"}
    assert on_nitrogen <= set(read_structure(tmp_path / "ready.pdb").labels.names.tolist())
    changes = prepare(bare, tmp_path / "kept.pdb", keep_hetero=True)
    assert "A:ASN1 has a bond from ND2 to A:0GB203 instead of a hydrogen" in changes.warnings
    assert len(on_nitrogen & set(read_structure(tmp_path / "kept.pdb").labels.names.tolist())) == 1


def test_atoms_beside_a_gap_are_built_where_their_residue_is(tmp_path):
    """PDBFixer bonds residues that follow each other in a file, however far apart they are."""
    stub = [line for line in HEAVY if residue(line) < 3 or (residue(line) == 3 and line[12:16].strip() in ("N", "CA"))]
    far = [at(line, place(line) + 15.0) for line in HEAVY if residue(line) > 4]
    prepare(file_of(tmp_path, [*stub, *far]), tmp_path / "ready.pdb")
    atoms = read(tmp_path / "ready.pdb")
    lengths = np.linalg.norm(np.diff(atoms.positions[atoms.bonds], axis=1)[:, 0], axis=1)
    assert lengths.max() < 2.0


def test_hydrogens_do_not_fall_into_an_oxygen_that_is_too_near(tmp_path):
    """A tyrosine's HH between its OH and an acid's oxygen: hydroxyl hydrogens have no size in AMBER's force fields."""
    import pdbfixer

    from pele_ocl.interop.building import positions_nm
    from pele_ocl.interop.relaxing import atom_key, relax

    of = {(residue(line), line[12:16].strip()): place(line) for line in ATOMS}
    outward = (of[4, "HZ"] - of[4, "CZ"]) / np.linalg.norm(of[4, "HZ"] - of[4, "CZ"])
    hydroxyl = of[4, "CZ"] + 1.36 * outward
    tyrosine = []  # of the phenylalanine
    for line in ATOMS:
        ours = line.replace("PHE", "TYR")
        if line[12:16].strip() != "HZ":
            tyrosine.append(ours)
            continue
        tyrosine.append(at(ours.replace(" HZ ", " OH ").replace("          H", "          O"), hydroxyl))
        tyrosine.append(at(ours.replace(" HZ ", " HH "), hydroxyl + 1.1 * outward))
    acceptor, away = of[6, "OD2"], of[6, "OD2"] - of[6, "CB"]
    chain = [f"{line[:21]}B{line[22:]}" for line in ATOMS]
    near = [at(line, hydroxyl + 1.6 * outward + _turned(place(line) - acceptor, away, -outward)) for line in chain]
    fixer = pdbfixer.PDBFixer(filename=str(file_of(tmp_path, [*tyrosine, "TER", *near, "TER"])))
    atoms = list(fixer.topology.atoms())
    (k,) = (atom.index for atom in atoms if atom.name == "HH")
    assert relax(fixer, {atom_key(atom) for atom in atoms if atom.index != k}, lambda share: None) == []
    distances = np.sort(np.linalg.norm(positions_nm(fixer) - positions_nm(fixer)[k], axis=1))
    assert 0.09 < distances[1] < 0.11  # nm, from its own oxygen
    assert distances[2] > 0.11


def _turned(x, one, other):
    """x turned by the shortest rotation that brings the direction of one onto the other."""
    a, b = one / np.linalg.norm(one), other / np.linalg.norm(other)
    axis = np.cross(a, b)
    skew = np.array([[0, -axis[2], axis[1]], [axis[2], 0, -axis[0]], [-axis[1], axis[0], 0]])
    return (np.eye(3) + skew + skew @ skew / (1 + a @ b)) @ x


def test_atoms_of_no_known_element_are_named(tmp_path):
    strange = [at(f"HETATM 9101 XE1  GLX A 300    {LIGAND[0][30:76]} X", [50.0, 50.0, 50.0])]
    with pytest.raises(InputError, match=r"bare.pdb: atom XE1 of A:GLX300 has no known element; add it"):
        prepare(file_of(tmp_path, [*HEAVY, "TER", *strange]), tmp_path / "ready.pdb", keep_hetero=True)


def grown(lines, kind, parent, child, ends=()):
    """Rename a residue and bond an atom to one of its atoms, and more to that; (name, A) each."""
    places = {line[12:16].strip(): place(line) for line in lines}
    outward = places[parent] - np.mean(list(places.values()), axis=0)
    outward /= np.linalg.norm(outward)
    aside = np.cross(outward, [0.3, 0.5, 0.8])
    aside /= np.linalg.norm(aside)
    other = np.cross(outward, aside)
    middle = places[parent] + child[1] * outward
    angles = 2 * np.pi * np.arange(len(ends)) / max(1, len(ends))
    around = [outward / 3 + np.sqrt(8) / 3 * (np.cos(a) * aside + np.sin(a) * other) for a in angles]
    new = [(child[0], middle), *((name, middle + far * u) for (name, far), u in zip(ends, around, strict=True))]
    more = [f"{at(lines[-1], x)[:12]}{name:^4}{at(lines[-1], x)[16:76]} {name[0]}" for name, x in new]
    return [f"HETATM{line[6:17]}{kind:>3}{line[20:]}" for line in [*lines, *more]]


PHOSPHATE = [("O1P", 1.5), ("O2P", 1.5), ("O3P", 1.5)]
ACETYL = [("OH", 1.23), ("CH3", 1.5)]


@pytest.mark.parametrize(
    ("standard", "kind", "parent", "child", "ends", "change", "told"),
    [
        ("SER", "SEP", "OG", ("P", 1.6), PHOSPHATE, 2, "lost -2 e: its charge was -2, and is 0"),
        ("TYR", "TYS", "OH", ("S", 1.6), [("O1", 1.45), ("O2", 1.45), ("O3", 1.45)], 1, "lost -1 e"),
        ("LYS", "ALY", "NZ", ("CH", 1.33), ACETYL, 1, "gained +1 e: its charge was 0, and is +1"),
        ("LYS", "MLZ", "NZ", ("CM", 1.47), [], 0, "CM was removed"),
        ("A", "1MA", "N1", ("CM1", 1.47), [], -1, "lost +1 e"),
        ("G", "7MG", "N7", ("CM7", 1.47), [], -1, "lost +1 e"),
        ("U", "5MU", "C5", ("C5M", 1.5), [], 0, "C5M was removed"),
    ],
)
def test_what_a_replaced_residue_loses_is_told(tmp_path, standard, kind, parent, child, ends, change, told):
    """The residue is between two others, so that no end adds a charge."""
    first, last = ("A", "A") if standard in "AGU" else ("ALA", "ALA")
    lines = grown(template_lines(standard, number=2), kind, parent, child, ends)
    beside = [template_lines(first, number=1), template_lines(last, number=3)]
    beside = [
        [at(line, place(line) + shift) for line in of]
        for of, shift in zip(beside, ([40, 0, 0], [-40, 0, 0]), strict=True)
    ]
    modres = f"MODRES 1ABC {kind:>3} A    2  {standard:>3}  MODIFIED"
    bare = file_of(tmp_path, [modres, *beside[0], *lines, *beside[1], "TER"])
    changes = prepare(bare, tmp_path / "ready.pdb")
    assert changes.replaced == {f"A:{kind}2": standard}
    assert changes.charge_changes == ({f"A:{kind}2": change} if change else {})
    (sentence,) = (text for text in changes.warnings if "was replaced by" in text)
    assert sentence.startswith(f"A:{kind}2: {kind} was replaced by {standard}; ")
    assert told in sentence
    assert ("to keep SEP, do not use `prepare`, but give `energy`" in sentence) == (kind == "SEP")
    report = json.loads(run("prepare", bare, "-o", tmp_path / "ready.pdb", "--json").stdout)
    assert sentence in report["warnings"]


def test_pseudouridine_gets_the_names_of_uridine(tmp_path):
    """Its ring is bonded to the sugar by C5: by its names alone C1' and N1 are 3.8 A apart."""
    renamed = {"N1": "C5", "C5": "N1", "C2": "C4", "C4": "C2", "O2": "O4", "O4": "O2"}
    lines = template_lines("U")
    pseudo = []
    for line in lines:
        name = renamed.get(line[12:16].strip(), line[12:16].strip())
        shown = name if len(name) == 4 else f" {name:<3}"
        pseudo.append(f"HETATM{line[6:12]}{shown} PSU{line[20:76]} {name[0]}")
    bare = file_of(tmp_path, ["MODRES 1ABC PSU A    1    U  MODIFIED", *pseudo, "TER"])
    changes = prepare(bare, tmp_path / "ready.pdb")
    assert changes.replaced == {"A:PSU1": "U"}
    assert changes.atoms_added == {}
    assert "its ring is bonded to the sugar through C5" in changes.warnings[0]
    there = {
        line[12:16].strip(): place(line)
        for line in (tmp_path / "ready.pdb").read_text().splitlines()
        if line[:4] == "ATOM"
    }
    for line in lines:
        if line[12:16].strip() in ("C1'", *renamed, "C6", "N3"):
            assert np.abs(there[line[12:16].strip()] - place(line)).max() < 1e-3
    assert energy(read(tmp_path / "ready.pdb"), precision="float64").energy["bond"] < 100


def test_names_that_mean_other_atoms_are_not_replaced(tmp_path):
    """A residue of PDBFixer's table stays, with a warning; one that is asked for by name is refused."""
    lines = [line if residue(line) != 3 else f"HETATM{line[6:17]}AIB{line[20:]}" for line in HEAVY]
    k = next(k for k, line in enumerate(lines) if residue(line) == 3 and line[12:16] == " CB ")
    moved = [*lines[:k], at(lines[k], place(lines[k]) + np.array([0, 0, 4])), *lines[k + 1 :]]
    changes = prepare(file_of(tmp_path, moved), tmp_path / "ready.pdb")
    assert changes.replaced == {}
    assert "A:AIB3 cannot be replaced by ALA: " in changes.warnings[0]
    assert "which are bonded in ALA; it is not changed" in changes.warnings[0]
    with pytest.raises(InputError, match=r"A:AIB3 cannot be replaced by ALA: .*choose another residue"):
        prepare(file_of(tmp_path, moved), tmp_path / "none.pdb", replace={"AIB": "ALA"})


def test_a_d_residue_is_told(tmp_path):
    """The mirror image of a peptide: the residue that is named as a D one keeps its configuration."""
    lines = [line if residue(line) != 3 else f"HETATM{line[6:17]}DGL{line[20:]}" for line in HEAVY]
    mirrored = [at(line, place(line) * [1, 1, -1]) for line in lines]
    changes = prepare(file_of(tmp_path, mirrored), tmp_path / "ready.pdb")
    assert changes.replaced == {"A:DGL3": "GLU"}
    assert changes.warnings == [
        "A:DGL3: DGL was replaced by GLU; it keeps its D configuration at CA with the name of the L residue"
    ]


@pytest.mark.parametrize("place_of_zinc", ["behind", "before", "mmCIF"])
def test_a_chain_ends_before_a_metal_of_its_letter(tmp_path, place_of_zinc):
    """Without a TER record, too, and in mmCIF files, which have none: ends have their oxygen and hydrogens."""
    chain = [line for line in HEAVY if line[12:16] != " OXT"]
    both = [ZINC, *chain] if place_of_zinc == "before" else [*chain, ZINC]
    bare = file_of(tmp_path, both)
    if place_of_zinc == "mmCIF":
        columns = (
            "group_PDB id type_symbol label_atom_id label_comp_id auth_asym_id auth_seq_id Cartn_x Cartn_y Cartn_z"
        )
        fields = [(line[:6], line[6:11], line[76:78], line[12:16], line[17:20]) for line in both]
        rows = [[*of, "A", residue(line), *place(line)] for of, line in zip(fields, both, strict=True)]
        head = ["data_x", "loop_", *(f"_atom_site.{name}" for name in columns.split())]
        bare = tmp_path / "bare.cif"
        bare.write_text("\n".join([*head, *(" ".join(map(str, row)) for row in rows), ""]))
    changes = prepare(bare, tmp_path / "ready.pdb", keep_hetero=True)
    last = max(map(residue, chain))
    assert [name for names in changes.atoms_added.values() for name in names] == ["OXT"]
    assert next(iter(changes.atoms_added)).endswith(str(last))
    labels = read(tmp_path / "ready.pdb").labels
    assert {"H2", "H3"} <= set(labels.names[labels.residue_numbers == residue(chain[0])].tolist())
    assert "ZN" in labels.names


def test_what_is_built_reaches_users_of_python(tmp_path, caplog):
    bare = file_of(tmp_path, [line for line in HEAVY if (residue(line), line[12:16].strip()) != (3, "CB")])
    changes = prepare(bare)
    sentence = changes.notes[-1]
    assert sentence == "1 missing heavy atom of 1 residue was built"
    assert f"bare.pdb: {sentence}" in caplog.text
    assert "Built         " in changes.text()
    done = run("prepare", bare, "-o", tmp_path / "ready.pdb", "--json")
    assert any(sentence in of for of in json.loads(done.stdout)["notes"])
    assert sentence in done.stderr


def test_warnings_of_a_preparation_are_logged_and_printed_once(tmp_path, caplog):
    bare = file_of(tmp_path, [line for line in HEAVY if residue(line) != 4], "bare.pdb")
    (warning,) = prepare(bare).warnings
    assert warning in caplog.text
    done = run("prepare", bare, "-o", tmp_path / "ready.pdb")
    assert (done.stdout + done.stderr).count(warning) == 1


def test_a_gap_in_a_file_without_a_sequence_is_told(tmp_path):
    """In the text, in JSON and in Python; one whose residues a sequence names is told as not built, and not twice."""
    bare = file_of(tmp_path, [line for line in HEAVY if residue(line) != 4], "bare.pdb")
    (warning,) = prepare(bare, tmp_path / "ready.pdb").warnings
    assert re.match(r"A:\w{3}3 and A:\w{3}5 are consecutive in the file but \d+\.\d A apart: .*SEQRES", warning)
    done = run("prepare", bare, "-o", tmp_path / "ready.pdb")
    assert f"Warnings      {warning}" in done.stdout
    assert json.loads(run("prepare", bare, "-o", tmp_path / "r.pdb", "--json").stdout)["warnings"] == [warning]
    named, _ = gapped(tmp_path)
    assert prepare(named, tmp_path / "ready.pdb", loops=False).warnings == []


DIUBIQUITIN = Path(__file__).parent / "data" / "1aar.pdb.gz"


def test_a_chain_of_1aar_is_the_molecule_of_the_thesis(tmp_path):
    """1,231 atoms, as in the thesis' tables; bounds leave room for where OpenMM's versions put hydrogens, and the
    vector units of its CPU platform: -2315.6 kcal/mol on an EPYC and -2308.2 on a Xeon."""
    lines = gzip.decompress(DIUBIQUITIN.read_bytes()).decode().splitlines()
    kept = [line for line in lines if line.startswith(("ATOM", "TER")) and line[21] == "A"]
    changes = prepare(file_of(tmp_path, kept), tmp_path / "ready.pdb", pka="usual")
    assert (changes.n_atoms, changes.hydrogens_added, changes.atoms_added) == (1231, 629, {"A:GLY76": ["OXT"]})
    atoms = read(tmp_path / "ready.pdb")
    assert solvent(atoms).born_radii.mean() == pytest.approx(4.483, abs=0.01)
    assert energy(atoms).total == pytest.approx(-2312, abs=12)


def test_a_link_between_chains_keeps_its_bond(tmp_path):
    """1AAR has GLY76 of one ubiquitin bonded to NZ of LYS48 of the other: no OXT there, one hydrogen on NZ."""
    changes = prepare(DIUBIQUITIN, tmp_path / "ready.pdb", pka="usual")
    assert changes.n_atoms == 2 * 1231 - 3
    assert "A:GLY76 is linked from C to NZ of B:LYS48" in changes.warnings
    labels = read_structure(tmp_path / "ready.pdb").labels
    places = [labels.atom(i) for i in range(len(labels))]
    assert [place for place in places if place.startswith("B:LYS48:HZ")] == ["B:LYS48:HZ1"]
    assert "A:GLY76:OXT" not in places
    assert "B:GLY76:OXT" in places
