"""Charts of docs/performance.md that compare pele-ocl with peers: python tests/benchmarks/peers_charts.py"""

from __future__ import annotations

from pathlib import Path

from harness.panels import draw

DOCS = Path(__file__).parents[2] / "docs"
TABLES = Path(__file__).parent / "measured"
NAMES = ("cpu-peers", "h200-peers")


def title_of(page: str) -> str:
    """Return the title of a page from its heading."""
    return page.partition("\n")[0].removeprefix("## ")


if __name__ == "__main__":
    for name in NAMES:
        page = (TABLES / f"{name}.md").read_text()
        draw(DOCS / "figures" / f"{name}.svg", page, title_of(page))
