"""`pele-ocl simulate`: dynamics of many replicas at once."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any, Literal

import click
from click.core import ParameterSource

from ...contract import of_structure
from ...dynamics.bodies import CONSTRAINTS
from ...dynamics.integrators import INTEGRATORS
from ...dynamics.settings import FRICTION
from ...dynamics.spec import SimulateSpec
from ...formats.trajectory_writing import TRAJECTORY_FORMATS
from ...gb_models.solvent_model import SolventModel
from ...jobs.checks import Checks
from ..cluster import cluster_options_of, place_options
from ..command import EachOnce
from ..json_lines import failing_as_record
from ..options import (
    ReadAtoms,
    model_options,
    report_options,
    run_options,
    strict_option,
    structure_options,
    surface_options,
)
from ..plan_options import listed, pair_options, require_near, variant_option
from ..structures import TARGET, RestraintOptions, restraint_options
from ..structures import files as expanded
from .amounts import annealing_of, steps_of, temperatures_of, together_of
from .report import SimulatedStructure, report
from .running import run

__all__ = ["simulate"]


@click.command(cls=EachOnce)
@click.argument("paths", metavar="IN...", type=TARGET.input, nargs=-1, required=True, callback=expanded)
@click.option(
    "-o", "--output", type=TARGET, metavar="DIR", required=True,
    help="Folder for trajectories, the table of energies, the structure and the checkpoint.",
)  # fmt: skip
@click.option(
    "--replicas", type=click.IntRange(min=1), default=1, show_default=True, help="Replicas of each structure."
)
@click.option(
    "--first-replica", type=click.IntRange(min=0), default=0, show_default=True,
    help="Number of the first replica, for runs that share the replicas of one.",
)  # fmt: skip
@click.option("--steps", type=click.IntRange(min=1), help="Number of time steps.")
@click.option("--time", "length", metavar="T", help="Time to simulate, with its unit: 500ps, 10ns.")
@click.option(
    "--temperatures", metavar="T[,T...]",
    help="Temperatures of the heat bath, K: one for all, one for each replica of all structures in their order, or "
    "fewer, which replicas take by turns. By default --temperature if given, else 300.",
)  # fmt: skip
@click.option("--timestep", type=float, default=2.0, show_default=True, help="Time step, fs.")
@click.option(
    "--friction", type=float, show_default=f"{FRICTION}; none of verlet", help="Friction of the heat bath, 1/ps."
)
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of all random numbers.")
@click.option(
    "--integrator", type=click.Choice(list(INTEGRATORS)), default="langevin", show_default=True,
    help="Langevin dynamics, as OpenMM's LangevinMiddleIntegrator, or velocity Verlet at constant energy.",
)  # fmt: skip
@click.option(
    "--hydrogen-mass", type=float, metavar="DA",
    help="Mass of hydrogens, which their neighbours lack, Da; 3 to 4 allow steps of 4 fs.",
)  # fmt: skip
@click.option(
    "--exchange-every", type=click.IntRange(min=1), metavar="N",
    help="Exchange temperatures between replicas every N steps; as many replicas as --temperatures are a ladder.",
)  # fmt: skip
@click.option(
    "--anneal", metavar="PS:K,PS:K...",
    help="Temperature by time, linear between the points: 0:600,20:600,80:300.",
)  # fmt: skip
@click.option(
    "--minimize", "minimizes", type=click.IntRange(min=0), default=200, show_default=True, metavar="N",
    help="Iterations of a minimisation before the first step; 0 for none.",
)  # fmt: skip
@click.option(
    "--keep-motion", is_flag=True, help="Let the centre of mass move, which otherwise rests unless atoms are held."
)
@click.option(
    "--report-every", type=click.IntRange(min=1), default=1000, show_default=True, metavar="N",
    help="Write frames and energies every N steps.",
)  # fmt: skip
@click.option(
    "--trajectory", "form", type=click.Choice([*TRAJECTORY_FORMATS, "none"]), default="nc", show_default=True,
    help="Format of the trajectories.",
)  # fmt: skip
@click.option(
    "--trajectory-of", "of", type=click.Choice(["replica", "temperature"]), default="replica", show_default=True,
    help="Write a trajectory of each replica, or of each temperature of a ladder.",
)  # fmt: skip
@click.option("--velocities", is_flag=True, help="Write velocities into the trajectories, too; of nc and h5 alone.")
@click.option("--resume", is_flag=True, help="Go on with an interrupted run in DIR, with the same bits.")
@click.option(
    "--together", type=click.IntRange(min=1), metavar="N",
    help="Replicas of each structure that one device moves at a time, its part of the run; whole ladders. By default "
    "all, or an equal share for each of --workers.",
)  # fmt: skip
@place_options
@partial(restraint_options, constraints=CONSTRAINTS)
@pair_options
@variant_option
@run_options
@structure_options
@model_options
@surface_options
@strict_option
@report_options
def simulate(
    paths: tuple[Path, ...], output: Path, replicas: int, first_replica: int, steps: int | None, length: str | None,
    temperatures: str | None, timestep: float, friction: float | None, seed: int, integrator: str,
    hydrogen_mass: float | None, exchange_every: int | None, anneal: str | None, minimizes: int, keep_motion: bool,
    report_every: int, form: str, of: str, velocities: bool, resume: bool, together: int | None, held: RestraintOptions,
    fixed_radii: bool, cutoff: float | None, one_four: Literal["scale", "exclude"], terms: str | None, variant: str,
    precision: str, device: str | None, read_atoms: ReadAtoms, constants: SolventModel, strict: bool, as_json: bool,
    verbose: bool,
) -> None:  # fmt: skip
    """Simulate many replicas of the structures in IN at once, in implicit solvent.

    Each replica is a trajectory of its own. It depends on the structure, its number and the seed, not on the others.
    DIR gets the trajectories, the structure as a PDB file, and tables, energies.csv and energies.jsonl. They have a row
    for each replica and report. Energies in kcal/mol, times in ps, temperatures in K. A replica that explodes stops and
    is named; the others go on, and the exit code is 1. --resume goes on with a run that was interrupted.
    """
    require_near(cutoff)
    n_steps = steps_of(steps, length, timestep)
    baths = temperatures_of(temperatures, _given_temperature(constants))
    if fixed_radii:
        raise click.UsageError("--fixed-radii makes a gradient that is none of the energy; leave it out of dynamics")
    if constants.gb_model.holds_radii:
        raise click.UsageError(f"--gb {constants.gb} has no gradient of all its energy, which dynamics need; take obc2")
    if of == "temperature" and exchange_every is None:
        raise click.UsageError("--trajectory-of temperature is about a ladder; give --exchange-every, too")
    if len(paths) > 1 and (held.restraints or held.freeze is not None):
        raise click.UsageError("restraints and frozen atoms are of one structure; give one IN")
    options: dict[str, Any] = {
        "temperature": baths, "timestep": timestep, "friction": friction, "seed": seed, "integrator": integrator,
        "constraints": held.constraints, "hydrogen_mass": hydrogen_mass, "exchange_every": exchange_every,
        "anneal": None if anneal is None else annealing_of(anneal), "remove_motion": False if keep_motion else None,
        "first_replica": first_replica, "one_four": one_four, "cutoff": cutoff, "only_terms": listed(terms),
        "variant": variant, "precision": precision, "device": device, "model": constants,
    }  # fmt: skip
    cluster = cluster_options_of(click.get_current_context())
    spec = SimulateSpec(
        paths=paths, output=str(output), n_steps=n_steps, replicas=replicas, every=report_every, reading=read_atoms,
        options=options, held=held.referring(read_atoms).each, trajectory=form, by_temperature=of == "temperature",
        velocities=velocities, minimized=minimizes, strict=strict, resume=resume,
        together=together_of(together, replicas, len(baths or ()) if exchange_every is not None else 1, cluster),
    )  # fmt: skip
    molecules = _molecules(spec, as_json)
    with failing_as_record(paths[0], as_json):
        outcome = run(spec, cluster.place(device))
    report(spec, outcome, molecules, spec.model, as_json, verbose)


def _molecules(spec: SimulateSpec, as_json: bool) -> list[SimulatedStructure]:
    """Read the structures, and tell what is found in them."""
    found = []
    for path in spec.paths:
        with failing_as_record(path, as_json):
            source, atoms = spec.molecule(path)
            checks = Checks(path, spec.strict)
            checks.add(*of_structure(atoms, places_sites=True))
        found.append(SimulatedStructure(source, atoms, checks.as_json()))
    return found


def _given_temperature(constants: SolventModel) -> float | None:
    """Give --temperature if it was given: the heat bath then has it, too."""
    source = click.get_current_context().get_parameter_source("temperature")
    return constants.temperature if source not in (None, ParameterSource.DEFAULT) else None
