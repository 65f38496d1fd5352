"""The models that were relaxed, as text and JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from ...errors import PeleError
from ...relax import RelaxResult, Violation, counts
from ..clock import elapsed
from ..energies import UNIT
from ..report import counted, duration
from ..tables import table
from ..terminal import one_line

_LISTED = 12  # violations of a model on screen

Done = tuple[Path, RelaxResult | PeleError]


def as_json_of(path: Path, result: RelaxResult | PeleError) -> Mapping[str, object]:
    """The object of a model that --json prints."""
    if isinstance(result, PeleError):
        return {"name": str(path), "error": one_line(str(result))}
    labels = result.atoms.labels
    assert labels is not None
    return {
        "name": str(path),
        "violations_before": counts(result.before),
        "violations_after": counts(result.after),
        "left": [violation.described(labels) for violation in result.after],
        "is_clean": result.is_clean,
        "atoms_added": result.n_added,
        "rms_displacement": result.rms_displacement,
        "rounds": [
            {**round_.result.to_dict(str(path)), "freed": list(round_.freed), "violations": counts(round_.after)}
            for round_ in result.rounds
        ],
        "seconds": dict(result.seconds),
    }


def as_text_of(done: Sequence[Done], output: Path, verbose: bool) -> str:
    """A table of all models, and the violations that are left."""
    heads = ("model", "violations", "left", "not counted", "rounds", "energy", "moved A", "prepared s", "s")
    lines = table(heads, [_cells(*of) for of in done], "<>>>>>>>>").split("\n")
    listed = list[str]()
    for k, (path, result) in enumerate(done, 1):
        if isinstance(result, PeleError):
            lines[k] = f"{lines[k].rstrip()}  {one_line(str(result))}"
        else:
            listed += _left(path, result, verbose)
    results = [result for _, result in done if isinstance(result, RelaxResult)]
    clean = sum(result.is_clean for result in results)
    ending = f"{counted(len(results), 'model')} -> {one_line(str(output))}, {clean:,} without violations"
    return "\n".join([f"Violations by AlphaFold's rule; energy, {UNIT}", *lines, *listed, "", ending, _times(results)])


def _cells(path: Path, result: RelaxResult | PeleError) -> list[str]:
    if isinstance(result, PeleError):
        return [one_line(path.name), *[""] * 8]
    before, after = ([v.counts for v in of] for of in (result.before, result.after))
    energy, seconds = float(result.rounds[-1].result.energy_after.total), result.seconds
    return [
        one_line(path.name), f"{sum(before):,}", f"{sum(after):,}", f"{len(after) - sum(after):,}",
        f"{len(result.rounds)}", f"{energy:,.1f}", f"{result.rms_displacement:.3f}", f"{seconds['preparation']:.2f}",
        f"{seconds['total']:.2f}",
    ]  # fmt: skip


def _left(path: Path, result: RelaxResult, verbose: bool) -> list[str]:
    """The violations that are left, those that count first."""
    labels = result.atoms.labels
    assert labels is not None
    left: list[Violation] = sorted(result.after, key=lambda violation: not violation.counts)
    shown = left if verbose else left[:_LISTED]
    more = [f"  and {len(left) - len(shown):,} more; -v lists them"] if len(left) > len(shown) else []
    lines = [f"  {violation.described(labels)}" for violation in shown]
    return ["", f"{one_line(path.name)}: left", *lines, *more] if left else []


def _times(results: Sequence[RelaxResult]) -> str:
    prepared, total = (sum(result.seconds[name] for result in results) for name in ("preparation", "total"))
    return f"In all {duration(elapsed())}: {duration(prepared)} preparing, {duration(total - prepared)} relaxing"
