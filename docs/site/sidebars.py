"""Sidebar of pages of code, made once for all that lie equally deep, because theirs differ in nothing else.

Else most of the time to build the site went there. In the tests' quick build all pages of a folder share theirs, which
differ in the mark of the page that is read.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sphinx.application import Sphinx

CODE = ("kernels/", "_modules/")


def share(made: dict[Any, str], app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    """Let a page of code take the sidebar of the first one that is as deep in folders."""
    is_code = page.startswith(CODE)
    if not is_code and not app.tags.has("quick"):
        return
    make, place = context["toctree"], page.count("/") if is_code else page.rpartition("/")[0]

    def toctree(**options: Any) -> str:
        key = place, *sorted(options.items())
        if key not in made:
            made[key] = make(**options)
        return made[key]

    context["toctree"] = toctree


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx."""
    app.connect("html-page-context", partial(share, {}), priority=400)  # before the theme asks for the sidebar
    return {"parallel_read_safe": True, "parallel_write_safe": True}
