"""Job that computes binding energies of complexes, with a record per complex."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np

from ..atoms import Atoms
from ..common.errors import InputError, KeywordError
from ..common.inputfile import InputFile, read_file
from ..common.notes import note
from ..common.settled import rewrite
from ..formats import brings_parameters, is_structure, require_table_suffix
from ..formats.maps.pictures import require_png
from ..gb_models.solvent_model import SolventModel
from ..jobs.checks import Checks
from ..jobs.records import Kind
from ..jobs.shards import Run
from ..jobs.spec import StructurePath, StructureSpec
from ..reading import Models, MoleculeRead, Reading, molecule_of, require_lennard_jones
from ..trajectories.given import FrameOptions
from ..trajectories.recording import require_record_suffix
from ..trajectories.sharing import OpenedFrames
from .alanine import AlanineScan, alanine_scan
from .decomposition import require_decomposition_suffix
from .energies import BindingEnergies
from .frames import (
    PartFrames,
    conformations_of,
    energies_of,
    is_stripped,
    opened_frames,
    separate_energies_of,
)
from .naming import OF_AMBER, Naming, interaction
from .parts import Chosen, Parts, mask_of
from .plan import Binding, grid_errors
from .poisson_boltzmann import PBSolvent
from .poses import holds_molecules
from .result import BindingResult
from .statistics import compare, entropy_of, read_binding_report

DEFAULT_IDECOMP = 2
NO_FRAMES = FrameOptions((), None, None, None)


@dataclass(frozen=True)
class BindingFiles:
    """Files to write for a decomposition and plots; None for files that are not written."""

    decomposition: Path | None = None
    residue_plot: Path | None = None
    heat_map: Path | None = None
    running_mean: Path | None = None
    bfactor_pdb: Path | None = None

    @property
    def given(self) -> tuple[Path, ...]:
        """All files to write."""
        return tuple(path for path in vars(self).values() if path is not None)

    @property
    def scheme(self) -> int | None:
        """Decomposition scheme that these files need; None without decomposition."""
        of_one = (self.decomposition, self.residue_plot, self.heat_map, self.bfactor_pdb)
        return None if not any(of_one) else 4 if self.heat_map is not None else DEFAULT_IDECOMP

    def check(self, idecomp: int | None) -> None:
        """Raise InputError or FormatError for files that could not be written."""
        if self.heat_map is not None and idecomp in (1, 2):
            raise InputError(f"a heat map needs pairs of residues; use `idecomp` 3 or 4, not {idecomp}")
        if self.decomposition is not None:
            require_decomposition_suffix(self.decomposition)
        for picture in (self.residue_plot, self.heat_map, self.running_mean):
            if picture is not None:
                require_png(picture)

    def write(self, result: BindingResult) -> None:
        """Write all files; those of a decomposition only if the result has one."""
        if result.decomposition is not None:
            if self.decomposition is not None:
                result.save_decomposition(self.decomposition)
            if self.residue_plot is not None:
                result.draw_residues(self.residue_plot)
            if self.heat_map is not None:
                result.draw_pairs(self.heat_map)
            if self.bfactor_pdb is not None:
                result.save_bfactor_pdb(self.bfactor_pdb)
        if self.running_mean is not None:
            result.draw_running_mean(self.running_mean)


@dataclass(frozen=True, eq=False)
class BindingSpec(StructureSpec):
    """Binding energies of complexes, kcal/mol.

    ligands, receptor, strip : as in Binding; several ligands are computed one by one, each in the absence of the others
    reading : how files are read; models : "one", or "all" for every model of a file
    frames : frames of a trajectory, to use instead of the file's positions
    receptor_frames, ligand_frames : separate trajectories of the parts; poses : file of poses of the ligand
    entropy : True for interaction entropy and C2 entropy; alanine : sites of an alanine scan, as in alanine_scan, or
        "interface"
    compare : JSON file of another run; its terms are subtracted
    pb : PBSolvent for MM/PBSA, None for Generalized Born; like : program whose constants the model uses
    strict : True to refuse structures with findings that otherwise only cause notes
    idecomp, one_four, cutoff, variant, precision, device, model : as in Binding
    """

    ligands: tuple[Chosen, ...]
    receptor: Chosen | None = None
    strip: Chosen | None = None
    reading: Reading = field(default_factory=Reading)
    models: Models = "one"
    frames: FrameOptions = NO_FRAMES
    receptor_frames: PartFrames = field(default_factory=PartFrames)
    ligand_frames: PartFrames = field(default_factory=PartFrames)
    poses: Path | None = None
    idecomp: int | None = None
    entropy: bool = False
    alanine: str | Sequence[int] | None = None
    compare: Path | None = None
    pb: PBSolvent | None = None
    one_four: Literal["scale", "exclude"] = "scale"
    cutoff: float | None = None
    variant: str = "auto"
    precision: str = "float32"
    device: Any = None
    model: SolventModel = field(default_factory=SolventModel)
    like: str | None = None
    strict: bool = False

    @property
    def is_separate(self) -> bool:
        """True if the parts have separate trajectories."""
        return bool(self.receptor_frames.paths or self.ligand_frames.paths)

    def check(self, run: Run, files: BindingFiles) -> None:
        """Raise InputError for options that cannot be combined, and for files that cannot be written."""
        if self.receptor is not None and self.strip is not None:
            raise KeywordError("choose one of `receptor` and `strip`; a selected receptor is not stripped")
        if len(self.ligands) > 1 and (run.output is not None or files.given):
            raise KeywordError("files can contain one ligand; give one `ligand`, or use JSON for several")
        if self.frames.paths and len(self.ligands) > 1:
            run.refuse_sharing("several ligands are computed one after another; give one `ligand`")
        if self.is_separate:
            self._check_separate(run, files)
        for part, own in (("receptor", self.receptor_frames), ("ligand", self.ligand_frames)):
            if own.structure is not None and not own.paths:
                raise KeywordError(f"`{part}_structure` is for a separate trajectory; also give `{part}_trajectory`")
        if self.poses is not None:
            self.frames.require_alone(poses=self.poses)
            if self.alanine is not None:
                raise KeywordError("choose one of `poses` and `alanine`; a scan needs the structure, or frames")
            of_frames = {"entropy": self.entropy, "running_mean": files.running_mean, "compare": self.compare,
                         "idecomp": self.idecomp}  # fmt: skip
            for name, value in of_frames.items():
                if value:
                    raise KeywordError(f"`{name}` applies to means over frames, not to different poses")
        self.frames.require_alone(models_all=self.models == "all")
        files.check(self.idecomp)
        if self.idecomp is not None and self.frames.paths:
            run.refuse_sharing("a decomposition is computed in one process")
        if run.output is not None:
            (require_record_suffix if self.frames.paths and not self.is_separate else require_table_suffix)(run.output)

    def _check_separate(self, run: Run, files: BindingFiles) -> None:
        """Raise KeywordError for options that need receptor and ligand from the frames of the complex."""
        if not self.frames.paths:
            raise KeywordError("separate trajectories of the parts also need that of the complex: `trajectory`")
        run.refuse_sharing("separate trajectories of the parts are read in one process")
        if run.resume:
            raise KeywordError("separate trajectories of the parts cannot be resumed; leave out `resume`")
        given = {"idecomp": self.idecomp, "entropy": self.entropy or None, "alanine": self.alanine,
                 "running_mean": files.running_mean}  # fmt: skip
        for name, value in given.items():
            if value is not None:
                raise KeywordError(f"`{name}` needs receptor and ligand from the frames of the complex")

    def compute(self, item: StructurePath) -> dict[str, Any]:
        """Compute the binding energies of a file, as JSON data."""
        found = self.evaluate(self.molecule(read_file(item)))
        return dict(found[0].facts()) if len(found) == 1 else {"ligands": [of.facts() for of in found]}

    def molecule(self, source: InputFile) -> MoleculeRead:
        """Read a complex. Raises InputError for a file without Lennard-Jones parameters."""
        require_lennard_jones(source)
        molecules = [] if self.poses is None or not holds_molecules(self.poses) else [self.poses]
        return self.reading.with_molecules(molecules, lambda reading: molecule_of(source, reading, self.models))

    def evaluate(self, molecule: MoleculeRead, run: Run | None = None) -> list[BindingResult]:
        """Compute everything requested for each ligand, and report notes and failures."""
        run = run or Run()
        checks = Checks(molecule.source, self.strict, heard=False)
        if not self.frames.paths:
            molecule = checks.structure(molecule)
        results = list[BindingResult]()
        for ligand in self.ligands:
            plan, frames_of = self.planned(molecule, ligand)
            for sentence in plan.notes:
                note(f"Note: {sentence}")
            found = replace(self._found(plan, frames_of, ligand, run), call=run.call)
            checks.told(plan.findings)
            _judge(found, checks, bool(self.frames.paths))
            found = replace(found, findings=checks.as_json())
            for sentence in found.notes:
                note(f"Note: {sentence}")
            for sentence in found.failures:
                note(f"Error: {sentence}")
            results.append(found)
        return results

    def planned(self, molecule: MoleculeRead, ligand: Chosen) -> tuple[Binding, MoleculeRead]:
        """Build the plan of one ligand, and the molecule that its frames contain (only the complex if stripped)."""
        strip = self._stripped(ligand, molecule.atoms)
        plan = self._plan(molecule.atoms, ligand, self.receptor, strip)
        if not self.frames.paths or self.is_separate or not is_stripped(plan, molecule, self.frames):
            return plan, molecule
        chosen = molecule.taken.part(plan.parts.complex)
        own = self._plan(plan.atoms, plan.parts.ligand, plan.parts.receptor, None)
        notes = (*plan.notes, "the frames contain only the atoms of receptor and ligand")
        rewrite(own, parts=replace(own.parts, left_out=plan.parts.left_out), notes=notes)
        return own, replace(molecule, atoms=plan.atoms, chosen=chosen)

    def _plan(self, atoms: Atoms, ligand: Chosen, receptor: Chosen | None, strip: Chosen | None) -> Binding:
        return Binding(
            atoms, ligand, receptor, model=self.model, one_four=self.one_four, cutoff=self.cutoff,
            idecomp=self.idecomp, precision=self.precision, variant=self.variant, device=self.device,
            strip=strip, strip_like=self.like, pb=self.pb,
        )  # fmt: skip

    def _stripped(self, ligand: Chosen, atoms: Atoms) -> Chosen | None:
        """Return the atoms to exclude in addition to water; for one of several ligands including the others."""
        if self.receptor is not None or len(self.ligands) == 1:
            return self.strip
        mask = np.zeros(len(atoms), bool)
        for other in [other for other in self.ligands if other is not ligand]:
            mask |= mask_of(atoms, other, "ligand")
        parts = Parts.of(atoms, ligand, None, self.strip, self.like)
        mask[np.setdiff1d(np.arange(len(atoms)), parts.complex)] = True
        return mask

    def naming(self, plan: Binding) -> Naming:
        """Return the naming of terms in files: AMBER's names if `like` is one of its programs."""
        return Naming(plan.names, self.like in OF_AMBER)

    def _found(self, plan: Binding, molecule: MoleculeRead, ligand: Chosen, run: Run) -> BindingResult:
        """Compute all requested results for one ligand."""
        naming = self.naming(plan)
        found = partial(
            BindingResult, plan, ligand=ligand, receptor=self.receptor, like=self.like, naming=naming, molecule=molecule
        )  # fmt: skip
        if self.is_separate:
            parts = {"receptor": self.receptor_frames, "ligand": self.ligand_frames}
            separate = separate_energies_of(
                plan, molecule, self.frames, parts, self.reading, self.strip, self.like, run.progress
            )
            return self._compared(found(separate))
        has_file = is_structure(molecule.source.path)  # False for Atoms
        elsewhere = partial(_opened_elsewhere, self, molecule.source.path if has_file else molecule, ligand)
        frames = energies_of(plan, molecule, self.frames, self.poses, naming, elsewhere, run)
        energies = frames.energies
        entropy = entropy_of(interaction(energies.delta), plan.model.temperature) if self.entropy else None
        if entropy is not None and entropy.warning:
            note(f"Warning: {entropy.warning}")
        scan = None if self.alanine is None else self._scan(plan, molecule, self.alanine, run)
        several = bool(self.frames.paths) or self.poses is not None
        kind: Kind | None = "model" if molecule.numbers else "frame" if several else None
        errors = None if plan.pb is None else grid_errors(plan, energies[0] if kind is None else None)
        return self._compared(
            found(
                energies, entropy=entropy, scan=scan, kind=kind, grid_errors=errors, record=frames.record,
                frames=frames.frames,
            )
        )  # fmt: skip

    def _scan(self, plan: Binding, molecule: MoleculeRead, sites: str | Sequence[int], run: Run) -> AlanineScan:
        """Run an alanine scan over all frames or models.

        The force field's alanine is used for files without parameters.
        """
        wanted = None if isinstance(sites, str) and sites.strip() == "interface" else sites
        path = molecule.source.path
        forcefield = self.reading.loaded_forcefield if is_structure(path) and not brings_parameters(path) else None
        conformations = conformations_of(plan, molecule, self.frames)
        return alanine_scan(plan, conformations, wanted, run.progress, forcefield=forcefield)

    def _compared(self, found: BindingResult) -> BindingResult:
        if self.compare is None:
            return found
        own = {term: of.as_json() for term, of in found.energies.statistics()["delta"].items()}
        return replace(found, comparison=compare(own, read_binding_report(self.compare)))


def _opened_elsewhere(spec: BindingSpec, of: Path | MoleculeRead, ligand: Chosen) -> OpenedFrames:
    """Open the frames of one ligand's complex in another process. of : its file, or the molecule"""
    read = of if isinstance(of, MoleculeRead) else molecule_of(read_file(of), spec.reading, spec.models)
    plan, molecule = spec.planned(read, ligand)
    return opened_frames(plan, molecule, spec.frames, spec.naming(plan))


def _judge(found: BindingResult, checks: Checks, is_mean: bool) -> None:
    """Check the energy of the complex, and add a finding about imaged frames."""
    if isinstance(found.energies, BindingEnergies) and len(found.energies.errors) == len(found.energies):
        return
    if found.poses is not None:
        best = int(np.nanargmin(found.poses.total))
        energy = {term: float(values[best]) for term, values in found.poses.complex.columns().items()}
        checks.energy(found.binding.atoms, energy, is_mean=True)
        return
    means = {term: of.mean for term, of in found.energies.statistics()["complex"].items()}
    checks.energy(found.binding.atoms, means, is_mean=is_mean or found.n_frames > 1)
    checks.findings += found.imaged()
