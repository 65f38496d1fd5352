"""A small case of every kernel, to run under `oclgrind --data-races`; tests/test_oclgrind.py reads the report.

oclgrind --data-races python oclgrind_cases.py CASES ..., such as solvent: CASES below has their names
oclgrind python oclgrind_cases.py joined
"""

from __future__ import annotations

import re
import sys
from dataclasses import asdict, replace
from itertools import cycle
from pathlib import Path
from typing import Any
from unittest.mock import Mock, patch

import numpy as np
import pytest
from bonded_helpers import of_every_kind
from conftest import labels_of_elements, random_atoms, random_pairs, without
from gb_helpers import labels_of

from pele_ocl import (
    OPES,
    Atoms,
    Binding,
    CenterRestraint,
    DistanceRestraint,
    DistanceVariable,
    Ensemble,
    Grid,
    GridBias,
    GyrationVariable,
    InputError,
    Metadynamics,
    PBIon,
    PBModel,
    PoissonBoltzmann,
    PositionalRestraint,
    RMSDVariable,
    Simulation,
    SolventModel,
    TorsionRestraint,
    TorsionVariable,
    minimize_many,
    place_ions,
    potmap,
    read,
    solvent,
)
from pele_ocl.atoms import Bonded, Bonds, LennardJonesPairs, VirtualSites
from pele_ocl.atoms.sites import SiteRule
from pele_ocl.binding.pele import PoseEvaluator
from pele_ocl.common.installation import shipped
from pele_ocl.common.variant import Machine
from pele_ocl.dynamics import motion
from pele_ocl.energy import Energy, sgb, squares  # fmt: skip
from pele_ocl.energy.bonded import kernels
from pele_ocl.energy.layout import BlocksLayout, RowsLayout, SquaresLayout  # fmt: skip
from pele_ocl.explore import Perturbation, RotamerLibrary, Settings, SideChainPredictor, Walk, perturbation
from pele_ocl.explore.rotamers import Rotamers
from pele_ocl.explore.rotations import side_chains_of
from pele_ocl.gb_models.surface import unit_points
from pele_ocl.ions import Placement
from pele_ocl.ions.placement import WorkSplit
from pele_ocl.ladder import NONBOND as NONBOND_VARIANTS
from pele_ocl.ladder import POTMAP as POTMAP_VARIANTS
from pele_ocl.ladder import SOLVENT as VARIANTS
from pele_ocl.ladder.fft import FFT_VARIANTS, fft
from pele_ocl.minimize import METHODS, Minimizer, driver, preconditioner
from pele_ocl.minimize import method as methods_of
from pele_ocl.nonbond import nonbond
from pele_ocl.nonbond.index import prefix_sum
from pele_ocl.opencl import Device, Queue, building, get_device
from pele_ocl.opencl.building import CachedProgram
from pele_ocl.pb import SOLVERS, launching, multigrid, vectors
from pele_ocl.pb.launching import Launching
from pele_ocl.plan import plan as plans
from pele_ocl.plan.tuning import Choice, trying
from pele_ocl.potential_model import PotentialModel
from pele_ocl.potmap import MapOptions, MapProblem, blocking, error, sorting
from pele_ocl.potmap import frames as frames_of_maps
from pele_ocl.potmap.bins import BinGrid, Bins
from pele_ocl.potmap.blocking import Blocking
from pele_ocl.potmap.frames import AtomPotentials, MapFrames
from pele_ocl.potmap.msm import levels, plan
from pele_ocl.potmap.msm.lattices import LatticeLayout
from pele_ocl.potmap.slabs import MapSlab
from pele_ocl.potmap.variants import blocked
from pele_ocl.reference import energy as definition
from pele_ocl.solvent import Solvent
from pele_ocl.solvent.layout import SolventLayout
from pele_ocl.tiles import surface

PRECISIONS = ("float32", "float64")
SALT, LCPO = SolventModel(ionic_strength=0.1), SolventModel(surface="lcpo")
NECKS = SolventModel(gb="gbn2", born_cutoff=8.0)
RESTRAINTS = [
    PositionalRestraint(1.0, flat=0.1), DistanceRestraint([[0, 19], [0, 3]], 1.0, 2.0, 0.1),
    TorsionRestraint([[0, 1, 2, 3], [19, 5, 2, 0]], 1.0, 2.0, 0.1),
    CenterRestraint([0, 5, 9], 1.0, flat=0.1, weights=[1.0, 2.0, 3.0]),
]  # fmt: skip
# Minimizations whose host looks soon at what is done, as the cases end after one or two iterations; and little memory,
# because the simulator's time of a launch grows with the size of its buffers.
MINIMIZING = {
    (driver, "LEAST_LOOK"): 2, (driver, "LOOK"): 2, (driver, "AHEAD"): 1, (driver, "MOST_BYTES"): 1 << 19,
    (driver, "CAPACITY"): 8,
}  # fmt: skip
# Small groups of kernels that are not what a case is about: the simulator's time is that of its work-items.
ITERATING = methods_of.Shape(16, 16, 16, 4, 2)
SMALL_GROUPS = {
    (kernels, "ITEMS_GPU"): 16, (blocking, "GPU_GROUPS"): ((2, 4, 2),),
    (methods_of.Shape, "of"): staticmethod(lambda *_: ITERATING), (launching, "GROUP"): (16, 2, 1),
}  # fmt: skip
SMALL_SQUARES = {(SquaresLayout, "of"): staticmethod(lambda *_: SquaresLayout(1, 8, 8, shares=2))}
BLOCKS = {"BLOCK": 8, "HALF": 4, "SIDE": 24}  # of the preconditioner, smaller than they are
POTMAP_VECTORS = Blocking(4, (2, 3), (1, 1, 1))


def with_necks(atoms: Atoms) -> Atoms:
    """Give the atoms what GBn2 needs."""
    labels = labels_of(np.resize(["H", "C", "N", "O", "S"], len(atoms)), ("ALA", "DA"))
    return replace(atoms, gb_radii=np.resize([1.2, 1.7, 1.55, 1.5], len(atoms)), labels=labels)


# Work-items to an atom and reals in a vector: those of GPUs, of CPUs, and fewer of GPUs than atoms in a tile.
SURFACE_SHAPES = (((64, 1), "float32"), ((1, 4), "float32"), ((32, 1), "float64"))


def surface_case(device: Device, plan: type[Solvent | Energy], n_shapes: int = 3, **options: object) -> None:
    """LCPO over several tiles; and by a list that is too short."""
    bonds = np.stack([np.arange(24), (np.arange(24) + 1) % 24], axis=1)
    atoms = replace(random_atoms(24), labels=labels_of_elements(["C"] * 24), bonds=bonds)
    both, options = np.stack([atoms.positions, atoms.positions + 0.1]), options | dict(model=LCPO, device=device)
    for shape, precision in SURFACE_SHAPES[:n_shapes]:
        with patch.object(surface, "shape_for", lambda _: shape):  # noqa: B023
            plan(atoms, precision=precision, **options).evaluate_batch(both)
            with patch.object(surface, "NEIGHBOURS", 16), pytest.raises(InputError):
                plan(atoms, precision=precision, **options).evaluate()


def solvent_cases(device: Device) -> None:
    atoms = random_atoms(37)
    with patch.object(Device, "largest_group", 64):
        for variant in VARIANTS:
            solvent(atoms, variant=variant, precision="float64", device=device)
            solvent(with_necks(atoms), variant=variant, precision="float32", device=device, model=NECKS)
    solvent(atoms, precision="float32", device=device, model=SALT)
    solvent(atoms, device=device, energy=False)
    for blocks, precision in zip((False, True), PRECISIONS, strict=True):
        layout = SolventLayout(4, 2, 16, (1, 1), 2, blocks, row=2, shares=2)
        with trying("solvent", Choice.of("tiled", **asdict(layout))):
            plan = Solvent(atoms, variant="tiled", precision=precision, device=device)
            necks = Solvent(with_necks(atoms), variant="tiled", precision=precision, device=device, model=NECKS)
        plan.evaluate_batch(np.stack([atoms.positions, atoms.positions + 0.1]))
        necks.evaluate()
    surface_case(device, Solvent)
    tree_cases(device)


def tree_cases(device: Device) -> None:
    """Boxes of all kinds in a long chain of atoms, for vectors and for groups, with necks and a limit."""
    atoms = with_necks(random_atoms(90))
    atoms = replace(atoms, positions=atoms.positions + np.linspace(0, 400, 90)[:, None])
    vectors = SolventLayout(4, 4, 16, (1, 1), 2, blocks=True, walks=3)
    groups = SolventLayout(1, 1, 16, (16, 1), 2, own=2, walks=3)
    for layout, model in ((vectors, SolventModel()), (groups, SolventModel()), (groups, NECKS)):
        with trying("solvent", Choice.of("tree", **asdict(layout))):
            plan = Solvent(atoms, variant="tree", device=device, model=model)
        plan.evaluate()


def nonbond_cases(device: Device) -> None:
    """Sort 600 pairs, which takes two blocks; the scan gets its own case of several."""
    queue = Queue(device, "float32")
    prefix_sum(queue, queue.zeros(1100, np.int32), 1100)
    atoms, pairs = random_atoms(40), random_pairs(40, 600)
    radii = atoms.gb_radii
    variants = [name for name in NONBOND_VARIANTS if name != "naive"]
    if not device.has_float_atomics("float32"):
        variants.remove("atomic-native")
    for variant in variants:
        options = dict(variant=variant, precision="float32", device=device)
        nonbond(atoms, pairs, radii, model=SALT, **(options | dict(precision="float64")))
        nonbond(atoms, without(pairs, "sigma2", "charge_products"), radii, **options)
        nonbond(atoms, pairs, solvent="vacuum", gradient=False, **options)
    with patch.object(Device, "vector_width", lambda device, precision: 16):
        nonbond(atoms, pairs, radii, variant="tiled", precision="float32", device=device)


def naive_case(device: Device) -> None:
    nonbond(random_atoms(40), random_pairs(40, 600), solvent="vacuum", variant="naive", device=device)


def potmap_cases(device: Device) -> None:
    """Many atoms in one bin, 300 are more than a run."""
    rng = np.random.default_rng(0)
    few = Atoms(positions=rng.uniform(0.3, 3.6, (20, 3)), charges=rng.normal(0, 0.4, 20))
    many, grid = random_atoms(300), Grid((0.01, 0, 0), 0.7, (11, 3, 5))
    for (variant, of), precision in zip(POTMAP_VARIANTS.items(), cycle(PRECISIONS)):
        if of.method != "msm":
            potmap(few, grid, variant=variant, method=of.method, precision=precision, device=device)
    options = dict(precision="float32", device=device)
    for variant in FFT_VARIANTS:
        fft(np.ones((7, 6, 20)), variant=variant, **options)
    queue, task = Queue(device, "float32"), MapProblem.of(few, grid, PotentialModel(), 1.0, False, "float32")
    for variant in ("blocked", "shared"):
        potmap(many, grid, variant=variant, **options)
    for variant in ("gather", "blocked"):
        potmap(few, grid, variant=variant, field=True, kappa=0.1, min_distance=1, **options)
    potmap(few, grid, method="cutoff", cutoff=5, smooth=True, distance_dependent=True, field=True, **options)
    with patch.multiple(error, FEW_EVALUATIONS=0, POINTS=50):
        potmap(few, grid, method="mesh", accuracy=1e-3, field=True, kappa=0.1, **options)
    near = MapProblem.of(many, grid, PotentialModel(cutoff=4.0), 1.0, False, "float32")
    with patch.object(Device, "kind", "GPU"), patch.object(sorting, "LEAST_PART", 64):  # several parts, a whole group
        Bins.of(queue, sorting.DeviceAtoms(queue, near), BinGrid.of(near, (8, 1, 4)))
    msm_case(queue, replace(task, accuracy=0.1))
    vectors = blocked(queue, task, POTMAP_VECTORS)
    vectors.add(queue, MapSlab.on(queue, task, 0, 5, vectors.pad), 0, 20)
    for method in ("cutoff", "direct"):
        map_frames_case(few, grid, MapOptions(method, **options))
    AtomPotentials(many, np.array([0, 299]), MapOptions(device=device)).evaluate(np.stack([many.positions] * 3))


def msm_case(queue: Queue, problem: MapProblem) -> None:
    """A few lattices, sums on them by vectors and by groups."""
    for layout in (LatticeLayout(4, (2, 2), (1, 1), 1024), LatticeLayout(1, (1, 2), (4, 2), 1024)):
        small = patch.object(levels, "LONGEST", 8), patch.object(plan, "CUTOFFS", (4.0,))
        with patch.object(LatticeLayout, "of", Mock(return_value=layout)), small[0], small[1]:
            steps = POTMAP_VARIANTS["msm"].run(queue, problem)
        steps.add(queue, MapSlab.on(queue, problem, 0, 5, steps.pad), 0, problem.n_atoms)


def map_frames_case(atoms: Atoms, grid: Grid, options: MapOptions) -> None:
    """Statistics of three frames, with points that are compared, and corrections in float32."""
    with patch.object(frames_of_maps, "FIRST_POINTS", 20):
        maps = MapFrames(atoms, grid, options)
        for k in range(3):
            maps.add(atoms.moved(atoms.positions + 0.1 * k))
        maps.result()


def ions_cases(device: Device) -> None:
    """Blocks at the map's end, the layouts of GPUs and CPUs, and no room for the last ions."""
    atoms, grid = random_atoms(20), Grid((-3, -2, -3), 1.0, (17, 9, 9))
    potential = np.random.default_rng(0).normal(size=grid.shape[::-1])
    for precision in PRECISIONS:
        place_ions(
            atoms, {"NA": 2, "CL": 2}, grid=grid, solute_distance=2, ion_distance=3, precision=precision, device=device,
            keep_map=True,
        )  # fmt: skip
    queue = Queue(device, "float32")
    vectors = Placement(queue, grid, potential, atoms.positions, 2, 4, WorkSplit(4, 4, 1, 1))
    assert 5 < len(vectors.place([300.0, -300.0] * 50)[0]) < 100


# Vectors of four and of one, several work-items to an atom, rows of several tiles.
ENERGY_LAYOUTS = {
    "rows": (RowsLayout(4, 8, 2), RowsLayout(1, 8, 2)),
    "blocks": (BlocksLayout(4, 8, 3),),
    "squares": (SquaresLayout(1, 8, 8, row=2, split=2, shares=2),),
}


def sgb_case(device: Device) -> None:
    """Born radii by the surface, of few points, and dielectric constants of atoms."""
    few = replace(charged_groups(12), sgb=np.tile([1.5, 1.2, 0.01, -0.5], (12, 1)))
    both = np.stack([few.positions, few.positions + 0.1])
    with patch.multiple(sgb, WORDS=2, POINTS=64, unit_points=lambda: unit_points(64)):
        for variant, precision in (("rows", "float64"), ("blocks", "float32"), ("squares", "float32")):
            options = dict(fixed_radii=True, model=SolventModel(gb="vdgbnp"), variant=variant, precision=precision)
            Energy(few, device=device, **options).evaluate_batch(both)


def charged_groups(n: int) -> Atoms:
    """Random atoms in one chain of bonds, of which every third has a dielectric constant of its own in VDGBNP."""
    atoms, chain = random_atoms(n), np.column_stack([np.arange(n - 1), np.arange(1, n)])
    labels = labels_of_elements(["C"] * n)
    names = np.where(np.arange(n) % 3 == 0, "OD1", labels.names)
    return replace(atoms, bonds=chain, labels=replace(labels, names=names, residue_names=np.array(["ASP"] * n)))


def energy_cases(device: Device) -> None:
    """Three tiles, batches, and every switch of the kernels in one of the precisions."""
    atoms, n = random_atoms(20), 20
    chain = np.column_stack([np.arange(n - 1), np.arange(1, n)])
    atoms = replace(atoms, bonds=chain, positions=atoms.positions + np.linspace(0, 30, n)[:, None])
    both = np.stack([atoms.positions, atoms.positions + 0.1])
    for variant, layouts in ENERGY_LAYOUTS.items():
        for layout in layouts:
            options = dict(variant=variant, precision="float32", device=device)
            with patch.object(type(layout), "of", lambda *_, layout=layout: layout):
                Energy(atoms, **(options | dict(precision="float64"))).evaluate_batch(both)
                Energy(atoms, per_atom=variant != "squares", cutoff=9.0, model=SALT, **options).evaluate()
                Energy(atoms, gradient=False, one_four="exclude", **options).evaluate()
                Energy(with_necks(atoms), model=NECKS, **options).evaluate()
                Energy(atoms, born="tree", **options).evaluate()
                if variant != "rows":  # which leaves nothing out
                    model = SolventModel(gb="none" if variant == "squares" else "obc2")
                    Energy(atoms, frozen=np.arange(10, n), model=model, **options).evaluate()
                Energy(atoms, fixed_radii=True, terms=RESTRAINTS, **options).evaluate()
    table = LennardJonesPairs([[0, 15], [3, 19], [6, 12]], [[3.0, 0.1]] * 3)
    Energy(replace(atoms, bonded=Bonded(lj_pairs=table)), cutoff=9.0, device=device).evaluate()
    rules = [
        SiteRule(19, (0, 1, 2), origin=(0.4, 0.3, 0.3)),
        SiteRule(18, (3, 4, 5), origin=(1, 0, 0), x=(-1, 1, 0), y=(-1, 0, 1), cross=0.2, local=(0.1, 0.2, 0.3)),
    ]
    for precision in PRECISIONS:
        sites = replace(atoms, virtual_sites=VirtualSites.of(rules))
        Energy(sites, rebuild_sites=True, precision=precision, device=device).evaluate()
    (layout,) = ENERGY_LAYOUTS["squares"]
    with patch.object(SquaresLayout, "of", lambda *_: layout), patch.object(squares, "MOST_LAYERS", 1):
        Energy(atoms, variant="squares", precision="float32", device=device).evaluate()
    gpu_layouts_case(device, random_atoms(40))
    for size, items in ((64, 1), (32, 8)):
        with patch.multiple(kernels, ATOMS_GPU=size, ITEMS_GPU=items):
            Energy(of_every_kind(40), per_atom=items == 1, variant="rows", device=device).evaluate()
    carbons = replace(atoms, labels=labels_of_elements(["C"] * n))
    places = RMSDVariable(range(6), atoms.positions)
    variables = [TorsionVariable([0, 1, 2, 3]), places, DistanceVariable(0, [5, 6])]
    grid = GridBias(variables, np.zeros((9, 9, 9, 8)), [None, (0.0, 9.0), (0.0, 30.0)])
    for kind in ("CPU", "GPU"):
        with patch.object(Device, "kind", kind):
            Energy(carbons, terms=[grid], variant="rows", device=device).evaluate()
    sgb_case(device)
    surface_case(device, Energy, n_shapes=2)
    surface_case(device, Energy, n_shapes=1, per_atom=True, gradient=False)


def gpu_layouts_case(device: Device, atoms: Atoms) -> None:
    """Compare the layouts that GPUs get by themselves, for few atoms and for many, with the definition."""
    expected = definition.energy(atoms)
    total = sum(term.sum() for term in expected.per_atom.values())
    machine = replace(Machine.of(device, "float64"), kind="GPU", width=1)
    for variant, kind in (("rows", RowsLayout), ("squares", SquaresLayout)):
        for n_atoms in (100, 10_000):
            layout = kind.of(machine, n_atoms)
            with patch.object(kind, "of", lambda *_, layout=layout: layout):
                found = Energy(atoms, variant=variant, precision="float64", device=device).evaluate()
            np.testing.assert_allclose(found.total, total, rtol=1e-11)
            apart = np.linalg.norm(found.gradient - expected.gradient) / np.linalg.norm(expected.gradient)
            assert apart < 1e-9, (variant, n_atoms)


def binding_cases(device: Device) -> None:
    """Pairs of residues of several sizes, in both precisions, with and without salt and a cutoff."""
    atoms = random_atoms(40)
    labels = replace(labels_of_elements(["C"] * 40), residue_index=np.repeat(np.arange(6), [3, 9, 1, 12, 5, 10]))
    bonds = np.column_stack([np.arange(19), np.arange(1, 20)])
    atoms = replace(atoms, labels=labels, bonds=bonds)
    both = np.stack([atoms.positions, atoms.positions + 0.1])
    for precision, model, cutoff in (("float32", SolventModel(), None), ("float64", SALT, 9.0)):
        options = dict(model=model, cutoff=cutoff, precision=precision, device=device, idecomp=4)
        Binding(atoms, np.arange(25, 40), **options).evaluate_batch(both)
        plan = Binding(atoms, np.arange(25, 40), model=model, precision=precision, device=device)
        PoseEvaluator(plan, True).evaluate(12 * both)


def joined_cases(device: Device) -> None:
    """Several steps in one launch, as on a GPU; the simulator's groups run one after the other and need no fence."""
    shipped_source = building.source_of
    edits = {
        "common/hand_over.clh": (FENCE, "mem_fence(CLK_GLOBAL_MEM_FENCE)"),
        "common/tickets.clh": (LOAD, "(*(counter))"),
    }

    def source(file: str) -> str:
        return shipped_source(file).replace(*edits[file]) if file in edits else shipped_source(file)

    shown = dict(kind="GPU", has_device_fence=True, vector_width=lambda device, precision: 1)
    atoms, newer = of_every_kind(70), building._options
    older = lambda *given: [option.replace("CL3.0", "CL1.2") for option in newer(*given)]  # noqa: E731
    with (
        patch.object(building, "source_of", source),
        patch.object(building, "_options", older),
        patch.multiple(Device, **shown),
    ):
        solvent_plan = Solvent(atoms, variant="tiled", device=device)
        both = np.stack([atoms.positions, atoms.positions + 0.1])
        found = solvent_plan.evaluate_batch(both)
        assert len(solvent_plan._idle[0].passes.joined) == 1
        apart = solvent_plan.evaluate_batch(both, profile=True)
        np.testing.assert_array_equal(found.energies, apart.energies)
        energy_plan = Energy(atoms, variant="squares", device=device)
        one = energy_plan.evaluate()
        assert len(energy_plan._idle[0].passes.launches) == 1
        several = energy_plan.evaluate_batch(both)
        assert len(energy_plan._idle[-1].passes.launches) == 4
        np.testing.assert_array_equal(one.energies, several.energies[0])
        np.testing.assert_array_equal(one.gradient, several.gradients[0])
        row = Ensemble(atoms, device=device).evaluate()
        assert len(row.state.groups[0].launches) == 1
        np.testing.assert_array_equal(row.gradients[0], one.gradient)
        wells = replace(atoms, labels=labels_of_elements(["C"] * 70))
        with patch.object(motion, "ITEMS", 16):  # so that a row has several groups, the last of which adds up
            simulation = Simulation(wells, timestep=0.1, model=SolventModel(gb="none"), variant="blocks", device=device)
            assert simulation.run(1).steps_made == [1]
        for in_runs in (0, 20):
            layout = BlocksLayout(1, 32, 16, in_runs)
            as_cpu = patch.multiple(Device, kind="CPU", can_yield=True)
            with as_cpu, patch.object(BlocksLayout, "of", lambda *_, layout=layout: layout):
                blocks_plan = Energy(atoms, variant="blocks", device=device)
                one = blocks_plan.evaluate()
                assert len(blocks_plan._idle[0].passes.launches) == 1
                several = blocks_plan.evaluate_batch(both)
            np.testing.assert_array_equal(one.energies, several.energies[0])
            np.testing.assert_array_equal(one.gradient, several.gradients[0])


# How an OpenCL C 3.0 device is told to hand over, which the simulator's compiler does not know.
FENCE = "atomic_work_item_fence(CLK_GLOBAL_MEM_FENCE, memory_order_acq_rel, memory_scope_device)"
LOAD = "atomic_load_explicit((volatile global atomic_int *)(counter), memory_order_relaxed, memory_scope_device)"


def minimize_cases(device: Device) -> None:
    """Do a few iterations of each method, in seats that structures leave and enter, by groups of GPUs and of CPUs."""
    atoms, vacuum = random_atoms(20), SolventModel(gb="none")
    starts = atoms.positions + 0.005 * np.arange(3)[:, None, None] * random_atoms(20, 1).positions
    bonds = np.column_stack([np.arange(0, 20, 2), np.arange(1, 21, 2)])
    held = replace(atoms, bonds=bonds, labels=labels_of_elements(["C", "H"] * 10))
    sprung = replace(of_every_kind(20), lj_epsilon=np.zeros(20), charges=np.zeros(20))
    of_gpu, of_cpu = ITERATING, methods_of.Shape(1, 1024, 1024, 16, 1)
    for shape, methods in ((of_gpu, METHODS), (of_cpu, ("lbfgs",))):
        with (
            patch.object(methods_of.Shape, "of", lambda *_: shape),  # noqa: B023
            patch.object(plans, "CHUNK_ATOMS", 40),
            patch.multiple(preconditioner, **BLOCKS),
            patch.object(methods_of, "BLOCK", 8),
            patch.object(preconditioner, "_fits", lambda queue: shape.items > 1),  # noqa: B023
        ):
            options = dict(max_iterations=2, device=device)
            for method in methods:
                model = SolventModel() if method == "newton" else vacuum
                of_method = options | dict(method=method, model=model, fixed_radii=method == "newton")
                Minimizer(atoms, **of_method).minimize_batch(starts)
            Minimizer(sprung, model=vacuum, **options).minimize_batch(starts[:1])
            minimize_many([random_atoms(17), sprung, random_atoms(9)], model=vacuum, **options)
            if shape is of_gpu:
                Minimizer(held, constraints="hbonds-present", model=vacuum, **options).minimize_batch(starts[:1])
                frozen = options | dict(frozen=np.arange(9), precision="float64")
                Minimizer(held, model=vacuum, **frozen).minimize_batch(starts[:1])


def ensemble_cases(device: Device) -> None:
    """Rows of two molecules, read, written, copied to themselves and minimized; and a driver of a user's."""
    atoms = random_atoms(17)
    molecules = [atoms, atoms, random_atoms(9)]
    ensemble = Ensemble(molecules, terms=RESTRAINTS[:1], model=SALT, device=device)
    ensemble.positions[1] = atoms.positions + 0.05
    ensemble.evaluate()
    ensemble.copy([0, 1], [1, 0])
    assert np.isfinite(ensemble.energies).all()
    ensemble.minimize(max_iterations=2)
    ensemble.frozen[1] = [0, 1]
    ensemble.minimize(max_iterations=1, rounds=2)
    with patch.multiple(preconditioner, **BLOCKS), patch.object(methods_of, "BLOCK", 8):
        ensemble.minimize(max_iterations=1, method="newton")
    page = (Path(__file__).parent.parent / "docs" / "extend" / "driver.md").read_text()
    section = page[page.index("`metropolis.cl`") :]
    kernel, code = (re.search(rf"```{kind}\n(.*?)```", section, re.DOTALL)[1] for kind in ("c", "python"))
    names: dict[str, Any] = {}
    exec(code, names)
    names["Metropolis"](ensemble, kernel).step(2)


def explore_cases(device: Device) -> None:
    """A residue as a ligand inside another one: screened, relieved, put into its poses."""
    peptide = read(shipped("data") / "structures" / "hexapeptide.pdb")
    atoms = peptide[np.isin(peptide.labels.residue_index, [0, 5])]
    ligand = np.flatnonzero(atoms.labels.residue_index == 1)
    settings = Settings(trials=2, steric_trials=3, translation_range=3.0, overlap_factor=0.7)
    walk = Walk.of(atoms, ligand, 2, settings=settings, device=device, only_terms=["bond"])
    x = atoms.positions.copy()
    x[ligand] += x[walk.receptor].mean(axis=0) - walk.center(x) + 1.0
    walk.ensemble.positions[:] = x
    for kind in ("CPU", "GPU"):
        move = Perturbation()
        with patch.object(perturbation, "TRIES", (3, 3)), patch.object(Device, "kind", kind):
            move.prepare(walk)
            move._screen.begin([0, 1], np.stack([x, x]), np.full(2, 9.0))
            centers = {row: walk.center(x) for row in (0, 1)}
            found = move._poses(walk, [0, 1], centers, {0: None, 1: None})
    move._screen.take({row: int(tries.argmax()) for row, tries in found.items()})
    assert np.isfinite(walk.ensemble.positions[:]).all()
    side_chain_cases(device)


def dynamics_cases(device: Device) -> None:
    """Bonds held or none, groups of GPUs and of CPUs, frozen atoms, ladders, growing biases, a row that stops."""
    methane = Atoms(
        [[0, 0, 0], [0.63, 0.63, 0.63], [-0.63, -0.63, 0.63], [-0.63, 0.63, -0.63], [0.63, -0.63, -0.63]],
        [-0.4, 0.1, 0.1, 0.1, 0.1], lj_sigma=np.full(5, 3.0), lj_epsilon=np.full(5, 0.1),
        gb_radii=np.full(5, 1.5), gb_scales=np.full(5, 0.8), labels=labels_of_elements(["C", *"HHHH"]),
        bonded=Bonded(
            bonds=Bonds([[0, k] for k in range(1, 5)], np.tile([340.0, 1.09], (4, 1))),
            excluded=np.array([[i, j] for i in range(5) for j in range(i + 1, 5)]),
        ),
    )  # fmt: skip
    ladder = dict(temperature=[300.0, 310.0, 320.0], exchange_every=2)
    with patch.object(Device, "kind", "GPU"):
        simulation = Simulation(methane, 3, constraints="hbonds", hydrogen_mass=2.0, device=device, **ladder).run(3)
        assert np.isfinite(simulation.kinetic_temperatures).all()
    clash = methane.positions.copy()
    clash[1] = 1e-3
    rows = Ensemble([methane] * 2, device=device)
    rows.positions[0] = clash
    rows.frozen[1] = [0]
    assert list(Simulation(rows, anneal=[[0, 300.0], [1, 0.0]]).run(2).errors) == [0]
    variables, widths, bounds = [DistanceVariable(1, [2, 3]), GyrationVariable(range(5))], [0.5, 0.5], [(0.0, 4.0)] * 2
    bias = Metadynamics(variables, widths, 0.1, 2, bounds=bounds)
    biased = Simulation(methane, 2, terms=[bias], timestep=0.5, device=device).run(4)
    assert biased.bias_energies("metadynamics").max() > 0
    bias = OPES(variables, widths, 5.0, 2, None, bounds, shared=True)
    biased = Simulation(methane, 2, terms=[bias], timestep=0.5, device=device).run(4)
    assert biased.bias_energies("opes").max() > -5
    targets = DistanceRestraint([[1, 2]], 1.8, 1.0, name="d")
    for shape in (None, (2, 2)):  # four attempts try all pairs of the latter
        kelvins = [300.0] * 3 if shape is None else [300.0, 300.0, 330.0, 330.0]
        hamiltonians = Ensemble(methane, len(kelvins), terms=[targets], device=device)
        hamiltonians.targets("d")[1] = [2.0]
        swapping = Simulation(
            hamiltonians, temperature=kelvins, exchange_every=1, exchange="hamiltonian", ladder_shape=shape,
            timestep=0.5,
        )  # fmt: skip
        assert swapping.run(4).exchanges[0].sum() == 4


def pb_cases(device: Device) -> None:
    """Groups of GPUs and planes of CPUs, codes and splines, salt or none, two rows; grids in the tail and before.

    Each surface and equation by one of the two, most by groups, whose work-items share memory.
    """
    atoms = random_atoms(5)
    salt = (PBIon(1, 0.1), PBIon(-1, 0.1))
    grid, small = Grid((-8, -8, -8), 2.0, (9, 9, 9)), Grid((-6, -6, -6), 1.5, (9, 9, 9))
    for is_cpu in (False, True):
        with (
            patch.object(Launching, "is_cpu", is_cpu), patch.dict(multigrid.MOST_IN_TAIL, {False: 200, True: 200}),
            patch.object(multigrid, "TAIL_GROUP", 32), patch.object(vectors, "GROUP", 32),
            patch.object(multigrid, "LEAST_SOLVING", 1),
        ):  # fmt: skip
            options = dict(device=device, tolerance=0.1, radii=np.full(5, 1.5))
            model = PBModel(ions=salt, equation="nonlinear", surface="edges", density=0.5)
            PoissonBoltzmann(atoms, model, grids=grid, **options).solve(grid_error=False)
            for surface in ("spl2",) if is_cpu else ("smol", "spl4"):
                model = PBModel(ions=salt, surface=surface, charges="spl2", boundary="sdh", density=0.5)
                PoissonBoltzmann(atoms, model, grids=small, reaction=False, **options).solve()
            two = np.array([atoms.positions, 0.9 * atoms.positions])
            chosen = PBModel(probe=0) if is_cpu else PBModel(ions=salt, equation="nonlinear", probe=0)
            PoissonBoltzmann(atoms, chosen, grids=small, **options).solve_frames(two, rows=2)
    few = Grid((-6, -6, -6), 3.0, (5, 5, 5))
    for solver in SOLVERS:
        PoissonBoltzmann(atoms, PBModel(probe=0), grids=few, reaction=False, solver=solver, **options).solve()


def side_chain_cases(device: Device) -> None:
    """Two rows with side chains of their own, with polar hydrogens and without; one row that rebuilds its own."""
    atoms = read(shipped("data") / "structures" / "hexapeptide.pdb")
    chains = side_chains_of(atoms)

    def few(_: RotamerLibrary, name: str, phi: float, psi: float) -> Rotamers:
        n = next(of.n_chi for of in chains if of.name == name)
        return Rotamers(np.linspace(-2, 3, 3 * n).reshape(3, n), np.full(3, 1 / 3), np.zeros((3, 2)))

    with patch.object(RotamerLibrary, "rotamers", few):
        for precision, model in zip(PRECISIONS, (SALT, SolventModel(gb="none")), strict=True):
            rows = Ensemble(atoms, 2, gradient=False, precision=precision, model=model, device=device).evaluate()
            predictor = SideChainPredictor(rows, atoms, chains, sweeps=2)
            predictor.predict([0, 1], [[1, 3], [0]])
            predictor.predict([1], [[3, 4, 0]], rebuild=True)
            assert np.isfinite(rows.positions[:]).all()


CASES = {
    "engine": ensemble_cases,
    "dynamics": dynamics_cases,
    "binding": binding_cases,
    "joined": joined_cases,
    "solvent": solvent_cases,
    "nonbond": nonbond_cases,
    "naive": naive_case,
    "potmap": potmap_cases,
    "ions": ions_cases,
    "explore": explore_cases,
    "pb": pb_cases,
    "energy": energy_cases,
    "minimize": minimize_cases,
}


def keep_programs() -> None:
    """Keep compiled programs for the next run: compiling takes up to half of the time."""
    entry_of = CachedProgram.of

    def of(device: Device, source: str, options: list[str], has_binary: bool = True) -> CachedProgram:
        with patch.object(Device, "kind", "CPU"):  # a user's simulator compiles whatever it runs
            return entry_of(device, source, options, has_binary)

    CachedProgram.of = of
    building._folder = lambda: Path(__file__).parents[1] / ".pytest_cache" / "oclgrind"


ABOUT_SQUARES = {"joined": {}, "energy": SMALL_GROUPS}  # cases with the groups that are not theirs
if __name__ == "__main__":
    keep_programs()
    simulator, bound, bind = get_device("oclgrind"), set[tuple[str, ...]](), Queue.bind
    Queue.bind = lambda self, file, name, *rest, **more: (
        bound.add((file, name)) or bind(self, file, name, *rest, **more)
    )
    small = ABOUT_SQUARES.get(sys.argv[1], SMALL_GROUPS | SMALL_SQUARES)
    for (place, attribute), value in (MINIMIZING | small).items():
        setattr(place, attribute, value)
    prepare = Launching.prepare  # of more kernels than the device keeps
    Launching.prepare = lambda self, file, name, *rest, **more: (
        bound.add((file, name)) or prepare(self, file, name, *rest, **more)
    )
    for name in sys.argv[1:]:
        CASES[name](simulator)
    print("kernels:", *sorted({f"{file}:{name}" for file, name, *_ in bound | set(simulator.kernels)}))
    print("all cases ran")
