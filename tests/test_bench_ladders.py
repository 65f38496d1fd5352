"""Ladders under the ceilings of a device: rates, what limits a rung, the chart, tables of sizes."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace

import pytest
from conftest import DEVICES, random_atoms
from test_cli import on_the_chosen_device, run

from pele_ocl import InputError, SolventModel
from pele_ocl.bench.ceilings import Ceilings, measure_ceilings
from pele_ocl.bench.groups import with_groups
from pele_ocl.bench.ladders import KernelWork, RungTime, counts, what_was_seen, why
from pele_ocl.bench.sizes import SIZED
from pele_ocl.kernels import KERNELS
from pele_ocl.opencl import Queue, get_device
from pele_ocl.solvent.pair import Molecule, Pair

__all__ = ["on_the_chosen_device"]  # a fixture that every test here uses

DEVICE = DEVICES[0]
CEILINGS = Ceilings("a device", "float32", roots=1e10, multiply_adds=1e11, bytes=5e10)


def rung(name: str, rate: float, roots: float = 1, multiply_adds: float = 5, read: float = 4) -> RungTime:
    return RungTime("potmap", name, 1e9 / rate, 1e9, KernelWork(roots, multiply_adds, read))


# A ladder whose rungs are limited by each ceiling in turn.
RUNGS = [
    rung("waiting", 1e8), rung("between", 2e9), rung("rooted", 9e9), rung("read", 9e9, 0.1, 2, 5),
    rung("added", 9e9, 0.1, 10, 1), rung("cached", 2e10, 0.1, 2, 20), rung("leaving out", 9e10, 1, 0.5, 0.1),
]  # fmt: skip


def test_ceilings_are_measured():
    found = measure_ceilings(DEVICE)
    assert 1e7 < found.roots < 1e15
    assert 1e7 < found.multiply_adds < 1e15
    assert 1e7 < found.bytes < 1e14
    assert found.multiply_adds > found.roots / 2


WORDS = [
    "limited by latency; most vector lanes are idle",
    "no single limit; reciprocal roots are the largest share",
    "limited by reciprocal roots",
    "limited by bytes",
    "limited by multiply-adds",
    "served by caches; it reads 8.0 times",
    "it performs fewer operations",
]


@pytest.mark.parametrize(("of", "words"), list(zip(RUNGS, WORDS, strict=True)), ids=lambda of: getattr(of, "rung", ""))
def test_why_is_computed_from_counts_and_ceilings(of, words):
    assert words in why(of, CEILINGS)
    assert why(replace(of, counts=None), CEILINGS) == f"{of.rung}: not counted"


def test_what_was_seen_names_the_largest_step():
    said = what_was_seen(RUNGS[:4], CEILINGS)
    assert said.startswith("In short: rooted is 90 times as fast as waiting")
    assert "the largest step, 20.0 times, is from waiting to between" in said


def test_counts_are_those_of_rungs():
    assert counts().keys() <= KERNELS.keys()
    assert len(counts()) >= 20
    gather, coarsened = counts()["potmap/gather"], counts()["potmap/coarsened"]
    assert gather.roots == pytest.approx(1, abs=0.05)  # one for a point and an atom
    assert gather.multiply_adds == pytest.approx(7, abs=0.1)  # three differences, three squares added, one product
    assert gather.bytes == pytest.approx(16.5, abs=0.6)  # an atom's four numbers
    assert coarsened.bytes == pytest.approx(gather.bytes / 4, abs=0.6)  # four points share an atom


@pytest.mark.parametrize("is_dark", [False, True])
def test_no_text_of_the_chart_is_cut_or_covers_another(tmp_path, is_dark):
    pytest.importorskip("matplotlib")
    from pele_ocl.bench.roofline import draw_ladders

    names = ["sequential", "scatter", "gather", "constant", "coarsened", "shared", "coalesced", "offsets-group"]
    rungs = [
        RungTime(
            ladder, name, 10.0 ** -(k / 2), 1e9, KernelWork(1.0, 3 + k, 4 if ladder == "solvent" else 0.3 + 5 * (k % 4))
        )
        for ladder in ("potmap", "solvent", "nonbond")
        for k, name in enumerate(names)
    ]
    figure = draw_ladders(tmp_path / "a.png", rungs, CEILINGS, is_dark=is_dark)
    assert (tmp_path / "a.png").read_bytes()[:4] == b"\x89PNG"
    whole, boxes = figure.bbox, text_boxes(figure)
    assert len(boxes) > 40
    for text, box in boxes:
        assert whole.x0 <= box.x0 <= box.x1 <= whole.x1, text
        assert whole.y0 <= box.y0 <= box.y1 <= whole.y1, text
    for (one, box), (other, second) in itertools.combinations(boxes, 2):
        assert not box.overlaps(second), f"{one} covers {other}"


def text_boxes(figure):
    """Boxes of all texts that are seen."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.text import Text

    FigureCanvasAgg(figure).draw()
    renderer = figure.canvas.get_renderer()
    boxes = []
    for axes in figure.axes:
        within = axes.get_window_extent(renderer)
        for axis, low, high in ((axes.xaxis, within.x0, within.x1), (axes.yaxis, within.y0, within.y1)):
            for label in axis.get_ticklabels(which="both"):
                box = label.get_window_extent(renderer)
                middle = (box.x0 + box.x1, box.y0 + box.y1)[axis is axes.yaxis] / 2
                if low - 1 <= middle <= high + 1:  # ticks beyond an axis are not drawn
                    boxes.append((label, box))
    labels = {label for axes in figure.axes for axis in (axes.xaxis, axes.yaxis) for label in axis.findobj(Text)}
    titles = {axis.label for axes in figure.axes for axis in (axes.xaxis, axes.yaxis)}
    others = [of for of in figure.findobj(Text) if of not in labels - titles]
    boxes += [(of, of.get_window_extent(renderer)) for of in others]
    return [(of.get_text(), box.shrunk(0.98, 0.9)) for of, box in boxes if of.get_text().strip()]


def test_sizes_have_a_table_for_each_rung():
    small = ("--points", 16, "--atoms", 20, "--runs", 3, "--variant", "gather", "--variant", "coarsened")
    done = run("bench", "potmap", *small, "--group", "8x4,4x2x2", "--points-per-item", "1,4")
    tables = done.stdout.strip().split("\n\n")
    assert [table.partition(":")[0] for table in tables] == ["gather", "coarsened"]
    assert [line.split()[0] for line in tables[1].splitlines()[1:]] == ["group", "8x4x1", "4x2x2"]
    assert all(float(rate) > 0 for rate in tables[1].splitlines()[2].split()[1:])
    wrong = run("bench", "potmap", "--group", "8,0", code=2)
    assert "is not a list of work-group sizes" in wrong.stderr
    assert set(SIZED) == {"gather", "coarsened", "shared", "coalesced"}


def test_solvent_says_why():
    done = run(
        "bench", "solvent", "--system", "hexapeptide", "--runs", 3, "--variant", "outer", "--variant", "tiled", "--why"
    )
    assert "\nouter: " in done.stdout
    assert done.stdout.rstrip().splitlines()[-1].startswith("In short: ")


def test_cutoff_is_in_the_table_of_maps():
    small = ("--points", 16, "--atoms", 20, "--runs", 3, "--variant", "cutoff", "--json")
    row = json.loads(run("bench", "potmap", *small).stdout)
    assert row["variant"] == "cutoff"
    assert row["error"] < 1e-5


@pytest.mark.slow
def test_all_ladders_and_their_chart(tmp_path):
    pytest.importorskip("matplotlib")
    done = run("bench", "ladders", "--why", "--chart", tmp_path / "a.svg")
    assert "potmap/gather: " in done.stdout
    assert "a second\n" in done.stdout
    assert (tmp_path / "a.svg").stat().st_size > 10_000


def test_pair_has_the_groups_of_the_thesis(device):
    """256 work-items, and as many as `--group` says; the largest groups of CPUs' runtimes are far slower."""
    atoms = random_atoms(40)
    chosen = get_device(device)
    for given, size in ((None, 256), (64, 64)):
        queue = Queue(with_groups(chosen, given), "float32")
        (launch,) = Pair(queue, Molecule.of(queue, atoms, SolventModel())).launches
        assert launch.group[0] == min(size, chosen.largest_group)
    for size in (48, 2 * chosen.largest_group):
        with pytest.raises(InputError, match="choose a power of two up to"):
            with_groups(chosen, size)
