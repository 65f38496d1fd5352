"""Chart of free energy maps of two torsions: one panel per wall time, for light and dark pages."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from .drift_chart import THEMES

KT = 0.5962  # kcal/mol at 300 K
BINS = 72
HIGHEST = 4.5  # kcal/mol that are drawn
TICKS = range(-180, 181, 90)


def draw_torsions(samples: Mapping[str, np.ndarray], stem: str) -> None:
    """Write STEM-light.png and STEM-dark.png. samples : by title, (n, 2) degrees"""
    for theme in THEMES:
        _draw(samples, Path(f"{stem}-{theme}.png"), *THEMES[theme][:2])


def _draw(samples: Mapping[str, np.ndarray], path: Path, background: str, text: str) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4.6 * len(samples) + 0.8, 4.4), dpi=110, facecolor=background, layout="constrained")
    panels = figure.subplots(1, len(samples), sharey=True, squeeze=False)[0]
    for axes, (title, angles) in zip(panels, samples.items(), strict=True):
        counts, edges, _ = np.histogram2d(angles[:, 0], angles[:, 1], bins=BINS, range=[[-180.0, 180.0]] * 2)
        energy = np.full(counts.shape, np.nan)
        met = counts > 0
        energy[met] = -KT * np.log(counts[met] / counts.max())
        drawn = axes.pcolormesh(edges, edges, energy.T, cmap="viridis_r", vmin=0, vmax=HIGHEST)
        axes.set_title(title, loc="left", color=text, fontsize=10)
        axes.set(facecolor=background, aspect="equal", xticks=TICKS, yticks=TICKS)
        axes.set_xlabel("φ, degrees", color=text)
        axes.tick_params(colors=text)
        for spine in axes.spines.values():
            spine.set_color(text)
    panels[0].set_ylabel("ψ, degrees", color=text)
    bar = figure.colorbar(drawn, ax=panels)
    bar.set_label("free energy, kcal/mol", color=text)
    bar.ax.tick_params(colors=text)
    figure.savefig(path, facecolor=background)
