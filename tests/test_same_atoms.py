"""Options and functions that take a second file of the same atoms: names say which atom is which, in every one.

The second file has two atoms of a residue exchanged, its chains in another order, all atoms reversed, and an atom less.
Each gives the number of the right order, or a sentence that names the atom.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path

import h5py
import numpy as np
import pytest
from amber_helpers import content, rendered, restart
from binding_helpers import complex_atoms
from binding_helpers import frames as positions_of_frames
from mmpbsa_helpers import GB, M, call, rows_of, write_files
from test_cli import run
from trajectory_helpers import write_trajectory

from pele_ocl import (
    Atoms,
    Binding,
    Energy,
    Grid,
    PeleError,
    Solvent,
    energy_over,
    potentials_over,
    potmap_over,
    read,
    read_conformations,
    trajectory,
    write_conformations,
)
from pele_ocl.atoms import Labels

TRIALANINE = Path(__file__).parent.parent / "data" / "structures" / "trialanine.pdb"
N = 33  # atoms of a chain
ORDERS = ("right", "exchanged", "chains", "reversed", "shuffled")


@cache
def dimer() -> Atoms:
    """Two peptides of one sequence in different conformations, chains A and B."""
    one = read(TRIALANINE)
    labels, noise = one.labels, np.random.default_rng(1).normal(0, 0.05, (N, 3))
    both = {name: np.tile(getattr(labels, name), 2) for name in ("names", "elements", "residue_names",
                                                                 "residue_numbers", "insertion_codes")}  # fmt: skip
    index = np.concatenate([labels.residue_index, labels.residue_index + 3])
    named = Labels(chains=np.repeat(["A", "B"], N), residue_index=index, **both)
    x = np.concatenate([one.positions, one.positions + noise + [0.0, 0.0, 9.0]])
    return Atoms(positions=x, charges=np.tile(one.charges, 2), labels=named)


@cache
def frames() -> np.ndarray:
    """Two frames of the dimer, (2, 66, 3) A, as PDB files round them."""
    return np.round(dimer().positions + np.random.default_rng(2).normal(0, 0.03, (2, 2 * N, 3)), 3)


def order_of(kind: str, atoms: Atoms | None = None) -> np.ndarray:
    """Atoms in the order of a kind; "dropped" lacks the O of the first residue 2."""
    labels = (atoms or dimer()).labels
    order = np.arange(len(labels))
    c, o = (int(np.flatnonzero((labels.residue_numbers == 2) & (labels.names == name))[0]) for name in "CO")
    if kind == "exchanged":
        order[[c, o]] = o, c
    elif kind == "chains":
        order = np.roll(order, len(order) // 2)
    elif kind == "reversed":
        order = order[::-1]
    elif kind == "shuffled":
        order = np.random.default_rng(3).permutation(len(order))
    elif kind == "dropped":
        order = np.delete(order, o)
    return order


def write(path: Path, kind: str, x: np.ndarray | None = None, part: slice = slice(None)) -> Path:
    """Frames or positions x of the dimer, or a part of its atoms, in the order of a kind."""
    kept = order_of(kind)
    kept = kept[np.isin(kept, np.arange(2 * N)[part])]
    x = frames() if x is None else x
    write_conformations(path, dimer()[kept], x[..., kept, :])
    return path


def number(*words: object) -> dict[str, object]:
    return json.loads(run(*words, "--json").stdout.splitlines()[0])


def totals(report: dict[str, object]) -> list[float]:
    return [frame["energy"]["total"] for frame in report["frames"]]


def solvent(source: Path, second: Path, folder: Path) -> list[float]:
    return totals(number("solvent", source, "-t", second))


def nonbond(source: Path, second: Path, folder: Path) -> list[float]:
    return totals(number("nonbond", source, "-t", second))


def at_atoms(source: Path, second: Path, folder: Path) -> list[float]:
    report = number("potmap", source, "-t", second, "--at-atoms", "name O", "-o", folder / "o.csv")
    return [row["mean"] for row in report["atoms"]]


def minimize(source: Path, second: Path, folder: Path) -> list[float]:
    words = ("-o", folder / "x.pdb", "--max-iterations", 0)
    report = number("minimize", source, "-t", second, *words)
    return [frame["energy_before"]["total"] for frame in report["frames"]]


def reference(source: Path, second: Path, folder: Path) -> list[float]:
    words = ("-o", folder / "x.pdb", "--max-iterations", 0, "--restrain", "all:1", "--reference", second)
    return [number("minimize", source, *words)["energy_before"]["restraint"]]


def binding(source: Path, second: Path, folder: Path) -> list[float]:
    words = ("--receptor", "chain A", "--ligand", "chain B", "-t", second, "--idecomp", 2)
    report = number("binding", source, *words)
    return [row["total"] for row in report["residues"]]


def separate(source: Path, second: Path, folder: Path) -> list[float]:
    """The ligand's frames; chains have no order there."""
    ligand = write(folder / f"ligand_{second.name}", second.stem, part=slice(N, None))
    words = ("--receptor", "chain A", "--ligand", "chain B", "-t", second, "--ligand-trajectory", ligand)
    return [number("binding", source, *words)["delta"]["total"]["mean"]]


def separate_structure(source: Path, second: Path, folder: Path) -> list[float]:
    """A structure of the ligand's frames; residues that are not one after the other are refused in a structure."""
    kind = second.stem if second.stem in ("exchanged", "dropped") else "right"
    structure = write(folder / f"own_{second.name}", kind, frames()[0], slice(N, None))
    ligand = write(folder / f"ligand_{second.name}", "right", part=slice(N, None))
    words = ("--receptor", "chain A", "--ligand", "chain B", "-t", second, "--ligand-trajectory", ligand,
             "--ligand-structure", structure)  # fmt: skip
    return [number("binding", source, *words)["delta"]["total"]["mean"]]


def selected(source: Path, second: Path, folder: Path) -> list[float]:
    """A structure of one chain, frames of both, and a topology of theirs in the order of the structure's file."""
    one = write(folder / "one.pdb", "right", frames()[0], slice(N, None))
    return totals(number("solvent", one, "-t", second, "--topology", source, "--select", "chain B"))


def selection(source: Path, second: Path, folder: Path) -> list[float]:
    """A selection is of the structure's atoms, also one by places and distances, and frames have all of them."""
    words = ("-t", second, "--select", "index 33:65 and within 40 of index 33")
    return [*totals(number("solvent", source, *words)), *totals(number("energy", source, *words))]


def selection_and_atoms(source: Path, second: Path, folder: Path) -> list[float]:
    words = ("--select", "index 33:65", "--at-atoms", "name O", "-o", folder / "o.csv")
    return [row["mean"] for row in number("potmap", source, "-t", second, *words)["atoms"]]


def selection_and_parts(source: Path, second: Path, folder: Path) -> list[float]:
    words = ("--select", "not (chain A and resid 1)", "--receptor", "chain A", "--ligand", "chain B", "-t", second)
    return [number("binding", source, *words)["delta"]["total"]["mean"]]


def selection_of_separate(source: Path, second: Path, folder: Path) -> list[float]:
    """The complex's frames, from which the receptor is cut, have all atoms; those of the ligand its own."""
    ligand = write(folder / f"ligand_{second.name}", second.stem, part=slice(N, None))
    words = ("--select", "not (chain A and resid 1)", "--receptor", "chain A", "--ligand", "chain B", "-t", second)
    return [number("binding", source, *words, "--ligand-trajectory", ligand)["delta"]["total"]["mean"]]


def selection_and_minimum(source: Path, second: Path, folder: Path) -> list[float]:
    words = ("-o", folder / "x.pdb", "--max-iterations", 0, "--select", "index 33:65", "-t", second)
    report = number("minimize", source, *words, "--restrain", "all:1", "--reference", source)
    return [term for frame in report["frames"] for term in frame["energy_before"].values()]


def selection_and_reference(source: Path, second: Path, folder: Path) -> list[float]:
    words = ("-o", folder / "x.pdb", "--max-iterations", 0, "--restrain", "all:1", "--reference", second)
    report = number("minimize", source, *words, "--select", "index 33:65")
    return [report["energy_before"]["restraint"]]


def selected_without_topology(source: Path, second: Path, folder: Path) -> list[float]:
    """Names in the frames serve a selection, too."""
    one = write(folder / "one.pdb", "right", frames()[0], slice(N, None))
    return energy_over(Solvent(read(one)), second, select="chain B").total.tolist()


def python_frames(source: Path, second: Path, folder: Path) -> list[float]:
    """Trajectories that are opened without atoms are laid on those of the plan."""
    return energy_over(Solvent(read(source)), trajectory(second)).total.tolist()


def conformations(source: Path, second: Path, folder: Path) -> list[float]:
    """Models of a file in the order of atoms."""
    if second.suffix == ".h5":
        pytest.skip("no models are read of it")
    atoms = read(source)
    return Solvent(atoms).evaluate_batch(read_conformations(second, atoms=atoms)[1]).total.tolist()


def mdtraj(source: Path, second: Path, folder: Path) -> list[float]:
    library = pytest.importorskip("mdtraj")
    return energy_over(Solvent(read(source)), library.load(str(second), standard_names=False)).total.tolist()


def mdtraj_file(source: Path, second: Path, folder: Path) -> list[float]:
    """An HDF5 file as MDTraj writes it."""
    labels = dimer()[order_of(second.stem)].labels
    chains: list[dict[str, object]] = []
    columns = (labels.names, labels.elements, labels.residue_names, labels.residue_numbers, labels.chains)
    for k, (name, element, residue, of, chain) in enumerate(zip(*(of.tolist() for of in columns), strict=True)):
        atom = {"name": name, "element": element, "index": k}
        chains.append({"chain_id": chain, "residues": [{"name": residue, "resSeq": of, "atoms": [atom]}]})
    path = folder / f"{second.stem}_mdtraj.h5"
    with h5py.File(path, "w") as file:
        file["coordinates"] = frames()[:, order_of(second.stem)] / 10
        file["coordinates"].attrs["units"] = "nanometers"
        file["topology"] = [json.dumps({"chains": chains}).encode()]
    return energy_over(Solvent(read(source)), path).total.tolist()


def mdanalysis(source: Path, second: Path, folder: Path) -> list[float]:
    library = pytest.importorskip("MDAnalysis")
    return energy_over(Solvent(read(source)), library.Universe(str(second))).total.tolist()


def topology(source: Path, second: Path, folder: Path) -> list[float]:
    """Coordinates of a topology of AMBER with neither chains nor the numbers of the file."""
    (folder / "x.parm7").write_text(rendered(content(copies=1)))
    atoms = read(TRIALANINE.parent / "hexapeptide.pdb")
    order = order_of(second.stem, atoms)
    path = folder / f"coordinates{second.suffix}"
    write_conformations(path, atoms[order])
    return [Energy(read(folder / "x.parm7", coordinates=path)).evaluate().total]


def mmpbsa(source: Path, second: Path, folder: Path) -> list[float]:
    """Frames of a topology of AMBER with two peptides, in a run of MMPBSA.py."""
    write_files(folder)
    atoms, x = complex_atoms(), np.round(positions_of_frames(M), 3)
    order = order_of(second.stem, atoms)
    path = folder / f"mmpbsa_{second.name}"
    write_conformations(path, atoms[order], x[:, order])
    part = folder / "part.top"
    done = call(folder, GB, "-rp", part, "-lp", part, "-y", path)
    assert done.exit_code == 0, done.output
    return rows_of((folder / "o.dat").read_text())["delta", "TOTAL"]


EVERY: list[Callable[[Path, Path, Path], list[float]]] = [
    solvent, nonbond, at_atoms, minimize, reference, binding, separate, separate_structure, selected, selection,
    selection_and_atoms, selection_and_parts, selection_of_separate, selection_and_minimum, selection_and_reference,
    selected_without_topology, python_frames, conformations, mdtraj, mdtraj_file, mdanalysis, topology, mmpbsa,
]  # fmt: skip


@pytest.mark.parametrize("suffix", [".pdb", ".cif", ".h5"])
@pytest.mark.parametrize("option", EVERY, ids=lambda option: option.__name__)
def test_every_order_gives_one_number_and_a_lost_atom_is_named(option, suffix, tmp_path):
    if option in (mdtraj, mdtraj_file, mdanalysis) and suffix != ".pdb":
        pytest.skip("read by the other library")
    if option in (reference, selection_and_reference, separate_structure) and suffix == ".h5":
        pytest.skip("no structure is read of it")
    source = write(tmp_path / "source.pdb", "right", dimer().positions)
    x = frames()[0] if option in (reference, selection_and_reference) else None
    second = {kind: write(tmp_path / f"{kind}{suffix}", kind, x) for kind in (*ORDERS, "dropped")}
    wanted = option(source, second["right"], tmp_path)
    for kind in ORDERS[1:]:
        np.testing.assert_allclose(option(source, second[kind], tmp_path), wanted, rtol=1e-5, err_msg=kind)
    if option in (selected_without_topology, selection_and_reference):  # of the other chain
        assert option(source, second["dropped"], tmp_path) == pytest.approx(wanted, rel=1e-5)
    else:
        with pytest.raises((PeleError, AssertionError), match=r":O\)"):
            option(source, second["dropped"], tmp_path)


def test_another_order_is_told_once(tmp_path):
    """On the screen, in JSON and in Python."""
    source = write(tmp_path / "source.pdb", "right", dimer().positions)
    second = write(tmp_path / "reversed.pdb", "reversed")
    sentence = f"{second}: 66 atoms are in another order than in the structure, the first is atom 65 (A:ALA1:N), there "
    done = run("solvent", source, "-t", second, "--json")
    assert done.stderr.count(sentence) == 1
    (told,) = (note for note in json.loads(done.stdout)["notes"] if note.startswith(sentence))
    assert energy_over(Solvent(read(source)), second).notes == (told,)
    assert trajectory(second, read(source)).notes == (told,)
    assert trajectory(source, read(source)).notes == ()
    (tmp_path / "x.parm7").write_text(rendered(content(copies=1)))
    atoms = read(TRIALANINE.parent / "hexapeptide.pdb")
    write_conformations(tmp_path / "y.pdb", atoms[::-1])
    notes = read(tmp_path / "x.parm7", coordinates=tmp_path / "y.pdb").notes
    assert sum("y.pdb: 96 atoms are in another order" in note for note in notes) == 1


def without_names(tmp_path: Path, kind: str) -> tuple[Path, Path]:
    """A structure, and frames without names whose atoms have the order of a kind."""
    source = write(tmp_path / "source.pdb", "right", dimer().positions)
    return source, write_trajectory(tmp_path / f"{kind}.nc", frames()[:, order_of(kind)])


@pytest.mark.parametrize("words", [
    ("solvent",), ("energy",), ("nonbond",), ("potmap", "--at-atoms", "name O", "-o", "o.csv"),
    ("potmap", "--spacing", "2", "-o", "o.dx"), ("minimize", "--max-iterations", "0", "-o", "x.pdb"),
    ("binding", "--receptor", "chain A", "--ligand", "chain B"),
], ids=" ".join)  # fmt: skip
def test_frames_without_names_in_another_order_are_told(words, tmp_path, monkeypatch):
    """By every command that reads frames, as bonds of absurd lengths, in the text and in JSON."""
    monkeypatch.chdir(tmp_path)
    source, torn = without_names(tmp_path, "shuffled")
    assert "another order" in run(words[0], source, *words[1:], "-t", torn, code=1).stderr
    source, second = without_names(tmp_path, "exchanged")
    done = run(words[0], source, *words[1:], "-t", second, "--json")
    text = f"{second}: frame 0: the bond of "
    assert done.stderr.count(text) == 1
    assert "are the atoms in another order there?" in done.stderr
    report = json.loads(done.stdout.splitlines()[0])
    assert sum(note.startswith(text) for note in report["notes"]) == 1
    if words[0] in ("solvent", "energy", "nonbond", "binding"):
        (finding,) = (of for of in report["findings"] if of["text"].startswith(text))
        assert finding["action"] == "noted"
        assert finding["atoms"]
        assert "another order" in run(words[0], source, *words[1:], "-t", second, "--strict", code=1).stderr


def test_frames_without_names_in_another_order_are_told_in_python(tmp_path):
    source, second = without_names(tmp_path, "exchanged")
    atoms = read(source)
    grid = Grid.around(atoms, spacing=3.0)
    array = frames()[:, order_of("exchanged")]
    results = [
        energy_over(Solvent(atoms), second), energy_over(Solvent(atoms), array),
        potmap_over(atoms, second, grid), potentials_over(atoms, second),
        Binding(atoms, "chain B", "chain A").over(second),
    ]  # fmt: skip
    for result in results:
        (told,) = result.notes
        assert "frame 0: the bond of" in told
    assert trajectory(second, atoms).findings[0].atoms
    assert energy_over(Solvent(atoms), frames()).notes == ()


def test_coordinates_without_names_in_another_order_are_told(tmp_path):
    """Of a topology: a restart's, and an array's."""
    (tmp_path / "x.parm7").write_text(rendered(content(copies=1)))
    atoms = read(TRIALANINE.parent / "hexapeptide.pdb")
    order = order_of("exchanged", atoms)
    (tmp_path / "x.rst7").write_text(restart(atoms.positions[order]))
    done = run("solvent", tmp_path / "x.parm7", "-c", tmp_path / "x.rst7", "--json")
    sentence = "are the atoms in another order there?"
    assert done.stderr.count(sentence) == 1
    assert sum(sentence in note for note in json.loads(done.stdout)["notes"]) == 1
    assert sentence in read(tmp_path / "x.parm7", coordinates=atoms.positions[order]).notes[-1]
    assert not any(sentence in note for note in read(tmp_path / "x.parm7", coordinates=atoms.positions).notes)


@pytest.mark.parametrize("suffix", [".pdb", ".cif", ".xyz"])
def test_later_frames_with_other_names_are_refused(suffix, tmp_path):
    """In formats whose every frame has names or elements: two atoms are exchanged in all frames, or in the third."""
    atoms, order, path = dimer(), order_of("exchanged"), tmp_path / f"frames{suffix}"
    x = frames()[[0, 1, 0]]

    def read_back() -> np.ndarray:
        return np.concatenate(list(trajectory(path, atoms)))

    write_conformations(path, atoms[order], x[:, order])
    if suffix == ".xyz":  # elements are all it has
        with pytest.raises(PeleError, match=r"is O, .* C; expected the same elements"):
            read_back()
    else:
        assert read_back() == pytest.approx(x, abs=1e-4)
    write_conformations(path, atoms, x)
    assert read_back() == pytest.approx(x, abs=1e-4)
    lines = path.read_text().splitlines(keepends=True)
    rows = [k for k, line in enumerate(lines) if line.startswith("ATOM") or (suffix == ".xyz" and line[0] in "CNOH")]
    first, second = (rows[2 * len(atoms) + i] for i in np.flatnonzero(order != np.arange(len(order))))
    lines[first], lines[second] = lines[second], lines[first]
    path.write_text("".join(lines))
    with pytest.raises(PeleError, match="is in the position of"):
        read_back()
