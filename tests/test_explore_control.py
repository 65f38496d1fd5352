"""PELE's control file in full: defaults, selections, conditions, changes, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from explore_run_helpers import complex_lines, settings, write_complex, write_run
from forcefield_helpers import SAMPLES, needs_samples

import pele_ocl
from pele_ocl.common.errors import FormatError, InputError
from pele_ocl.explore import Settings
from pele_ocl.explore.control import read_simulation
from pele_ocl.explore.control.blocks import (
    ANM_MINIMIZER,
    AnmBlock,
    MinimizerBlock,
    PeleParameters,
    PerturbationBlock,
    SideChainBlock,
)
from pele_ocl.explore.control.building import box_of, constraint_terms
from pele_ocl.explore.control.conditions import parse_condition
from pele_ocl.explore.control.explorers import moves_of, settings_of
from pele_ocl.explore.control.selections import selected
from pele_ocl.explore.control.simulation import BoxBlock, ConstraintBlock
from pele_ocl.explore.sensors import changed, changing_blocks


@pytest.fixture
def task(tmp_path):
    """Read the task of settings with changes."""

    def read(**changes):
        return read_simulation(write_run(tmp_path, settings(**changes))).tasks[0]

    return read


@pytest.fixture(scope="module")
def molecule(tmp_path_factory):
    return pele_ocl.read(write_complex(tmp_path_factory.mktemp("complex") / "complex.pdb"))


def test_blocks_hold_in_tasks_too(tmp_path):
    simulation = read_simulation(write_run(tmp_path))
    (task,) = simulation.tasks
    assert (simulation.seed, simulation.complexes, simulation.refused) == (7, (("complex.pdb",),), ())
    assert simulation.notes == ()
    assert (task.parameters.temperature, task.parameters.number_of_pele_steps) == (1500, 4)
    assert task.parameters.proximity_distance == 5
    assert task.perturbation == PerturbationBlock(
        number_of_trials=2, number_of_steric_trials=50, translation_range=0.5, rotation_scaling_factor=0.05
    )
    assert task.box == BoxBlock("sphericalBox", (30.0,), None, (0.0, 0.0, 0.0), None)
    assert task.minimizer == MinimizerBlock(minimum_rms=2.0, rounds=1)
    assert (task.anm, task.side_chains, task.anm_minimizer) == (None, None, ANM_MINIMIZER)


def test_defaults_are_the_manual_s(task):
    found = task(PELE_Parameters=None, task_PELE_Parameters={}, ANM={"algorithm": "ALPHACARBONS"}, Minimizer=None)
    assert found.parameters == PeleParameters()
    assert vars(found.parameters) | {"temperature": 1000, "anm_frequency": 2} == vars(found.parameters)
    assert (found.anm, found.minimizer) == (AnmBlock(), MinimizerBlock())
    assert SideChainBlock().resolution == 10


def test_names_are_read_in_any_case(task):
    found = task(ANM={"options": {"pickingCase": "lowest_mode"}, "ANMMinimizer": {"parameters": {"MinimumRMS": 0.2}}})
    assert (found.anm.picking_case, found.anm_minimizer.minimum_rms) == ("LOWEST_MODE", 0.2)


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"WaterPerturbation": {"Box": {}}}, "WaterPerturbation"),
        ({"SideChainPerturbation": {"parameters": {}}}, "SideChainPerturbation"),
        ({"commandType": "minimization"}, "commands[0] of the type minimization"),
        ({"task_jumpIf": ["rand > 0.5"]}, "jumpIf"),
        ({"task_metrics": [{"type": "hbond"}], "task_parametersChanges": None}, "metrics[0] of the type hbond"),
        ({"Perturbation": {"perturbationType": "metropolis"}}, "perturbationType metropolis"),
        ({"ANM": {"parameters": {"decayConstant": 2}}}, "ANM.parameters.decayConstant"),
        ({"SideChainPrediction": {"algorithm": "boltzmannSampling"}}, "boltzmannSampling"),
        ({"constraints": [{"type": "constrainDistanceToCOM"}]}, "constrainDistanceToCOM"),
    ],
)
def test_what_is_not_done_is_refused_by_name(tmp_path, changes, named):
    simulation = read_simulation(write_run(tmp_path, settings(**changes)))
    with pytest.raises(FormatError) as error:
        simulation.require_done()
    assert named in str(error.value)


def test_blocks_that_are_never_made_are_not_refused(tmp_path):
    frequencies = {"waterPerturbationFrequency": 0, "conformationPerturbationFrequency": 0}
    whole = settings(WaterPerturbation={"Box": {}}, ConformationPerturbation={}, PELE_Parameters=frequencies)
    assert read_simulation(write_run(tmp_path, whole)).refused == ()


def test_what_is_not_understood_is_one_note(tmp_path):
    whole = settings(Colour="red", PELE_Parameters={"temprature": 300})
    whole["Initialization"]["fixTrees"] = True
    (note,) = read_simulation(write_run(tmp_path, whole)).notes
    assert note.endswith(
        "unknown settings were ignored: Initialization.fixTrees, commands[0].PELE_Parameters.temprature, "
        "commands[0].Colour"
    )


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"PELE_Parameters": {"temperature": 0}}, r"PELE_Parameters\.temperature is '0'; expected a number above 0"),
        ({"PELE_Parameters": {"anmFrequency": 1.5}}, "anmFrequency is '1.5'; expected a whole number"),
        ({"Perturbation": {"parameters": {"rotationScalingFactor": 2}}}, "a number from 0 to 0.5"),
        ({"Perturbation": {"perturbationType": "wild"}}, "one of naive, metropolis"),
        ({"Perturbation": {"Box": {"type": "sphericalBox", "radius": "$BOX_RADIUS"}}}, "by explore's `set`"),
        ({"Perturbation": {"parameters": {"numberOfTrials": 70000}}}, "numberOfTrials is '70000'; .* from 1 to 65535"),
        (
            {"Perturbation": {"Box": {"type": "sphericalBox"}}},
            r"Perturbation\.Box\.radius is .0.*; expected a positive radius",
        ),
        (
            {"Perturbation": {"Box": {"type": "sphericalShellBox", "innerRadius": 5, "outerRadius": 2}}},
            r"Box\.outerRadius is .2.*; expected a positive radius, for a shell above innerRadius",
        ),
        ({"task_exitConditions": ["rmsd < 1"]}, "contains 'rmsd', which is not the tag of a metric"),
        ({"task_metrics": [{"type": "random", "tag": "a b"}]}, "the tag 'a b' is already used or contains a blank"),
    ],
)
def test_wrong_values_are_sentences(tmp_path, changes, message):
    with pytest.raises(FormatError, match=message):
        read_simulation(write_run(tmp_path, settings(**changes)))


def test_words_are_filled_in(tmp_path):
    control = write_run(tmp_path)
    text = control.read_text().replace('"seed": 7', '"seed": $SEED').replace('"radius": 30', '"radius": ${RADIUS}')
    control.write_text(text.replace('"MultipleComplex": [', '"MultipleComplex": [ $COMPLEXES,'))
    words = {"SEED": "12", "RADIUS": "6.5", "COMPLEXES": '{"files": [{"path": "b.pdb"}]}'}
    found = read_simulation(control, words)
    assert (found.seed, found.tasks[0].box.radii, found.complexes) == (12, (6.5,), (("b.pdb",), ("complex.pdb",)))
    assert not [note for note in found.notes if "complexes" in note]


@pytest.mark.parametrize(
    ("text", "values", "holds"),
    [
        ("rmsd1 < 5.5", {"rmsd1": 5}, True),
        ("a<5 or b>1", {"a": 6, "b": 1}, False),
        ("not a < 5 or b > 1", {"a": 4, "b": 2}, True),
        ("not (a < 5 or not b > 1)", {"a": 6, "b": 2}, True),
        ("a < 5 and b > 2 or c > 1", {"a": 9, "b": 3, "c": 2}, True),
        ("c > 1 or a < 5 and b > 2", {"a": 9, "b": 3, "c": 2}, True),
        ("steps = 4", {"steps": 4}, True),
        ("rand2 >= .5", {"rand2": 0.5}, True),
        ("currentStep _every_ 5", {"currentStep": 6}, True),
        ("currentStep _every_ 5", {"currentStep": 5}, False),
        ("currentStep _every_ 5 _offset_ 2", {"currentStep": 8}, True),
        ("currentStep _every_ 5 _offset_ 2", {"currentStep": 1}, False),
    ],
)
def test_conditions_are_the_manual_s(text, values, holds):
    condition = parse_condition(text, "here")
    assert condition(values) is holds
    assert set(condition.sensors) == set(values)


@pytest.mark.parametrize("text", ["", "rmsd", "rmsd <", "rmsd < a", "(a < 1", "a < 1 b", "and < 1", "a _every_ 0"])
def test_no_conditions_are_sentences(text):
    with pytest.raises(FormatError, match=r"the condition .* cannot be read"):
        parse_condition(text, "here")


def test_settings_change_one_after_the_other(task):
    changes = [
        {"ifAnyIsTrue": ["rand > 2", "rand >= 0.5"], "doThesechanges": {"Pele::parameters": {"anmFrequency": 9}}},
        {
            "ifAnyIsTrue": ["currentStep _every_ 2"],
            "doThesechanges": {},
            "otherwise": {"LigandPerturbation::parameters": {"translationRange": 3.0, "numberOfTrials": 1}},
        },
    ]
    found = task(task_parametersChanges=changes)
    blocks = changed(changing_blocks(found), found.changes, {"rand": 0.6, "currentStep": 1})
    assert (blocks["parameters"].anm_frequency, blocks["perturbation"].translation_range) == (9, 0.5)
    blocks = changed(blocks, found.changes, {"rand": 0.4, "currentStep": 2})
    assert (blocks["parameters"].anm_frequency, blocks["perturbation"].translation_range) == (9, 3.0)
    assert blocks["perturbation"].number_of_trials == 1
    assert blocks["perturbation"].overlap_factor == 0.6


def test_changes_that_no_explorer_can_have_are_refused(tmp_path):
    change = {"ifAnyIsTrue": ["rand > 0"], "doThesechanges": {"Minimizer::parameters": {"MinimumRMS": 1}}}
    other = {"ifAnyIsTrue": ["rand > 0"], "doThesechanges": {"ANM::parameters": {"numberOfModes": 3}}}
    whole = settings(ANM={"algorithm": "ALPHACARBONS"}, task_parametersChanges=[change, other])
    refused = read_simulation(write_run(tmp_path, whole)).refused
    assert [what.rpartition(": ")[2] for what in refused] == [
        "changes of Minimizer::parameters",
        "a change of number_of_modes",
    ]


def test_changes_that_nothing_would_come_of_are_refused(tmp_path):
    def refused(**changes):
        change = {"ifAnyIsTrue": ["rand > 0"], "doThesechanges": {"Pele::parameters": changes}}
        parameters = {"waterPerturbationFrequency": 0, "conformationPerturbationFrequency": 0}
        own = settings(task_parametersChanges=[change], PELE_Parameters=parameters, WaterPerturbation={"a": 1})
        return read_simulation(write_run(tmp_path, own)).refused

    assert refused(waterPerturbationFrequency=0, temperature=300) == ()
    assert refused(waterPerturbationFrequency=1) == ("WaterPerturbation (through a change of its frequency)",)
    in_task = settings(
        PELE_Parameters={"waterPerturbationFrequency": 0}, WaterPerturbation={"a": 1},
        task_PELE_Parameters={"waterPerturbationFrequency": 1},
    )  # fmt: skip
    assert "WaterPerturbation" in read_simulation(write_run(tmp_path, in_task)).refused[0]
    (steps,) = refused(numberOfPeleSteps=9)
    assert steps.endswith("a change of number_of_pele_steps")


def test_what_has_no_effect_is_told_of(tmp_path):
    parameters = {"minimizationRegionRadius": 10, "numberOfPeleSteps": 20}
    anm = {"algorithm": "ALPHACARBONS", "parameters": {"eigenUpdateFrequency": 10}}
    output = {"reportPath": "out/report", "controllerEventsLogPath": "out/events"}

    def notes(**changes):
        own = settings(task_PELE_Parameters=parameters, **changes)
        return [note.split(": ", 1)[1] for note in read_simulation(write_run(tmp_path, own)).notes]

    assert notes(ANM=anm, PELE_Output=output) == [
        "PELE_Output.controllerEventsLogPath is ignored; there is no controller",
        "minimizationRegionRadius has no effect, because includeInMinimization is all, PELE's default; select "
        "for example only "
        "the ligand there",
        "ANM.parameters.eigenUpdateFrequency is ignored; the first modes are used throughout",
    ]
    assert notes(includeInMinimization={"chains": {"names": ["L"]}}) == []


def test_selections_are_the_manual_s(molecule):
    def names(given):
        mask = selected(molecule, given, "here")
        return [molecule.labels.atom(int(i)) for i in np.flatnonzero(mask)]

    n = len(molecule)
    assert len(names({"chains": "all"})) == n
    assert names("empty") == []
    assert len(names({"chains": {"names": ["L"]}})) == 33
    assert len(names({"atoms": {"names": ["_CA_"]}})) == 9
    assert len(names({"atoms": {"elements": ["S"]}})) == 1
    assert names({"atoms": {"ids": ["A:1:_CA_", "L:3:_OXT"]}}) == ["A:MET1:CA", "L:ALA3:OXT"]
    assert {name.rpartition(":")[0] for name in names({"links": {"ranges": ["A:2 A:4"]}})} == {
        "A:LYS2",
        "A:GLU3",
        "A:PHE4",
    }
    both = {"atoms": {"names": ["_CA_"]}, "links": {"ids": ["A:1"]}, "omit": {"atoms": {"ids": ["L:2:_CA_"]}}}
    assert len(names(both)) == 8 + 18
    assert len(names({"links": {"ranges": ["A:1 A:4"]}, "omit": {"links": {"names": ["MET"]}}})) == len(
        names({"links": {"ranges": ["A:2 A:4"]}})
    )
    for given, message in (
        ({"links": {"ids": ["B:7"]}}, "no atom of the structure is in 'B:7'"),
        ({"residues": {}}, "'residues' is not one of atoms, links, chains, omit"),
        ("nothing", "expected a selection of atoms, links or chains"),
        ({"chains": "most"}, "all, ligands or everythingButLigands"),
    ):
        with pytest.raises(InputError, match=message):
            selected(molecule, given, "here")


def test_calcium_is_no_alpha_carbon():
    from pele_ocl.atoms import Labels

    ones = np.ones(2, np.int32)
    labels = Labels(
        names=["CA", "CA"], elements=["C", "Ca"], residue_names=["ALA", "CA"], residue_numbers=ones,
        insertion_codes=["", ""], chains=["A", "A"], residue_index=[0, 1],
    )  # fmt: skip
    assert selected(labels, {"atoms": {"names": ["_CA_"]}}, "here").tolist() == [True, False]
    assert selected(labels, {"atoms": {"names": ["CA__"]}}, "here").tolist() == [False, True]


def test_constraints_are_restraints(molecule):
    blocks = [
        ConstraintBlock("constrainAtomToPosition", 2.5, 0.0, ("A:1:_CA_",)),
        ConstraintBlock("constrainAtomToPosition", 0.5, 0.0, ("A:2:_CA_",), (1.0, 2.0, 3.0)),
        ConstraintBlock("constrainAtomsDistance", 2.0, 3.0, ("A:1:_CA_", "L:1:_CA_")),
        ConstraintBlock("constrainAtomsToDihedral", 1.0, 90.0, ("A:1:_N__", "A:1:_CA_", "A:1:_C__", "A:2:_N__")),
    ]
    terms = constraint_terms(Path("pele.conf"), blocks, molecule)
    energies = {term.name: float(np.sum(term.energies(molecule)[0])) for term in terms}
    place = {molecule.labels.atom(i): x for i, x in enumerate(molecule.positions)}
    first, second, ligand = (place[name] for name in ("A:MET1:CA", "A:LYS2:CA", "L:ALA1:CA"))
    assert energies["constraints_2.5"] == 0
    assert energies["constraints_0.5"] == pytest.approx(0.5 * ((second - [1, 2, 3]) ** 2).sum())
    assert energies["constraint_3"] == pytest.approx(2.0 * (np.linalg.norm(first - ligand) - 3) ** 2)
    assert "constraint_4" in energies
    with pytest.raises(InputError, match="no atom of the structure is in 'A:1:_XX_'"):
        constraint_terms(Path("pele.conf"), [ConstraintBlock("constrainAtomToPosition", 1, 0, ("A:1:_XX_",))], molecule)


def test_boxes(molecule):
    def inside(block, *points):
        return box_of(Path("pele.conf"), block, molecule).contains(np.array(points, float)).tolist()

    assert inside(BoxBlock("sphericalBox", (2.0,), None, (1, 0, 0), None), (2.5, 0, 0), (3.5, 0, 0)) == [True, False]
    assert inside(BoxBlock("sphericalShellBox", (2.0, 5.0), None, (0, 0, 0), None), (1, 0, 0), (3, 0, 0)) == [
        False,
        True,
    ]
    assert inside(BoxBlock("prismaticBox", (), (2, 4, 6), (0, 0, 0), None), (0, 1.9, 0), (1.1, 0, 0)) == [True, False]
    chain = molecule.labels.chains == "A"
    center = np.average(molecule.positions[chain], axis=0, weights=molecule.masses[chain])
    of_chain = BoxBlock("sphericalBox", (0.01,), None, None, {"chains": {"names": ["A"]}})
    assert inside(of_chain, center, center + 1) == [True, False]


@needs_samples
def test_a_control_file_of_adaptive_pele():
    simulation = read_simulation(SAMPLES / "3ptb" / "pele.conf")
    (task,) = simulation.tasks
    assert (simulation.seed, simulation.refused) == (290589, ())
    (note,) = simulation.notes
    assert note.endswith("Minimizer.alphaUpdated is ignored; Born radii are fixed")
    assert (task.parameters.number_of_pele_steps, task.parameters.minimization_region_radius) == (5, 100)
    assert task.anm.modes_mixing_option == "mixAllModesEquallyRandom"
    assert (task.anm_minimizer.newton_iterations, task.anm_minimizer.minimum_rms) == (100, 0.05)
    assert (task.anm_minimizer.alpha_updated, task.minimizer.alpha_updated) == (False, True)
    assert [metric.kind for metric in task.metrics] == ["bindingEnergy", "random", "random", "random"]
    assert task.changes[0].otherwise == {"parameters": {"anm_frequency": 1, "minimization_region_radius": 1000.0}}
    assert task.minimized == {"chains": {"names": ["L"]}}


@needs_samples
def test_a_template_of_pele_platform_is_filled_in():
    words = {
        "COMPLEXES": json.dumps({"files": [{"path": "a.pdb"}]}), "SEED": "1", "VERBOSE": "false", "ANM_FREQ": "4",
        "SIDECHAIN_FREQ": "2", "MIN_FREQ": "1", "WATER_FREQ": "1", "COM": "0", "PROXIMITY": "true",
        "TEMPERATURE": "1500", "PELE_STEPS": "3", "ANM_DIRECTION": "random", "ANM_PICKING_MODE": "RANDOM_MODE",
        "ANM_MIX_MODES": "mixMainModeWithOthersModes", "ANM_DISPLACEMENT": "0.75", "ANM_MODES_CHANGE": "4",
        "ANM_NUM_OF_MODES": "6", "ANM_RELAXATION_CONST": "0.5", "SIDECHAIN_RESOLUTION": "30",
        "OUTPUT_PATH": "out", "REPORT_NAME": "report", "TRAJ_NAME": "trajectory.xtc",
    }  # fmt: skip
    simulation = read_simulation(SAMPLES / "1a28" / "pele.conf", words)
    (task,) = simulation.tasks
    assert (simulation.refused, simulation.output.trajectory_path) == ((), "out/trajectory.xtc")
    assert (task.perturbation, task.anm.relaxation_spring_constant, task.side_chains.resolution) == (None, 0.5, 30)
    assert (task.anm_minimizer.newton_iterations, task.anm_minimizer.minimum_rms) == (25, 0.2)


def test_lines_of_the_complex():
    assert len([line for line in complex_lines() if line.startswith("ATOM")]) == 96 + 33


def test_moves_are_the_blocks(tmp_path, molecule):
    blocks = {
        "ANM": {
            "algorithm": "CARTESIANS",
            "nodes": {"atoms": {"names": ["_CA_"]}},
            "linksToOmit": {"links": {"ids": ["A:1"]}},
            "options": {
                "directionGeneration": "oscillate",
                "initialDirection": -1.0,
                "modesMixingOption": "doNotMixModes",
            },
            "parameters": {"numberOfModes": 3, "relaxationSpringConstant": 0.5, "steeringForce": 15.0},
            "anmMinimizer": {"parameters": {"MaximumNewtonIterations": 25, "MinimumRMS": 0.2}},
        },
        "SideChainPrediction": {
            "selectionToInclude": {"links": {"ids": ["A:3"]}},
            "parameters": {"initialOverlapFactor": 0.8},
        },
        "includeInMinimization": {"chains": {"names": ["L"]}},
        "doNotIncludeInMinimization": {"links": {"ids": ["A:6"]}},
    }
    simulation = read_simulation(write_run(tmp_path, settings(**blocks)))
    (task,) = simulation.tasks
    ligand = molecule.labels.chains == "L"
    perturbation, anm, side_chains, minimization = moves_of(simulation, task, molecule, ligand, [])
    assert (perturbation.direction, perturbation.kind, perturbation.resolution) == ("random", "centered", 10)
    assert molecule.labels.residue_numbers[np.flatnonzero(anm.nodes)].tolist() == [2, 3, 4, 5, 6]
    assert (anm.count, anm.direction, anm.first_direction, anm.mixing) == (3, "oscillate", -1, "none")
    assert (anm.steering, anm.relaxation, anm.options["max_iterations"], anm.options["tolerance"]) == (15, 0.5, 25, 0.2)
    assert np.array_equal(
        molecule.selected(side_chains.select), selected(molecule, {"links": {"ids": ["A:3"]}}, "here")
    )
    assert side_chains.omit is None
    assert minimization.options["tolerance"] == 2.0

    class Far:  # a walk whose region around the ligand is empty, but for the ligand
        atoms, settings = molecule, [Settings(minimization_radius=0.5)]
        ligand = np.flatnonzero(molecule.labels.chains == "L")

    free = minimization.region.free(Far, 0, molecule.positions)
    assert np.array_equal(free, molecule.labels.chains == "L")


def test_settings_of_explorers(task):
    found = task(ANM={"algorithm": "ALPHACARBONS"}, PELE_Parameters={"perturbationCOMConstraintConstant": 1.0})
    own = settings_of(found, vars(found), None)
    assert (own.temperature, own.anm_frequency, own.side_chain_frequency, own.com_constant) == (1000, 2, 0, 1.0)
    assert (own.trials, own.steric_trials, own.translation_range, own.overlap_factor) == (2, 50, 0.5, 0.6)
    assert settings_of(task(), vars(task()), None).anm_frequency == 0
