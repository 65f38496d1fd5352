"""Run a screen with one call, and write its files."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from ..atoms import Atoms
from ..binding import PBSolvent
from ..binding.decomposition import GROUPS
from ..common.arguments import callback, checked, choice, described, file_path, flag, text, whole_number
from ..common.errors import FormatError, InputError, KeywordError
from ..common.modules import takes, takes_structures, with_words
from ..common.notes import heard_notes, note
from ..common.variant import Progress
from ..formats.tables import folder_path
from ..gb_models.solvent_model import OF_SOLVENT, SolventModel, solvent_of
from ..jobs.journal import Journal, Notes, merged
from ..jobs.outputs import expanded, held_already, remove_run, require_replaceable, structures_in
from ..jobs.provenance import Provenance
from ..jobs.records import Record
from ..jobs.running import collected, run_with
from ..jobs.shards import Place, Shard
from ..jobs.texts import UNIT, counted
from ..ligand import Ligand, is_mol
from ..ligand.docked import SCORE
from ..minimize.running import described_by, note_unconverged
from ..reading import Reading
from ..report import Column, Report
from .molecules import Given, Unread, of_mol
from .reference import Reference
from .result import LIGANDS, PAGE, RESIDUES, TABLE, ScreenResult
from .screener import SCORING
from .spec import COMPLEXES, SCREENED, ScreenSpec

if TYPE_CHECKING:
    from ..opencl.device import Device

JOURNAL = "screen.jsonl"
Path_ = str | PathLike[str]
Ligands = Path_ | Ligand | Atoms | Sequence[Path_ | Ligand | Atoms]


@checked
@takes("reading", "solvent")
@takes_structures("atoms")
def screen(
    receptor: Atoms | Path_,
    ligands: Ligands,
    *,
    moving_radius: float = 6.0,
    restraint: float = 1.0,
    free_radius: float = 1.0,
    tolerance: float = 0.2,
    max_iterations: int = 500,
    cofactors: Ligands = (),
    model: SolventModel | int | None = None,
    inside: float | None = None,
    pb: bool = False,
    frames: int = 0,
    add_strain: bool = False,
    docking_score: str = SCORE,
    keep_water: bool = False,
    reference: Path_ | None = None,
    reference_column: str | None = None,
    native: Path_ | None = None,
    residues: int = 0,
    precision: str = "float32",
    device: Device | int | str | None = None,
    strict: bool = False,
    output: Path_ | None = None,
    resume: bool = False,
    overwrite: bool = False,
    workers: int | None = None,
    scheduler: str | None = None,
    shard: str | Shard | None = None,
    errors: Literal["raise", "record"] = "record",
    progress: Progress | None = None,
    reading: Reading | None = None,
    provenance: Provenance | None = None,
    **words: Any,
) -> ScreenResult:
    """Refine molecules in a receptor, score each by MM/GBSA, and rank them (docs/screen.md).

    The receptor is read once. Each molecule is parametrized, combined with the receptor, and minimized together with
    the residues near it, many complexes in a batch. For repeated calls use Screener.

    receptor : Atoms with a force field, or a path
    ligands : files of molecules or poses placed in the receptor (.sdf, .mol2), AMBER topologies with .rst7 files next
        to them, peptides (.pdb, .cif), folders of such files, Ligand or RDKit Mol objects, or Atoms with parameters
    cofactors : small molecules in the receptor's file that have no template, or that are added to it, like `ligands`
        of `pele_ocl.read`: files, Ligand objects or Atoms
    moving_radius, restraint, free_radius, tolerance, max_iterations : as in Screener
    model : SolventModel of the score, by default GBn2 with interior permittivity 2, so that `binding` of a refined
        complex needs `gb="gbn2", solute_dielectric=2` to compute its score; or the number of the receptor's model to
        read. Refinement uses OBC2. precision, device : as in `energy`
    inside : interior permittivity, another name for `solute_dielectric`
    pb : score with the Poisson-Boltzmann equation; frames : number of frames of dynamics at 300 K to average over
    add_strain : add the ligand's strain to the score
    docking_score : property of an SDF file that contains the docking score of a pose, lower is better, for `consensus`
        of the result; for poses of Vina and AutoDock-GPU it is `docking_score`
    keep_water : keep the receptor's water, which is otherwise removed
    reference : file of measured values (.csv, .tsv, .json, .yml, .sdf with properties) to compare with, by name;
        reference_column : column or property with the values
    native : file of reference poses (.sdf, .mol2) for the rmsd, matched by molecular graph
    residues : number of best molecules for which contributions of residues are computed
    strict : refuse receptors with findings that otherwise only cause notes
    output : folder for a table, an HTML page, refined ligands and complexes, and a journal; by default nothing is
        written
    resume : continue an interrupted run that wrote to `output`, or merge the results of all shards there
    overwrite : replace an earlier run in `output`; otherwise an existing run is an error
    workers, scheduler, shard : as in `jobs.run`
    errors : if a molecule fails, "record" NaN and its message in `errors`, or "raise" an InputError
    progress : called with the fraction done, 0 to 1
    reading : how the receptor is read, a Reading; alternatively its fields as keywords, as in `pele_ocl.read`, and
        constants of the solvent model; `ligand_forcefield`, `ligand_charges`, `ligand_hydrogens` and `ligand_ph` also
        apply to the molecules
    provenance : facts for the table

    Raises InputError for a receptor that cannot be used, FormatError for files that cannot be read or written.

        >>> import pele_ocl
        >>> from pele_ocl.common.installation import shipped
        >>> peptide = pele_ocl.read(shipped("data") / "structures" / "hexapeptide.pdb")
        >>> first, last = peptide.select("resid 1:4"), peptide.select("resid 6")
        >>> found = pele_ocl.screen(first, [last], max_iterations=2)
        >>> len(found), found.ranks.tolist()
        (1, [1])
    """
    choice("errors", errors, ("raise", "record"))
    callback("progress", progress)
    for name, given in (
        ("pb", pb),
        ("add_strain", add_strain),
        ("keep_water", keep_water),
        ("resume", resume),
        ("overwrite", overwrite),
    ):
        flag(name, given)
    flag("strict", strict)
    whole_number("residues", residues)
    text("docking_score", docking_score)
    if reference_column is not None:
        text("reference_column", reference_column)
    words, model = _with_scoring(words, model, inside)
    solvent, reads = described_by(screen, words, model, reading, receptor)
    reads = replace(reads, solvent=None)  # refinement and score may use different radii, which are chosen later
    if not isinstance(cofactors, Sequence) or len(cofactors):
        if isinstance(receptor, Atoms):
            raise KeywordError("`cofactors` need a receptor file; for Atoms, read them with `ligands` of `read`")
        added = _given(cofactors, "cofactors", reads)
        for each in added:
            if isinstance(each, Unread):
                raise InputError(each.why)
        reads = replace(reads, ligands=(*reads.ligands, *(of for of in added if not isinstance(of, Unread))))
    folder = None if output is None else folder_path(file_path(output, "output"), "the results")
    part = Shard.of(shard) if isinstance(shard, str) else shard
    require_replaceable(overwrite, resume, folder, part is not None)
    _check_folder(folder, resume or overwrite, part)
    place = Place(workers, scheduler, None if device is None else str(device))
    if folder is None and (place.is_remote or part is not None):
        raise KeywordError("`workers`, `scheduler` and `shard` need shared output files; give `output`")
    options = {
        "moving_radius": moving_radius, "restraint": restraint, "free_radius": free_radius, "tolerance": tolerance,
        "max_iterations": max_iterations, "model": solvent, "pb": PBSolvent() if pb else None,
        "frames": frames, "precision": precision, "device": device,
    }  # fmt: skip
    known = None if reference is None else Reference.read(file_path(reference, "reference"), reference_column)
    kept: dict[int, Atoms] = {}
    spec = ScreenSpec(
        receptor if isinstance(receptor, Atoms) else file_path(receptor), _given(ligands, "ligands", reads),
        "" if folder is None else str(folder), reads, options, add_strain, docking_score, keep_water,
        None if native is None else file_path(native, "native"), strict,
        kept.__setitem__ if folder is None else None,
    )  # fmt: skip
    with heard_notes() as heard:
        items = spec.items() if part is None else part.part(spec.items(), "molecules")
        begin = None
        if folder is not None and overwrite:
            paths = [of for of in (receptor, *spec.ligands, native, reference) if isinstance(of, str | PathLike)]
            begin = partial(_remove_run, folder, [*paths, *reads.files])
        records = _records(spec, items, folder, resume, part, place, errors, progress, begin)
        found = ScreenResult(records, {}, spec, items, kept, known)
        found = replace(found, facts=spec.facts_of_receptor())
        if provenance is not None:
            found = replace(found, provenance=provenance)
        found = replace(found, shares=_shares(found, residues))
        of_receptor = found.facts["notes"] if isinstance(receptor, Atoms) else filter(None, [spec.of_water])
        for sentence in of_receptor:  # other notes were reported when files were read
            note(f"Note: {sentence}")
        _tell(found)
        if folder is not None and part is None:
            found.save(folder)
    return replace(found, heard=tuple(heard))


with_words(screen)


def _with_scoring(
    words: dict[str, Any], model: SolventModel | int | None, inside: float | None
) -> tuple[dict[str, Any], SolventModel | int | None]:
    """Add the default score to the solvent keywords, unless a model or a program's constants are requested.

    inside : alias of `solute_dielectric`
    """
    given: dict[str, Any] = {} if inside is None else {"solute_dielectric": inside}
    if given and "solute_dielectric" in words:
        raise KeywordError("`inside` and `solute_dielectric` are the same option; give one of them")
    if isinstance(model, SolventModel):
        return words, replace(model, **given)
    defaults: dict[str, Any] = {} if "like" in words else {"gb": SCORING.gb}
    if "like" not in words and words.get("gb") != "none":
        defaults["solute_dielectric"] = SCORING.solute_dielectric
    return {**defaults, **words, **given}, model


def solvent_of_score(words: Mapping[str, Any], inside: float | None = None) -> SolventModel:
    """Build the SolventModel of the score from the keywords of `screen`."""
    full, _ = _with_scoring({name: of for name, of in words.items() if name in OF_SOLVENT}, None, inside)
    return solvent_of(full)


def _check_folder(folder: Path | None, may_exist: bool, part: Shard | None) -> None:
    """Raise for a folder with a run, unless it may exist; and for none where an earlier run is needed."""
    if folder is None:
        if may_exist:
            raise KeywordError("`resume` needs the files of the earlier run; give `output`")
        return
    journal = folder / JOURNAL if part is None else part.path(folder / JOURNAL)
    if not may_exist and journal.exists():
        raise held_already(folder, "a screen")


def _journals_of_run(folder: Path) -> list[Path]:
    return [folder / JOURNAL, *Shard.paths(folder / JOURNAL)]


def _remove_run(folder: Path, inputs: Sequence[Path_]) -> None:
    """Remove the files of an earlier screen. Raises FormatError if any of them is an input."""
    remove_run(_files_of_run(folder), _folders_of_run(folder), inputs)


def _files_of_run(folder: Path) -> list[Path]:
    """Return the files that a screen wrote to a folder; the journals, which name the others, are last."""
    journals = _journals_of_run(folder)
    complexes = [path for journal in journals for path in structures_in(journal, SCREENED, folder / COMPLEXES)]
    files = [folder / name for name in (TABLE, PAGE, LIGANDS, RESIDUES)]
    notes = [path for journal in journals for path in Notes(journal, "").all_files()]
    return [*complexes, *files, *notes, *journals]


def _folders_of_run(folder: Path) -> list[Path]:
    notes = [Notes(journal, "").folder for journal in _journals_of_run(folder)]
    return [folder / COMPLEXES, *filter(None, notes)]


def _given(ligands: Ligands, name: str, reading: Reading) -> tuple[Given, ...]:
    """Return the input as a tuple, with patterns expanded to files and RDKit Mol objects converted to Ligands."""
    listed = [ligands] if isinstance(ligands, str | PathLike | Ligand | Atoms) or is_mol(ligands) else ligands
    if not isinstance(listed, Sequence) or not len(listed):
        raise InputError(f"{name} are {described(ligands)}; expected files, folders, Ligands, Mols of RDKit or Atoms")
    found = list[Given]()
    for k, each in enumerate(listed, 1):
        if is_mol(each):
            found.append(of_mol(each, k, reading))
            continue
        found += [each] if isinstance(each, Ligand | Atoms) else expanded([file_path(each, name)])
    return tuple(found)


def _records(
    spec: ScreenSpec, items: Sequence[int], folder: Path | None, resume: bool, part: Shard | None, place: Place,
    errors: str, progress: Progress | None, begin: Callable[[], object] | None,
) -> list[Record]:  # fmt: skip
    """Screen the molecules, with a record for each. begin : called when the computation begins"""
    path, settings = None if folder is None else folder / JOURNAL, spec.settings()
    names = list(map(spec.name, spec.items()))
    if path is not None and resume and part is None:
        _take_shards(path, settings)
    if part is not None:
        assert path is not None
        path = part.path(path)
    journal = Journal(path, settings, kind=SCREENED, shard=part, items=names, waits=True)
    return collected(run_with(spec, items, journal, resume, place, begin=begin), len(items), errors, progress)


def _take_shards(path: Path, settings: dict[str, str]) -> None:
    """Merge the journals of shards to that of the whole run, if it does not exist."""
    shards = Shard.paths(path)
    if path.exists() or not shards:
        return
    whole = merged(shards)
    if whole.settings != settings:
        raise FormatError(
            f"{shards[0]}: was written with other settings; resume with the same settings, or choose another output"
        )
    with Journal(path, settings, kind=SCREENED) as journal:
        for record in whole.in_order():
            journal.add(record)


def _shares(found: ScreenResult, n: int) -> dict[int, Report]:
    """Compute the contributions of residues for the n best molecules, by index."""
    order = [k for k in np.argsort(found.ranks, kind="stable").tolist() if found.ranks[k]]
    reports = dict[int, Report]()
    for k in order[:n]:
        atoms, n_ligand = found.complex(k), len(found.ligand(k))
        parts = found.spec.screener.binding_of(atoms, n_ligand, idecomp=2).evaluate().decomposition
        assert parts is not None
        own = parts.per_residue["delta"]
        chosen = [i for i in parts.strongest(len(parts.residues)) if abs(own.total[i]) >= _LEAST]
        columns: dict[str, Any] = {"residue": np.array([parts.names[i] for i in chosen])}
        columns["total"] = Column(own.total[chosen], UNIT)
        columns |= {name: Column(own.mean[chosen, j], UNIT) for j, name in enumerate(GROUPS)}
        reports[k] = Report(found.names[k], columns)
    return reports


_LEAST = 0.1  # kcal/mol, smallest contribution of a residue to report


def _tell(found: ScreenResult) -> None:
    """Report notes about all molecules."""
    note_unconverged(found.records, "molecule")
    if found.reference is not None:
        lacking = np.flatnonzero(np.isnan(found.measured)).tolist()
        if lacking:
            unused = found.reference.without_molecule(zip(found.titles, found.names, strict=True))
            further = f", and {counted(len(unused), 'value')} no molecule (such as {unused[0]!r})" if unused else ""
            note(
                f"Note: {len(lacking):,} of {counted(len(found), 'molecule')} "
                f"{'has' if len(lacking) == 1 else 'have'} no value in {found.reference.what} "
                f"({found.titles[lacking[0]]!r}){further}"
            )
        left = found.reference.left_out
        if left:
            note(f"Note: {counted(len(left), 'value')} of {found.reference.what} are not numbers (such as {left[0]})")
    charges = {record["charge"] for record in found.records if not record.failed}
    if len(charges) > 1:
        note(
            f"Note: the molecules have charges from {min(charges):+d} to {max(charges):+d}; MM/GBSA rarely ranks "
            "molecules with different charges correctly"
        )
