"""Kernel files as pages of the site, and links to them wherever a page names a file or a kernel.

A literal such as `cl/potmap/ladder/gather.cl` or `potmap_gather` becomes a link; the lines `#include` link, too. In the
course a name such as `gather` is an exercise or a kernel of the course, and `kernels/plane.cl` a file there.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from docutils import nodes

if TYPE_CHECKING:
    from sphinx.application import Sphinx

CL = Path(__file__).resolve().parents[2] / "cl"
COURSE = Path(__file__).resolve().parents[1] / "course"
FILE = re.compile(r"(?:cl/)?([\w/]+\.clh?)")
INCLUDE = re.compile(r'(<span class="cpf">(?:&quot;|"))([\w/]+\.clh)(&quot;|")')


@cache
def places() -> dict[str, tuple[str, int]]:
    """Find file and line of every kernel whose name no other has."""
    found: dict[str, list[tuple[str, int]]] = {}
    for path in sorted(CL.rglob("*.cl")):
        text = path.read_text()
        for name in re.finditer(r"^kernel .*void (\w+)\(", text, re.MULTILINE):
            place = str(path.relative_to(CL)), text.count("\n", 0, name.start()) + 1
            found.setdefault(name[1], []).append(place)
    return {name: of[0] for name, of in found.items() if len(of) == 1}


@cache
def of_course() -> dict[str, str]:
    """Find the file of every kernel of the course by its name, the exercise if it is one, and by its path."""
    files = [path.relative_to(COURSE).as_posix() for path in sorted(COURSE.glob("*/*.cl")) if path.parts[-2] != "mine"]
    named = {Path(file).stem: file for file in files if not file.startswith("solutions/")}
    return named | {file: file for file in files}


def page_of(file: str) -> str:
    """Name the page of a file below cl/."""
    return f"kernels/{file.replace('.', '-')}"


def target(text: str, page: str = "") -> tuple[str, str] | None:
    """Find page and anchor that a literal of a page names, or None."""
    if page.startswith("course/") and text in of_course():
        return page_of(f"course/{of_course()[text]}"), ""
    file = FILE.fullmatch(text)
    if file is not None:
        return (page_of(file[1]), "") if (CL / file[1]).is_file() else None
    place = places().get(text)
    return None if place is None else (page_of(place[0]), f"#L-{place[1]}")


def link(app: Sphinx, doctree: nodes.document, page: str) -> None:
    """Make links of the literals of a page that name a file or a kernel."""
    for literal in list(doctree.findall(nodes.literal)):
        found = None if isinstance(literal.parent, nodes.reference) else target(literal.astext(), page)
        if found is not None:
            uri = app.builder.get_relative_uri(page, found[0]) + found[1]
            reference = nodes.reference("", "", internal=True, refuri=uri)
            literal.replace_self(reference)
            reference += literal


def pages(app: Sphinx) -> Iterator[tuple[str, dict[str, Any], str]]:
    """Yield a page for each kernel file."""
    for path in sorted(CL.rglob("*.cl*")):
        file = str(path.relative_to(CL))
        page = page_of(file)
        code = app.builder.highlighter.highlight_block(path.read_text(), "c", force=True, lineanchors="L")  # type: ignore[attr-defined]

        def included(found: re.Match[str], page: str = page) -> str:
            if not (CL / found[2]).is_file():  # made by the host
                return found[0]
            uri = app.builder.get_relative_uri(page, page_of(found[2]))
            return f'{found[1]}<a href="{html.escape(uri)}">{found[2]}</a>{found[3]}'

        body = f"<h1>cl/{file}</h1>\n{INCLUDE.sub(included, code)}"
        yield page, {"title": f"cl/{file}", "body": body, "parents": []}, "page.html"
    for file in sorted(set(of_course().values())):
        code = app.builder.highlighter.highlight_block((COURSE / file).read_text(), "c", force=True)  # type: ignore[attr-defined]
        body = f"<h1>docs/course/{file}</h1>\n{code}"
        yield page_of(f"course/{file}"), {"title": file, "body": body, "parents": []}, "page.html"


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx."""
    app.connect("doctree-resolved", link)
    app.connect("html-collect-pages", pages)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
