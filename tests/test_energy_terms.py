"""Further terms of the energy: the harmonic positional restraint, beside others, in every variant and form of call."""

import re
from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from test_energy import EVERY_VARIANT, options
from test_reference_energy import bonded
from test_reference_nonbond import relative
from tolerance import ENERGY, GRADIENT

from pele_ocl import Ensemble, InputError, PositionalRestraint, Simulation, SolventModel, read
from pele_ocl.common.installation import shipped
from pele_ocl.energy import TERMS, Energy, energy
from pele_ocl.energy.layout import SquaresLayout
from pele_ocl.energy.terms import Term

SMALL = read(shipped("data") / "structures" / "trialanine.pdb")
NOISE = np.random.default_rng(5).normal(0, 0.3, (150, 3))


def moved_chain():
    """A chain, and the same with its atoms some tenths of an Angstrom away."""
    atoms = bonded(150, seed=15)
    return atoms, atoms.moved(atoms.positions + NOISE)


@EVERY_VARIANT
@pytest.mark.parametrize("held", [None, np.arange(0, 150, 2)], ids=["all", "some"])
def test_restraints_add_their_definition(device, precision, variant, held):
    atoms, moved = moved_chain()
    restraint = PositionalRestraint(7.5, atoms=held)
    more = dict(per_atom=variant != "squares", **options(device, precision, variant))
    bare = Energy(atoms, **more).evaluate(moved.positions)
    result = Energy(atoms, terms=[restraint], **more).evaluate(moved.positions)
    chosen = slice(None) if held is None else held
    energies, gradient = np.zeros(150), np.zeros((150, 3))
    energies[chosen] = 7.5 * (NOISE**2).sum(axis=1)[chosen]
    gradient[chosen] = 15 * NOISE[chosen]
    assert result.restraint == pytest.approx(energies.sum(), rel=ENERGY[precision])
    assert result.total == pytest.approx(bare.total + energies.sum(), rel=ENERGY[precision])
    np.testing.assert_array_equal(result.energies[:-1], bare.energies)
    assert relative(result.gradient, bare.gradient + gradient) < GRADIENT[precision]
    assert tuple(result.energy) == (*TERMS, "restraint", "total")
    if result.per_atom is not None:
        np.testing.assert_allclose(result.per_atom.restraint, energies, rtol=10 * ENERGY[precision])
        np.testing.assert_array_equal(result.per_atom.coulomb, bare.per_atom.coulomb)


def test_the_definition_has_the_gradient_of_its_energy():
    atoms, moved = moved_chain()
    restraint, step = PositionalRestraint(3.0, reference=atoms.positions), 1e-4
    _, gradient = restraint.energies(moved)
    for i, axis in ((0, 0), (70, 1), (149, 2)):
        shift = np.zeros((150, 3))
        shift[i, axis] = step
        up, down = (restraint.energies(moved.moved(moved.positions + s))[0].sum() for s in (shift, -shift))
        assert gradient[i, axis] == pytest.approx((up - down) / (2 * step), rel=1e-7)


@EVERY_VARIANT
def test_several_restraints_in_batches(device, variant):
    precision, (atoms, moved) = "float32", moved_chain()
    terms = [PositionalRestraint(1.0), PositionalRestraint(2.0, reference=moved.positions, name="target")]
    plan = Energy(atoms, terms=terms, **options(device, precision, variant))
    batch = plan.evaluate_batch(np.stack([atoms.positions, moved.positions, atoms.positions]))
    assert batch.restraint[0] == batch.target[1] == 0
    assert batch.target[0] == pytest.approx(2 * (NOISE**2).sum(), rel=ENERGY[precision])
    for k in range(3):
        alone = plan.evaluate(batch.positions[k])
        np.testing.assert_array_equal(batch[k].energies, alone.energies)
        np.testing.assert_array_equal(batch[k].gradient, alone.gradient)


@EVERY_VARIANT
def test_terms_alone_need_their_own_parameters(device, variant):
    """Neither GB radii nor Lennard-Jones parameters for charges alone; Born radii are not computed then."""
    atoms, there = bonded(50, seed=15), options(device, "float64", variant)
    whole = energy(atoms, model=SolventModel(gb="none"), **there)
    bare = replace(atoms, lj_sigma=None, lj_epsilon=None, gb_radii=None, gb_scales=None)
    alone = energy(bare, only_terms=["coulomb"], **there)
    assert alone.coulomb == pytest.approx(whole.coulomb, rel=1e-13)
    assert np.isnan(alone.born_radii).all()
    for term, missing in (("lennard_jones", "lj_sigma and lj_epsilon"), ("gb_pair", "gb_radii and gb_scales")):
        with pytest.raises(InputError, match=f"the energy needs {missing}, which these atoms do not have"):
            Energy(bare, only_terms=[term], **there)


def test_further_terms_need_no_other_passes(device, monkeypatch):
    """Kernels that compile for seconds are built once, whatever terms follow, if another kernel collects."""
    monkeypatch.setattr(SquaresLayout, "of", lambda *_: SquaresLayout(1, 32, 256, shares=4))
    (atoms, _), there = moved_chain(), options(device, "float32", "squares")
    built = []
    for terms in ([], [PositionalRestraint(1.0)]):
        Energy(atoms, terms=terms, **there).evaluate()
        built.append({key for key in device.programs if re.fullmatch(r"energy/squares/(pair|chain).cl", key[0])})
    assert built[1] == built[0] != set()


def test_energies_alone_have_the_term(device, precision):
    atoms, moved = moved_chain()
    result = Energy(atoms, gradient=False, terms=[PositionalRestraint(1.0)], **options(device, precision)).evaluate(
        moved.positions
    )
    assert result.gradient is None
    assert result.restraint == pytest.approx((NOISE**2).sum(), rel=ENERGY[precision])


def test_a_restraint_keeps_its_own_arrays(device):
    """A plan makes its buffers at its first evaluation, and again where two evaluations run at once."""
    atoms, moved = moved_chain()
    reference, held = moved.positions.copy(), np.arange(150) < 75
    restraint = PositionalRestraint(1.0, reference=reference, atoms=held)
    plan = Energy(atoms, terms=[restraint], **options(device, "float32"))
    reference += 5
    held[:] = True
    assert plan.evaluate().restraint == pytest.approx((NOISE[:75] ** 2).sum(), rel=ENERGY["float32"])
    within = []
    plan.evaluate_batch(np.stack([atoms.positions] * 2), lambda share: within.append(plan.evaluate().restraint))
    assert len(set(within)) == 1


def test_a_restrained_molecule_is_not_moved_to_the_middle(device, precision):
    """If nothing is restrained, a conformation far away is computed as if it were here."""
    atoms = bonded(50, seed=15)
    plan = Energy(atoms, terms=[PositionalRestraint(1.0)], **options(device, precision))
    with pytest.raises(InputError, match="the positions are too far from those of the molecule"):
        plan.evaluate(atoms.positions + 1e6)
    near = plan.evaluate(atoms.positions + np.array([20.0, 0, 0]))
    assert near.restraint == pytest.approx(50 * 400, rel=ENERGY[precision])


@pytest.mark.parametrize(
    ("terms", "message"),
    [
        (["restraint"], "terms contain str; expected a Term"),
        ([PositionalRestraint(1.0)] * 2, "there are two terms named restraint"),
        ([PositionalRestraint(1.0, name="coulomb")], "there are two terms named coulomb"),
        ([PositionalRestraint(1.0, atoms=[60])], "atoms to restrain are neither a mask of 50 atoms"),
        ([PositionalRestraint(1.0, reference=np.zeros((3, 3)))], r"positions have shape \(3, 3\)"),
    ],
)
def test_terms_that_do_not_fit(terms, message):
    with pytest.raises(InputError, match=message):
        energy(bonded(50, seed=15), terms=terms)


@pytest.mark.parametrize("constant", [-1, np.nan, "7", None])
def test_force_constants_are_numbers(constant):
    with pytest.raises(InputError, match=r"expected a number in kcal/mol/A\^2, 0 or more"):
        PositionalRestraint(constant)


def test_a_term_may_call_its_queue_by_the_former_name(device):
    """Terms of users that say `context.run` go on for a release, with a warning."""

    class Former(PositionalRestraint):
        def launches(self, context, index):
            assert context.run is context.queue
            return super().launches(context, index)

    atoms, moved = moved_chain()
    present = Energy(atoms, terms=[PositionalRestraint(7.5)], device=device).evaluate(moved.positions)
    with pytest.warns(DeprecationWarning, match=r"TermContext\.run is now TermContext\.queue"):
        former = Energy(atoms, terms=[Former(7.5)], device=device).evaluate(moved.positions)
    assert former.total == present.total


KERNEL = """
#include "common/real.clh"
#include "common/position.clh"
#include "energy/results.clh"

kernel void pull(
    const int n_atoms, const int n_energies, const int n_results, const int term, const real step,
    global const coordinate *restrict positions, global const real *restrict heights, global real *restrict results)
{
    const int i = get_global_id(0), conformation = get_global_id(2);
    if (i >= n_atoms) return;
    const Results own = results_of(results, conformation, n_results, n_energies, n_atoms);
    global const coordinate *x = positions + 3 * (size_t)conformation * n_atoms;
    const real d = coordinate_difference(x[3 * i], x[0], step);
#if GRADIENT
    own.gradient[3 * i] += heights[i];
    if (i == 0) for (int k = 0; k < n_atoms; ++k) own.gradient[0] -= heights[k];
#endif
    own.further[(size_t)term * n_atoms + i] = heights[i] * d;
}
"""


@dataclass(eq=False)
class Pull(Term):
    """Heights (n,) kcal/mol/A times the distances along x from the first atom; heights can be written."""

    source: object
    heights: np.ndarray
    name: str = "pull"
    kept: list = field(default_factory=list)

    def check(self, atoms):
        pass

    def energies(self, atoms):
        gradient = np.zeros((len(atoms), 3))
        gradient[:, 0] = self.heights
        gradient[0, 0] -= self.heights.sum()
        return self.heights * (atoms.positions[:, 0] - atoms.positions[0, 0]), gradient

    def launches(self, context, index):
        self.kept.append((context.queue, context.queue.upload(self.heights.copy())))
        return [context.bind(self.source, "pull", index, {"heights": self.kept[-1][1]})]

    def write(self, heights):
        self.heights = heights
        for queue, buffer in self.kept:
            queue.write(buffer, heights.astype(queue.dtype))


@pytest.mark.parametrize("form", ["path", "text"])
def test_a_kernel_of_a_user_is_a_file_anywhere_or_a_text(device, tmp_path, form):
    """Its buffers are written while plans, ensembles, simulations and minimizations use them."""
    (tmp_path / "pull.cl").write_text(KERNEL)
    source = tmp_path / "pull.cl" if form == "path" else KERNEL
    rng = np.random.default_rng(0)
    term = Pull(source, rng.normal(size=len(SMALL)))
    plan = Energy(SMALL, terms=[term], device=device)
    rows = Ensemble(SMALL, 2, terms=[term], device=device).evaluate()
    simulation = Simulation(SMALL, 2, terms=[term], timestep=0.5, seed=3, device=device)
    bare = Energy(SMALL, device=device).evaluate()
    for _ in range(3):
        wanted, gradient = term.energies(SMALL)
        assert plan.evaluate().pull == pytest.approx(wanted.sum(), rel=1e-5)
        np.testing.assert_allclose(rows.evaluate().terms().pull, wanted.sum(), rtol=1e-5)
        np.testing.assert_allclose(rows.gradients[1], bare.gradient + gradient, atol=0.02)
        placed = simulation.positions[0]
        pulled = term.energies(SMALL.moved(placed))[0].sum()
        expected = Energy(SMALL, device=device).evaluate(placed).total + pulled
        assert simulation.potential_energies[0] == pytest.approx(expected, abs=0.02)
        lowered = rows.minimize([0], max_iterations=2)[0]
        assert rows.terms([0]).pull[0] == pytest.approx(term.energies(lowered.atoms)[0].sum(), rel=1e-4)
        assert lowered.total == pytest.approx(rows.energies[0], abs=0.02)
        rows.positions[0] = SMALL.positions
        rows.evaluate()
        term.write(rng.normal(size=len(SMALL)))
        with pytest.raises(InputError, match="row 0 was not evaluated after its last change"):
            _ = rows.energies
        simulation.run(2)
    queue, buffer = term.kept[1]
    with pytest.raises(InputError, match="do not fit a buffer"):
        queue.write(buffer, np.zeros(len(SMALL) + 1, queue.dtype))
    with pytest.raises(InputError, match="the kernel cannot be read"):
        Energy(SMALL, terms=[Pull(tmp_path / "none.cl", term.heights)], device=device).evaluate()
    for wrong, words in ((None, "None"), ([None], "of type list")):
        term.launches = lambda context, index, found=wrong: found
        message = rf"launches of pull are {words}; expected a list of results of context.bind"
        with pytest.raises(InputError, match=message):
            Energy(SMALL, terms=[term], device=device).evaluate()
