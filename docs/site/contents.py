"""Order of the pages, taken from their links, so that no page needs words that only this site understands.

The headings of docs/index.md are the parts of the sidebar, with the pages that it links to there. Below another page
stand those to which it links in its own folder (docs/extend/README.md), or in that of its name. docs/develop.md is the
entry of the developers' part: what it links to is below it, outside the sidebar of docs/index.md and the search.
A link that has a file's name for its text gets the title of that page.
"""

from __future__ import annotations

import posixpath
import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sphinx.application import Sphinx

ROOT, DEVELOP = "index", "develop"
DOCS = Path(__file__).resolve().parents[1]
NAMED = re.compile(r"\[[\w./-]+\.md\](\([\w./-]+\.md\))")
LINK = re.compile(r"\]\(([\w./-]+)\.(?:md|txt|ipynb)(?:#[\w-]+)?\)")


def linked(text: str, page: str) -> list[str]:
    """List the pages that a page's text links to, each once, as paths below docs/ without their suffix."""
    folder = posixpath.dirname(page)
    return list(dict.fromkeys(posixpath.normpath(posixpath.join(folder, target)) for target in LINK.findall(text)))


def below(text: str, page: str) -> dict[str, list[str]]:
    """List the pages below a page, by the caption above them, which is "" but for the root's."""
    if page == ROOT:
        sections = re.split(r"^## (.+)$", text, flags=re.MULTILINE)
        parts = zip(sections[1::2], sections[2::2], strict=True)
        return {caption: pages for caption, part in parts if (pages := linked(part, page))}
    if page == DEVELOP:
        return {"": [target for target in linked(text, page) if target != ROOT]}
    folder = page.removesuffix("README") if page.endswith("README") else f"{page}/"
    pages = [target for target in linked(text, page) if target.startswith(folder) and target != page]
    return {"": pages} if pages else {}


@cache
def of_developers() -> frozenset[str]:
    """Find all pages of the developers' part."""
    found = [DEVELOP]
    for page in found:
        path = DOCS / f"{page}.md"
        found += [name for pages in below(path.read_text(), page).values() for name in pages] if path.exists() else []
    return frozenset(found)


def titled(text: str) -> str:
    """Empty such links in the text, which MyST fills."""
    return NAMED.sub(r"[]\1", text)


def add_contents(app: Sphinx, page: str, source: list[str]) -> None:
    """Put a hidden table of contents after the text of a page that has pages below it."""
    if app.env.doc2path(page).suffix != ".md":
        return
    text, source[0] = source[0], titled(source[0])
    for caption, pages in below(text, page).items():
        options = [":hidden:", *([f":caption: {caption}"] if caption else [])]
        source[0] += "\n".join(["", "", "```{toctree}", *options, "", *(f"/{name}" for name in pages), "```", ""])
    if page in of_developers():
        source[0] = f"---\nnosearch: true\n{'orphan: true' + chr(10) if page == DEVELOP else ''}---\n{source[0]}"


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx."""
    app.connect("source-read", add_contents)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
