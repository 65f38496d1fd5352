"""A picture of our energies against PELE's."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from os import PathLike

import numpy as np

from ...atoms import Floats
from ...common.errors import FormatError, PeleError
from ...common.writing import replacing
from .agreement import Agreement


def require_picture(path: str | PathLike[str]) -> None:
    """Raise where draw_against could not draw; to be called before any work is done.

    Raises PeleError where matplotlib is not installed, FormatError for a suffix other than .png or .svg.
    """
    if not str(path).lower().endswith((".png", ".svg")):
        raise FormatError(f"{path}: pictures end in .png or .svg")
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise PeleError("pictures need matplotlib, which is not installed: pip install 'pele-ocl[plot]'") from None


def draw_against(
    path: str | PathLike[str], energies: Mapping[str, tuple[Floats, Floats]], inputs: Iterable[str | PathLike[str]] = ()
) -> None:
    """Draw a panel for each energy, ours over PELE's, with correlation and offset.

    path : ends in .png or .svg; energies : name -> PELE's and ours, (m,) kcal/mol; inputs : that `path` must not be

    Raises as require_picture does.
    """
    require_picture(path)
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4.2 * len(energies), 4.2), layout="constrained")
    for axes, (name, (theirs, ours)) in zip(
        np.atleast_1d(figure.subplots(1, len(energies))), energies.items(), strict=True
    ):
        good = np.isfinite(theirs) & np.isfinite(ours)
        axes.plot(theirs[good], ours[good], ".", markersize=4)
        found = Agreement.of(theirs, ours)
        if good.any():
            axes.axline((float(theirs[good][0]), float(theirs[good][0]) + found.offset), slope=1, color="0.6", zorder=0)
        axes.set(title=f"{name}: {found.text}", xlabel="PELE [kcal/mol]", ylabel="pele-ocl [kcal/mol]")
    with replacing(path, inputs) as temporary:
        figure.savefig(temporary, dpi=150)
