"""The same words give the same numbers by the command, by Python functions, by plans and by jobs."""

from __future__ import annotations

import doctest
import json
import pickle
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import amber_helpers
import numpy as np
import pytest
from click.testing import CliRunner
from explore_run_helpers import write_run
from test_cli import on_the_chosen_device, run
from test_forcefield_loading import AMBER_LIGAND, write

import pele_ocl
from pele_ocl import (
    Binding,
    Energy,
    Ensemble,
    InputError,
    Minimizer,
    Nonbond,
    PBModel,
    Refiner,
    Simulation,
    Solvent,
    SolventModel,
    energy_over,
    jobs,
    pairs_within,
)
from pele_ocl.binding import PBSolvent
from pele_ocl.binding.alanine import to_alanine
from pele_ocl.cli import main
from pele_ocl.common.inputfile import read_file
from pele_ocl.forcefield import ForceField
from pele_ocl.gb_models import GB_MODELS
from pele_ocl.pb_model import salt_of
from pele_ocl.units import debye_kappa

__all__ = ["on_the_chosen_device"]

PEPTIDE = Path(__file__).parent.parent / "data" / "structures" / "trialanine.pdb"
LIGAND = "resid 3"
MODELS = [(gb, None) for gb in GB_MODELS] + [
    ("hct", "amber"),
    ("obc2", "mmpbsa.py"),
    ("obc2", "pele"),
    ("gbn", "openmm"),
]
RADII = {"hct": "mbondi", "obc1": "mbondi2", "obc2": "mbondi2", "gbn": "bondi", "gbn2": "mbondi3"}


@pytest.fixture(scope="module")
def atoms():
    return pele_ocl.read(PEPTIDE)


def model_of(gb: str, like: str | None) -> SolventModel:
    return SolventModel(gb=gb) if like is None else SolventModel.like(like, gb=gb)


def words_of(gb: str, like: str | None) -> tuple[str, ...]:
    return ("--gb", gb, *(() if like is None else ("--like", like)))


def command(name: str, *words: object) -> dict:
    return json.loads(run(name, *words, "--json").stdout)


def outcome(compute):
    """Give the terms and the set of radii, or the sentence of the refusal without the file's name."""
    try:
        return compute()
    except InputError as error:
        return str(error).removeprefix(f"{PEPTIDE}: ")


def by_command(name: str, *words: object):
    done = CliRunner().invoke(main, [name, str(PEPTIDE), *map(str, words), "--json"])
    if done.exit_code:
        return done.stderr.splitlines()[-1].removeprefix("Error: ").removeprefix(f"{PEPTIDE}: ")
    report = json.loads(done.stdout)
    energy = report["delta"] if name == "binding" else report["energy"]
    values = {term: of["mean"] if isinstance(of, dict) else of for term, of in energy.items()}
    return {term: values[term] for term in values if term in TERMS}, report["settings"]["gb_radii_set"], report["notes"]


TERMS = ("lennard_jones", "coulomb", "gb_pair", "gb_self", "nonpolar", "total")


IN_VACUUM = {"lennard_jones", "coulomb", "total"}
TERMS_OF = {
    "energy": set(TERMS), "solvent": {"gb_pair", "gb_self", "nonpolar", "total"}, "nonbond": IN_VACUUM | {"gb_pair"},
    ("energy", "none"): IN_VACUUM, ("nonbond", "none"): IN_VACUUM, ("solvent", "none"): "gb is none",
    **{("energy", gb): "the energy needs the SGB parameters" for gb in ("sgbnp", "vdgbnp")},
    **{
        (of, gb): f"the model {gb} is only available for complete energies"
        for gb in ("sgbnp", "vdgbnp") for of in ("solvent", "nonbond")
    },
}  # fmt: skip


def terms_of(found):
    """Give the names of the terms that are compared, or how the sentence of a refusal begins."""
    if not isinstance(found, str):
        return set(found[0])
    return next((words for words in TERMS_OF.values() if isinstance(words, str) and found.startswith(words)), found)


def told(result, model: SolventModel):
    values = {term: value for term, value in result.energy.items() if term in TERMS}
    return values, None if model.gb_model.vacuum else model.gb_model.name_of_radii(result.atoms), list(result.notes)


def by_job(spec):
    record = next(jobs.run(spec, [PEPTIDE]))
    if record.failed:
        return record.reason
    energy = record["energy"]
    return {term: energy[term] for term in energy if term in TERMS}, record["settings"]["gb_radii_set"], record["notes"]


@pytest.mark.parametrize(("gb", "like"), MODELS)
def test_numbers_are_those_of_every_door(atoms, gb, like):
    """Of energy, solvent and nonbond: by command, Python, a plan and jobs.

    A refusal is the same, too, and expected where it comes: equal refusals are no equal numbers.
    """
    model, words = model_of(gb, like), words_of(gb, like)
    plain = ("--no-gradient",)
    ways = {
        "energy": (
            lambda: pele_ocl.energy(atoms, model=model, gradient=False),
            lambda: pickle.loads(pickle.dumps(Energy(atoms, model=model, gradient=False))).evaluate(),
            pele_ocl.EnergySpec(model=model, gradient=False),
        ),
        "solvent": (
            lambda: pele_ocl.solvent(atoms, model=model), lambda: Solvent(atoms, model=model).evaluate(),
            pele_ocl.SolventSpec(model=model),
        ),
        "nonbond": (
            lambda: pele_ocl.nonbond(atoms, pairs_within(atoms, 12.0), model=model, gradient=False),
            lambda: Nonbond(atoms, pairs_within(atoms, 12.0), model=model, gradient=False).evaluate(),
            pele_ocl.NonbondSpec(model=model, gradient=False),
        ),
    }  # fmt: skip
    for name, (function, plan, spec) in ways.items():
        found = outcome(lambda function=function: told(function(), model))
        assert terms_of(found) == TERMS_OF.get(
            (name, gb), TERMS_OF[name] - ({"nonpolar"} if like == "amber" else set())
        )
        assert outcome(lambda plan=plan: told(plan(), model)) == found
        assert by_command(name, *words, *(plain if name != "solvent" else ())) == found
        assert by_job(spec) == found


@pytest.mark.parametrize(("gb", "like"), [("obc2", None), ("gbn2", None), ("obc2", "mmpbsa.py"), ("gbn", "pele")])
def test_binding_energies_are_those_of_both_doors(atoms, gb, like):
    words = ("--ligand", LIGAND, *words_of(gb, like))
    report = command("binding", PEPTIDE, *words)
    plans = [Binding(atoms, LIGAND, model=model_of(gb, like))]
    if like and gb == SolventModel.gb:  # which `like` alone has
        plans.append(Binding(atoms, LIGAND, like=like))
    assert len(plans) == (2 if like == "mmpbsa.py" else 1)
    for binding in plans:
        found = binding.evaluate()
        means = {name: of["mean"] for name, of in report["delta"].items()}
        assert set(TERMS) < set(means)
        assert means == pytest.approx({name: float(value) for name, value in found.delta.columns().items()}, abs=1e-9)
        assert binding.atoms.gb_radii_set == report["settings"]["gb_radii_set"]


@pytest.mark.parametrize(
    ("gb", "like"), [*((gb, None) for gb in RADII), *((gb, "amber") for gb in RADII), ("gbn2", "pele")]
)
def test_every_plan_has_the_radii_of_its_model(atoms, gb, like):
    model = model_of(gb, like)
    wanted = "pele" if like == "pele" else RADII[gb] if like or gb in ("gbn", "gbn2") else "openmm-obc"
    chosen = model.choose_radii(atoms)
    assert (chosen.gb_radii_set, model.choose_radii(chosen)) == (wanted, chosen)
    np.testing.assert_array_equal(chosen.gb_radii, ForceField.load(radii=wanted).assign(
        pele_ocl.formats.read_structure(PEPTIDE)).gb_radii)  # fmt: skip
    plans = [Energy(atoms, model=model), Nonbond(atoms, pairs_within(atoms, 9.0), model=model)]
    plans += [Solvent(atoms, model=model), Minimizer(atoms, model=model)]
    plans += [Binding(atoms, LIGAND, model=model), Refiner(atoms, LIGAND, model=model)]
    assert {plan.atoms.gb_radii_set for plan in plans} == {wanted}
    assert {of.atoms.gb_radii_set for of in Binding(atoms, LIGAND, model=model).plans.values()} == {wanted}
    made = "" if like != "pele" else "the GB model gbn2 was parametrized with the radii mbondi3, not with pele"
    assert all([note for note in plan.atoms.notes if "GB model" in note] == ([made] if made else []) for plan in plans)
    back = SolventModel().choose_radii(chosen)  # a result of one model may go to another
    assert (back.gb_radii_set, back.notes) == ("openmm-obc", atoms.notes)
    np.testing.assert_array_equal(back.gb_radii, atoms.gb_radii)


def test_rows_trajectories_and_minima_have_the_radii_of_their_model(atoms, tmp_path):
    model = SolventModel(gb="gbn2")
    copies = Ensemble([atoms, atoms, atoms.with_radii("mbondi2")], model=model)
    assert [of.gb_radii_set for of in copies.atoms] == ["mbondi3", "mbondi3", "mbondi2"]
    assert copies.atoms[0] is copies.atoms[1]
    expected = Energy(atoms, model=model, gradient=False).evaluate().total
    assert copies.evaluate().energies[0] == pytest.approx(expected, abs=1e-3)
    assert Simulation(atoms, model=model).ensemble.atoms[0].gb_radii_set == "mbondi3"
    minimum = pele_ocl.minimize(atoms, model=model, max_iterations=0)
    assert (minimum.atoms.gb_radii_set, minimum.energy_before.total) == ("mbondi3", pytest.approx(expected, abs=1e-3))
    many = pele_ocl.minimize_many([atoms], model=model, max_iterations=0)[0]
    assert (many.atoms.gb_radii_set, many.total) == ("mbondi3", minimum.total)
    words = ("--gb", "gbn2", "--max-iterations", 0, "-o", tmp_path / "m.pdb")
    report = command("minimize", PEPTIDE, *words)
    assert report["settings"]["gb_radii_set"] == "mbondi3"
    assert report["energy_after"]["total"] == pytest.approx(minimum.total, abs=1e-9)
    spec = pele_ocl.MinimizeSpec(output=f"{tmp_path}/job-{{name}}.pdb", options={"model": model, "max_iterations": 0})
    record = next(jobs.run(spec, [PEPTIDE]))
    assert record["settings"]["gb_radii_set"] == "mbondi3"
    assert record["energy_after"] == report["energy_after"]


# Radii that were chosen


def test_radii_that_a_user_or_a_file_chose_stay(atoms, tmp_path):
    model = SolventModel(gb="gbn2")
    note = "the GB model gbn2 was parametrized with the radii mbondi3, not with mbondi2"
    for given in (atoms.with_radii("mbondi2"), pele_ocl.read(PEPTIDE, radii="mbondi2")):
        result = pele_ocl.energy(given, model=model)
        assert (result.atoms.gb_radii_set, note in result.notes) == ("mbondi2", True)
        assert pickle.loads(pickle.dumps(given)).has_default_radii is False
    report = command("energy", PEPTIDE, "--gb", "gbn2", "--gb-radii", "mbondi2")
    assert (report["energy"]["total"], note in report["notes"]) == (result.total, True)
    record = next(jobs.run(pele_ocl.EnergySpec(model=model, reading=jobs.Reading(radii="mbondi2")), [PEPTIDE]))
    assert (record["energy"]["total"], note in record["notes"]) == (result.total, True)
    own = replace(atoms, gb_radii=atoms.gb_radii + 0.1)
    np.testing.assert_array_equal(model.choose_radii(own).gb_radii, own.gb_radii)
    made = pele_ocl.Atoms(atoms.positions, atoms.charges, gb_radii=atoms.gb_radii, labels=atoms.labels)
    np.testing.assert_array_equal(model.choose_radii(made).gb_radii, atoms.gb_radii)
    pqr = tmp_path / "own.pqr"
    pele_ocl.formats.write_pqr(pqr, atoms)
    assert model.choose_radii(pele_ocl.read(pqr)).gb_radii_set == "file"
    with pytest.raises(InputError, match="no file contains GB radii"):
        pele_ocl.read(PEPTIDE, radii="file")


def test_parts_and_mutants_have_the_radii_of_the_whole(atoms):
    """As a part has those that it has in the molecule, whatever was chosen first."""
    model = SolventModel(gb="gbn2")
    some = np.arange(0, len(atoms), 2)  # which cuts bonds
    np.testing.assert_array_equal(
        model.choose_radii(atoms[some]).gb_radii, model.choose_radii(atoms).gb_radii[some]
    )  # fmt: skip
    part = pickle.loads(pickle.dumps(atoms[some]))
    np.testing.assert_array_equal(model.choose_radii(part[3:9]).gb_radii, model.choose_radii(atoms).gb_radii[some][3:9])
    peptide = pele_ocl.read(PEPTIDE.with_name("hexapeptide.pdb"))
    residue = next(
        k for k in range(6) if outcome(lambda k=k: to_alanine(peptide, k).atoms.gb_radii_set) == "openmm-obc"
    )
    late = model.choose_radii(to_alanine(peptide, residue).atoms)
    early = to_alanine(model.choose_radii(peptide), residue).atoms
    assert late.gb_radii_set == early.gb_radii_set == "mbondi3"
    np.testing.assert_array_equal(late.gb_radii, early.gb_radii)


def test_atoms_without_a_row_have_the_radii_of_models_that_need_none(tmp_path):
    template = write(tmp_path / "ligz", AMBER_LIGAND)
    pdb = tmp_path / "lig.pdb"
    pdb.write_text(
        "HETATM    1  C1  LIG A   1       0.000   0.000   0.000  1.00  0.00           C\n"
        "HETATM    2  H1  LIG A   1       1.090   0.000   0.000  1.00  0.00           H\n"
    )
    ligand = pele_ocl.read(pdb, ForceField.load(templates=[template]))
    words = ("--templates", template)
    lacking = "the OBC tables have no row LIGZ_C1"
    with pytest.raises(pele_ocl.ParameterError, match=lacking):
        Solvent(ligand)
    assert lacking in run("solvent", pdb, *words, code=1).stderr
    result = pele_ocl.solvent(ligand, model=SolventModel(gb="gbn2"))
    report = command("solvent", pdb, *words, "--gb", "gbn2")
    assert report["energy"]["total"] == result.total


# Poisson-Boltzmann


def test_maps_of_the_equation_have_one_set_of_defaults(atoms, tmp_path):
    grid = pele_ocl.Grid.around(atoms, 3, 2.0)
    words = ("potmap", PEPTIDE, "--method", "pb", "--spacing", 2, "--padding", 3, "--ionic-strength", 0.15)
    report = command(*words, "--unit", "kT/e")
    by_salt = pele_ocl.potmap(atoms, grid, method="pb", ionic_strength=0.15, unit="kT/e").map
    by_model = pele_ocl.potmap(atoms, grid, method="pb", pb=PBModel(ions=salt_of(0.15)), unit="kT/e").map
    np.testing.assert_array_equal(by_salt.values, by_model.values)
    assert report["min"] == pytest.approx(float(by_salt.values.min()), rel=1e-6)
    settings = command("pb", PEPTIDE, "--spacing", 2, "--ionic-strength", 0.15)["settings"]
    names = ("surface", "charges", "boundary", "solute_dielectric", "solvent_dielectric", "temperature")
    assert {name: settings[name] for name in names} == {name: report["settings"][name] for name in names}
    assert PBModel.like("apbs", charges="spl4") == PBModel(surface="smol", charges="spl4", boundary="sdh")
    with pytest.raises(InputError, match="a PBModel has no surfaces"):
        PBModel.like("apbs", surfaces="mol")


def test_binding_by_the_equation_has_one_nonpolar_term(atoms):
    coarse = ("--spacing", 2, "--padding", 4)
    report = command("binding", PEPTIDE, "--ligand", LIGAND, "--pb", *coarse, "--ionic-strength", 0.1)
    plan = Binding(
        atoms, LIGAND, model=SolventModel(ionic_strength=0.1), pb=PBSolvent(spacing=2.0, padding=4.0)
    )  # fmt: skip
    assert (plan.model.surface, plan.model.surface_tension) == ("lcpo", 0.0072)
    assert report["delta"]["total"]["mean"] == pytest.approx(float(plan.evaluate().delta.total), abs=1e-9)


# Lists, temperatures and words that contradict each other


def test_lists_are_renewed_for_each_frame(atoms, tmp_path):
    frames = atoms.positions * np.linspace(1, 1.6, 3)[:, None, None]
    path = tmp_path / "frames.npy.h5"
    plan = Nonbond(atoms, pairs_within(atoms, 5.0), gradient=False)
    found = energy_over(plan, frames.astype(np.float32))
    assert found.n_pairs.tolist() == [len(pairs_within(atoms.moved(x), 5.0)) for x in frames.astype(np.float32)]
    assert len(set(found.n_pairs.tolist())) == 3
    lines = [f"MODEL {k}\n" + "".join(moved(PEPTIDE, x)) + "ENDMDL\n" for k, x in enumerate(frames, 1)]
    path = tmp_path / "frames.pdb"
    path.write_text("".join(lines))
    report = command("nonbond", PEPTIDE, "-t", path, "--cutoff", 5)
    assert [frame["n_pairs"] for frame in report["frames"]] == energy_over(plan, path).n_pairs.tolist()
    totals = [frame["energy"]["total"] for frame in report["frames"]]
    assert totals == pytest.approx(energy_over(plan, path).total.tolist(), abs=1e-9)


def moved(path: Path, positions: np.ndarray) -> list[str]:
    lines = [line for line in path.read_text().splitlines() if line.startswith("ATOM")]
    return [
        f"{line[:30]}{x:8.3f}{y:8.3f}{z:8.3f}{line[54:]}\n" for line, (x, y, z) in zip(lines, positions, strict=True)
    ]


def test_the_bath_screens_salt_by_one_rule(atoms, tmp_path):
    words = ("simulate", PEPTIDE, "--steps", 1, "--ionic-strength", 0.1)
    by_solvent = command(*words, "--temperature", 400, "-o", tmp_path / "a")["settings"]["kappa"]
    by_bath = command(*words, "--temperatures", 400, "-o", tmp_path / "b")["settings"]["kappa"]
    salty = SolventModel(ionic_strength=0.1)
    of_python = Simulation(atoms, temperature=400, model=salty).ensemble.state.options["model"]
    assert by_solvent == by_bath == of_python.kappa == SolventModel(ionic_strength=0.1, temperature=400).kappa
    assert Simulation(atoms, model=salty).ensemble.state.options["model"].kappa == salty.kappa
    ladder = Simulation(atoms, 2, temperature=[300, 400], model=salty)
    assert ladder.ensemble.state.options["model"].kappa == salty.kappa
    explicit = Simulation(atoms, temperature=400, model=SolventModel(ionic_strength=0.1, temperature=298.15))
    assert explicit.ensemble.state.options["model"].temperature == 400  # not told from the default
    of_ensemble = Simulation(Ensemble(atoms, model=salty), temperature=400)
    assert of_ensemble.ensemble.state.options["model"].kappa == salty.kappa
    own = replace(salty, temperature=310.0)
    assert Simulation(atoms, temperature=400, model=own).ensemble.state.options["model"] == own


@pytest.mark.parametrize("baths", [[300.0, 400.0], np.array([300.0, 400.0]), [400.0, 400.0], None])
def test_salt_screens_the_same_however_a_run_is_divided(baths, tmp_path):
    salty = SolventModel(ionic_strength=0.15)
    tables, kappas = [], []
    for together in (1, 2):
        folder = tmp_path / str(together)
        options = {"model": salty} if baths is None else {"model": salty, "temperature": baths}
        spec = pele_ocl.SimulateSpec(
            (PEPTIDE,), str(folder), n_steps=2, replicas=2, together=together, every=1, minimized=0, trajectory="none",
            options=options, watch=lambda simulation: kappas.append(simulation.ensemble.state.options["model"].kappa),
        )  # fmt: skip
        for part in spec.items():
            spec.compute(part)
        spec.join()
        tables.append((folder / "energies.csv").read_text())
    assert tables[0] == tables[1]
    of_run = replace(salty, temperature=400) if baths is not None and set(baths) == {400.0} else salty
    assert set(kappas) == {of_run.kappa}
    words = ["simulate", PEPTIDE, "--steps", 2, "--ionic-strength", 0.15, "--replicas", 2, "--replicas-per-device", 1]
    words += ["--report-every", 1, "--minimize", 0, "--trajectory", "none", "-o", tmp_path / "command"]
    words += [] if baths is None else ["--temperatures", ",".join(map(str, baths))]
    assert command(*words)["settings"]["kappa"] == of_run.kappa
    assert (tmp_path / "command" / "energies.csv").read_text() == tables[0]


@pytest.mark.parametrize("door", [
    lambda atoms: SolventModel(ionic_strength=150), lambda atoms: PBModel(ions=salt_of(150)),
    lambda atoms: pele_ocl.potmap(atoms, pele_ocl.Grid.around(atoms, 1, 4.0), ionic_strength=150),
    lambda atoms: pele_ocl.place_ions(atoms, {"NA": "auto", "CL": "auto"}, concentration=150),
    lambda atoms: debye_kappa(150, 78.5, 300),
    lambda atoms: SolventModel.like("amber", ionic_strength=150),
])  # fmt: skip
def test_salt_in_mmol_per_litre_is_refused_at_every_door(atoms, door):
    with pytest.raises(InputError, match=r"is 150 mol/L, but the maximum is 20 mol/L; for 150 mmol/L give 0\.15"):
        door(atoms)


@pytest.mark.parametrize("words", [
    ["energy", "--ionic-strength"], ["solvent", "--ionic-strength"], ["potmap", "--ionic-strength"],
    ["pb", "--ionic-strength"], ["ions", "--concentration"], ["binding", "--ligand", "resid 1", "--ionic-strength"],
])  # fmt: skip
def test_salt_in_mmol_per_litre_is_refused_by_commands(words, tmp_path):
    out = [] if words[0] in ("energy", "solvent", "pb", "binding") else ["-o", str(tmp_path / "o.pdb")]
    out = ["-o", str(tmp_path / "o.dx")] if words[0] == "potmap" else out
    result = CliRunner().invoke(main, [words[0], str(PEPTIDE), *out, *words[1:], "150"])
    assert result.exit_code == 1
    assert "is 150 mol/L, but the maximum is 20 mol/L" in result.stderr


def test_words_that_contradict_each_other_are_refused_by_the_library(atoms):
    grid = pele_ocl.Grid.around(atoms, 1, 4.0)
    with pytest.raises(InputError, match='`cutoff` and `smooth` need `method="cutoff"`'):
        pele_ocl.potmap(atoms, grid, cutoff=4.0)
    for name, value in {
        "ionic_strength": 0.1,
        "solvent_dielectric": 4.0,
        "surface": "lcpo",
        "born_cutoff": 9.0,
    }.items():
        with pytest.raises(InputError, match=f"{name} is .*, and gb='none' has no solvent"):
            SolventModel(gb="none", **{name: value})
    assert SolventModel(gb="none", surface="none", ionic_strength=0.0).kappa == 0
    assert SolventModel.like("mmpbsa.py", gb="none").coulomb_constant == 18.2223**2


# Notes


def test_findings_are_told_by_every_door(tmp_path):
    lines = moved(PEPTIDE, pele_ocl.read(PEPTIDE).positions)
    lines[6] = f"{lines[6][:30]}{float(lines[6][30:38]) + 1.5:8.3f}{lines[6][38:]}"
    torn = tmp_path / "torn.pdb"
    torn.write_text("".join(lines))
    done = run("energy", torn, "--json")
    report = json.loads(done.stdout)
    result = pele_ocl.energy(pele_ocl.read(torn))
    assert [finding["text"] for finding in report["findings"]] == [finding.text for finding in result.findings]
    assert any("bond energy of" in note for note in result.notes)
    stderr = [line.removeprefix("Note: ") for line in done.stderr.splitlines() if line.startswith("Note: ")]
    assert stderr
    assert set(stderr) <= set(report["notes"])
    pairs = tmp_path / "pairs.txt"
    pairs.write_text("0 1\n0 20\n")
    done = run("nonbond", PEPTIDE, "--pairs", pairs, "--json")
    stderr = [line.removeprefix("Note: ") for line in done.stderr.splitlines() if line.startswith("Note: ")]
    notes = json.loads(done.stdout)["notes"]  # with keywords, which the terminal shows as options
    assert stderr == [note.replace("`one_four='scale'`", "--one-four scale") for note in notes]


def test_nonbond_names_what_its_total_lacks():
    assert "gb_of_bonded_pairs" in command("nonbond", PEPTIDE)["settings"]["total_lacks"]
    assert command("nonbond", PEPTIDE, "--gb", "none")["settings"]["total_lacks"] == ["bonded"]


def test_words_of_a_list_are_in_any_case():
    """By the command, functions and models; the record has them as they are listed."""
    plain = command("energy", PEPTIDE, "--gb", "obc2", "--like", "amber", "--precision", "float64", "--born", "pairs")
    told = command("energy", PEPTIDE, "--gb", "OBC2", "--like", "AMBER", "--precision", "Float64", "--born", "Pairs")
    found = pele_ocl.energy(PEPTIDE, gb="OBC2", like="Amber", precision="FLOAT64", born="PAIRS").to_json()
    for one in (told, json.loads(json.dumps(found))):
        assert (one["energy"], one["settings"]) == (plain["energy"], plain["settings"])
    assert SolventModel(gb="GBn2", surface="LCPO") == SolventModel(gb="gbn2", surface="lcpo")
    assert SolventModel.like("OpenMM", gb="OBC1") == SolventModel.like("openmm", gb="obc1")
    assert PBModel(surface="SMOL", charges="Spl2").surface == "smol"
    assert pele_ocl.minimize(PEPTIDE, method="FIRE", max_iterations=1).iterations == 1


# explore and binding --pele


def test_reports_of_explore_come_back(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    control = write_run(tmp_path)
    run("explore", control)
    words = ("binding", "--pele", tmp_path / "out")
    found = command(*words)
    assert found["settings"]["own_reports"] is True
    assert any(note.startswith("the reports were written by pele-ocl explore") for note in found["notes"])
    first, *others = found["poses"]
    for ours, theirs in (("total", "pele_total"), ("binding", "pele_binding")):
        assert f"{first[ours]:.6g}" == f"{first[theirs]:.6g}"
        assert all(abs(pose[ours] - pose[theirs]) < 0.05 for pose in others)
    (tmp_path / "out" / "explore.jsonl").rename(tmp_path / "explore.jsonl")
    assert command(*words)["settings"]["own_reports"] is False


# Functions that take files: a command calls one

ROOT = Path(__file__).parent.parent
FUNCTIONS = [
    ("energy", ("--gb", "gbn2", "--per-residue", "--terms", "bond, gb pair"),
     {"gb": "gbn2", "per_residue": True, "only_terms": "bond, gb pair"}),
    ("solvent", ("--like", "openmm", "--ionic-strength", 0.1), {"like": "openmm", "ionic_strength": 0.1}),
    ("nonbond", ("--cutoff", 6, "--one-four", "scale", "--without", "HOH"),
     {"cutoff": 6.0, "one_four": "scale", "without": "HOH"}),
]  # fmt: skip


def untimed(record: dict) -> dict:
    return {name: of for name, of in record.items() if name not in ("seconds", "frames_per_second")}


def rows(path: Path) -> list[str]:
    return [line for line in path.read_text().splitlines() if not line.startswith("#")]


@pytest.mark.parametrize(("name", "words", "keywords"), FUNCTIONS, ids=[name for name, *_ in FUNCTIONS])
def test_a_function_gives_what_its_command_does(name, words, keywords, tmp_path):
    """One structure, models, frames and several structures: the same JSON, notes, and files."""
    function, models = getattr(pele_ocl, name), tmp_path / "models.pdb"
    second = pele_ocl.read(PEPTIDE).positions + np.sin(np.arange(99)).reshape(33, 3) * 0.02
    lines = [
        *moved(PEPTIDE, pele_ocl.read(PEPTIDE).positions),
        "ENDMDL\nMODEL 2\n",
        *moved(PEPTIDE, second),
        "ENDMDL\n",
    ]
    models.write_text("MODEL 1\n" + "".join(lines))
    calls = {
        "one": ((PEPTIDE,), {}, PEPTIDE),
        "models": ((models, "--models", "all"), {"models": "all"}, models),
        "frames": ((PEPTIDE, "-t", models, "--frames", "0:2"), {"trajectory": models, "frames": "0:2"}, PEPTIDE),
    }
    for kind, (given, more, path) in calls.items():
        by_command, by_function, saved = (tmp_path / f"{kind}{k}.csv" for k in range(3))
        report = json.loads(run(name, *given, *words, "--json", "-o", by_command).stdout)
        result = function(path, **keywords, **more, output=by_function)
        assert untimed(result.to_json()) == untimed(report), kind
        result.save(saved)
        assert rows(by_command) == rows(by_function) == rows(saved), kind
        assert result.table()._repr_html_()
        assert len(repr(result).splitlines()) == 1
        if kind == "frames":
            assert f"total {result.total.mean():.3f} kcal/mol" in repr(result)
        assert path.name in result.text()
    table = tmp_path / "several.csv"
    done = run(name, PEPTIDE, models, *words, "--json", "-o", table)
    several = function([PEPTIDE, models], **keywords, output=tmp_path / "again.csv")
    assert f"{several.total[0]:.3f} kcal/mol" in repr(several)
    assert "1 failed: gone.pdb: no such file" in repr(function([PEPTIDE, "gone.pdb"], **keywords))
    assert [untimed(of) for of in several.to_json()] == [untimed(json.loads(of)) for of in done.stdout.splitlines()]
    assert rows(table) == rows(tmp_path / "again.csv")
    assert not several.errors
    assert not list(tmp_path.glob("*.part"))


def test_keywords_of_functions_that_do_not_go_together(atoms, tmp_path):
    for keywords, sentence in (
        ({"gb": "none", "ionic_strength": 0.1}, "`gb='none'` has no solvent; leave out `ionic_strength`"),
        ({"frames": "0:2"}, "`frames` applies to a trajectory"),
        ({"resume": True}, "`resume` applies to a trajectory or several structures"),
        ({"workers": 2}, "`workers` distributes"),
        ({"fixed_radii": True, "gradient": False}, "`fixed_radii` applies to the gradient"),
        ({"trajectory": PEPTIDE, "models": "all"}, "choose one of `models='all'` and `trajectory`"),
        ({"model": SolventModel(), "gb": "hct"}, "choose one of a SolventModel and `gb`"),
        ({"only": "protien"}, "unknown kind 'protien'"),
    ):
        with pytest.raises(InputError, match=sentence) as caught:
            pele_ocl.energy(PEPTIDE, **keywords)
        assert caught.value.code == "keywords"
    with pytest.raises(InputError, match="`select` needs files"):
        pele_ocl.energy(atoms, select="protein")
    for name in ("energy", "solvent", "nonbond"):
        with pytest.raises(InputError, match="`models` needs files"):
            getattr(pele_ocl, name)(atoms, models="all")
    with pytest.raises(TypeError, match="unexpected keyword argument 'ionic'"):
        pele_ocl.energy(PEPTIDE, ionic=0.1)
    for name, word, meant in (
        ("energy", "precison", "precision"), ("energy", "ionicstrength", "ionic_strength"),
        ("pb", "spacin", "spacing"), ("potmap", "selct", "select"), ("minimize", "max_iteration", "max_iterations"),
        ("simulate", "replica", "replicas"),
    ):  # fmt: skip
        with pytest.raises(TypeError, match=rf"^{name}\(\) got an .*'{word}'; did you mean '{meant}'\?$"):
            getattr(pele_ocl, name)(
                PEPTIDE, **{word: 1}, **({"output": "out", "steps": 1} if name == "simulate" else {})
            )
    with pytest.raises(AttributeError, match="'minimise'; did you mean 'minimize'"):
        _ = pele_ocl.minimise
    with pytest.raises(InputError, match="is of type EnergyResult, which its `save` writes to a file"):
        pele_ocl.energy(pele_ocl.energy(atoms))
    assert pele_ocl.energy(atoms, gb="gbn2").total == pele_ocl.energy(atoms, model=SolventModel(gb="gbn2")).total


@pytest.mark.parametrize("name", ["energy", "solvent", "nonbond"])
def test_examples_of_docstrings(name, monkeypatch):
    monkeypatch.chdir(ROOT)
    examples = doctest.DocTestFinder(recurse=False).find(getattr(pele_ocl, name)._function, name)
    runner = doctest.DocTestRunner()
    assert [runner.run(example).failed for example in examples if example.examples] == [0]


def test_a_reading_pickles_and_knows_where_positions_come_from(tmp_path):
    top, places = tmp_path / "top.parm7", tmp_path / "places.rst7"
    top.write_text(amber_helpers.rendered(amber_helpers.content()))
    places.write_text(amber_helpers.restart(amber_helpers.hexapeptide().positions))
    reading = jobs.Reading(coordinates=places, only="protein", ligand_charges="gas")
    for each in (reading, pickle.loads(pickle.dumps(reading))):
        molecule = each.molecule(read_file(top))
        assert (str(molecule.coordinates), molecule.chosen, len(molecule.atoms)) == (str(places), None, 96)
    assert jobs.Reading().one(read_file(PEPTIDE)).coordinates is None
    for keywords, sentence in (
        ({"fallback": True}, "unexpected keyword argument"),
        ({"guess_radii": True}, "contains charges and radii; leave out `guess_radii`"),
        ({"model": 2, "models": "all"}, "choose one of `model` and `models`"),
        ({"coordinates": [places, places]}, "`coordinates` is given 2 times for 1 topology file"),
    ):
        with pytest.raises((InputError, TypeError), match=sentence):
            pele_ocl.energy(top, **{"coordinates": places, **keywords})
    table = tmp_path / "out.csv"
    pele_ocl.energy(top, coordinates=places, output=table)
    assert f"# coordinates: {places}" in table.read_text().splitlines()


def test_coordinates_behind_a_topology_are_its_own(tmp_path):
    """As second file of a call, by every door; one that is not there is none, and neither is one behind a PDB file."""
    top, places = tmp_path / "top.parm7", tmp_path / "places.rst7"
    top.write_text(amber_helpers.rendered(amber_helpers.content()))
    places.write_text(amber_helpers.restart(amber_helpers.hexapeptide().positions))
    expected = pele_ocl.energy(top, coordinates=places, gb="none").total
    assert len(pele_ocl.read(str(top), str(places))) == 96
    assert pele_ocl.energy(top, places, gb="none").total == expected
    table = tmp_path / "table.csv"
    assert pele_ocl.energy(top, places, table, gb="none").total == expected
    assert f"# coordinates: {places}" in table.read_text().splitlines()
    with pytest.raises(TypeError, match=r"takes the output second; pass the file as coordinates='none\.rst7'"):
        pele_ocl.energy(top, "none.rst7")
    with pytest.raises(TypeError, match="pass the file as coordinates="):
        pele_ocl.energy(PEPTIDE, places)
    page = tmp_path / "page.html"
    done = run("view", top, places, "-o", page)
    assert (done.exit_code, page.exists()) == (0, True)
    behind = run("refine", top, places, PEPTIDE, "--ligand", "resname XYZ", "-o", tmp_path / "out", code=1)
    assert "no residue is named XYZ" in behind.stderr
    assert "`" not in behind.stderr.replace("`screen`", "")


def test_read_takes_the_choices_that_commands_do(atoms):
    assert len(pele_ocl.read(PEPTIDE, only="protein", without="HOH")) == len(atoms)
    with pytest.raises(InputError, match="selects no atoms"):
        pele_ocl.read(PEPTIDE, only="water")


def test_results_say_which_salt_and_which_energy_they_have(tmp_path, monkeypatch):
    """Of pb and view, whose defaults differ, by repr, text and JSON; and which files were written."""
    monkeypatch.chdir(tmp_path)
    for strength, words in ((0.0, "no salt"), (0.15, "0.15 mol/L salt")):
        found = pele_ocl.pb(PEPTIDE, "map.dx", spacing=2, ionic_strength=strength)
        assert f"solvation energy {found.solvation:.3f} kcal/mol" in repr(found)
        assert words in repr(found)
        assert found.to_json()["settings"]["ionic_strength"] == pytest.approx(strength)
        text = run("pb", PEPTIDE, "--spacing", 2, "--ionic-strength", strength, "-o", "map.dx").stdout
        assert words in text
        assert text.splitlines()[-1].split() == ["Written", "map.dx"]
    page = pele_ocl.view(PEPTIDE)
    assert "0.15 mol/L salt" in repr(page)
    assert page.to_json()["settings"]["ionic_strength"] == 0.15
    text = run("potmap", PEPTIDE, "--spacing", 2, "-o", "map.dx", "-o", "map.cube", "--png", "map.png").stdout
    assert [line.split()[1] for line in text.splitlines()[-3:]] == ["map.dx", "map.cube", "map.png"]


def test_delta_is_the_difference_by_term():
    found = pele_ocl.binding(PEPTIDE, LIGAND)
    assert found.delta["total"] == found.total
    assert found.delta == {name: of["mean"] for name, of in found.to_json()["delta"].items()}


def test_energies_of_atoms_leave_the_energy_as_it_is(tmp_path):
    """Whether a file with energies of atoms is written, or residues are shown, is no matter of the energy."""
    plain = pele_ocl.energy(PEPTIDE)
    atoms = pele_ocl.read(PEPTIDE)
    written, shown = pele_ocl.energy(PEPTIDE, output=tmp_path / "one.json"), pele_ocl.energy(PEPTIDE, per_residue=True)
    by_atoms = pele_ocl.energy(atoms, per_atom=True, model=plain.model)
    for other in (written, shown, pele_ocl.energy(PEPTIDE, per_atom=True), by_atoms):
        assert other.energy == plain.energy
        np.testing.assert_array_equal(other.gradient, plain.gradient)
        np.testing.assert_allclose(other.per_atom.total.sum(), plain.total, rtol=1e-5)
    plain.save(tmp_path / "saved.json")
    for name in ("one.json", "saved.json"):
        assert json.loads((tmp_path / name).read_text())["energy_total"] == plain.total
    batch = pele_ocl.energy(atoms, trajectory=[atoms.positions, atoms.positions * 1.001])
    with_residues = pele_ocl.energy(PEPTIDE, trajectory=[atoms.positions, atoms.positions * 1.001], per_residue=True)
    np.testing.assert_array_equal(batch.total, with_residues.total)


METHANE = """methane

 made here
  5  4  0  0  0  0  0  0  0  0999 V2000
    0.0000    0.0000    0.0000 C   0  0
    0.6290    0.6290    0.6290 H   0  0
   -0.6290   -0.6290    0.6290 H   0  0
   -0.6290    0.6290   -0.6290 H   0  0
    0.6290   -0.6290   -0.6290 H   0  0
  1  2  1  0
  1  3  1  0
  1  4  1  0
  1  5  1  0
M  END
$$$$
"""


def test_a_missing_library_is_named_with_what_installs_it(tmp_path):
    (tmp_path / "x.sdf").write_text(METHANE)
    code = "import sys; sys.modules['rdkit'] = None\nfrom pele_ocl.__main__ import run\nrun()\n"
    done = subprocess.run(
        [sys.executable, "-c", code, "energy", str(PEPTIDE), "--ligand-file", str(tmp_path / "x.sdf")],
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 1
    assert "needs RDKit, which is not installed: pip install 'pele-ocl[ligands]'" in done.stderr


def test_a_list_of_force_field_files_is_taken():
    by_list = pele_ocl.energy(PEPTIDE, forcefield=["amber14-all.xml", "implicit/obc2.xml"], gb="none")
    assert by_list.total == pele_ocl.energy(PEPTIDE, forcefield="amber14-all.xml,implicit/obc2.xml", gb="none").total
    with pytest.raises(pele_ocl.InputError, match="expected a list of texts"):
        pele_ocl.energy(PEPTIDE, forcefield=[1])
