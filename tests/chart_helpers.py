"""Text labels of a chart that are cut off or overlap."""

from __future__ import annotations

import itertools


def boxes(figure) -> dict[str, object]:
    """Return the bounding box of each visible text of a figure."""
    from matplotlib.text import Text

    figure.draw_without_rendering()
    hidden = set()  # labels of ticks outside the axes, which are there but not drawn
    for axis in (axis for axes in figure.axes for axis in (axes.xaxis, axes.yaxis)):
        low, high = sorted(axis.get_view_interval())
        for tick in axis.get_major_ticks() + axis.get_minor_ticks():
            hidden |= set() if low <= tick.get_loc() <= high else {tick.label1, tick.label2}
    texts = [text for text in figure.findobj(Text) if text.get_visible() and text.get_text().strip()]
    texts = [text for text in texts if text not in hidden]
    # Of an annotation its words alone: the box of its line, which is thin and slanted, is mostly empty.
    return {f"{number} {text.get_text()}": Text.get_window_extent(text) for number, text in enumerate(texts)}


def unreadable(figure) -> list[str]:
    """Return texts that are cut off by the figure, and pairs that overlap."""
    found, whole = boxes(figure), figure.bbox
    cut = [
        name for name, box in found.items()
        if box.x0 < whole.x0 - 1 or box.x1 > whole.x1 + 1 or box.y0 < whole.y0 - 1 or box.y1 > whole.y1 + 1
    ]  # fmt: skip
    pairs = itertools.combinations(found.items(), 2)
    return cut + [f"{a} | {b}" for (a, box), (b, other) in pairs if box.padded(-0.5).overlaps(other.padded(-0.5))]
