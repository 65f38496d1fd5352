"""Read a control file of PELE: a simulation with its tasks and their blocks."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import Any

from ...common.errors import FormatError
from ...common.textfiles import quoted
from ...forcefield.control import FIRST_COMPLEX, ControlFile, control_json, settings_for_energies, words_in
from .blocks import (
    ANM_MINIMIZER,
    AnmBlock,
    MinimizerBlock,
    OutputBlock,
    PeleParameters,
    PerturbationBlock,
    SideChainBlock,
)
from .conditions import Condition, parse_condition
from .reading import Block, Unread
from .selections import ALL, NO_LIGANDS

SIMULATION = "peleSimulation"
# Metrics by type, with their settings other than `type`, `tag` and `logIt`.
METRICS: dict[str, tuple[str, ...]] = {
    "bindingEnergy": ("boundPartSelection", "allowMultipleBindingSelection"),
    "rmsd": ("Native", "selection", "superpositionSelection", "doSuperposition", "includeHydrogens"),
    "sasa": ("selection",),
    "com_distance": ("selection_group_1", "selection_group_2"),
    "distanceToPoint": ("point", "atoms"),
    "atomsAngle": ("selection_group_1", "selection_group_2", "selection_group_3"),
    "atomsDihedral": ("selection_group_1",),
    "random": (),
    "internalEnergy": ("atomSetSelection",),
}
ENERGY, ACCEPTED, STEP, SINCE = "currentEnergy", "numberOfAcceptedPeleSteps", "currentStep", "stepsSinceLastAccepted"
TRACKERS = (ENERGY, ACCEPTED, STEP, SINCE)
# Names in `parametersChanges`, and the field of SimulationTask that each changes.
CHANGED = {
    "Pele::parameters": "parameters", "Perturbation::parameters": "perturbation",
    "LigandPerturbation::parameters": "perturbation", "ANM::parameters": "anm",
}  # fmt: skip
# Settings that may differ between explorers.
CHANGEABLE = {
    "parameters": (
        "temperature", "anm_frequency", "side_chain_prediction_frequency", "minimization_frequency",
        "side_chain_prediction_region_radius", "minimization_region_radius", "activate_proximity_detection",
        "proximity_distance", "com_constant", "water_perturbation_frequency",
    ),
    "perturbation": (
        "number_of_trials", "number_of_steric_trials", "translation_range", "rotation_scaling_factor",
        "rotation_range_factor", "overlap_factor", "steering_update_frequency",
    ),
    "anm": ("displacement_factor",),
}  # fmt: skip


@dataclass(frozen=True)
class BoxBlock:
    """Box that confines the ligand's centre of mass.

    kind : sphericalBox, sphericalShellBox or prismaticBox; radii : radius of a sphere, or inner and outer radius, A
    edges : edge lengths of a prism, A; center : A, None for the centre of mass of `selection`
    """

    kind: str
    radii: tuple[float, ...]
    edges: tuple[float, float, float] | None
    center: tuple[float, float, float] | None
    selection: object


@dataclass(frozen=True)
class ConstraintBlock:
    """Constraint that acts in all minimizations.

    kind : `type` in the file; constant : kcal/mol/A^2 or kcal/mol/rad^2; target : A or degrees
    atoms : identifiers of its atoms; point : A, None for the atom's initial position
    """

    kind: str
    constant: float
    target: float
    atoms: tuple[str, ...]
    point: tuple[float, float, float] | None = None


@dataclass(frozen=True)
class MetricBlock:
    """Metric or tracker of a task. settings : its settings in the file"""

    kind: str
    tag: str
    is_logged: bool
    place: str
    settings: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Change:
    """New values of settings: `then` if any condition is true, else `otherwise`.

    Both map fields of SimulationTask to settings and their values.
    """

    conditions: tuple[Condition, ...]
    then: Mapping[str, Mapping[str, Any]]
    otherwise: Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True)
class SimulationTask:
    """Task of a simulation; blocks that it lacks are inherited from the simulation.

    box, perturbation, anm, side_chains and side_chain_minimizer are None if the file has no such block. Selections are
    stored as in the file.
    """

    parameters: PeleParameters
    perturbation: PerturbationBlock | None
    box: BoxBlock | None
    anm: AnmBlock | None
    anm_minimizer: MinimizerBlock
    anm_nodes: object
    anm_include: object
    anm_omit: object
    side_chains: SideChainBlock | None
    side_chain_minimizer: MinimizerBlock | None
    side_chain_include: object
    side_chain_omit: object
    minimizer: MinimizerBlock
    minimized: object
    not_minimized: object
    constraints: tuple[ConstraintBlock, ...]
    metrics: tuple[MetricBlock, ...]
    changes: tuple[Change, ...]
    exit_conditions: tuple[Condition, ...]


@dataclass(frozen=True)
class Simulation:
    """Control file with a peleSimulation command.

    path : path of the file; energies : its settings for energies; complexes : paths of the files of each complex
    ligand : selectionToPerturb; seed : None if the file has no seed
    log, saved_control : paths, "" for none; refused : names of unsupported features; notes : messages
    """

    path: Path
    energies: ControlFile
    complexes: tuple[tuple[str, ...], ...]
    ligand: object
    seed: int | None
    output: OutputBlock
    tasks: tuple[SimulationTask, ...]
    log: str
    saved_control: str
    refused: tuple[str, ...]
    notes: tuple[str, ...]

    def require_done(self) -> None:
        """Raise FormatError if the file uses unsupported features; the message lists them."""
        if self.refused:
            raise FormatError(f"{self.path}: not supported: {'; '.join(self.refused)}. Remove it from the file")


def read_simulation(path: str | PathLike[str], words: Mapping[str, str] | None = None) -> Simulation:
    """Read a control file with a single peleSimulation command.

    words : values for `$WORDS`, by name

    Raises FormatError for a file that is not a control file, and for invalid values.
    """
    file = Path(path)
    whole = control_json(file, words)
    energies = settings_for_energies(file, whole)
    assert isinstance(whole, dict)
    reader = _Reader(file)
    reader.unread.words = words_in(whole)
    found = reader.simulation(Block(file, "", whole, reader.unread))
    notes = [note for note in energies.notes if getattr(note, "code", "") != FIRST_COMPLEX]  # all complexes are used
    if reader.unread.names:
        notes.append(f"{file}: unknown settings were ignored: {', '.join(dict.fromkeys(reader.unread.names))}")
    notes += reader.notes
    return replace(found, energies=energies, notes=tuple(notes))


class _Reader:
    """Reads the blocks of a file. unread : ignored settings; notes : messages; refused : unsupported features"""

    def __init__(self, file: Path) -> None:
        self.file, self.unread = file, Unread()
        self.notes: list[str] = []
        self.refused: dict[str, None] = {}
        self.named = set[str]()  # blocks of unsupported moves

    def simulation(self, whole: Block) -> Simulation:
        start = whole.block("Initialization")
        for name in ("ForceField", "Solvent", "allowMissingTerminals", "Complex", "MultipleComplex"):
            start.take(name)  # already read with the settings for energies
        start.finish()
        for name in ("licenseDirectoryPath", "verboseMode", "Initialization"):
            whole.take(name)
        for name in ("commandFilePath", "commandOutputFilePath"):
            self.refuse(name in whole, f"{name} (control while it runs)")
        log, saved = whole.text("simulationLogPath"), whole.text("controlFileSavingPath")
        commands = whole.blocks("commands")
        if not commands:
            raise FormatError(f"{self.file}: names no commands; expected one of the type {SIMULATION}")
        command = commands[0]
        kinds = [each.text("commandType") for each in commands]
        for k, kind in enumerate(kinds):
            self.refuse(kind != SIMULATION, f"commands[{k}] of the type {kind or 'that is not named'}")
        self.refuse(len(commands) > 1, f"{len(commands)} commands; only one is supported")
        generator = command.block("RandomGenerator")
        seed = int(generator.number("seed", 0, least=0)) if "seed" in generator else None
        self.refuse("randomGeneratorFile" in generator, "RandomGenerator.randomGeneratorFile")
        output = command.block("PELE_Output")
        log = output.text("simulationLogPath", log)
        written = output.fill(OutputBlock)
        output.take("simulationLogPath")
        output.finish()
        if written.controller_events_log_path:
            self.notes.append(f"{self.file}: PELE_Output.controllerEventsLogPath is ignored; there is no controller")
        self.refuse(written.use_inter_step_logger, "PELE_Output.useInterStepLogger")
        self.refuse(written.saving_mode != "savingTrajectory", f"PELE_Output.savingMode {written.saving_mode}")
        ligand = command.take("selectionToPerturb")
        base = self._task(command, None)
        tasks = command.blocks("PeleTasks")
        found = tuple(self._task(task, base) for task in tasks) or (base,)
        for task in found:
            self._note_what_has_no_effect(task)
        if "NonBonding" in command:
            command.take("NonBonding")
            self.notes.append(f"{self.file}: the cutoffs of NonBonding are ignored; all pairs are computed")
        command.finish()
        whole.finish()
        self.refuse(
            ligand is None and any(task.perturbation for task in found), "Perturbation without selectionToPerturb"
        )
        return Simulation(
            path=self.file, energies=None, complexes=_complexes(start), ligand=ligand, seed=seed,  # type: ignore[arg-type]
            output=written, tasks=found, log=log, saved_control=saved, refused=tuple(self.refused), notes=(),
        )  # fmt: skip

    def _note_what_has_no_effect(self, task: SimulationTask) -> None:
        """Add notes about settings of a task that have no effect."""
        changed = (of.get("parameters", {}) for change in task.changes for of in (change.then, change.otherwise))
        radii = [own.get("minimization_region_radius", math.inf) for own in (vars(task.parameters), *changed)]
        if task.minimized == ALL and min(radii) < PeleParameters().minimization_region_radius:
            self.notes.append(
                f"{self.file}: minimizationRegionRadius has no effect, because includeInMinimization is all, PELE's "
                "default; select for example only the ligand there"
            )
        if task.anm is not None and task.anm.eigen_update_frequency <= task.parameters.number_of_pele_steps:
            self.notes.append(
                f"{self.file}: ANM.parameters.eigenUpdateFrequency is ignored; the first modes are used throughout"
            )

    def refuse(self, is_asked: bool, what: str) -> None:
        if is_asked:
            self.refused[what] = None

    def _task(self, block: Block, base: SimulationTask | None) -> SimulationTask:
        """Read the blocks of a task, or those of the command itself if `base` is None."""
        parameters = block.block("PELE_Parameters")
        own = parameters.fill(PeleParameters, base.parameters if base else None)
        parameters.finish()
        for name, frequency in (
            ("WaterPerturbation", own.water_perturbation_frequency),
            ("ConformationPerturbation", own.conformation_perturbation_frequency),
            ("SideChainPerturbation", own.side_chain_perturbation_frequency),
        ):
            block.take(name)
            self.named |= {name} if name in block else set()
            self.refuse(name in self.named and frequency > 0, f"{name} (it is ignored if its frequency is 0)")
        for name in ("jumpIf", "jumpController", "interactionRestrictions"):
            self.refuse(bool(block.take(name)), name)
        self.refuse(own.number_of_top_side_selected_links > 0, "PELE_Parameters.numberOfTopSideSelectedLinks")
        perturbation, box = self._perturbation(block, base)
        metrics = (*(base.metrics if base else ()), *self._metrics(block))
        sensors = {metric.tag for metric in metrics if metric.tag} | set(TRACKERS)
        task = SimulationTask(
            parameters=own, perturbation=perturbation, box=box, **self._anm(block, base),
            **self._side_chains(block, base),
            minimizer=self._minimizer(block, "Minimizer", base.minimizer if base else MinimizerBlock()),
            minimized=block.take("includeInMinimization") or (base.minimized if base else ALL),
            not_minimized=block.take("doNotIncludeInMinimization") or (base.not_minimized if base else "empty"),
            constraints=(*(base.constraints if base else ()), *self._constraints(block)), metrics=metrics, changes=(),
            exit_conditions=self._conditions(block, "exitConditions", sensors),
        )  # fmt: skip
        task = replace(task, changes=tuple(self._changes(block, task, sensors)))
        wet = (of.get("parameters", {}) for change in task.changes for of in (change.then, change.otherwise))
        is_wet = any(values.get("water_perturbation_frequency", 0) > 0 for values in wet)
        self.refuse(
            "WaterPerturbation" in self.named and is_wet, "WaterPerturbation (through a change of its frequency)"
        )
        if base is not None:
            block.finish()
        return task

    def _perturbation(
        self, block: Block, base: SimulationTask | None
    ) -> tuple[PerturbationBlock | None, BoxBlock | None]:
        found = block.block("Perturbation")
        if "Perturbation" not in block or not found.values:
            return (base.perturbation, base.box) if base else (None, None)
        own = found.fill(PerturbationBlock)
        box = self._box(found)
        found.finish()
        self.refuse(own.perturbation_type == "metropolis", "Perturbation.perturbationType metropolis")
        self.refuse(own.rotation_angles == "coupled", "Perturbation.rotationAngles coupled")
        self.refuse(own.steering_mode == "best", "Perturbation.parameters.steeringMode best")
        self.refuse(own.perturb_all_at_once, "Perturbation.parameters.perturbAllAtOnce")
        self.refuse(own.at_least_one_selected_trial, "Perturbation.parameters.atLeastOneSelectedTrial")
        return own, box

    def _box(self, perturbation: Block) -> BoxBlock | None:
        found = perturbation.block("Box")
        if "Box" not in perturbation or not found.values:
            return None
        kind = found.text("type")
        radii: tuple[float, ...] = ()
        edges = None
        if kind == "sphericalBox":
            radii = (found.number("radius", 0, least=0),)
        elif kind == "sphericalShellBox":
            radii = (found.number("innerRadius", 0, least=0), found.number("outerRadius", 0, least=0))
        elif kind == "prismaticBox":
            edges = found.point("x_y_z")
        else:
            self.refuse(True, f"{found.place}.type {kind}")
        if radii and not radii[-1] > (radii[0] if len(radii) > 1 else 0):
            name = "radius" if len(radii) == 1 else "outerRadius"
            raise found.fault(name, radii[-1], "a positive radius, for a shell above innerRadius")
        if not (radii or edges) and kind == "prismaticBox":
            raise found.fault("x_y_z", None, "a list of three numbers")
        box = BoxBlock(kind, radii, edges, found.point("fixedCenter"), found.take("selectionOfAtomsForCOM"))
        found.finish()
        return box

    def _anm(self, block: Block, base: SimulationTask | None) -> dict[str, Any]:
        found = block.block("ANM")
        names = "anm", "anm_minimizer", "anm_nodes", "anm_include", "anm_omit"
        defaults = (None, ANM_MINIMIZER, None, {"chains": NO_LIGANDS}, "empty")
        before: dict[str, Any] = dict(zip(names, defaults, strict=True))
        before |= {} if base is None else {name: getattr(base, name) for name in names}
        if not found.values:
            return before
        own = found.fill(AnmBlock, before["anm"])
        values = {
            "anm": None if own.algorithm == "NULL" else own,
            "anm_minimizer": self._minimizer(found, "anmMinimizer", before["anm_minimizer"]),
            "anm_nodes": found.take("nodes") or before["anm_nodes"],
            "anm_include": found.take("linksToInclude") or before["anm_include"],
            "anm_omit": found.take("linksToOmit") or before["anm_omit"],
        }
        found.finish()
        if values["anm"]:
            self.refuse(own.decay_constant != 1, "ANM.parameters.decayConstant other than 1")
            self.refuse(own.equilibrium_parameter != 0, "ANM.parameters.equilibriumParameter")
        return values

    def _side_chains(self, block: Block, base: SimulationTask | None) -> dict[str, Any]:
        found = block.block("SideChainPrediction")
        names = "side_chains", "side_chain_minimizer", "side_chain_include", "side_chain_omit"
        defaults = (None, None, "empty", "empty")
        before: dict[str, Any] = dict(zip(names, defaults, strict=True))
        before |= {} if base is None else {name: getattr(base, name) for name in names}
        if not found.values:
            return before
        own = found.fill(SideChainBlock)
        has_minimizer = "sideChainMinimizer" in found
        values = {
            "side_chains": own,
            "side_chain_minimizer": self._minimizer(found, "sideChainMinimizer", MinimizerBlock())
            if has_minimizer
            else None,
            "side_chain_include": found.take("selectionToInclude") or "empty",
            "side_chain_omit": found.take("selectionToOmit") or "empty",
        }
        found.finish()
        self.refuse(own.algorithm != "zhexin", f"SideChainPrediction.algorithm {own.algorithm}")
        self.refuse(own.randomize, "SideChainPrediction.parameters.randomize")
        self.refuse(own.skip_global_minimization, "SideChainPrediction.parameters.skipGlobalMinimization")
        self.refuse(own.discard_high_energy_solutions, "SideChainPrediction.parameters.discardHighEnergySolutions")
        return values

    def _minimizer(self, block: Block, name: str, base: MinimizerBlock) -> MinimizerBlock:
        found = block.block(name)
        own = found.fill(MinimizerBlock, base)
        found.finish()
        if own.alpha_updated and found.values:
            self.notes.append(f"{self.file}: {found.place}.alphaUpdated is ignored; Born radii are fixed")
        if own.algorithm != "TruncatedNewton":
            self.notes.append(f"{self.file}: {found.place}.algorithm {own.algorithm} is replaced by TruncatedNewton")
            own = replace(own, algorithm="TruncatedNewton")
        return own

    def _constraints(self, block: Block) -> list[ConstraintBlock]:
        found = []
        for each in block.blocks("constraints"):
            kind = each.text("type")
            constant = each.number("springConstant", 0, least=0)
            if kind == "constrainAtomToPosition":
                atoms: tuple[str, ...] = (each.text("constrainThisAtom"),)
                target = each.number("equilibriumDistance", 0)
                self.refuse(target != 0, f"{each.place}.equilibriumDistance other than 0")
            elif kind == "constrainAtomsDistance":
                atoms = each.text("constrainThisAtom"), each.text("toThisOtherAtom")
                target = each.number("equilibriumDistance", 0, least=0)
            elif kind == "constrainAtomsToDihedral":
                atoms = tuple(each.text(f"{place}Atom") for place in ("first", "second", "third", "fourth"))
                target = each.number("equilibriumAngle", 0)
            else:
                self.refuse(True, f"{each.place}.type {kind or 'that is not named'}")
                continue
            found.append(ConstraintBlock(kind, constant, target, atoms, each.point("toThisPoint")))
            each.finish()
        return found

    def _metrics(self, block: Block) -> list[MetricBlock]:
        found, tags = [], set(TRACKERS)
        for each in (*block.blocks("metrics"), *block.blocks("track")):
            variable = each.text("variable")
            kind, tag = (variable, "") if variable else (each.text("type"), each.text("tag"))
            is_logged = each.flag("logIt", True)
            if kind not in (TRACKERS if variable else METRICS):
                self.refuse(True, f"{each.place} of the type {kind or 'that is not named'}")
                continue
            if tag in tags or " " in tag:
                raise FormatError(
                    f"{each.place}: the tag {quoted(tag)} is already used or contains a blank; give another"
                )
            tags |= {tag} - {""}
            given = {name: each.take(name) for name in METRICS.get(kind, ()) if name in each}
            found.append(MetricBlock(kind, tag, is_logged, each.place, given))
            each.finish()
        return found

    def _conditions(self, block: Block, name: str, sensors: set[str]) -> tuple[Condition, ...]:
        place = f"{self.file}: {block.place}.{name}"
        found = tuple(parse_condition(text, place) for text in block.texts(name))
        for condition in found:
            for sensor in condition.sensors:
                if sensor not in sensors:
                    raise FormatError(
                        f"{place}: the condition {quoted(condition.text)} contains {quoted(sensor)}, which is "
                        "not the tag of a metric"
                    )
        return found

    def _changes(self, block: Block, task: SimulationTask, sensors: set[str]) -> list[Change]:
        found = []
        for each in block.blocks("parametersChanges"):
            conditions = self._conditions(each, "ifAnyIsTrue", sensors)
            then, otherwise = (self._changed(each.block(name), task) for name in ("doThesechanges", "otherwise"))
            each.finish()
            found.append(Change(conditions, then, otherwise))
        return found

    def _changed(self, block: Block, task: SimulationTask) -> dict[str, dict[str, Any]]:
        """Read new values of settings: a dict by setting for each field of SimulationTask."""
        found: dict[str, dict[str, Any]] = {}
        for name in block.values:
            target = CHANGED.get(name)
            inner = block.block(name)
            if target is None:
                self.refuse(bool(inner.values), f"{block.place}: changes of {name}")
                continue
            before = getattr(task, target)
            if before is None:
                continue
            after = inner.fill(type(before), before, within="" if target == "parameters" else "parameters")
            inner.finish()
            named = inner.named(type(before))
            for setting in named:
                is_known = setting in CHANGEABLE[target]
                is_other = getattr(after, setting) != getattr(before, setting)
                self.refuse(is_other and not is_known, f"{inner.place}: a change of {setting}")
            found.setdefault(target, {}).update({own: getattr(after, own) for own in named})
        return found


def _complexes(start: Block) -> tuple[tuple[str, ...], ...]:
    """Return the paths of the files of each complex; empty if any is given as `$WORD`."""
    several = start.take("MultipleComplex")
    listed = several if isinstance(several, list) else [start.take("Complex")]
    found = []
    for each in listed:
        files = each.get("files") if isinstance(each, dict) else None
        paths = [file.get("path") for file in files if isinstance(file, dict)] if isinstance(files, list) else []
        if not paths or not all(isinstance(path, str) and "$" not in path for path in paths):
            return ()
        found.append(tuple(map(str, paths)))
    return tuple(found)
