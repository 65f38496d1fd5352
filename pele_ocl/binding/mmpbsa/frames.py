"""Energies of each frame as CSV, in the layout of MMPBSA.py."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence

import numpy as np

from ...atoms import Floats
from .runs import METHODS, Results
from .tables import SUMS, shown_terms


def frames_csv(runs: Sequence[Results], verbose: int, of_gromacs: bool) -> str:
    """Energies of each frame as CSV: what MMPBSA.py writes with -eo."""
    out = io.StringIO()
    table = csv.writer(out, lineterminator="\n")
    for run in runs:
        table.writerow([f"{run.label} MUTANT" if run.label else f"{METHODS[run.method]}:"])
        shown = Results(shown_terms(run, verbose, of_gromacs), run.is_single)
        systems: dict[str, Mapping[str, Floats]] = {name.capitalize(): of for name, of in shown.energies.items()}
        if run.is_single and run.has_parts:
            systems["DELTA"] = shown.delta()
        for name, of in systems.items():
            prefix = "DELTA " if name == "DELTA" else ""
            table.writerow([f"{name} Energy Terms"])
            table.writerow(["Frame #", *(f"{prefix}{SUMS[t]}" if t in SUMS else f"{prefix if t == 'TOTAL' else ''}{t}"
                                         for t in of)])  # fmt: skip
            table.writerows([k, *row] for k, row in enumerate(np.stack([*of.values()], axis=1).tolist()))
            table.writerow([])
    return out.getvalue()
