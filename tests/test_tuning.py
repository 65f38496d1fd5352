"""Choices that were measured are remembered, obeyed where it fits, and never in the way."""

from __future__ import annotations

import json
from dataclasses import fields, replace
from itertools import product

import numpy as np
import pytest
from conftest import DEVICES, load_system, random_atoms
from tolerance import ENERGY, GRADIENT, MAP

from pele_ocl import DeviceError, Energy, Grid, InputError, Nonbond, pairs_within, potmap, solvent
from pele_ocl.bench import tune
from pele_ocl.bench.tune import VARIANTS
from pele_ocl.common.variant import PRECISIONS, Machine, Variant
from pele_ocl.energy.layout import BlocksLayout
from pele_ocl.opencl import Device
from pele_ocl.plan import tuning
from pele_ocl.plan.tuning import RULES, SIZES, BestChoice, Choice, Entry, TuningWarning, choices_for, offered, store
from pele_ocl.plan.tuning.findings import as_json, versions
from pele_ocl.potmap import MapOptions, planned
from pele_ocl.potmap.blocking import Blocking
from pele_ocl.potmap.variants import tuned_choice
from pele_ocl.solvent.layout import SolventLayout

DEVICE = DEVICES[0]
GRID = Grid((0, 0, 0), 0.9, (13, 9, 10))


@pytest.fixture
def file(tmp_path, monkeypatch):
    """A tuning file of the test's own, not there yet."""
    path = tmp_path / "tuning.json"
    monkeypatch.setenv("PELE_OCL_TUNING", str(path))
    return path


def entry(*findings: BestChoice, **other: str) -> Entry:
    """An entry of the device of the tests, with its versions or others."""
    version, kernels = versions()
    own = {
        "device": DEVICE.name, "platform": DEVICE.platform, "driver": DEVICE.driver, "pele_ocl": version,
        "kernels": kernels, "date": "2026-11-21",
    }  # fmt: skip
    return Entry(**{**own, **other}, findings=findings)


def found(quantity: str, choice: Choice, size: int = 100, precision: str = "float32") -> BestChoice:
    return BestChoice(quantity, precision, size, choice, 1.0, 1.5)


def remembered(quantity: str, device: Device, precision: str, size: int) -> Choice:
    return tuning.remembered(quantity, VARIANTS[quantity], device, precision, size)


def offer(monkeypatch, quantity: str, variant: str, **settings) -> Choice:
    """A choice that a variant of a quantity offers on any device, and its only one."""
    offering = replace(VARIANTS[quantity][variant], choices=lambda *_: [settings], made_for=None)
    monkeypatch.setitem(VARIANTS[quantity], variant, offering)
    return Choice.of(variant, **settings)


def some_choice(quantity: str, size: int = 100, precision: str = "float32", last: bool = True) -> Choice:
    """One that the rules do not pick."""
    choices = choices_for(VARIANTS[quantity], DEVICE, precision, size)
    return choices[-1 if last else 0]


# The file


def test_what_is_remembered_is_found_for_the_nearest_size(file):
    small, large = some_choice("energy", last=False), some_choice("energy", size=10**6)  # which small ones have, too
    assert small != large
    store.remember(entry(found("energy", small, 100), found("energy", large, 10_000), found("energy", RULES, 500)))
    sizes = {30: small, 200: small, 400: RULES, 2000: RULES, 3000: large, 40_000: large}
    assert {size: remembered("energy", DEVICE, "float32", size) for size in sizes} == sizes
    assert remembered("energy", DEVICE, "float64", 100) == remembered("solvent", DEVICE, "float32", 100) == RULES


@pytest.mark.parametrize(("quantity", "reach"), [("energy", 4), ("potmap", 16)])
def test_far_from_what_was_measured_the_rules_decide(file, quantity, reach):
    choice = some_choice(quantity, 10**5, last=False)
    store.remember(entry(found(quantity, choice, 10**5)))
    sizes = (10**5 // reach, 10**5 * reach, 10**5 // reach - 1, 10**5 * reach + 1, 10**7)
    assert [remembered(quantity, DEVICE, "float32", size) for size in sizes] == [choice, choice, RULES, RULES, RULES]


def test_the_file_is_for_reading(file):
    store.remember(entry(found("energy", some_choice("energy"))))
    text = file.read_text()
    content = json.loads(text)
    assert content["format"] == 1
    assert content["devices"][0]["device"] == DEVICE.name
    assert content["devices"][0]["findings"][0]["settings"] == dict(some_choice("energy").settings)
    assert text == json.dumps(content, indent=1, sort_keys=True) + "\n"
    assert {path.name for path in file.parent.iterdir()} == {file.name, f"{file.name}.lock"}


def test_remembering_keeps_what_was_not_measured_anew(file):
    other = entry(found("solvent", RULES), device="another", driver="1.0")
    first, second = found("energy", some_choice("energy"), 100), found("energy", some_choice("energy"), 2000)
    for one in (other, entry(first), entry(second), entry(replace(first, ms=0.5))):
        store.remember(one)
    assert store.entries() == (other, entry(replace(first, ms=0.5), second))


def test_what_another_version_measured_is_dropped_when_measured_anew(file):
    store.remember(entry(found("solvent", RULES), kernels="0" * 16))
    store.remember(entry(found("energy", RULES)))
    assert store.entries() == (entry(found("energy", RULES)),)


def test_kernels_in_folders_count_in_the_version(tmp_path, monkeypatch):
    monkeypatch.setattr("pele_ocl.plan.tuning.findings.shipped", lambda name: tmp_path)
    (tmp_path / "solvent").mkdir()
    digests = set()
    for text in ("one", "two"):
        (tmp_path / "solvent" / "tiled.cl").write_text(text)
        versions.cache_clear()
        digests.add(versions())
    versions.cache_clear()
    assert len(digests) == 2


@pytest.mark.parametrize("name", ["driver", "pele_ocl", "kernels"])
def test_other_versions_are_left_aside(file, name):
    store.remember(entry(found("energy", some_choice("energy")), **{name: "other"}))
    assert remembered("energy", DEVICE, "float32", 100) == RULES
    assert "other versions" in tuning.describe(DEVICE)
    assert "other" in tuning.describe(DEVICE)


def test_where_choices_come_from_is_told(file, monkeypatch):
    assert "`pele-ocl tune` measures" in tuning.describe(DEVICE)
    store.remember(entry(found("energy", some_choice("energy"))))
    assert tuning.describe(DEVICE) == f"as measured on 2026-11-21, {file}"
    monkeypatch.setenv("PELE_OCL_TUNING", "off")
    assert tuning.describe(DEVICE) == "built-in rules, PELE_OCL_TUNING is off"
    assert remembered("energy", DEVICE, "float32", 100) == RULES


def test_the_file_is_in_the_users_cache_folder_by_default(monkeypatch):
    monkeypatch.delenv("PELE_OCL_TUNING")
    monkeypatch.setattr("platformdirs.user_cache_dir", lambda name: f"/home/somebody/.cache/{name}")
    assert str(tuning.tuning_path()) == "/home/somebody/.cache/pele-ocl/tuning.json"


def row(**changes) -> str:
    """A file of one finding, some of it changed or, where None, missing."""
    finding = {
        "quantity": "energy", "precision": "float32", "size": 9, "variant": "rows", "settings": {}, "ms": 1,
        "rules_ms": 2, **changes,
    }  # fmt: skip
    kept = {name: value for name, value in finding.items() if value is not None}
    device = as_json(entry())
    return json.dumps({"format": 1, "devices": [{**device, "findings": [kept]}]})


BROKEN = {
    "empty": "", "cut": row()[:90], "list": "[]", "format": '{"format": 2, "devices": []}', "none": '{"devices": []}',
    "devices": '{"format": 1, "devices": 3}', "device": '{"format": 1, "devices": [{}]}', "quantity": row(quantity="x"),
    "size": row(size="many"), "zero": row(size=0), "settings": row(settings=[1]), "missing": row(ms=None),
}  # fmt: skip


@pytest.mark.parametrize("text", BROKEN.values(), ids=BROKEN)
def test_a_broken_file_is_one_warning_and_the_rules_decide(file, text):
    file.write_text(text)
    with pytest.warns(TuningWarning) as warned:
        assert [remembered("energy", DEVICE, "float32", 100) for _ in range(2)] == [RULES, RULES]
    (message,) = [str(warning.message) for warning in warned]
    assert message.startswith(f"{file}: not a valid tuning file")
    assert "\n" not in message


def test_a_file_that_is_no_text_or_no_file_is_a_warning(file):
    file.write_bytes(b"\xff\xfe\x00")
    with pytest.warns(TuningWarning, match="not a valid tuning file"):
        tuning.describe(DEVICE)
    file.unlink()
    file.mkdir()
    store._read.cache_clear()
    with pytest.warns(TuningWarning, match="Is a directory"):
        tuning.describe(DEVICE)


@pytest.mark.parametrize("changes", [{"variant": "sequential"}, {"variant": "blocks", "settings": {"tile": 37}}])
def test_a_choice_that_is_not_offered_is_not_taken(file, changes):
    file.write_text(row(**changes))
    assert remembered("energy", DEVICE, "float32", 9) == RULES


def test_forgetting(file):
    other = entry(found("solvent", RULES), device="another")
    assert not store.forget()
    store.remember(other)
    store.remember(entry(found("energy", RULES)))
    assert store.forget([DEVICE])
    assert store.entries() == (other,)
    assert not store.forget([DEVICE])
    assert store.forget()
    assert not file.exists()


def test_a_folder_that_cannot_be_made_is_a_sentence(file, monkeypatch):
    file.write_text("")
    monkeypatch.setenv("PELE_OCL_TUNING", str(file / "tuning.json"))
    with pytest.raises(InputError, match="cannot be created"):
        store.prepare_folder()
    monkeypatch.setenv("PELE_OCL_TUNING", "off")
    with pytest.raises(InputError, match="PELE_OCL_TUNING is off"):
        store.prepare_folder()


# What the quantities make of it


def test_auto_takes_what_is_remembered(file):
    atoms, pairs = random_atoms(300), pairs_within(random_atoms(300), 8)
    choices = {
        "solvent": Choice.of("pair"), "nonbond": Choice.of("rows"), "energy": some_choice("energy"),
        "potmap": some_choice("potmap"),
    }  # fmt: skip
    sizes = {"solvent": 300, "nonbond": len(pairs), "energy": 300, "potmap": 300 * len(GRID)}
    store.remember(entry(*(found(quantity, choice, sizes[quantity]) for quantity, choice in choices.items())))
    assert solvent(atoms, device=DEVICE).variant == "pair"
    assert Nonbond(atoms, pairs, device=DEVICE).variant == "rows"
    assert choice_for_map(atoms) == choices["potmap"]
    plan = Energy(atoms, device=DEVICE)
    assert {name: getattr(plan.layout, name) for name, _ in choices["energy"].settings} == dict(
        choices["energy"].settings
    )


def test_what_the_caller_names_is_taken(file):
    atoms = random_atoms(100)
    before = Energy(atoms, device=DEVICE, variant="rows").layout
    store.remember(entry(found("solvent", Choice.of("pair")), found("energy", some_choice("energy", last=True))))
    assert solvent(atoms, device=DEVICE, variant="tiled").variant == "tiled"
    if some_choice("energy").variant != "rows":
        assert Energy(atoms, device=DEVICE, variant="rows").layout == before


def choice_for_map(atoms, **options):
    """Return the choice for a map of atoms."""
    return tuned_choice(planned(atoms, GRID, MapOptions(device=DEVICE, **options)).problem, DEVICE)


def test_only_plain_potentials_are_measured(file):
    store.remember(entry(found("potmap", some_choice("potmap"), 50 * len(GRID))))
    atoms = random_atoms(50)
    assert choice_for_map(atoms) == some_choice("potmap")
    for options in ({"field": True}, {"method": "cutoff"}, {"ionic_strength": 0.1}):
        assert choice_for_map(atoms, **options) == RULES


def test_blocks_that_pad_a_map_more_are_not_taken(file, monkeypatch):
    wide = offer(monkeypatch, "potmap", "blocked", points=(16, 8))
    store.remember(entry(found("potmap", wide, 50 * len(GRID))))
    atoms, shapes = random_atoms(50), []
    monkeypatch.setattr(Blocking, "items", lambda layout, shape: shapes.append(layout.points) or (1, 1, 1))
    potmap(atoms, GRID, device=DEVICE)
    assert shapes
    assert (16, 8) not in shapes


def test_variants_that_cannot_do_what_is_wanted_are_not_taken(file, monkeypatch):
    squares = offer(monkeypatch, "energy", "squares")
    store.remember(entry(found("energy", squares)))
    atoms = random_atoms(100)
    assert Energy(atoms, device=DEVICE).variant == "squares"
    assert Energy(atoms, device=DEVICE, per_atom=True).variant != "squares"


# The choices


@pytest.mark.parametrize("kind", ["its own", "GPU"])
@pytest.mark.parametrize("quantity", SIZES)
def test_every_choice_gives_the_same(device, quantity, kind, monkeypatch):
    """Also those of GPUs, which any device can compute."""
    if kind == "GPU":
        if quantity == "energy" and device.vendor == "POCL":
            pytest.skip("PoCL compiles each of these for a minute; test_energy.py and oclgrind have their shapes")
        monkeypatch.setattr(Device, "kind", kind)
    system, precision = load_system("hexapeptide"), "float64" if device.has_float64 else "float32"
    atoms, pairs = system.atoms, pairs_within(system.atoms, 12)

    def result(choice: Choice) -> tuple[float, np.ndarray]:
        options = {"precision": precision, "device": device}
        with tuning.trying(quantity, choice):
            if quantity == "solvent":
                solved = solvent(atoms, **options)
                return solved.total, solved.born_radii
            if quantity == "nonbond":
                evaluated = Nonbond(atoms, pairs, **options).evaluate(born_radii=system.arrays["born_radius"])
                return evaluated.coulomb, evaluated.gradient
            if quantity == "energy":
                evaluated = Energy(atoms, **options).evaluate()
                return evaluated.total, evaluated.gradient
            values = potmap(atoms, Grid.around(atoms, padding=3), **options).map.values
            return float(values.sum()), values

    number, array = result(RULES)
    tolerance = {"potmap": MAP, "solvent": ENERGY}.get(quantity, GRADIENT)[precision]
    choices = choices_for(VARIANTS[quantity], device, precision, len(atoms))
    assert len(set(choices)) == len(choices) >= (1 if quantity == "nonbond" else 3)  # which has no layouts
    for choice in choices:
        other_number, other_array = result(choice)
        assert abs(other_number / number - 1) < 1e-9, choice
        assert np.linalg.norm(other_array - array) < 10 * tolerance * np.linalg.norm(array), choice


MACHINES = [
    Machine(kind, vendor, units, width, precision)
    for (kind, vendor, widths), units, precision in product(
        [("CPU", "INTEL", (8, 16)), ("CPU", "POCL", (1, 2, 4)), ("GPU", "NVIDIA", (1,)), ("GPU", "AMD", (1,))],
        (1, 6, 128), PRECISIONS,
    )
    for width in widths
]  # fmt: skip
LAYOUTS = {"solvent": SolventLayout, "energy": None, "potmap": Blocking}


@pytest.mark.parametrize("machine", MACHINES, ids=lambda m: f"{m.vendor}{m.units}x{m.width}{m.precision}")
@pytest.mark.parametrize("size", [1, 5000, 10**6])
def test_choices_are_what_the_kernels_take(machine, size):
    for quantity, layout in LAYOUTS.items():
        for choice in offered(VARIANTS[quantity], machine, size):
            settings = dict(choice.settings)
            if quantity == "energy":
                layout = VARIANTS["energy"][choice.variant].run().layout_type
            assert set(settings) <= {field.name for field in fields(layout)}
            tile = settings.get("tile", 32)
            assert tile % (machine.width * settings.get("vectors", 1)) == 0
            assert tile & (tile - 1) == 0
            if quantity == "energy" and choice.variant != "rows":
                assert tile % machine.width == 0


def test_a_new_variant_brings_its_own_choices(monkeypatch):
    new = Variant("f", "k", "s", print, choices=lambda machine, size: [{"tile": size}, {}])
    monkeypatch.setitem(VARIANTS["solvent"], "new", new)
    offers = [choice for choice in choices_for(VARIANTS["solvent"], DEVICE, "float32", 8) if choice.variant == "new"]
    assert offers == [Choice.of("new", tile=8), Choice.of("new")]


def test_a_choice_names_itself():
    assert str(Choice.of("blocked", unroll=2, points=(4, 8))) == "blocked points=4x8 unroll=2"
    assert str(RULES) == "rules"


# Measuring


class Stopwatch:
    """Work whose times are known: seconds of each choice, and what comes out."""

    def __init__(self, seconds, results=None) -> None:
        self.seconds, self.results = seconds, results or {}

    def __call__(self, case, device, precision):
        choice = tuning._tried.get()[1]
        if self.seconds[choice] is None:
            raise DeviceError("too small a device")
        return lambda: (self.seconds[choice], self.results.get(choice, 1.0))


FAST, FASTER, SLOW = Choice.of("a"), Choice.of("b", tile=8), Choice.of("c")


@pytest.fixture
def case(monkeypatch, file):
    variants = {
        choice.variant: Variant("f", "k", "s", print, choices=lambda *_, choice=choice: [dict(choice.settings)])
        for choice in (FAST, FASTER, SLOW)
    }
    monkeypatch.setitem(VARIANTS, "energy", variants)
    return tune.Case("some", random_atoms(50))


def measured(monkeypatch, case, *args) -> tune.Row:
    monkeypatch.setitem(tune.WORK, "energy", Stopwatch(*args))
    (only,) = tune.measure("energy", "float32", [case], DEVICE)
    return only


@pytest.mark.parametrize(
    ("seconds", "best", "ratio"),
    [
        ({RULES: 1.0, FAST: 0.9, FASTER: 0.8, SLOW: 3.0}, FASTER, 1.25),
        ({RULES: 1.0, FAST: 0.97, FASTER: 0.96, SLOW: 3.0}, RULES, 1.0),
        ({RULES: 1.0, FAST: None, FASTER: 2.0, SLOW: 1.1}, RULES, 1.0),
    ],
    ids=["faster", "noise", "slower"],
)
def test_the_fastest_wins_if_it_is_faster_by_more_than_the_noise(monkeypatch, case, seconds, best, ratio):
    only = measured(monkeypatch, case, seconds)
    assert (only.best, only.auto, only.size) == (best, RULES, 50)
    assert only.ratio == pytest.approx(ratio)
    assert only.seconds == {choice: value for choice, value in seconds.items() if value is not None}


def test_a_wrong_result_never_wins(monkeypatch, case):
    only = measured(monkeypatch, case, {RULES: 1.0, FAST: 1.0, FASTER: 0.1, SLOW: 1.0}, {FASTER: 1.01, SLOW: np.nan})
    assert only.best == RULES
    assert only.wrong == pytest.approx({FASTER: 0.01, SLOW: np.nan}, nan_ok=True)
    assert FASTER not in only.seconds


def test_a_lucky_time_does_not_win(monkeypatch, case):
    """Fastest at first, not when measured again."""
    times = iter([0.1] * 20 + [1.0] * 1000)

    class Lucky(Stopwatch):
        def __call__(self, case, device, precision):
            once = super().__call__(case, device, precision)
            return (lambda: (next(times), 1.0)) if tuning._tried.get()[1] == FASTER else once

    monkeypatch.setitem(tune.WORK, "energy", Lucky({RULES: 0.5, FAST: 0.5, FASTER: 0.5, SLOW: 0.5}))
    (only,) = tune.measure("energy", "float32", [case], DEVICE)
    assert only.best == RULES


def test_auto_is_what_is_chosen_now(monkeypatch, case):
    store.remember(entry(found("energy", FAST, 50)))
    only = measured(monkeypatch, case, {RULES: 1.0, FAST: 0.9, FASTER: 0.6, SLOW: 3.0})
    assert (only.auto, only.best) == (FAST, FASTER)
    assert only.ratio == pytest.approx(1.5)


def test_molecules_that_take_too_long_are_left_out(monkeypatch, case):
    cases = [case, tune.Case("larger", random_atoms(200)), tune.Case("largest", random_atoms(400))]
    monkeypatch.setitem(tune.WORK, "energy", Stopwatch(dict.fromkeys([RULES, FAST, FASTER, SLOW], 0.02)))
    assert [row.system for row in tune.measure("energy", "float32", cases, DEVICE)] == ["some", "larger", "largest"]
    monkeypatch.setitem(tune.WORK, "energy", Stopwatch(dict.fromkeys([RULES, FAST, FASTER, SLOW], 0.2)))
    assert [row.system for row in tune.measure("energy", "float32", cases, DEVICE)] == ["some"]
    assert len(list(tune.measure("energy", "float32", cases, DEVICE, whole=True))) == 3


@pytest.mark.parametrize("quantity", SIZES)
def test_the_work_is_what_auto_does(device, quantity):
    work = tune.WORK[quantity](tune.Case("some", random_atoms(60)), device, "float32")
    seconds, value = work()
    assert 0 < seconds < 10
    assert np.isfinite(value)
    assert value != 0


def test_only_settings_with_an_effect_are_tried_of_blocks():
    few, many = (Machine("CPU", "POCL", units, 8, "float32") for units in (2, 16))
    assert BlocksLayout.of(many, 1000).in_runs
    assert [[*each] for each in BlocksLayout.choices(many, 1000)] == [["tile"], ["tile"]]
    assert {*BlocksLayout.choices(few, 1000)[0]} == {*BlocksLayout.choices(many, 10_000)[0]} == {"tile", "most_parts"}
