"""Addresses of pages that are gone: each leads to the page that has their content now."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sphinx.application import Sphinx

GONE = {
    "cluster": "many",
    "coming-from-pele": "pele",
    "course/sources": "thesis",
    "jobs": "many",
}
PAGE = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>Moved</title>
<meta http-equiv="refresh" content="0; url={to}.html"><link rel="canonical" href="{to}.html"></head>
<body><p>This page is now <a href="{to}.html">here</a>.</p></body></html>
"""


def write(app: Sphinx, error: Exception | None) -> None:
    """Write a page for each address, beside the pages that were made."""
    if error is None and app.builder.name == "html":
        for page, to in GONE.items():
            path = Path(app.outdir, f"{page}.html")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(PAGE.format(to="../" * page.count("/") + to))


def stale() -> Iterator[str]:
    """Yield addresses that are pages again, or lead to none."""
    docs = Path(__file__).resolve().parents[1]
    for page, to in GONE.items():
        if (docs / f"{page}.md").exists() or not (docs / f"{to}.md").exists():
            yield page


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx."""
    app.connect("build-finished", write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
