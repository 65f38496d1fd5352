"""Settings of each block with PELE's defaults, as described in the manual of PELE 1.8.1.

Only settings that the code uses are fields; a note lists all others that a control file contains.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..walk import MOST_TRIES
from .reading import setting


@dataclass(frozen=True)
class PeleParameters:
    """Block PELE_Parameters.

    A stage runs in every step that is a multiple of its frequency, counted from 1; 0 disables it. Lengths are in A.
    """

    temperature: float = setting(1000.0, within="", above=0)
    number_of_pele_steps: int = setting(1000, within="")
    anm_frequency: int = setting(2, within="")
    side_chain_prediction_frequency: int = setting(3, within="")
    minimization_frequency: int = setting(1, within="")
    water_perturbation_frequency: int = setting(3, within="")
    conformation_perturbation_frequency: int = setting(0, within="")
    side_chain_perturbation_frequency: int = setting(2, within="")
    number_of_top_side_selected_links: int = setting(0, within="")
    top_side_radius: float = setting(0.0, within="")
    side_chain_prediction_region_radius: float = setting(6.0, within="")
    minimization_region_radius: float = setting(1000.0, within="")
    activate_proximity_detection: bool = setting(True, within="")
    proximity_distance: float = setting(5.0, within="")
    com_constant: float = setting(0.0, "perturbationCOMConstraintConstant", within="")
    remove_bulk_movement: bool = setting(True, within="")
    activate_minimum_steps: bool = setting(False, within="")


@dataclass(frozen=True)
class PerturbationBlock:
    """Block Perturbation, without its Box."""

    perturbation_type: str = setting("naive", within="", choices=("naive", "metropolis"))
    translation_direction: str = setting("random", within="", choices=("random", "steered"))
    translation_range_type: str = setting("centered", within="", choices=("centered", "spherical"))
    rotation_angles: str = setting("nonCoupled", within="", choices=("nonCoupled", "coupled"))
    number_of_trials: int = setting(10, least=1, most=MOST_TRIES)
    number_of_steric_trials: int = setting(500, least=1, most=MOST_TRIES)
    translation_range: float = setting(1.0, above=0)
    rotation_scaling_factor: float = setting(0.5, most=0.5)
    rotation_range_factor: float = setting(0.25, most=1)
    overlap_factor: float = setting(0.6)
    steering_update_frequency: int = setting(2)
    steering_mode: str = setting("random", choices=("random", "best"))
    grid_resolution: float = setting(10.0, above=0)
    at_least_one_selected_trial: bool = setting(False)
    max_trials_for_at_least_one: int = setting(1000, least=1)
    perturb_all_at_once: bool = setting(False)


@dataclass(frozen=True)
class MinimizerBlock:
    """Block Minimizer. Energies are in kcal/mol, the rms gradient in kcal/mol/A."""

    algorithm: str = setting(
        "TruncatedNewton", within="", choices=("TruncatedNewton", "ConjugatedGradient", "SteepestDescent")
    )
    energy_difference: float = setting(1.0, "EnergyDifference")
    minimum_rms: float = setting(0.1, "MinimumRMS", above=0)
    rounds: int = setting(3, "MaximumMinimizationIterations")
    newton_iterations: int = setting(65, "MaximumNewtonIterations")
    alpha_updated: bool = setting(False)
    sgb_updated: bool = setting(True)
    list_updated: bool = setting(True, "nonBondingListUpdatedEachMinStep")


ANM_MINIMIZER = MinimizerBlock(rounds=1, newton_iterations=30, sgb_updated=False, list_updated=False)


@dataclass(frozen=True)
class AnmBlock:
    """Block ANM, without its minimizer and its selections."""

    algorithm: str = setting("ALPHACARBONS", within="", choices=("ALPHACARBONS", "CARTESIANS", "NULL"))
    preloaded_modes: str = setting("", "preloadedModesIn", within="")
    picking_case: str = setting("RANDOM_MODE", within="options", choices=("RANDOM_MODE", "LOWEST_MODE", "DEFINED_MODE"))
    defined_mode: int = setting(1, within="options", least=1)
    direction_generation: str = setting("random", within="options", choices=("random", "useAlwaysTheSame", "oscillate"))
    initial_direction: float = setting(1.0, within="options", least=-1, most=1)
    modes_mixing_option: str = setting(
        "mixMainModeWithOthersModes",
        within="options",
        choices=("mixMainModeWithOthersModes", "mixAllModesEquallyRandom", "doNotMixModes"),
    )
    move_magnitude_generation: str = setting(
        "noRandom", within="options", choices=("noRandom", "biasedRandom", "scaledBiasedRandom", "random")
    )
    elastic_network_model: str = setting(
        "powerContactModel", within="options", choices=("powerContactModel", "exponentialContactModel")
    )
    displacement_factor: float = setting(1.0, least=-1e9)
    number_of_modes: int = setting(6, least=1)
    thermal_scaling: bool = setting(True)
    cutoff: float = setting(12.0, above=0)
    constant_for_hessian: float = setting(1.667, above=0)
    bonded_constant_for_hessian: float = setting(0.0)
    decay_constant: float = setting(1.0, above=0)
    exponential_distance_decay: float = setting(5.0, above=0)
    steering_force: float = setting(20.0)
    relaxation_spring_constant: float = setting(0.0)
    equilibrium_parameter: float = setting(0.0, least=-1e9)
    eigen_update_frequency: int = setting(1_000_000, least=1)
    modes_change_frequency: int = setting(6, least=1)
    main_mode_weight: float = setting(0.6, "mainModeWeightForMixModes", above=0, most=1)


@dataclass(frozen=True)
class SideChainBlock:
    """Block SideChainPrediction, without its minimizer and its selections. The resolution is in degrees."""

    algorithm: str = setting("zhexin", within="", choices=("zhexin", "boltzmannSampling"))
    resolution: float = setting(10.0, above=0)
    initial_overlap_factor: float = setting(0.75)
    minimal_overlap_factor: float = setting(0.7)
    randomize: bool = setting(False)
    number_of_iterations: int = setting(1)
    discard_high_energy_solutions: bool = setting(False)
    temperature: float = setting(2000.0, above=0)
    skip_global_minimization: bool = setting(False)


@dataclass(frozen=True)
class OutputBlock:
    """Block PELE_Output. Paths are relative to the working directory; each explorer appends its number."""

    report_path: str = setting("", within="")
    trajectory_path: str = setting("", within="")
    saving_mode: str = setting("savingTrajectory", within="", choices=("savingTrajectory", "savingSteps", "savingBoth"))
    steps_folder: str = setting("", within="")
    saving_frequency: int = setting(1, "savingFrequencyForAcceptedSteps", within="", least=1)
    initial_pdb_path: str = setting("", within="")
    final_pdb_path: str = setting("", within="")
    flushing_frequency: int = setting(50, within="", least=1)
    use_inter_step_logger: bool = setting(False, within="")
    inter_step_logger_suffix: str = setting("_interStep", within="")
    controller_events_log_path: str = setting("", within="")
