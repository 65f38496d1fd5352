"""Selections: the atoms that each word takes, sentences for texts that are none, molecules without the rest."""

from __future__ import annotations

import json
import pickle
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from pele_ocl import Atoms, InputError, Labels, ParameterError, read, selection
from pele_ocl.atoms import selectable
from pele_ocl.atoms.selection import Composition, Selection, parser, residue_kinds
from pele_ocl.atoms.selection.nearby import near
from pele_ocl.cli import main
from pele_ocl.gb_models.elements import is_nucleic
from pele_ocl.reading import choosing, selection_of

STRUCTURES = Path(__file__).parent.parent / "data" / "structures"

# name, residue, number, insertion code, chain
ROWS = [
    *[(name, "ALA", 5, "", "A") for name in ("N", "H", "CA", "CB", "C", "O")],
    *[(name, "GLY", 6, "", "A") for name in ("N", "CA", "C", "O", "OXT")],
    *[(name, "GLY", 6, "A", "A") for name in ("N", "CA", "C", "O")],
    *[(name, "DA", 1, "", "B") for name in ("P", "O5'", "C1'", "N9")],
    *[(name, "NAP", 300, "", "L") for name in ("C1", "C2", "H1", "PA")],
    *[(name, "HOH", 400, "", "W") for name in ("O", "H1", "H2")],
    ("NA", "NA", 500, "", "I"),
    ("CL", "Cl-", 501, "", "I"),
    ("CA", "CA", 502, "", "I"),
]
ELEMENTS = {"CA5": "C", "CL": "Cl", "NA": "Na", "PA": "P"}


def labels_of(rows: list[tuple[str, str, int, str, str]]) -> Labels:
    names, residues, numbers, codes, chains = map(list, zip(*rows, strict=True))
    elements = [
        "Ca" if (name, residue) == ("CA", "CA") else ELEMENTS.get(name, name[0])
        for name, residue in zip(names, residues, strict=True)
    ]
    identities = list(zip(residues, numbers, codes, chains, strict=True))
    index = np.cumsum([k > 0 and row != identities[k - 1] for k, row in enumerate(identities)])
    return Labels(names, elements, residues, np.array(numbers), codes, chains, index)


@pytest.fixture(scope="module")
def atoms() -> Atoms:
    n = len(ROWS)
    positions = np.arange(3 * n).reshape(n, 3) * [1.0, 0, 0]
    return Atoms(positions, np.zeros(n), labels=labels_of(ROWS), types=np.array([f"t{k % 3}" for k in range(n)]))


@pytest.fixture(scope="module")
def ubiquitin() -> Atoms:
    return read(STRUCTURES / "ubiquitin.pdb")


@pytest.mark.parametrize(
    ("text", "taken"),
    [
        ("all", range(29)),
        ("protein", range(15)),
        ("nucleic", range(15, 19)),
        ("ligand", range(19, 23)),
        ("water", range(23, 26)),
        ("ions", (26, 27, 28)),
        ("protein and not resname ALA", range(6, 15)),
        ("not (protein or nucleic or water)", (19, 20, 21, 22, 26, 27, 28)),
        ("backbone", (0, 2, 4, 5, 6, 7, 8, 9, 11, 12, 13, 14, 15, 16)),
        ("sidechain", (1, 3, 10)),
        ("hydrogen", (1, 21, 24, 25)),
        ("heavy and resname NAP HOH", (19, 20, 22, 23)),
        ("name CA", (2, 7, 12, 28)),
        ("name CA and protein", (2, 7, 12)),
        ("name CA CB OR name PA", (2, 3, 7, 12, 22, 28)),
        ("name C? and ligand", (19, 20)),
        ("name *1*", (17, 19, 21, 24)),
        ('name "O5\'" "C*"', (16,)),
        ("resname Cl-", (27,)),
        ("element Na Cl Ca", (26, 27, 28)),
        ("type t0 and index 0:6", (0, 3, 6)),
        ("chain A and resid 6", range(6, 11)),
        ("resid 6A", range(11, 15)),
        ("resid 5:6", range(11)),
        ("resid 5:6A", range(15)),
        ("resnum 6-300 and not chain A", range(19, 23)),
        ("resid 1 to 5 and segid A B", (*range(6), *range(15, 19))),
        ("index 3 5:6 8", (3, 5, 6, 8)),
        ("index < 6 or index>=27", (*range(6), 27, 28)),
        ("resid <= 6 and resid > 5", range(6, 15)),
        ("byres name PA", range(19, 23)),
        ("within 3 of index 10", (9, 10, 11)),
        ("around 3 index 10", (9, 11)),
        ("within 3 of (index 10 or index 20) and ligand", (19, 20, 21)),
        ("byres (within 3.5 of resid 6A)", (*range(6, 19),)),
        ("NOT protein AND not within 30 of resname NA", (15,)),
    ],
)
def test_atoms_that_words_take(atoms: Atoms, text: str, taken: Sequence[int]) -> None:
    assert np.flatnonzero(atoms.selected(text)).tolist() == list(taken)


def test_select_gives_atoms(atoms: Atoms, ubiquitin: Atoms) -> None:
    assert atoms.select("protein").notes == ("15 of 29 atoms were selected",)
    some = ubiquitin.select("resid 5:20 and heavy")
    assert len(some) == ubiquitin.selected("resid 5:20 and heavy").sum()
    assert 0 < len(some.bonds) < len(ubiquitin.bonds)
    assert (selection(ubiquitin.labels, "name CA") == ubiquitin.selected("name CA")).all()
    assert (selection(ubiquitin.labels, "within 4 of resid 9", ubiquitin.positions) ==
            ubiquitin.selected("within 4 of resid 9")).all()  # fmt: skip


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "the selection is empty"),
        ("protein and nmae CA", "has 'nmae' at character 13; known words are all, protein, "),
        ("chainID B", "within, around, and, or, not; did you mean 'chain'?"),
        ("LIG", "has 'LIG' at character 1; for residues of that name write 'resname LIG'"),
        ("protein or ZN2", "for residues of that name write 'resname ZN2'"),
        ("resn LIG", "did you mean 'resname'?"),
        ("protein nucleic", "has 'nucleic' at character 9; expected 'and' or 'or' before it"),
        ("(protein", "has '(' at character 1; the parenthesis is not closed"),
        ("(protein nucleic)", "has 'nucleic' at character 10; expected 'and' or 'or'"),
        ("protein)", "has ')' at character 8; there is no matching opening parenthesis"),
        ("protein and", "ends after 'and'; expected a word such as protein"),
        ("or protein", "has 'or' at character 1; expected a word such as protein"),
        ("name and resid 5", "has 'and' at character 6; expected a name for 'name'"),
        ('name "CA', "has '\"' at character 6"),
        ('protein "CA"', "has '\"CA\"' at character 9"),
        ("resid ALA", "has 'ALA' at character 7; expected a number for 'resid', or a range such as 5:20"),
        ("resid 9:3", "has '9:3' at character 7; a range begins with its lower number"),
        ("resid 9 to x", "has 'x' at character 12; expected a number"),
        ("resid < CA", "has 'CA' at character 9; expected a number"),
        ("index = 3", "has '=' at character 7; expected a number for 'index'"),
        ("index 3A", "has '3A' at character 7; expected a number for 'index'"),
        ("within protein", "has 'protein' at character 8; expected a distance in A"),
        ("within inf of protein", "has 'inf' at character 8; expected a distance in A"),
        ("within 5 protein", "has 'protein' at character 10; expected 'of', as in 'within 5 of protein'"),
        ("within 5 of resid 5 and name CA", "has 'and' at character 21; it is not clear what 'within' extends to"),
        ("byres protein or water", "has 'or' at character 15; it is not clear what 'byres' extends to"),
        ("(" * 200 + "protein" + ")" * 200, "selections are at most 100 levels deep"),
        ("chain Q and protein", r"selects no atoms; no atom is chain Q (there are A, B, I, L, W)"),
        ("resid 77", "selects no atoms; no atom has that resid"),
        ("protein and water", "selects no atoms"),
    ],
)
def test_texts_that_are_no_selection(atoms: Atoms, text: str, sentence: str) -> None:
    with pytest.raises(InputError, match=re.escape(sentence)) as caught:
        atoms.selected(text)
    assert "\n" not in str(caught.value)


def test_what_atoms_lack(atoms: Atoms) -> None:
    bare = Atoms(np.eye(3), np.zeros(3))
    assert bare.selected("index 0 2 or within 0.1 of index 1").all()
    with pytest.raises(InputError, match="have no atom and residue names"):
        bare.selected("protein")
    with pytest.raises(InputError, match="types are not known"):
        selection(atoms.labels, "type CT")
    with pytest.raises(InputError, match="positions of the atoms are not known"):
        selection(atoms.labels, "within 5 of protein")
    with pytest.raises(InputError, match=r"positions have shape \(2, 3\); expected \(29, 3\)"):
        selection(atoms, "all", np.zeros((2, 3)))
    with pytest.raises(InputError, match="expected a text of the selection language"):
        selection(atoms, 5)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="expected Atoms, or Labels"):
        selection("protein.pdb", "all")  # type: ignore[arg-type]


def test_near_is_what_all_distances_say(ubiquitin: Atoms) -> None:
    positions = ubiquitin.positions
    distances = np.linalg.norm(positions[:, None] - positions[None], axis=-1)
    rng = np.random.default_rng(7)
    for distance in (0.0, 0.9, 1.5, 4.0, 7.3, 12.0, 60.0):
        for share in (0.002, 0.05, 0.6):
            group = rng.random(len(positions)) < share
            expected = (distances[:, group] <= distance).any(axis=1)
            assert (near(positions, group, distance) == expected).all(), (distance, share)
    wide = positions * 1e4  # more room than cells
    assert (near(wide, group, 2e4) == (distances[:, group] <= 2).any(axis=1)).all()


@pytest.mark.parametrize(
    "text",
    [
        "protein", "backbone", "name CA CB and resid 5:20", "resname A* and not name H*", "byres (name CB and resid 3)",
        "around 4.5 resid 10", "element N or resid 70-76", "not (resname LYS GLY) and name N", "index 5:9",
    ],
)  # fmt: skip
def test_mdanalysis_takes_the_same(text: str) -> None:
    mdanalysis = pytest.importorskip("MDAnalysis")
    path = STRUCTURES / "ubiquitin.pdb"
    found = mdanalysis.Universe(str(path)).select_atoms(text, periodic=False)
    assert np.flatnonzero(read(path).selected(text)).tolist() == found.indices.tolist()


def test_kinds_of_residues() -> None:
    names = {
        "protein": "ALA HID CYX NALA CGLN ACE NME MSE SEP CYT",
        "nucleic": "DA U RA5 DT3 A5 U3 G PSU",
        "ligand": "LIG UNK NAP ATP GOL HEM SO4",
        "water": "HOH WAT TIP3",
    }
    for kind, these in names.items():
        for name in these.split():
            assert residue_kinds(labels_of([("N", name, 1, "", ""), ("C", name, 1, "", "")])).tolist() == [kind], name
    assert residue_kinds(labels_of([("C1'", "CYT", 1, "", ""), ("ZN", "ZN", 2, "", "")])).tolist() == ["nucleic", "ion"]


def test_a_sugar_tells_nucleotides_by_names_of_others() -> None:
    names = "T AN UN ADE CYT URA"
    for name in names.split():
        bare, sweet = (labels_of([(first, name, 1, "", ""), ("C2", name, 1, "", "")]) for first in ("N", "C1'"))
        assert residue_kinds(sweet).tolist() == ["nucleic"], name
        assert residue_kinds(bare).tolist() == ["protein" if name == "CYT" else "ligand"], name
        for labels, is_sweet in ((bare, False), (sweet, True)):
            atoms = Atoms(np.eye(3)[:2], [0, 0], labels=labels)
            assert is_nucleic(atoms).tolist() == [is_sweet] * 2, name


def test_a_residue_with_a_backbone_is_of_its_chain() -> None:
    def residue(name: str, number: int, *atoms: str) -> list[tuple[str, str, int, str, str]]:
        return [(atom, name, number, "", "A") for atom in atoms]

    backbone = ("N", "CA", "C", "O")
    rows = [
        *residue("ALA", 1, *backbone), *residue("ALH", 2, *backbone), *residue("X1", 3, *backbone),
        *residue("LIG", 4, "N", "CA", "C1"), *residue("X2", 301, *backbone), *residue("DRG", 303, *backbone),
    ]  # fmt: skip
    assert residue_kinds(labels_of(rows)).tolist() == ["protein"] * 3 + ["ligand"] * 3


def test_composition(atoms: Atoms) -> None:
    found = Composition.of(atoms.labels)
    assert found == Composition(3, 1, {"NAP": 1}, {"NA": 1, "Cl-": 1, "CA": 1}, 1)
    assert found.parts() == [
        "3 amino acids", "1 nucleotide", "1 ligand (NAP)", "3 ions (1 NA, 1 Cl-, 1 CA)", "1 water",
    ]  # fmt: skip
    assert Composition.of(None).parts() == []


@pytest.fixture(scope="module")
def bound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write the hexapeptide beside a ligand for which there is no template, and an ion."""
    peptide = (STRUCTURES / "hexapeptide.pdb").read_text().splitlines()
    lines = [line for line in peptide if line.startswith(("ATOM", "TER"))]
    lines += [
        f"HETATM{900 + k:5d}  {name:<3s} LIG L   1    {30 + k:8.3f}{0:8.3f}{0:8.3f}  1.00  0.00           {name[0]}"
        for k, name in enumerate(("C1", "O1"))
    ]
    lines += [f"HETATM  950 NA    NA I   1    {40:8.3f}{0:8.3f}{0:8.3f}  1.00  0.00          NA", "END"]
    path = tmp_path_factory.mktemp("bound") / "bound.pdb"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_a_ligand_without_template_is_left_out(bound: Path) -> None:
    with pytest.raises(ParameterError, match="no template for the residue LIG"):
        read(bound)
    whole, alone = read(bound, select="not resname LIG"), read(bound, select="protein")
    peptide = read(STRUCTURES / "hexapeptide.pdb")
    assert len(whole) == len(peptide) + 1
    for name in ("positions", "charges", "lj_sigma", "gb_radii", "bonds"):
        assert (getattr(alone, name) == getattr(peptide, name)).all()
    assert f"{len(peptide)} of {len(peptide) + 3} atoms were selected" in alone.notes


def test_residues_that_are_cut_get_their_parameters_as_a_whole(bound: Path) -> None:
    peptide = read(STRUCTURES / "hexapeptide.pdb")
    cut = read(bound, select="name CA CB and protein")
    mask = peptide.selected("name CA CB")
    assert (cut.charges == peptide.charges[mask]).all()
    assert (cut.bonds == peptide[mask].bonds).all()
    assert sum("atoms were selected" in note for note in cut.notes) == 1
    assert len(read(STRUCTURES / "hexapeptide.pdb", select="all").notes) == len(peptide.notes)


def test_a_name_that_no_residue_has_is_a_note() -> None:
    done = CliRunner().invoke(main, ["solvent", str(STRUCTURES / "hexapeptide.pdb"), "--without", "XYZ,water"])
    assert done.exit_code == 0
    note = "Note: no residue is named XYZ (there are ASP, GLU, GLY, LYS, MET, PHE)"
    assert note in done.stderr.splitlines()  # a busy machine tells of its progress, too


def test_options_make_one_selection() -> None:
    assert selection_of(None, None, None) is None
    assert selection_of("name CA", None, None).text == "name CA"
    assert selection_of(None, "HOH,NA*", None).text == 'not (resname "HOH" or resname NA*)'
    assert selection_of("heavy", "water", "protein,ligand").text == "(heavy) and (not (water)) and (protein or ligand)"
    assert Selection("type CT and name CA").needs_types
    assert not Selection("name CA").needs_types


def run(*words: object) -> tuple[int, str, str]:
    done = CliRunner().invoke(main, [str(word) for word in words])
    return done.exit_code, done.stdout, done.stderr


def test_commands_choose(bound: Path, tmp_path: Path) -> None:
    code, out, _ = run("energy", bound, "--without", "LIG", "--json")
    report = json.loads(out)
    assert code == 0
    assert report["composition"] == Composition(6, ions={"NA": 1}).as_json()
    code, out, notes = run("solvent", bound, "--without", "LIG")
    assert out.startswith("bound.pdb: 97 atoms, 6 amino acids, 1 ion (NA), net charge")
    assert "96 of" not in notes
    assert "Note: 97 of 99 atoms were selected" in notes
    code, out, _ = run("solvent", bound, "--only", "protein", "--json")
    code, alone, _ = run("solvent", STRUCTURES / "hexapeptide.pdb", "--json")
    assert json.loads(out)["energy"] == json.loads(alone)["energy"]
    code, _, notes = run("ions", bound, "--only", "protein", "--ion", "NA:1", "-o", tmp_path / "ions.pdb")
    assert code == 0, notes
    written = (tmp_path / "ions.pdb").read_text()
    assert "LIG" not in written
    assert len(re.findall("^(?:ATOM|HETATM)", written, re.MULTILINE)) == 97


def test_models_of_chosen_atoms(tmp_path: Path, bound: Path) -> None:
    lines = [line for line in bound.read_text().splitlines() if line.startswith(("ATOM", "HETATM"))]
    models = [f"MODEL {k}\n" + "\n".join(lines) + "\nENDMDL\n" for k in (1, 2)]
    (tmp_path / "models.pdb").write_text("".join(models))
    code, out, _ = run("energy", tmp_path / "models.pdb", "--models", "all", "--only", "protein", "--json")
    assert code == 0
    report = json.loads(out)
    _, alone, _ = run("energy", bound, "--only", "protein", "--json")
    assert report["n_atoms"] == 96
    assert [model["energy"]["total"] for model in report["models"]] == pytest.approx(
        [json.loads(alone)["energy"]["total"]] * 2
    )


@pytest.mark.parametrize(
    "words",
    [
        ("energy", STRUCTURES / "hexapeptide.pdb", "--json"),
        ("minimize", STRUCTURES / "hexapeptide.pdb", "-o", "out.pdb", "--max-iterations", "1"),
        ("energy", "models.pdb", "--models", "all", "--json"),
    ],
)
def test_a_selection_is_parsed_once(words: tuple[object, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    lines = (STRUCTURES / "hexapeptide.pdb").read_text().splitlines()
    model = "\n".join(line for line in lines if line.startswith(("ATOM", "HETATM")))
    Path("models.pdb").write_text("".join(f"MODEL {k}\n{model}\nENDMDL\n" for k in (1, 2)))
    choosing._parsed.cache_clear()
    texts, parse = [], parser.Parser.__init__

    def counted(self: parser.Parser, text: str) -> None:
        texts.append(text)
        parse(self, text)

    monkeypatch.setattr(parser.Parser, "__init__", counted)
    held = ("--restrain", "name CA:10", "--freeze", "resid 1") if words[0] == "minimize" else ()
    assert run(*words, "--select", "protein", *held)[0] == 0
    assert texts.count("protein") == 1
    assert len(texts) == len(set(texts))


def test_a_selection_that_was_applied_is_as_new() -> None:
    """Sentences about one molecule's names are not told of the next, and workers get it by its text."""
    atoms = read(STRUCTURES / "hexapeptide.pdb")
    chosen = Selection("protein or resname XYZ")
    _, unknown = chosen.mask_and_unknown(selectable(atoms))
    assert len(unknown) == 1
    assert chosen.mask_and_unknown(selectable(atoms))[1] == unknown
    again = pickle.loads(pickle.dumps(chosen))
    assert again.mask_and_unknown(selectable(atoms))[1] == unknown


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        (("--only", "protien"), 2, "unknown kind 'protien'; choose from protein, nucleic"),
        (("--without", "HOH,"), 2, "has no name before or after a comma"),
        (("--without", "(HOH"), 2, "expected residue names"),
        (("--select", "chain Q"), 1, "the selection 'chain Q' selects no atoms; no atom is chain Q (there are A"),
        (("--select", "chian A"), 1, "has 'chian' at character 1"),
    ],
)
def test_options_that_are_wrong(words: tuple[str, ...], code: int, sentence: str) -> None:
    found = run("solvent", STRUCTURES / "hexapeptide.pdb", *words)
    assert found[0] == code
    assert sentence in found[2]
