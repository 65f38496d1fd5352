"""Log-free series of the HCT integral: distances from which it is taken, terms and coefficients."""

from __future__ import annotations

import numpy as np

from ..atoms import Floats
from ..common.variant import PRECISIONS
from ..opencl.interface import READY_TERMS, SANDER_TERMS

# Where the log-free series takes over, in scaled radii, and how many terms it needs there and farther out; what is left
# out: docs/theory/solvent.md, "Far pairs". Of pairs: FAR, and CLOSED where terms cost less than another closed form. Of
# whole tiles: FAR_A, FAR_B and FAR_C.
SERIES = {
    "float32": {"CLOSED": (3, 7), "FAR": (4, 5), "FAR_A": (5, 4), "FAR_B": (8, 3), "FAR_C": (20, 2)},
    "float64": {"CLOSED": (4, 10), "FAR": (4, 10), "FAR_A": (7, 7), "FAR_B": (12, 5), "FAR_C": (24, 4)},
}


def series_macros(precision: str) -> dict[str, int]:
    """Distances and numbers of terms as the macros of the kernels."""
    assert precision in PRECISIONS
    macros = {}
    for distance, (scaled_radii, terms) in SERIES[precision].items():
        macros[distance] = scaled_radii
        macros[distance.replace("FAR", "TERMS") if "FAR" in distance else "CLOSED_TERMS"] = terms
    return macros


def series_coefficients(scaled: Floats, series_first: bool = False) -> Floats:
    """k/(2k+1) s^(2k+1) for k = 1 to READY_TERMS, the coefficients of r^-(2k+2) in eq. 4; (READY_TERMS, n).

    series_first : whether spheres below 0 have SANDER_TERMS terms alone, of SolventModel
    """
    k = np.arange(1, READY_TERMS + 1)[:, None]
    coefficients: Floats = k / (2 * k + 1) * scaled ** (2 * k + 1)
    if series_first:
        coefficients[SANDER_TERMS:, scaled < 0] = 0
    return coefficients
