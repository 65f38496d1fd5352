"""Charts of timings with matplotlib."""

from __future__ import annotations

import math
import sys
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING

from pele_ocl.common.errors import PeleError
from pele_ocl.common.writing import replacing

if TYPE_CHECKING:
    from matplotlib.axis import XAxis, YAxis
    from matplotlib.figure import Figure


def new_figure(width: float, height: float) -> Figure:
    """Return an empty figure, size in inches. Raises PeleError if matplotlib is not installed."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise PeleError("charts need matplotlib, which is not installed: pip install 'pele-ocl[plot]'") from None
    return Figure(figsize=(width, height), layout="constrained")


def save(figure: Figure, path: Path) -> None:
    """Write a figure as PNG atomically, with the command that created it and the date as metadata."""
    with replacing(path) as temporary:
        said = {"Command": " ".join(["python", *sys.argv]), "Date": datetime.now(timezone.utc).date().isoformat()}
        figure.savefig(temporary, format="png", dpi=150, metadata=said)


def plain(value: float, digits: int = 3) -> str:
    """Format a number >= 0 with at least this many digits, with thousands separators and without an exponent."""
    decimals = max(0, digits - 1 - math.floor(math.log10(value))) if value else 0
    return f"{value:,.{decimals}f}"


def logarithmic(axis: XAxis | YAxis) -> None:
    """Make an axis logarithmic, with plain numbers at the decades and no minor labels."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axis.axes.set(**{f"{axis.axis_name}scale": "log"})
    axis.set_major_locator(LogLocator(numticks=12))
    axis.set_major_formatter(FuncFormatter(lambda value, _: plain(value, 1)))
    axis.set_minor_formatter(NullFormatter())
