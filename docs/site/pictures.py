"""Pictures on dark pages: NAME-dark.png replaces NAME.png or NAME-light.png where it exists.

Other white pictures are inverted by docs/site/static/site.css, outputs of notebooks as well. Drawings that follow the
theme by themselves and photographs of windows are left as they are.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from docutils import nodes
from sphinx.transforms import SphinxTransform

if TYPE_CHECKING:
    from sphinx.application import Sphinx

WINDOWS = {"ubiquitin-page.png"}


def dark_name(name: str) -> str:
    """Name the picture for dark pages, which may not exist."""
    return f"{name.removesuffix('.png').removesuffix('-light')}-dark.png"


def is_white(path: Path) -> bool:
    """Tell if a picture has a white background on every page."""
    if path.suffix != ".svg":
        return path.name not in WINDOWS
    text = path.read_text()
    return "prefers-color-scheme" not in text and 'fill="white"' in text


class Themes(SphinxTransform):
    """Adds the twin for dark pages to each picture of a page, or a class."""

    default_priority = 5  # before pictures are collected

    def apply(self, **_: object) -> None:
        """Called by Sphinx for each page."""
        folder = Path(self.env.doc2path(self.env.docname)).parent
        for image in list(self.document.findall(nodes.image)):
            path = folder / image["uri"]
            if not path.is_file():
                continue
            dark = dark_name(path.name)
            if path.with_name(dark).is_file():
                twin = image.deepcopy()
                twin["uri"] = image["uri"].replace(path.name, dark)
                image["classes"].append("only-light")
                twin["classes"].append("only-dark")
                image.parent.insert(image.parent.index(image) + 1, twin)
            elif is_white(path):
                image["classes"].append("white")


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx."""
    app.add_transform(Themes)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
