"""Timing tables of wrong kernels: the row is marked and the exit code is 1, unless inexact is the design."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from conftest import DEVICES
from test_cli import on_the_chosen_device, run, run_table
from timing_tables import energy as energy_bench
from timing_tables import ions

from pele_ocl.bench import bounds, nonbond, potmap, solvent
from pele_ocl.ladder import Rung

__all__ = ["on_the_chosen_device"]  # a fixture that every test here uses

QUICK = ("--system", "hexapeptide", "--runs", 3, "--precision", "float32")
LIST = ("--order", "sorted")


def wrong(text: str, command: str, variant: str) -> str:
    """Return the row of a variant in what a command printed."""
    return next(line for line in text.splitlines() if f"{variant} " in line and line.startswith(command))


def test_a_wrong_solvent_kernel(monkeypatch):
    born_radii = solvent.definition.born_radii

    def one_percent_off(*args):
        psi, born = born_radii(*args)
        return psi, born / 1.01

    monkeypatch.setattr(solvent.definition, "born_radii", one_percent_off)
    monkeypatch.setitem(solvent.VARIANTS, "outer", replace(solvent.VARIANTS["outer"], exact=False))
    done = run("bench", "solvent", *QUICK, "--variant", "outer", "--variant", "pair", code=1)
    assert wrong(done.stdout, "hexapeptide", "pair").endswith("1.0e-02  wrong")
    assert wrong(done.stdout, "hexapeptide", "outer").endswith("1.0e-02  inexact")
    assert done.stderr == "Error: wrong results: pair, float32, hexapeptide: error 1.0e-02, more than 1e-04\n"
    assert "speed-up over outer\n" in done.stdout


def test_a_wrong_nonbond_kernel(monkeypatch):
    evaluate = nonbond.NonbondLadder.evaluate

    def one_percent_off(plan, *args, **kwargs):
        result = evaluate(plan, *args, **kwargs)
        off = result.gradient is not None and plan.variant in ("rows", "naive")
        return replace(result, gradient=1.01 * result.gradient) if off else result

    monkeypatch.setattr(nonbond.NonbondLadder, "evaluate", one_percent_off)
    names = ("--variant", "naive", "--variant", "rows", "--variant", "tiled")
    done = run("bench", "nonbond", *QUICK, *LIST, *names, code=1)
    rows = [line for line in done.stdout.splitlines() if " with " in line]
    assert [line.rsplit(maxsplit=1)[1] for line in rows if "tiled" not in line] == ["inexact", "wrong"]
    assert done.stderr.startswith(
        "Error: wrong results: rows, float32, hexapeptide, sorted list: gradient error 1.0e-02"
    )
    assert run("bench", "nonbond", *QUICK, *LIST, "--variant", "naive").stderr == ""


def test_a_wrong_energy_kernel(monkeypatch):
    evaluate = energy_bench.Energy.evaluate

    def one_percent_off(plan, *args, **kwargs):
        result = evaluate(plan, *args, **kwargs)
        off = 1.01 if plan.precision == "float32" else 1.0  # the reference is float64
        return replace(result, gradient=off * result.gradient)

    monkeypatch.setattr(energy_bench.Energy, "evaluate", one_percent_off)
    done = run_table("energy", *QUICK, "--no-peers", "--json", code=1)
    assert "gradient error 1.0e-02" in done.stderr


@pytest.mark.parametrize("command", ["potmap", "ions"])
def test_a_wrong_map_kernel(monkeypatch, command):
    compute = potmap.potmap

    def one_percent_off(*args, **kwargs):
        result = compute(*args, **kwargs)
        return replace(result, map=replace(result.map, values=1.01 * result.map.values))

    monkeypatch.setattr({"potmap": potmap, "ions": ions}[command], "potmap", one_percent_off)
    options = ("--points", 40, "--runs", 3, "--precision", "float32")
    more = ("--atoms", 50, "--variant", "gather") if command == "potmap" else ("--ions", 4, "--system", "hexapeptide")
    timed = partial(run, "bench") if command == "potmap" else run_table
    done = timed(command, *options, *more, code=1)
    assert done.stdout.rstrip().endswith("wrong")
    assert "error 1.0e-02" in done.stderr


def test_no_number_is_wrong_and_an_unknown_error_is_not():
    timing = solvent.Timing("s", 1, "float32", "pair", "d", 1.0, False, None, float("nan"), {"error": 1.0})
    assert np.isnan(bounds.beyond(timing)["error"])
    assert bounds.mark(replace(timing, error=None)) == ""


def test_a_rung_is_exact_unless_it_says_otherwise():
    assert Rung("f", "k", "s", print).exact
    assert [name for name, variant in nonbond.VARIANTS.items() if not variant.exact] == ["naive"]


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("minimize", "--tolerance", "-1"), "-1.0 is not in the range x>0"),
        (("minimize", "--noise", "-1"), "-1.0 is not in the range x>=0"),
    ],
)
def test_what_cannot_be_timed_is_refused_first(words, reason):
    done = run_table(*words, code=2)
    assert done.stdout == ""
    assert reason in done.stderr


def test_a_new_method_of_maps_is_held_to_the_potential_of_all_atoms(monkeypatch):
    """One that approximates, without a cutoff and without an accuracy that is asked for."""
    compute = potmap.potmap
    monkeypatch.setattr(potmap, "CUTOFF", 4.0)
    monkeypatch.setitem(potmap.VARIANTS, "new", replace(potmap.VARIANTS["mesh"], method="new"))
    monkeypatch.setitem(potmap.MAP_METHODS, "new", replace(potmap.MAP_METHODS["mesh"], split=None))

    def by_mesh(atoms, grid, **options):
        return compute(atoms, grid, **{**options, "method": "mesh", "variant": "mesh"})

    monkeypatch.setattr(potmap, "potmap", by_mesh)
    atoms, grid = potmap.random_system(16, 50)
    (timing,) = potmap.measure(atoms, grid, "float32", DEVICES[:1], ["new"], runs=3)
    assert timing.error < potmap.DEFAULT_ACCURACY <= timing.bounds["error"]
