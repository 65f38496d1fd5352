"""Chart of total energies of velocity Verlet: a panel for each structure and time step, for light and dark pages."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

# Background, text, grid, then a colour of Okabe and Ito's for each series.
THEMES = {
    "light": ("#ffffff", "#222222", "#d0d0d0", ("#0072b2", "#c24e00", "#222222")),
    "dark": ("#131416", "#e6e6e6", "#4a4a4a", ("#56b4e9", "#e69f00", "#f0e442")),
}
DASHES = ("-", "--", ":")
Curves = Mapping[str, Mapping[str, np.ndarray]]


def draw_drift(curves: Curves, interval: float, stem: str) -> None:
    """Write STEM-light.png and STEM-dark.png: the first run of each series, minus its mean.

    curves : by panel and series, (n_times, n_runs) kcal/mol; interval : ps between times
    """
    for theme in THEMES:
        _draw(curves, interval, Path(f"{stem}-{theme}.png"), *THEMES[theme])


def _draw(
    curves: Curves, interval: float, path: Path, background: str, text: str, grid: str, colours: tuple[str, ...]
) -> None:  # fmt: skip
    from matplotlib.figure import Figure

    n_rows = -(-len(curves) // 2)
    figure = Figure(figsize=(9.0, 2.6 * n_rows), dpi=110, facecolor=background, layout="constrained")
    panels = figure.subplots(n_rows, 2, squeeze=False).ravel()
    for axes, (title, series) in zip(panels, curves.items(), strict=False):
        for colour, dashes, (name, energies) in zip(colours, DASHES, series.items(), strict=False):
            own = energies[:, 0]
            axes.plot(interval * np.arange(1, len(own) + 1), own - own.mean(), dashes, color=colour, lw=1.1, label=name)
        axes.set_title(title, loc="left", color=text, fontsize=10)
        axes.set_facecolor(background)
        axes.tick_params(colors=text)
        axes.grid(color=grid, lw=0.5)
        for spine in axes.spines.values():
            spine.set_color(grid)
        axes.set_xlabel("time, ps", color=text)
        axes.set_ylabel("total energy less its mean,\nkcal/mol", color=text)
    handles, names = panels[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside upper center", ncols=3, frameon=False, labelcolor=text)
    figure.savefig(path, facecolor=background)
