"""Runs of MMPBSA.py and gmx_MMPBSA by their own input files: tables against energies that Binding computes."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from amber_helpers import content, netcdf, rendered
from binding_helpers import mutable_residues
from click.testing import CliRunner
from mmpbsa_helpers import DECOMP, GB, M, call, parts, rows_of, shares_of, terms_of, write_files
from test_interop_files import ETHANE, PLACES

import pele_ocl
from pele_ocl import Atoms, Binding, InputError, SolventModel
from pele_ocl.atoms import Labels, labels_of
from pele_ocl.binding.alanine import to_alanine
from pele_ocl.binding.mmpbsa.namelists import MmpbsaInput, read_input
from pele_ocl.binding.mmpbsa.residues import backbone, mutant_of, mutated_residue, residue_named
from pele_ocl.binding.mmpbsa.systems import layout_of, parts_by_topologies, read_index
from pele_ocl.binding.naming import amber_terms
from pele_ocl.cli import main
from pele_ocl.common.inputfile import InputFile


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Topologies of a complex and its parts, frames dry, solvated and of the parts."""
    return write_files(tmp_path_factory.mktemp("mmpbsa"))


@pytest.fixture(scope="module")
def wanted(folder: Path) -> dict[tuple[str, str], np.ndarray]:
    """AMBER's terms of each frame by system, computed by Binding."""
    return terms_of(folder, "mmpbsa.py")


def test_the_tables_are_those_of_binding(folder: Path, wanted: dict[tuple[str, str], np.ndarray]) -> None:
    done = call(folder, GB, *parts(folder), "-eo", str(folder / "e.csv"))
    assert done.exit_code == 0, done.output
    found = rows_of((folder / "o.dat").read_text())
    for system in ("complex", "receptor", "ligand", "delta"):
        for term, name in (
            ("VDWAALS", "VDWAALS"),
            ("EEL", "EEL"),
            ("EGB", "EGB"),
            ("ESURF", "ESURF"),
            ("GSOLV", "G solv"),
        ):
            of = wanted[system, term]
            assert found[system, name] == pytest.approx([of.mean(), of.std(), of.std() / 2], abs=2e-4)
        assert (system, "BOND") not in found  # cancels in a single trajectory
        gas = wanted[system, "VDWAALS"] + wanted[system, "EEL"]
        assert found[system, "G gas"][0] == pytest.approx(gas.mean(), abs=2e-4)
    assert found["delta", "TOTAL"][0] == pytest.approx(wanted["delta", "TOTAL"].mean(), abs=2e-4)
    table = [row for row in csv.reader((folder / "e.csv").read_text().splitlines()) if row and row[0].isdigit()]
    assert [float(row[-1]) for row in table[-M:]] == pytest.approx(wanted["delta", "TOTAL"], abs=1e-3)


def test_bonded_terms_stand_in_the_tables_at_verbose_2_and_no_part_at_0(
    folder: Path, wanted: dict[tuple[str, str], np.ndarray]
) -> None:
    assert call(folder, GB.replace("&general\n", "&general\n verbose=2,\n"), *parts(folder)).exit_code == 0
    found = rows_of((folder / "o.dat").read_text())
    assert found["ligand", "DIHED"][0] == pytest.approx(wanted["ligand", "DIHED"].mean(), abs=2e-4)
    assert found["receptor", "TOTAL"][0] == pytest.approx(wanted["receptor", "TOTAL"].mean(), abs=2e-4)
    assert call(folder, GB.replace("&general\n", "&general\n verb=0,\n"), *parts(folder)).exit_code == 0
    assert {system for system, _ in rows_of((folder / "o.dat").read_text())} == {"delta"}


def test_solvated_frames_are_stripped_and_chosen(folder: Path, wanted: dict[tuple[str, str], np.ndarray]) -> None:
    given = GB.replace("startframe=1, endframe=4, interval=1", "startframe=2, endframe=9, interval=2")
    done = call(folder, given, *parts(folder, "wet.nc"), "-sp", str(folder / "solvated"))
    assert done.exit_code == 0, done.output
    found = rows_of((folder / "o.dat").read_text())
    assert found["delta", "TOTAL"][0] == pytest.approx(wanted["delta", "TOTAL"][1::2].mean(), abs=2e-4)
    kept = call(folder, GB.replace("&general\n", "&general\n strip_mask=':WAT',\n"), *parts(folder, "wet.nc"),
                "-sp", str(folder / "solvated"))  # fmt: skip
    assert kept.exit_code == 1
    assert "has 193 atoms without ':WAT'" in kept.output


def test_without_parts_the_complex_alone_has_energies(folder: Path, wanted: dict[tuple[str, str], np.ndarray]) -> None:
    assert call(folder, GB, "-y", str(folder / "frames.nc")).exit_code == 0
    found = rows_of((folder / "o.dat").read_text())
    assert {system for system, _ in found} == {"complex"}
    assert found["complex", "BOND"][0] == pytest.approx(wanted["complex", "BOND"].mean(), abs=2e-4)
    assert found["complex", "TOTAL"][:2] == pytest.approx(
        [wanted["complex", "TOTAL"].mean(), wanted["complex", "TOTAL"].std()], abs=2e-4
    )


def test_parts_with_trajectories_of_their_own(folder: Path, wanted: dict[tuple[str, str], np.ndarray]) -> None:
    own = ["-yr", str(folder / "first.nc"), "-yl", str(folder / "part.nc")]
    assert call(folder, GB, *parts(folder), *own).exit_code == 0
    mean, sd, _ = rows_of((folder / "o.dat").read_text())["delta", "TOTAL"]
    assert mean == pytest.approx(wanted["delta", "TOTAL"].mean(), abs=1e-3)
    apart = np.sqrt(sum(wanted[name, "TOTAL"].var() for name in ("complex", "receptor", "ligand")))
    assert sd == pytest.approx(apart, abs=1e-3)


@pytest.mark.parametrize("idecomp", [1, 2, 3, 4])
def test_shares_of_residues_add_up_to_sanders_constants(folder: Path, idecomp: int) -> None:
    done = call(folder, DECOMP.format(idecomp, 3, 1), *parts(folder))
    assert done.exit_code == 0, done.output
    assert "Note: Non-Polar Solv. of decompositions is computed from LCPO areas" in done.output
    found = shares_of((folder / "d.dat").read_text())
    wanted = terms_of(folder, "sander")  # extdiel 80, as where sander computes the energies
    for system, name in (("Complex", "complex"), ("Receptor", "receptor"), ("Ligand", "ligand"), ("DELTAS", "delta")):
        rows = [row for (s, split, _), row in found.items() if (s, split) == (system, "Total")]
        assert len(rows) == (12 if name in ("complex", "delta") else 6) ** (1 if idecomp < 3 else 2)
        assert sum(row[-1] for row in rows) == pytest.approx(wanted[name, "TOTAL"].mean(), abs=2e-3)
    results = rows_of((folder / "o.dat").read_text())
    assert results["delta", "EGB"][0] == pytest.approx(wanted["delta", "EGB"].mean(), abs=2e-4)
    if idecomp > 2:
        return
    for (system, split, name), row in found.items():
        if split == "Total":
            halves = np.array([found[system, half, name] for half in ("Sidechain", "Backbone")])
            assert halves.sum(axis=0) == pytest.approx(row, abs=1e-6)


def test_decomposition_as_text_has_the_numbers_of_the_csv(folder: Path) -> None:
    given = DECOMP.replace('"all"', '"1-2; 8"')
    assert call(folder, given.format(1, 0, 1), *parts(folder)).exit_code == 0
    table = shares_of((folder / "d.dat").read_text())
    assert call(folder, given.format(1, 0, 0), *parts(folder)).exit_code == 0
    text = shares_of((folder / "d.dat").read_text())
    assert [key[2].split()[-1] for key in text] == ["1", "2", "2"]  # the eighth is the second of the ligand
    assert {key[2].split()[2] for key in text} == {"R", "L"}
    assert {key[1] for key in text} == {"Total"}
    for key, row in table.items():
        assert text[key] == pytest.approx(row, abs=6e-4)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ("&general\n/\n", "it has no &gb and no &pb"),
        ("&general\n/\n&pb\n radiopt=2\n/\n", "radiopt=2 of &pb is not supported"),
        ("&general\n/\n&pb\n inp=2\n/\n", "inp=2 of &pb is not supported"),
        ("&general\n/\n&pb\n sander_apbs=1\n/\n", "sander_apbs=1 of &pb is not supported"),
        ("&general\n/\n&pb\n memopt=1\n/\n", "memopt=1 of &pb is not supported"),
        ("&general\n/\n&pb\n scale=0\n/\n", "both must be above 0"),
        ("&general\n/\n&nmode\n/\n", "&nmode (normal modes) is not supported"),
        (GB.replace("igb=5", "igb=6"), "igb=6 is not supported"),
        (GB.replace("igb=5", "igb=5, ifqnt=1"), "ifqnt=1 of &gb is not supported"),
        (GB.replace("igb=5", "igb=5, wheel=1"), "wheel of &gb is not a known variable"),
        (GB + "&wheel\n/\n", "&wheel is not a namelist of MMPBSA.py"),
        (GB[:-3], "the namelist &gb has no end"),
        ("nothing\n", "has no namelist such as &general"),
        (GB.replace("startframe=1", "startframe=5"), "choose no frame"),
        (GB.replace("saltcon=0.1", "saltcon=much"), "saltcon is 'much'; expected a number"),
        (GB + "&decomp\n idecomp=7\n/\n", "idecomp must be 1 to 4"),
        (GB + "&alanine_scanning\n mutant='GLY'\n/\n", "mutant=GLY of &alanine_scanning is not supported"),
        (GB + "&alanine_scanning\n/\n", "&alanine_scanning needs the mutant"),
        (GB + "&decomp\n idecomp=1, print_res='99'\n/\n", "print_res: 99 is not within the 12 residues"),
    ],
)
def test_what_is_not_done_is_refused_by_name(folder: Path, given: str, sentence: str) -> None:
    before = {path.name: path.stat().st_mtime_ns for path in folder.iterdir() if path.name != "mmpbsa.in"}
    done = call(folder, given, *parts(folder))
    assert done.exit_code == 1
    assert sentence in done.output
    assert before == {path.name: path.stat().st_mtime_ns for path in folder.iterdir() if path.name != "mmpbsa.in"}


def test_results_that_are_only_additional_are_left_out_with_a_note(folder: Path) -> None:
    given = GB.replace("&general\n", "&general\n entropy=1,\n") + "&rism\n/\n&nmode\n maxcyc=5\n/\n"
    done = call(folder, given, *parts(folder), "--json")
    assert done.exit_code == 0
    text = (folder / "o.dat").read_text()
    for sentence in ("&rism (3D-RISM) is not supported, and its results are left out", "&nmode", "entropy:"):
        assert sentence in text
        assert sentence in done.output


def test_names_that_terminals_obey_are_escaped_in_results(folder: Path, tmp_path: Path) -> None:
    name = "=1+1\x1b]0;owned\x07\n<img src=x>"
    topology, trajectory = tmp_path / f"{name}.parm7", tmp_path / f"{name}.nc"
    topology.write_bytes((folder / "complex.parm7").read_bytes())
    trajectory.write_bytes((folder / "frames.nc").read_bytes())
    (tmp_path / "mmpbsa.in").write_text(f"{GB}&decomp\n  idecomp=1, dec_verbose=0,\n/\n")
    part = folder / "part.top"
    words = ["binding", "--mmpbsa", tmp_path / "mmpbsa.in", "-cp", topology, "-rp", part, "-lp", part, "-y", trajectory]
    out = ["-o", tmp_path / "o.dat", "-do", tmp_path / "d.dat"]
    done = CliRunner().invoke(main, [str(word) for word in (*words, *out)])
    assert done.exit_code == 0, done.output
    for written in ("o.dat", "d.dat"):
        text = (tmp_path / written).read_text()
        assert text.replace("\n", "").replace("\r", "").isprintable()
        assert not [line for line in text.splitlines() if line.startswith("<img")]


def test_the_function_gives_what_the_command_prints_and_writes(folder: Path, tmp_path: Path) -> None:
    given = DECOMP.format(1, 0, 1)
    report = json.loads(call(folder, given, *parts(folder), "-eo", str(folder / "e.csv"), "--json").stdout)
    names = {"receptor_topology": folder / "part.top", "ligand_topology": folder / "part.top", "precision": "float64"}
    result = pele_ocl.mmpbsa(folder / "mmpbsa.in", folder / "complex.parm7", folder / "frames.nc", **names)
    assert {**result.to_json(), "files": report["files"]} == {k: of for k, of in report.items() if k != "seconds"}
    for save, name in ((result.save, "o.dat"), (result.save_decomposition, "d.dat")):
        save(tmp_path / name)
        ours, theirs = ((place / name).read_text().splitlines()[1:] for place in (tmp_path, folder))
        assert ours == theirs  # but for the first line, with the time
    result.save_frames(tmp_path / "e.csv")
    assert (tmp_path / "e.csv").read_text() == (folder / "e.csv").read_text()
    assert len((tmp_path / "e.csv").read_text().splitlines()) > 3 * M
    assert f"binding energy {result.total:.4f} +-" in repr(result)
    assert result.table()["delta"][-1] == pytest.approx(result.total)
    with pytest.raises(InputError, match="`overwrite` replaces it"):
        pele_ocl.mmpbsa(folder / "mmpbsa.in", folder / "complex.parm7", folder / "frames.nc", **names,
                        output=tmp_path / "o.dat")  # fmt: skip


def test_files_that_are_there_stay_without_the_option(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "o.dat").write_text("mine")
    (folder / "mmpbsa.in").write_text(GB)
    words = ["binding", "--mmpbsa", folder / "mmpbsa.in", "-cp", folder / "complex.parm7", *parts(folder)]
    done = CliRunner().invoke(main, [*map(str, words), "-o", str(tmp_path / "o.dat")])
    assert done.exit_code != 0
    assert "already exists; -O replaces it" in done.output
    assert (tmp_path / "o.dat").read_text() == "mine"


def test_topologies_that_do_not_belong_together_are_refused(folder: Path, tmp_path: Path) -> None:
    other = content(copies=1)
    other["CHARGE"][1][5] += 9.0
    (tmp_path / "other.top").write_text(rendered(other))
    words = ["-rp", str(folder / "part.top"), "-lp", str(tmp_path / "other.top"), "-y", str(folder / "frames.nc")]
    done = call(folder, GB, *words)
    assert done.exit_code == 1
    assert "the ligand's topology has charges" in done.output
    alone = call(folder, GB, "-rp", str(folder / "part.top"), "-y", str(folder / "frames.nc"))
    assert "give -rp and -lp, or neither" in alone.output


def test_masks_share_out_the_complex_in_the_layout_of_gmx_mmpbsa(folder: Path) -> None:
    words = ["-cm", ":1-6", ":7-12", "-ct", str(folder / "frames.nc")]
    assert call(folder, GB, *words).exit_code == 0
    found, wanted = rows_of((folder / "o.dat").read_text()), terms_of(folder, "gmx")
    for term in ("BOND", "VDWAALS", "EGB", "GSOLV", "TOTAL"):
        of = wanted["delta", term]
        mean, _, sd, _, sem = found["delta", term]
        assert [mean, sd, sem] == pytest.approx([of.mean(), of.std(), of.std() / 2], abs=6e-3)
    sds = [wanted[name, "EEL"].std() for name in ("complex", "receptor", "ligand")]
    assert found["delta", "EEL"][1] == pytest.approx(abs(sds[0] - sds[1] - sds[2]), abs=6e-3)
    assert call(folder, GB, "-cm", ":1-6", ":8-12", "-ct", str(folder / "frames.nc")).exit_code == 1


# Parts of it


def test_variables_are_read_as_the_programs_read_them() -> None:
    text = (
        "words before\n&general\n# a comment = 1\n start=3, endf=7\n intERVAL=2, forcefields=\"a/b\",c.d\"\n/\n"
        "&gb\n igb=8,saltcon=0.15 , surfoff=1.5 surften=.01, intdiel=2,\n/\n"
        "&decomp\n idecomp=2, dec_verbose=3,\n print_res=\"within 4\" /\n"
    )  # fmt: skip
    found = read_input(InputFile(Path("m.in"), text.encode()), of_gromacs=True)
    assert found.frames == "2:7:2"
    assert (found.model.gb, found.model.ionic_strength, found.surface_offset) == ("gbn2", 0.15, 1.5)
    assert (found.model.surface_tension, found.model.solute_dielectric) == (0.01, 2)
    assert found.model.solvent_dielectric == 78.5
    assert found.decomp is not None
    assert found.decomp.print_res == "within 4"


def read_gromacs(text: str) -> MmpbsaInput:
    return read_input(InputFile(Path("m.in"), text.encode()), of_gromacs=True)


def test_files_that_gmx_mmpbsa_writes_are_read() -> None:
    """`--create_input` lists every variable with its default, and calls a namelist &decomposition."""
    found = read_gromacs(
        '&general\n  sys_name = ""   # a name\n  PBRadii  = 5\n/\n'
        "&pb\n  mprob = 2.7 # A\n  nsnba = 1\n  radiopt = 1  # optimised\n  inp = 1\n/\n"
        "&decomposition\n idecomp = 2\n/\n"
    )
    assert found.gb_radii == "mbondi_pb2"
    assert found.decomp is not None
    assert found.pb is not None
    assert found.pb.radii == "own"
    assert found.model.solvent_dielectric == 80  # the default of exdi
    assert any("radiopt=0 is used instead of radiopt=1, as by gmx_MMPBSA" in note for note in found.notes)
    assert read_gromacs("&general\n PBRadii=7\n/\n&pb\n/\n").gb_radii == "charmm_radii"
    with pytest.raises(InputError, match=r"PBRadii=7 \(charmm_radii\) is only for &pb; leave out &gb"):
        read_gromacs("&general\n PBRadii=7\n/\n&pb\n/\n&gb\n/\n")
    with pytest.raises(InputError, match="PBRadii=8 is not supported; choose 1 to 7"):
        read_gromacs("&general\n PBRadii=8\n/\n&pb\n/\n")
    assert read_gromacs("&gb\n/\n&alanine_scanning\n mutant='A', mutant_res='A:1'\n/\n").alanine is not None


def protein(names: Sequence[str], chains: Sequence[str], numbers: Sequence[int]) -> Labels:
    n = len(names)
    return Labels(
        np.full(n, "CA"), np.full(n, "C"), np.array(names), np.array(numbers), np.full(n, ""), np.array(chains),
        np.arange(n),
    )  # fmt: skip


def pdb(labels: Labels) -> str:
    rows = [
        f"ATOM  {k + 1:5d}  CA  {name:>3} {chain or ' '}{number:4d}    {4.0 * k:8.3f}{0:8.3f}{0:8.3f}  1.00  0.00\n"
        for k, (chain, name, number, _) in enumerate(labels.residues)
    ]
    return "".join(rows)


def test_residues_have_the_names_of_the_reference(tmp_path: Path) -> None:
    """-cr names chains and numbers; -cs does where it has chains; molecules have letters without them."""
    own = protein(["HSD", "TRP", "GLU", "ALA"], ["1", "1", "2", "2"], [1, 2, 1, 2])
    theirs = protein(["HIS", "TRP", "GLU", "ALA"], ["R", "R", "L", "L"], [10, 11, 1, 2])
    path, swapped, bare = (tmp_path / name for name in ("com.pdb", "swapped.pdb", "bare.pdb"))
    path.write_text(pdb(theirs))
    swapped.write_text(pdb(labels_of(theirs, np.array([2, 3, 0, 1]))))
    bare.write_text(pdb(replace(theirs, chains=np.full(4, ""))))
    every = np.arange(4)
    for reference, structure in ((path, None), (None, path), (path, swapped)):
        layout, notes = layout_of(own, every, 4, reference, structure)
        assert layout is not None
        assert [(of.chain, of.number) for of in layout.residues] == [("R", 10), ("R", 11), ("L", 1), ("L", 2)]
        assert residue_named("R:11", layout) == 1
    for structure in (None, bare, tmp_path / "com.tpr"):
        assert layout_of(own, every, 4, None, structure) == (None, ())
    with pytest.raises(InputError, match="expected the residues of receptor and ligand"):
        layout_of(own, every, 4, swapped, None)
    layout, notes = layout_of(own, every, 5, None, path)
    assert layout is None
    assert "has 4 atoms, the frames 5" in notes[0]
    assert (residue_named("2:1", own), residue_named("B:1", own), residue_named("A:2", own)) == (2, 2, 1)
    with pytest.raises(InputError, match="there is no residue 1 in a chain C"):
        residue_named("C:1", own)
    with pytest.raises(InputError, match="2 residues have that number, such as HSD1 and GLU1"):
        residue_named(":1", replace(own, chains=np.full(4, "")))


def test_the_ligand_is_found_wherever_it_stands() -> None:
    def atoms(residues: Sequence[str]) -> Atoms:
        whole = pele_ocl.read(Path(__file__).parent.parent / "data" / "structures" / "hexapeptide.pdb")
        names = whole.labels.residue_names[whole.labels.residue_starts].tolist()
        chosen = [names.index(name) for name in residues]
        return whole[np.concatenate([np.flatnonzero(whole.labels.residue_index == k) for k in chosen])]

    names = list(dict.fromkeys(_names()))
    whole = atoms(names)
    for k in range(len(names)):
        found = parts_by_topologies(whole, atoms(names[:k] + names[k + 1 :]), atoms(names[k : k + 1]))
        assert np.array_equal(found, whole.labels.residue_index == whole.labels.residue_index[np.flatnonzero(found)[0]])
        assert set(whole.labels.residue_names[found]) == {names[k]}
    with pytest.raises(InputError, match="these numbers do not add"):
        parts_by_topologies(whole, whole, atoms(names[:1]))


def _names() -> list[str]:
    labels = pele_ocl.read(Path(__file__).parent.parent / "data" / "structures" / "hexapeptide.pdb").labels
    return labels.residue_names[labels.residue_starts].tolist()


def test_a_mutants_topology_takes_positions_of_the_wild_type() -> None:
    wild = pele_ocl.read(Path(__file__).parent.parent / "data" / "structures" / "ubiquitin.pdb")
    for k in mutable_residues(wild)[:20]:
        own = to_alanine(wild, k)
        topology = own.atoms.moved(np.zeros((len(own.atoms), 3)))
        names = topology.labels.names.copy()
        for number, i in enumerate(sorted(own.placed)):
            names[i] = f"HB{number + 1}"
        topology = replace(topology, labels=replace(topology.labels, names=names))
        assert mutated_residue(wild, topology) == k
        found = mutant_of(wild, topology, k)
        there = found.positions(wild.positions[np.newaxis])[0]
        wanted = own.positions(wild.positions[np.newaxis])[0]
        assert np.allclose(np.sort(there, axis=0), np.sort(wanted, axis=0))  # hydrogens of CB may change places
        same = np.array([i not in own.placed and not str(names[i]).startswith("HB") for i in range(len(names))])
        assert np.array_equal(there[same], wanted[same])


def test_the_backbone_is_the_one_of_sander() -> None:
    atoms = pele_ocl.read(Path(__file__).parent.parent / "data" / "structures" / "hexapeptide.pdb")
    chosen = backbone(atoms.labels)
    assert set(atoms.labels.names[chosen]) <= {"N", "H", "H1", "H2", "H3", "CA", "HA", "HA2", "HA3", "C", "O", "OXT"}
    assert {"CB"} & set(atoms.labels.names[~chosen])


def test_an_index_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "index.ndx"
    path.write_text("[ System ]\n1 2 3\n4 5\n[ Ligand ]\n4 5 ; two\n")
    found = read_index(path)
    assert [(name, of.tolist()) for name, of in found] == [("System", [0, 1, 2, 3, 4]), ("Ligand", [3, 4])]


def test_groups_of_an_index_file_and_a_gromacs_topology(tmp_path: Path) -> None:
    pytest.importorskip("openmm")
    (tmp_path / "topol.top").write_text(ETHANE.format(rule=2, more=""))
    numbers = " ".join(map(str, range(1, 9)))
    (tmp_path / "index.ndx").write_text(f"[ first ]\n{numbers}\n[ second ]\n9 10 11 12 13 14 15 16\n")
    x = np.stack([np.concatenate([PLACES, PLACES + np.array([shift, 4.0, 0.5])]) for shift in (0.0, 0.4)])
    (tmp_path / "run.nc").write_bytes(netcdf(x))
    (tmp_path / "mmpbsa.in").write_text(GB)
    words = ["-cp", "topol.top", "-ci", "index.ndx", "-cg", "0", "1", "-ct", "run.nc", "-cs", "com.tpr", "-O"]
    words = [str(tmp_path / word) if "." in word else word for word in words]
    every = ["binding", "--mmpbsa", str(tmp_path / "mmpbsa.in"), *words, "-o", str(tmp_path / "o.dat")]
    done = CliRunner().invoke(main, [*every, "--precision", "float64"])
    assert done.exit_code == 0, done.output
    found = rows_of((tmp_path / "o.dat").read_text())
    atoms = pele_ocl.read(tmp_path / "topol.top", coordinates=x[0]).with_radii("mbondi2")
    model = SolventModel.like("gmx", gb="obc2", ionic_strength=0.1)
    energies = Binding(atoms, "index 8:15", model=model, precision="float64").evaluate_batch(x)
    for term, of in amber_terms(energies.delta).items():
        assert found["delta", term][0] == pytest.approx(of.mean(), abs=6e-3)
    assert abs(found["delta", "VDWAALS"][0]) > 0.05
    wrong = CliRunner().invoke(main, [word if word != "1" else "2" for word in every])
    assert "has no group 2; its groups are 0 to 1" in wrong.output


def test_a_decomposition_with_mmpbsas_constants_is_warned_of(folder: Path) -> None:
    words = [folder / "complex.parm7", "-t", folder / "frames.nc", "--ligand", ":7-12", "--idecomp", "1"]
    done = CliRunner().invoke(main, ["binding", *map(str, words), "--like", "mmpbsa.py", "--json"])
    assert "MMPBSA.py uses sander for decompositions" in done.output
    other = CliRunner().invoke(main, ["binding", *map(str, words), "--like", "sander", "--json"])
    assert other.exit_code == 0
    assert "uses sander for decompositions" not in other.output
