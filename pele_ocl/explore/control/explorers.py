"""Build explorers from a control file: moves, restraints and settings from its blocks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...atoms import Atoms, Floats, Ints
from ...atoms.torsions import Flexible
from ...energy.terms import PositionalRestraint
from ...forcefield.control import beside
from ..anm import ANM
from ..box import Box
from ..explorer import Explorer
from ..minimization import Minimization
from ..modes import read_nmd
from ..perturbation import Perturbation
from ..regions import Region
from ..rot_assign import read_rot_assign
from ..rotamers import RotamerLibrary
from ..side_chains import SideChains
from ..walk import Move, Settings, Walk
from .blocks import AnmBlock, MinimizerBlock, PeleParameters, PerturbationBlock
from .building import constraint_terms
from .selections import ALL, selected
from .simulation import Simulation, SimulationTask

Bools = NDArray[np.bool_]
_PICKING = {"RANDOM_MODE": "random", "LOWEST_MODE": "lowest", "DEFINED_MODE": "defined"}
_DIRECTIONS = {"random": "random", "useAlwaysTheSame": "same", "oscillate": "oscillate"}
_MIXING = {"mixMainModeWithOthersModes": "main", "mixAllModesEquallyRandom": "all", "doNotMixModes": "none"}
_MAGNITUDES = {"noRandom": "fixed", "biasedRandom": "biased", "scaledBiasedRandom": "scaled", "random": "random"}
# Subfolders of Data and DataLocal.
_ROTAMERS, _SIDE_CHAINS = Path("LigandRotamerLibs"), Path("RotamerLibs")


@dataclass(frozen=True, eq=False)
class ChosenRegion(Region):
    """Region that always includes some atoms in addition to those near the ligand (PELE's includeInMinimization).

    always : indices of atoms
    """

    always: Ints | None = None

    def free(self, walk: Walk, row: int, x: Floats, further: Ints | None = None) -> Bools:
        found = [own for own in (self.always, further) if own is not None]
        return super().free(walk, row, x, np.concatenate(found) if found else None)


def explorer_of(
    simulation: Simulation, task: SimulationTask, atoms: Atoms, ligand: Bools, numbers: Sequence[int], starts: Floats,
    *, seed: int, box: Box | None, folders: Sequence[Path] = (), **options: Any,
) -> Explorer:  # fmt: skip
    """Build the explorers of a task.

    ligand : mask (n,) of the perturbed atoms; numbers : numbers of the explorers; starts : their initial positions,
        (n_explorers, n, 3) A
    folders : Data and DataLocal, which may contain rotamers of the ligand; options : options of `Ensemble`

    Raises InputError for atoms that are not in the molecule.
    """
    terms = constraint_terms(simulation.path, task.constraints, atoms)
    explorer = Explorer(
        atoms, ligand, moves_of(simulation, task, atoms, ligand, folders), seed=seed, explorers=list(numbers),
        settings=settings_of(task, vars(task), box), positions=starts, terms=terms,
        removes_bulk=task.parameters.remove_bulk_movement, **options,
    )  # fmt: skip
    held = [term for term in terms if isinstance(term, PositionalRestraint)]
    if held and not (starts == atoms.positions).all():
        _hold_where_they_began(explorer, held, atoms, starts)
    return explorer


def moves_of(
    simulation: Simulation, task: SimulationTask, atoms: Atoms, ligand: Bools, folders: Sequence[Path]
) -> list[Move]:
    """Build the moves of a task, in order."""
    moves: list[Move] = []
    if task.perturbation is not None:
        own = task.perturbation
        flexible = ligand_rotamers(atoms, np.flatnonzero(ligand).astype(np.int32), folders)
        moves.append(
            Perturbation(
                flexible, direction="steered" if own.translation_direction == "steered" else "random",
                kind="spherical" if own.translation_range_type == "spherical" else "centered",
                resolution=own.grid_resolution,
            )
        )  # fmt: skip
    region = region_of(simulation, task, atoms)
    if task.anm is not None:
        moves.append(anm_of(simulation, task, atoms, ligand, region))
    if task.side_chains is not None:
        moves.append(side_chains_of(simulation, task, atoms, folders))
    moves.append(Minimization(region, **minimizer_options(task.minimizer)))
    return moves


def region_of(simulation: Simulation, task: SimulationTask, atoms: Atoms) -> ChosenRegion:
    """Build the region of atoms that minimizations move."""
    place = simulation.path
    always = np.flatnonzero(selected(atoms, task.minimized, f"{place}: includeInMinimization")).astype(np.int32)
    never = np.flatnonzero(selected(atoms, task.not_minimized, f"{place}: doNotIncludeInMinimization"))
    return ChosenRegion(omit=never if len(never) else None, always=always)


def anm_of(simulation: Simulation, task: SimulationTask, atoms: Atoms, ligand: Bools, region: Region) -> ANM:
    """Build the ANM moves, with modes from a file if the block names one."""
    assert task.anm is not None
    assert atoms.labels is not None
    own, place = task.anm, f"{simulation.path}: ANM"
    nodes = selected(atoms, task.anm_include, f"{place}.linksToInclude") & ~ligand
    nodes &= ~selected(atoms, task.anm_omit, f"{place}.linksToOmit")
    alpha = {"atoms": {"names": ["_CA_"]}}
    nodes &= selected(atoms, alpha if own.algorithm == "ALPHACARBONS" else task.anm_nodes or ALL, f"{place}.nodes")
    modes = None
    if own.preloaded_modes:
        modes = read_nmd(_modes_file(simulation, own), "pele")[0]
    is_exponential = own.elastic_network_model == "exponentialContactModel"
    network = {
        "constant": own.constant_for_hessian, "bonded_constant": own.bonded_constant_for_hessian,
        "model": "exponential" if is_exponential else "contact", "decay": own.exponential_distance_decay,
    }  # fmt: skip
    options = {name: value for name, value in minimizer_options(task.anm_minimizer).items() if name != "method"}
    return ANM(
        nodes, modes, count=own.number_of_modes, cutoff=own.cutoff, network=network,
        picking=_PICKING[own.picking_case], defined=own.defined_mode, change_frequency=own.modes_change_frequency,
        direction=_DIRECTIONS[own.direction_generation], first_direction=1 if own.initial_direction > 0 else -1,
        mixing=_MIXING[own.modes_mixing_option], main_weight=own.main_mode_weight, thermal=own.thermal_scaling,
        magnitude=_MAGNITUDES[own.move_magnitude_generation], steering=own.steering_force,
        relaxation=own.relaxation_spring_constant, region=region, **options,
    )  # fmt: skip


def side_chains_of(simulation: Simulation, task: SimulationTask, atoms: Atoms, folders: Sequence[Path]) -> SideChains:
    """Build the side-chain prediction, with PELE's rotamers if a folder contains them."""
    assert task.side_chains is not None
    own, place = task.side_chains, f"{simulation.path}: SideChainPrediction"
    chosen = selected(atoms, task.side_chain_include, f"{place}.selectionToInclude")
    omitted = selected(atoms, task.side_chain_omit, f"{place}.selectionToOmit")
    library = _side_chain_folder(folders)
    return SideChains(
        select=_words_of(chosen), omit=_words_of(omitted), overlap=own.initial_overlap_factor,
        least_overlap=own.minimal_overlap_factor,
        library=None if library is None else RotamerLibrary.from_folder(library),
        minimizer=None if task.side_chain_minimizer is None else minimizer_options(task.side_chain_minimizer),
    )  # fmt: skip


def _words_of(mask: Bools) -> str | None:
    """Convert a mask (n,) to a selection, None if it has no atoms."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], mask, [False]]).astype(np.int8)))
    return " or ".join(f"index {a}:{b - 1}" for a, b in edges.reshape(-1, 2)) or None


def minimizer_options(block: MinimizerBlock) -> dict[str, Any]:
    """Return the options of Minimizer for a block."""
    return {
        "method": "newton", "tolerance": block.minimum_rms, "max_iterations": block.newton_iterations,
        "rounds": block.rounds,
    }  # fmt: skip


def ligand_rotamers(atoms: Atoms, ligand: Ints, folders: Sequence[Path]) -> Flexible | None:
    """Read the rotatable bonds of a single-residue ligand; None if no folder contains its file `LIG.rot.assign`."""
    path = _rotamer_file(atoms, ligand, folders)
    return None if path is None else read_rot_assign(path, atoms, ligand)


def files_of_moves(
    simulation: Simulation, task: SimulationTask, atoms: Atoms, ligand: Ints, folders: Sequence[Path]
) -> list[Path]:
    """List the files that `moves_of` reads: rotamers of the ligand, rotamers of side chains, and modes.

    ligand : (m,) indices of its atoms
    """
    found = []
    if task.perturbation is not None and (path := _rotamer_file(atoms, ligand, folders)):
        found.append(path)
    if task.side_chains is not None and (library := _side_chain_folder(folders)):
        found += sorted(path for path in library.iterdir() if path.is_file())
    if task.anm is not None and task.anm.preloaded_modes:
        found.append(_modes_file(simulation, task.anm))
    return found


def _modes_file(simulation: Simulation, block: AnmBlock) -> Path:
    return beside(simulation.path, Path(block.preloaded_modes))


def _side_chain_folder(folders: Sequence[Path]) -> Path | None:
    """Find the folder of PELE's side-chain rotamers, None if there is none."""
    found = [folder / _SIDE_CHAINS for folder in reversed(folders) if (folder / _SIDE_CHAINS).is_dir()]
    return found[0] if found else None


def _rotamer_file(atoms: Atoms, ligand: Ints, folders: Sequence[Path]) -> Path | None:
    """Find the file `LIG.rot.assign` of a single-residue ligand, None if no folder contains it."""
    assert atoms.labels is not None
    names = set(atoms.labels.residue_names[ligand].tolist())
    for folder in reversed(folders):  # DataLocal takes precedence
        for name in names if len(names) == 1 else ():
            path = folder / _ROTAMERS / f"{name}.rot.assign"
            if path.is_file():
                return path
    return None


def settings_of(task: SimulationTask, blocks: Mapping[str, Any], box: Box | None) -> Settings:
    """Build the settings of an explorer.

    blocks : current blocks of the explorer, by the names in sensors.CHANGING; box : box for the ligand's centre, or
        None
    """
    parameters: PeleParameters = blocks["parameters"]
    perturbation: PerturbationBlock = blocks["perturbation"] or PerturbationBlock()
    anm: AnmBlock | None = blocks["anm"]
    return Settings(
        temperature=parameters.temperature,
        translation_range=perturbation.translation_range,
        steering_update_frequency=perturbation.steering_update_frequency,
        rotation_scaling=perturbation.rotation_scaling_factor,
        rotation_range=perturbation.rotation_range_factor,
        trials=perturbation.number_of_trials,
        steric_trials=perturbation.number_of_steric_trials,
        overlap_factor=perturbation.overlap_factor,
        com_constant=parameters.com_constant if task.perturbation else 0.0,
        anm_frequency=parameters.anm_frequency if anm else 0,
        side_chain_frequency=parameters.side_chain_prediction_frequency if task.side_chains else 0,
        minimization_frequency=parameters.minimization_frequency,
        displacement=anm.displacement_factor if anm else 0.0,
        side_chain_radius=parameters.side_chain_prediction_region_radius,
        minimization_radius=parameters.minimization_region_radius,
        near_only=parameters.activate_proximity_detection,
        proximity_distance=parameters.proximity_distance,
        box=box,
    )


def state_of(explorer: Explorer) -> dict[str, Any]:
    """Return the state needed to continue after a step: step numbers, positions and the memory of the moves."""
    walk = explorer.walk
    rows = list(range(len(walk)))
    return {"steps": walk.steps.copy(), "positions": walk.ensemble.positions[walk.kept(rows)], "memory": walk.memory}


def restore_explorer(explorer: Explorer, state: Mapping[str, Any]) -> None:
    """Restore a state returned by `state_of`."""
    walk = explorer.walk
    walk.steps[:] = state["steps"]
    walk.memory[:] = state["memory"]
    walk.place(range(len(walk)), state["positions"])


def _hold_where_they_began(
    explorer: Explorer, terms: Sequence[PositionalRestraint], atoms: Atoms, starts: Floats
) -> None:
    """Restrain atoms of each explorer to its own initial positions, unless the control file specifies a point."""
    for term in terms:
        given = np.asarray(term.reference)
        has_point = (given != atoms.positions).any(axis=1)
        explorer.walk.ensemble.references(term.name)[list(range(len(starts)))] = [
            np.where(has_point[:, np.newaxis], given, start) for start in starts
        ]
    explorer.walk.place(range(len(starts)), starts)
