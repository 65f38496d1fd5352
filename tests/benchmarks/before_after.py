"""Comparison of kernel times of two checkouts.

    python tests/benchmarks/before_after.py BEFORE AFTER [--device D] [--quick] [--calls]     (more: --help)

BEFORE and AFTER are folders of checkouts. Each runs in a separate process; the two alternate short measurements, so
that both are affected equally by the machine. "ratio" is the median over pairs of measurements, +- its standard error;
"quiet" is the ratio of the lower quartiles, which is least affected by other programs. A case with both ratios above
--bound is measured again, three times as long. If they are still above it, it is marked and the exit code is 1. Both
use the built-in rules (no tuning file).

"kernels" are device times (Born radii and energy for solvent); for energy, the time of one of many consecutive
evaluations, as in `bench energy`. With --calls, evaluations of an existing plan are also timed, by wall time including
the transfer of arrays.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median, quantiles

from evaluations import Case

QUANTITIES = ("solvent", "nonbond", "energy", "potmap")
# The variants where no --variant is given: those of the kind of device, slow ones of the courses left out by --quick.
VARIANTS = {
    "CPU": {
        "solvent": ("sequential", "inner", "outer", "pair", "tiled"),
        "nonbond": ("sequential", "atomic", "bitonic", "offsets", "offsets-group", "rows", "tiled"),
        "energy": ("blocks",),
        "potmap": ("sequential", "scatter", "gather", "constant", "coarsened", "shared", "coalesced", "blocked"),
    },
    "GPU": {
        "solvent": ("inner", "outer", "pair", "tiled"),
        "nonbond": ("atomic", "atomic-native", "bitonic", "offsets", "offsets-group", "rows", "tiled"),
        "energy": ("rows", "squares"),
        "potmap": ("scatter", "gather", "constant", "coarsened", "shared", "coalesced", "blocked"),
    },
}
QUICK = {"solvent": ("pair", "tiled"), "nonbond": ("rows", "tiled"), "potmap": ("gather", "blocked")}
SYSTEMS = {"CPU": ("ubiquitin", "src3"), "GPU": ("ubiquitin", "src3", "ruvab")}
MAPS = {"CPU": (48, 512), "GPU": (128, 4096)}  # points along an edge, atoms
TURN_SECONDS = 0.02  # of one turn; what is shorter is repeated
CASE_SECONDS = {False: 6.0, True: 2.0}  # by --quick: of all turns of one case
IQR_TO_ERROR = 0.93  # standard error of a median by the range of the middle half, times the root of the number
ROUNDS = (9, 41)  # fewest and most pairs of turns
LONGEST_SECONDS = 2.0  # a case that takes longer is left out
HEADS = ("before ms", "after ms", "ratio", "+-", "quiet")


class Checkout:
    """Process that times one checkout."""

    def __init__(self, folder: Path, device: str | None) -> None:
        paths = [str(folder), *filter(None, [os.environ.get("PYTHONPATH")])]
        more = {"PYTHONPATH": os.pathsep.join(paths), "PELE_OCL_TUNING": "off"}
        self._process = subprocess.Popen(
            [sys.executable, Path(__file__).with_name("evaluations.py")], text=True, cwd=folder,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={**os.environ, **more},
        )  # fmt: skip
        found = self._answer()
        if found != str(folder):
            sys.exit(f"{folder}: its process imports pele_ocl from {found}")
        self.kind = str(self.ask(device))

    def __enter__(self) -> Checkout:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()

    def _answer(self) -> object:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            sys.exit(f"the process of {self._process.args!r} ended; what it told is above")
        return json.loads(line)

    def ask(self, request: dict[str, object] | int | str | None) -> object:
        """Send a request; return the seconds, or the reason for a failure; for a case, the wall time in seconds."""
        assert self._process.stdin is not None
        print(json.dumps(request), file=self._process.stdin, flush=True)
        return self._answer()

    def seconds(self, count: int) -> float:
        """Return the median time of this number of evaluations."""
        found = self.ask(count)
        assert isinstance(found, float)
        return found


@dataclass(frozen=True)
class Ratio:
    """Medians of paired measurements.

    before, after : seconds; ratio, error : median over the pairs and its standard error
    quiet : ratio of the lower quartiles
    """

    before: float
    after: float
    ratio: float
    error: float
    quiet: float

    def is_above(self, bound: float) -> bool:
        """Return whether both ratios exceed the bound; a single one may be noise."""
        return min(self.ratio, self.quiet) > bound


def compare(before: Checkout, after: Checkout, once: float, budget: float) -> Ratio:
    """Measure both alternately; once : estimated seconds per evaluation, including overhead."""
    count = max(1, round(TURN_SECONDS / once))
    rounds = int(min(max(budget / (2 * count * once), ROUNDS[0]), ROUNDS[1]))
    pairs = []
    for number in range(rounds):
        if number % 2:
            second, first = after.seconds(count), before.seconds(count)
        else:
            first, second = before.seconds(count), after.seconds(count)
        pairs.append((first, second))
    ratios = [second / first for first, second in pairs]
    low, _, high = quantiles(ratios, n=4)
    firsts, seconds = zip(*pairs, strict=True)
    quiet = quantiles(seconds, n=4)[0] / quantiles(firsts, n=4)[0]
    return Ratio(median(firsts), median(seconds), median(ratios), IQR_TO_ERROR * (high - low) / rounds**0.5, quiet)


def cases(options: argparse.Namespace, kind: str) -> Iterator[Case]:
    """Yield all cases to be timed."""
    measures = ("kernels", "call") if options.calls else ("kernels",)
    for quantity in options.quantity or QUANTITIES:
        known = QUICK.get(quantity) if options.quick else None
        variants = options.variant or known or VARIANTS[kind][quantity]
        systems = options.system or SYSTEMS[kind]
        if quantity == "potmap":
            systems = ("{}^3 x {}".format(*MAPS[kind]),)
        for system in systems:
            for precision in options.precision or ("float32", "float64"):
                for variant in variants:
                    for measure in measures:
                        yield Case(quantity, system, precision, variant, measure, options.device)


def _row(cells: Sequence[str], numbers: Sequence[str], mark: str = "") -> str:
    widths = (9, 13, 10, 14, 9)
    text = "".join(f"{cell:{width}s}" for cell, width in zip(cells, widths, strict=True))
    return (text + "".join(f"{number:>12s}" for number in numbers) + f"  {mark}").rstrip()


def run(options: argparse.Namespace) -> int:
    """Print one line per case; return how many are slower than the bound."""
    slower, ratios, start = 0, dict[str, list[float]](), time.monotonic()
    with ExitStack() as stack:
        folders = (options.before.resolve(), options.after.resolve())
        both = [stack.enter_context(Checkout(folder, options.device)) for folder in folders]
        print(_row(("quantity", "system", "precision", "variant", "of"), HEADS))
        for case in cases(options, both[0].kind):
            found = [checkout.ask(asdict(case)) for checkout in both]
            if reasons := [reason for reason in found if isinstance(reason, str)]:
                print(_row(case.cells, ("",) * len(HEADS), f"not timed: {reasons[0]}"), flush=True)
                continue
            once = max(seconds for seconds in found if isinstance(seconds, float))
            if once > LONGEST_SECONDS:
                print(_row(case.cells, ("",) * len(HEADS), f"not timed: takes {once:.1f} s"), flush=True)
                continue
            result = compare(both[0], both[1], once, CASE_SECONDS[options.quick])
            if result.is_above(options.bound):
                result = compare(both[0], both[1], once, 3 * CASE_SECONDS[options.quick])
            mark = "SLOWER" if result.is_above(options.bound) else ""
            slower += bool(mark)
            ratios.setdefault(f"{case.quantity} {case.measure}", []).append(result.ratio)
            times = (f"{1e3 * seconds:,.4f}" for seconds in (result.before, result.after))
            ratios_of_it = (f"{value:.3f}" for value in (result.ratio, result.error, result.quiet))
            print(_row(case.cells, (*times, *ratios_of_it), mark), flush=True)
    medians = ", ".join(f"{name} {median(some):.3f}" for name, some in ratios.items())
    print(
        f"\nmedian ratios: {medians}; {slower} slower than {options.bound:g}; {time.monotonic() - start:.0f} s in all"
    )
    return slower


def arguments() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", type=Path, help="folder of the one checkout")
    parser.add_argument("after", type=Path, help="folder of the other")
    parser.add_argument("--device", help="part of a device's name, or its index; default: the best")
    parser.add_argument("--quick", action="store_true", help="the variants that `auto` takes, short measurements")
    parser.add_argument("--calls", action="store_true", help="also time complete calls of a stored plan")
    parser.add_argument("--bound", type=float, default=1.03, help="ratio beyond which a case is slower; default: 1.03")
    for name, choices in (("quantity", QUANTITIES), ("precision", ("float32", "float64")), ("system", None)):
        parser.add_argument(f"--{name}", action="append", choices=choices, help="may be repeated; default: all")
    parser.add_argument("--variant", action="append", help="may be repeated; default: those of the kind of device")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(1 if run(arguments()) else 0)
