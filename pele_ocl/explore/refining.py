"""Refine poses of a ligand with one call, and write their files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from ..atoms import Atoms, Floats
from ..atoms.graphs import Graph
from ..common.arguments import (
    are_objects,
    callback,
    checked,
    choice,
    file_path,
    flag,
    former_keywords,
    is_object,
    numbers,
)
from ..common.errors import FormatError, InputError, KeywordError, PeleError, Suggests, described
from ..common.indices import selection_text
from ..common.inputfile import read_file
from ..common.modules import takes, takes_structures, with_words
from ..common.notes import heard_notes, note
from ..common.variant import Progress
from ..formats import Content, layout_of, read_conformations
from ..formats.molecules import Molecule
from ..formats.tables import folder_path
from ..gb_models.solvent_model import SolventModel
from ..jobs.journal import Journal, Notes
from ..jobs.outputs import (
    expanded,
    held_already,
    remove_run,
    require_inputs,
    require_replaceable,
    structures_in,
)
from ..jobs.provenance import Provenance
from ..jobs.records import Record
from ..jobs.running import collected, run_with
from ..jobs.shards import Place
from ..jobs.texts import UNIT, counted, lines_of
from ..ligand import Ligand, molecules_among
from ..ligand.sdf_writing import save_sdf
from ..minimize.running import described_by, note_unconverged
from ..reading import Reading
from ..report import Column, Report, Reported, masked
from ..trajectories import trajectory
from ..trajectories.files import held_frames
from ..view.poses import Column as PoseColumn
from ..view.poses import save_poses_page
from .poses import ranks_of
from .refine_spec import REFINED, RefineSpec
from .refinement_spec import listed

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ..jobs.words import MoleculeWords
    from ..opencl.device import Device

JOURNAL, TABLE, PAGE, LIGANDS = "refine.jsonl", "refine.csv", "index.html", "ligands.sdf"
Path_ = str | PathLike[str]


@dataclass(frozen=True, eq=False, repr=False)
class RefineBatch(Reported, Suggests):
    """Refined poses, in input order.

    records : record of each pose, as JSON data; facts : facts common to all poses
    spec : the job; kept : positions (n, 3) A of complexes that were not written to files, by index
    positions : positions of the complexes, (m, n, 3) A, read from their files if they were written
    provenance : facts for the table; heard : reported notes

    Arrays have NaN, or 0, for failed poses.

    >>> batch = pele_ocl.refine("data/structures/trialanine.pdb", ligand="resid 3", max_iterations=2)
    >>> batch.score.shape, batch.ranks.tolist(), batch.positions.shape
    ((1,), [1], (1, 33, 3))
    >>> batch.save("refined")
    """

    records: Sequence[Record]
    facts: Mapping[str, Any]
    spec: RefineSpec
    kept: Mapping[int, Floats] = field(default_factory=dict)
    provenance: Provenance = field(default_factory=Provenance)
    heard: Sequence[str] = ()

    def __len__(self) -> int:
        return len(self.records)

    def __repr__(self) -> str:
        good = [name for name, rank in zip(self.names, self.ranks.tolist(), strict=True) if rank == 1]
        failed = f", {len(self.errors):,} failed" if self.errors else ""
        best = f"; best {good[0]}, score {np.nanmin(self.score):,.3f} kcal/mol" if good else ""
        clashing = (int((self.column(when, "clashes") > 0).sum()) for when in ("before", "after"))
        counts = "{:,} with clashes before, {:,} after".format(*clashing)
        return f"RefineBatch({counted(len(self), 'pose')} of {self.spec.title}{failed}: {counts}{best})"

    @property
    def names(self) -> list[str]:
        """Names of the poses."""
        return [record.structure for record in self.records]

    @property
    def errors(self) -> dict[int, str]:
        """Error messages of failed poses, by index from 0."""
        return {k: record.error for k, record in enumerate(self.records) if record.failed}

    def column(self, when: Literal["before", "after"], name: str) -> Floats:
        """Return a quantity of all poses, (m,): clashes, closest, or an energy in kcal/mol: total, binding, strain,
        score."""
        values = [None if record.failed else record[when][name] for record in self.records]
        return np.array([np.nan if value is None else value for value in values], np.float64)

    @property
    def score(self) -> Floats:
        """Sum of binding energy and strain after refinement, (m,) kcal/mol."""
        return self.column("after", "score")

    @property
    def binding(self) -> Floats:
        """Binding energy after refinement, (m,) kcal/mol."""
        return self.column("after", "binding")

    @property
    def strain(self) -> Floats:
        """Strain of the ligand after refinement, (m,) kcal/mol."""
        return self.column("after", "strain")

    @property
    def total(self) -> Floats:
        """Energy of the complex after refinement, (m,) kcal/mol."""
        return self.column("after", "total")

    @property
    def ranks(self) -> NDArray[np.int64]:
        """Ranks of the poses by their score, from 1, (m,); 0 for failed poses."""
        return ranks_of(self.score)

    @property
    def best(self) -> int | None:
        """Index of the pose with the lowest score; None if all poses failed."""
        return next((k for k, rank in enumerate(self.ranks.tolist()) if rank == 1), None)

    @property
    def converged(self) -> NDArray[np.bool_]:
        """Mask (m,) of poses whose minimization converged."""
        return np.array([not record.failed and record["converged"] for record in self.records], bool)

    @cached_property
    def positions(self) -> Floats:
        """Positions of the complexes, (m, n, 3) A; read from their files if they were written."""
        found = np.full((len(self), len(self.spec.refiner.atoms), 3), np.nan)
        for k, record in enumerate(self.records):
            target = self.spec.target(k)
            if not record.failed:
                found[k] = self.kept[k] if target is None else read_conformations(target)[1][0]
        return found

    @property
    def rows(self) -> list[dict[str, Any]]:
        """Records as JSON data, each with its rank, None for failed poses."""
        ranks = self.ranks.tolist()
        return [{**record.to_dict(), "rank": rank} for record, rank in zip(self.records, ranks, strict=True)]

    def table(self) -> Report:
        """Return a table with a row for each pose, best first; failed poses have an error message."""
        rows = sorted(self.rows, key=lambda row: row["rank"] or len(self) + 1)
        names = ("clashes", "closest", "total", "binding", "strain", "score")
        numbers = {"rank": [row["rank"] for row in rows]}
        numbers |= {
            f"{name}_{when}": [row.get(when, {}).get(name) for row in rows]
            for name in names
            for when in ("before", "after")
        }
        others = ("moved", "rmsd_before", "rmsd_after", "side_chains", "iterations", "converged")
        numbers |= {name: [row.get(name) for row in rows] for name in others if any(name in row for row in rows)}
        energies = {name: UNIT for name in numbers if name.split("_")[0] in ("total", "binding", "strain", "score")}
        units = energies | {name: "angstrom" for name in ("moved", "rmsd_before", "rmsd_after")}
        files_alone = ("closest", "total", "iterations", "converged")
        columns: dict[str, Any] = {"pose": np.array([row["structure"] for row in rows])}
        columns |= {
            name: Column(masked(values), units.get(name, ""), ",.2f", shown=name.split("_")[0] not in files_alone)
            for name, values in numbers.items()
        }
        if self.errors:
            columns["error"] = np.array([row.get("error", "") for row in rows])
        return Report(f"Refined poses of {self.spec.title}", columns, dict(self.facts["settings"]))

    def to_json(self) -> dict[str, Any]:
        """Return the record of the complex, with an entry for each pose (docs/records.md)."""
        return self.record.to_dict()

    @property
    def record(self) -> Record:
        """Record of the complex, with an entry for each pose."""
        values = {**self.facts, "n_poses": len(self), "n_failed": len(self.errors), "poses": listed(self.rows, "pose")}
        return self.spec.record_of_all(values, self.heard)

    def save(self, folder: str | PathLike[str]) -> None:
        """Write the complexes (PDB), a table and an HTML page to a folder, and `ligands.sdf` for molecules."""
        target = folder_path(folder)
        for k, record in enumerate(self.records):
            if not record.failed and self.spec.target(k) != target / f"{record.structure}.pdb":
                self.spec.write(target / f"{record.structure}.pdb", self.positions[k])
        self.provenance.save(self.table(), target / TABLE)
        self._write_ligands(target / LIGANDS)
        self._draw(target / PAGE)

    def _write_ligands(self, path: Path) -> None:
        """Write the refined ligands of poses that were read as molecules, best first."""
        molecules, rows = list[tuple[Ligand, dict[str, Any]]](), self.rows
        try:
            for k in np.argsort(self.ranks, kind="stable").tolist():
                ligand = self.spec.molecule(k, self.positions[k]) if self.ranks[k] else None
                if ligand is not None:
                    molecules.append((replace(ligand, name=self.names[k]), _properties_of(rows[k])))
            if molecules:
                save_sdf(path, molecules)
        except PeleError as error:
            note(f"Note: {path.name} was not written: {error}")

    def _draw(self, path: Path) -> None:
        """Write the HTML page of all poses that have not failed."""
        rows = [row for row in self.rows if "error" not in row]
        good = [k for k in range(len(self)) if k not in self.errors]
        if not good:
            return
        columns = {
            "score": PoseColumn("score, kcal/mol", [row["after"]["score"] for row in rows]),
            "binding": PoseColumn("binding energy, kcal/mol", [row["after"]["binding"] for row in rows]),
            "total": PoseColumn("energy of the complex, kcal/mol", [row["after"]["total"] for row in rows]),
            "strain": PoseColumn("strain of the ligand, kcal/mol", [row["after"]["strain"] for row in rows]),
            "clashes": PoseColumn("clashes before", [row["before"]["clashes"] for row in rows]),
            "moved": PoseColumn("moved, \u00c5", [row["moved"] for row in rows]),
        }
        has_native = self.spec.native is not None
        if has_native:
            rmsd = PoseColumn("rmsd to the native pose, \u00c5", [row["rmsd_after"] for row in rows])
            columns = {"rmsd": rmsd, **columns}
        settings = lines_of(self.facts["settings"])
        refiner = self.spec.refiner
        save_poses_page(
            path, refiner.atoms, refiner.ligand, self.positions[good], [row["structure"] for row in rows], columns,
            ("rmsd" if has_native else "moved", "score"), title=f"Poses of {self.spec.ligand} in {self.spec.title}",
            facts=f"{counted(len(good), 'pose')} refined; {settings[-1].split(maxsplit=1)[1]}",
            about="Click a pose or its row; drag to rotate the molecule, scroll to zoom. The score is binding energy "
            "and strain of the minimized pose, not a free energy.",
        )  # fmt: skip


def _properties_of(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the properties of a pose for an SDF file. row : its record with its rank"""
    after = {name: row["after"][name] for name in ("score", "binding", "strain")}
    return {"rank": row["rank"], **after, **{name: row[name] for name in ("moved", "rmsd_after") if name in row}}


@former_keywords(near="moving_radius", hold="restraint", free="free_radius")
@checked
@takes("reading", "solvent")
@takes_structures("atoms")
def refine(
    what: Atoms | Path_,
    poses: Path_ | Sequence[Path_] | Floats = (),
    *,
    ligand: str,
    native: Path_ | None = None,
    moving_radius: float = 8.0,
    side_chains: float = 6.0,
    restraint: float = 1.0,
    free_radius: float = 1.0,
    tolerance: float = 0.2,
    max_iterations: int = 500,
    model: SolventModel | int | None = None,
    precision: str = "float32",
    device: Device | int | str | None = None,
    strict: bool = False,
    output: Path_ | None = None,
    resume: bool = False,
    overwrite: bool = False,
    workers: int | None = None,
    scheduler: str | None = None,
    errors: Literal["raise", "record"] = "raise",
    progress: Progress | None = None,
    reading: Reading | None = None,
    provenance: Provenance | None = None,
    **words: Unpack[MoleculeWords],
) -> RefineBatch:
    """Relax poses of a ligand together with the surrounding receptor, and rank them by binding energy and strain.

    If the ligand clashes, side chains near it are predicted first. Then the ligand and residues near it are minimized
    (docs/refine.md). For repeated calls use Refiner.

    what : the complex: Atoms with a force field, a path, or an object of another library (docs/libraries.md)
    poses : files of ligand poses (.sdf, .mol2, .pdb, .cif; atoms in any order) or of complexes, including trajectories
        (.nc, .dcd, .xtc); or positions (m, n_ligand, 3) or (m, n, 3) A; or Ligand or RDKit Mol objects, one pose per
        conformer. The default is the pose in the complex. If the force field has no parameters for the ligand, they are
        assigned from its molecule in an .sdf or .mol2 file
    ligand : selection of the ligand's atoms (docs/selection.md)
    native : file of a reference pose of the ligand for the rmsd
    moving_radius, side_chains, restraint, free_radius, tolerance, max_iterations : as in Refiner
    model : a SolventModel, or the number of the model to read; precision, device : as in `energy`
    strict : refuse complexes with findings that otherwise only cause notes
    output : folder for the complexes, a table, an HTML page and a journal; by default nothing is written
    resume : continue an interrupted run that wrote to `output`
    overwrite : replace an earlier run in `output`; otherwise an existing run is an error
    workers, scheduler : as in `jobs.run`
    errors : if a pose fails, "raise" an InputError, or "record" NaN and its message in `errors`
    progress : called with the fraction done, 0 to 1
    reading : how files are read, a Reading; alternatively its fields as keywords, as in `pele_ocl.read`, and constants
        of the solvent model
    provenance : facts for the table

    Raises InputError as `energy` does and for a ligand or receptor without atoms, FormatError for files that cannot be
    read or written.

        >>> import pele_ocl
        >>> from pele_ocl.common.installation import shipped
        >>> atoms = pele_ocl.read(shipped("data") / "structures" / "trialanine.pdb")
        >>> found = pele_ocl.refine(atoms, ligand="resid 3", max_iterations=2)
        >>> len(found), found.ranks.tolist()
        (1, [1])
    """
    choice("errors", errors, ("raise", "record"))
    callback("progress", progress)
    ligand = selection_text("ligand", ligand)
    solvent, reads = described_by(refine, words, model, reading, what)
    folder = None if output is None else folder_path(file_path(output, "output"), "the refined complexes")
    if folder is None and resume:
        raise KeywordError("`resume` needs the files of the earlier run; give `output`")
    require_replaceable(flag("overwrite", overwrite), resume, folder)
    if folder is not None and not (resume or overwrite) and (folder / JOURNAL).exists():
        raise held_already(folder, "refined poses")
    options = {
        "moving_radius": moving_radius, "side_chains": side_chains, "restraint": restraint, "free_radius": free_radius,
        "tolerance": tolerance, "max_iterations": max_iterations, "model": solvent, "precision": precision,
        "device": device,
    }  # fmt: skip
    given: Any = poses
    listed = [poses] if isinstance(poses, str | PathLike) else poses
    if isinstance(listed, list | tuple) and all(isinstance(path, str | PathLike) for path in listed):
        given = expanded([file_path(path) for path in listed])
        if errors == "raise":
            require_inputs(given)
    elif is_object(poses) or are_objects(poses):
        given = ()  # converted below, once the complex has been read
    else:
        given = numbers("poses", poses)
    kept: dict[int, Floats] = {}
    spec = RefineSpec(
        what if isinstance(what, Atoms) else file_path(what), ligand, "" if folder is None else str(folder),
        given, reads, options,
        None if native is None else file_path(native, "native"), strict,
        kept.__setitem__ if folder is None else None,
    )  # fmt: skip
    place = Place(workers, scheduler, None if device is None else str(device))
    if place.is_remote and folder is None:
        raise KeywordError("`workers` and `scheduler` need shared output files; give `output`")
    with heard_notes() as heard:
        if molecules_among(poses) and are_objects(poses):
            spec = _with_molecules(spec, poses)
        elif is_object(poses) or are_objects(poses):
            spec = _with_frames(spec, poses)
        if folder is not None:
            layout_of(folder / "complex.pdb", Content(spec.given))  # fail early if the complex cannot be written as PDB
        begin = None
        if folder is not None and overwrite:
            inputs = [of for of in (spec.path, *given, native) if isinstance(of, str | PathLike)]
            begin = partial(_remove_run, folder, [*inputs, *reads.files])
        found = _refined(spec, folder, resume, place, errors, progress, begin)
        facts = spec.facts_of_complex()
        found = replace(found, facts=facts, kept=kept)
        if provenance is not None:
            found = replace(found, provenance=provenance)
        if folder is not None:
            found.save(folder)
        for sentence in facts["notes"]:
            note(f"Note: {sentence}")
        note_unconverged(found.records, "pose")
    return replace(found, heard=tuple(heard))


with_words(refine)


def _remove_run(folder: Path, inputs: Sequence[Path_]) -> None:
    """Remove the files of an earlier run. Raises FormatError if any of them is an input."""
    remove_run(_files_of_run(folder), _folders_of_run(folder), inputs)


def _files_of_run(folder: Path) -> list[Path]:
    """Return the files that a run wrote to a folder; the journal, which names the complexes, is last."""
    journal, files = folder / JOURNAL, [folder / name for name in (TABLE, PAGE, LIGANDS)]
    return [*structures_in(journal, REFINED, folder), *files, *Notes(journal, "").all_files(), journal]


def _folders_of_run(folder: Path) -> list[Path]:
    return list(filter(None, [Notes(folder / JOURNAL, "").folder]))


def _poses_of(molecule: Any) -> Iterator[Molecule]:
    """Yield the graph and positions of a Ligand, or of each conformer of an RDKit Mol."""
    if isinstance(molecule, Ligand):
        yield Molecule(Graph.of(list(molecule.elements), molecule.bonds), molecule.positions)
        return
    bonds = [(bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()) for bond in molecule.GetBonds()]
    graph = Graph.of([atom.GetSymbol() for atom in molecule.GetAtoms()], np.array(bonds, np.int32).reshape(-1, 2))
    for conformer in molecule.GetConformers():
        yield Molecule(graph, np.array(conformer.GetPositions(), np.float64))


def _with_molecules(spec: RefineSpec, poses: Any) -> RefineSpec:
    """Return the job with the positions of Ligand or RDKit Mol objects as poses.

    Raises InputError for molecules with other atoms.
    """
    every = list(poses) if isinstance(poses, list | tuple) else [poses]
    molecules = molecules_among(every)
    if len(molecules) < len(every) or any(isinstance(of, str | PathLike) for of in every):
        raise InputError("poses are of several kinds; give files, or Mols of RDKit, or frames of one trajectory")
    if not isinstance(spec.path, Atoms):
        source = read_file(spec.path)
        atoms, _ = spec.reading.with_molecules(molecules, lambda reading: reading.chosen(source))
        spec.check(atoms)
        vars(spec)["given"] = atoms
    places = list[Floats]()
    for k, pose in enumerate((pose for of in molecules for pose in _poses_of(of)), 1):
        try:
            places.append(spec.reader.placed(pose))
        except FormatError as error:
            raise InputError(f"pose {k}: {error}") from None
    if not places:
        raise InputError("the Mols of RDKit have no conformer; give poses with positions")
    found = replace(spec, poses=np.stack(places))
    vars(found).update(given=spec.given, refiner=spec.refiner)  # reuse cached properties
    return found


def _with_frames(spec: RefineSpec, poses: object) -> RefineSpec:
    """Return the job with the frames of an MDAnalysis universe or an MDTraj trajectory as poses."""
    held = held_frames(poses)
    if held is None:
        raise InputError(
            f"poses are {described(poses)}; expected files of poses, positions, or frames of MDAnalysis or MDTraj"
        )
    whole, refiner = spec.given, spec.refiner
    choices = [whole, refiner.atoms[refiner.ligand]]
    atoms = next((of for of in choices if len(of) == held.n_atoms), None)
    if atoms is None:
        n, n_ligand = len(whole), len(refiner.ligand)
        raise InputError(
            f"the poses of {held} have {held.n_atoms:,} atoms; the complex has {n:,}, its ligand {n_ligand:,}"
        )
    with closing(trajectory((held,), atoms)) as frames:
        positions = frames.positions(range(len(frames))).astype(np.float64)
    if atoms is whole:
        positions = positions[:, refiner.binding.parts.complex]
    found = replace(spec, poses=positions)
    vars(found).update(given=whole, refiner=refiner)  # reuse cached properties
    return found


def _refined(
    spec: RefineSpec, folder: Path | None, resume: bool, place: Place, errors: str, progress: Progress | None,
    begin: Callable[[], object] | None,
) -> RefineBatch:  # fmt: skip
    """Refine the poses, with a record for each. begin : called when the computation begins"""
    items = spec.items()
    journal = Journal(None if folder is None else folder / JOURNAL, spec.settings(), kind=REFINED, waits=True)
    records = collected(run_with(spec, items, journal, resume, place, begin=begin), len(items), errors, progress)
    return RefineBatch(records, {}, spec)
